"""SWORD: self-training with prototype replay and distillation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nodenova.heads import grow
from nodenova.losses.pairwise import l_pseudo, same_top_k, similarity_sigmoid, similarity_softmax
from nodenova.losses.remembering import l_distill, l_replay
from nodenova.losses.self_training import l_perturb, l_self, perturbed
from nodenova.model import Model, trained_head
from nodenova.prototypes import Prototypes
from nodenova.randomness import sample
from nodenova.settings import check_settings
from nodenova.task import NewTask
from nodenova.training import minimise, rampup

SIMILARITIES = {"softmax": similarity_softmax, "sigmoid": similarity_sigmoid}


@dataclass(frozen=True)
class Sword:
    """Hou et al., "NC2D: Novel Class Discovery for Node Classification", CIKM 2024, section 3.2.

    L = L_Pseudo + beta1 L_Self + beta2 L_Perturb + lam (L_Replay + omega L_Distill), beta = alpha * rampup(epoch).

    h^u learns from pairs of unlabelled nodes whether they belong together, the joint head h^a from h^u's verdicts;
    h^a remembers old classes by features drawn from their prototypes, and g is held near what it was.
    An ablation is a zero weight: `replace(Sword(), alpha1=0.0)` is SWORD without self-training.

    Where the paper is open or its equations cannot be meant as printed, docs/paper-notes.md says how it is read here.
    """

    prefers: ClassVar[str] = "gcn"

    epochs: int = 600
    lr: float = 0.01
    weight_decay: float = 5e-4
    k: int = 3  # Eq. 3: how many top activations must agree
    similarity: str = "softmax"  # Eq. 2: "softmax" as released, "sigmoid" as printed
    pseudo: float = 1.0  # weight of Eq. 4
    alpha1: float = 0.08  # beta1 = alpha1 * rampup, weight of Eq. 6
    alpha2: float = 5.0  # beta2 = alpha2 * rampup, weight of Eq. 8
    rampup_epochs: int = 50
    eta: float = 0.2  # Eq. 7: size of the perturbation
    replay: float = 1.0  # weight of Eq. 10
    draws: int = 20  # Eq. 10: features drawn per class and epoch
    replay_temperature: bool = True  # Eq. 10 with the temperature of inference; False leaves it out, as released
    omega: float = 10.0  # omega_fd, weight of Eq. 11
    lam: float = 0.4  # lambda of Eq. 14: old classes against new
    pair_nodes: int = 4096  # above this many new nodes, each epoch compares the pairs of a random sample

    def __post_init__(self) -> None:
        weights = ("pseudo", "alpha1", "alpha2", "replay", "omega", "lam")
        check_settings(
            self,
            counts=("epochs", "k", "draws", "pair_nodes"),
            not_negative=("lr", "weight_decay", "rampup_epochs", "eta", *weights),
            choices={"similarity": tuple(SIMILARITIES)},
        )

    def discover(self, model: Model, task: NewTask) -> Model:
        g, h_a = model.encoder(), grow(trained_head(model, "sword"), task.num_new)
        h_u = nn.Linear(g.spec.hidden, task.num_new).to(model.device)
        n_old, prototypes = model.num_columns, model.prototypes
        ids = torch.from_numpy(task.ids).to(model.device)
        with torch.no_grad():
            z_old = model.frozen_encoder()(task.graph)  # (N, hidden), the same in every epoch

        def terms(epoch: int) -> dict[str, Tensor]:
            z = g(task.graph)  # (N, hidden)
            z_u = z[ids]  # (n, hidden)
            logits_u = h_u(z_u)  # (n, new)
            logits_prime = h_u(perturbed(z_u, torch.randn_like(z_u), self.eta))
            ramp = rampup(epoch, self.rampup_epochs)
            parts = {}
            if self.pseudo:
                pairs = sample(len(ids), self.pair_nodes, model.device)
                s = SIMILARITIES[self.similarity](logits_u[pairs], logits_prime[pairs])
                parts["pseudo"] = self.pseudo * l_pseudo(s, same_top_k(z_u[pairs], self.k))
            if self.alpha1:
                y_hat = n_old + logits_u.detach().argmax(dim=1)  # Eq. 5
                parts["self"] = self.alpha1 * ramp * l_self(h_a(z_u), y_hat)
            if self.alpha2:
                parts["perturb"] = self.alpha2 * ramp * l_perturb(logits_u, logits_prime)
            if self.lam and self.replay:
                noise = torch.randn(self.draws, *prototypes.mean.shape, device=model.device)
                z_c, y_c = prototypes.draw(noise)
                scale = 1.0 if self.replay_temperature else h_a.temperature
                parts["replay"] = self.lam * self.replay * l_replay(h_a(z_c) * scale, y_c)
            if self.lam and self.omega:
                parts["distill"] = self.lam * self.omega * l_distill(z_old, z)
            return parts

        history = minimise(terms, [g, h_a, h_u], epochs=self.epochs, lr=self.lr, weight_decay=self.weight_decay)
        with torch.no_grad():
            y_hat = h_u(g(task.graph)[ids]).argmax(dim=1)
        new = Prototypes.remember(g, task.graph, ids, y_hat, task.num_new)
        known = prototypes.followed_by(new)
        return model.grown(encoder=g, head=h_a, novel_head=h_u, prototypes=known, history=history)
