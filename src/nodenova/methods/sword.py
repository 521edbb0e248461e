"""SWORD: self-training with prototype replay and distillation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from nodenova.graph import NewTask
from nodenova.losses import (
    l_distill,
    l_distill_global,
    l_pairs,
    l_perturb,
    l_replay,
    l_self,
    perturb,
    perturb_logits,
    top_k_sets,
)
from nodenova.model.model import Model, linear_head, trained_head
from nodenova.nn.class_memory import Memory
from nodenova.nn.heads import grow
from nodenova.nn.sampling import Batches
from nodenova.nn.seeding import sample
from nodenova.nn.training import TrainedMethod, rampup
from nodenova.settings import choice, setting


@dataclass(frozen=True)
class Sword(TrainedMethod):
    """SWORD: self-training with prototype replay and distillation.

    Hou et al., "NC2D: Novel Class Discovery for Node Classification", CIKM 2024, section 3.2.

        L    = novel (L_Pseudo + beta1 L_Self + beta2 L_Perturb) + lam (L_Replay + omega L_Distill)
        beta = alpha * rampup(epoch)

    h^u learns from pairs of unlabelled nodes whether they belong together, the joint head h^a from
    the predictions of h^u; h^a replays old classes as features drawn from their statistics (the
    paper's prototypes), and g is kept near the old encoder. An ablation is a zero weight:
    `replace(Sword(), alpha1=0.0)` is SWORD without self-training.

    The paper leaves some points open, and its released code differs from it in others. `READINGS`
    holds whole readings as settings: "printed" follows the equations (except for the sign of
    Eq. 11), "released" follows the code without the labels in it. The default combines both, for
    the reasons given in docs/paper-notes.md.

    Attributes:
        epochs: Number of epochs, of one step each, on the whole visible graph or on a batch.
        lr: Learning rate of Adam.
        weight_decay: Weight decay of Adam.
        joint_head: "unit": h^a reads z/|z| at temperature 0.1, as released; "linear": z, as
            printed.
        k: Eq. 3: number of top activations that must agree.
        similarity: Eq. 2: "softmax": of p_i and the perturbed p'_j, as released; "sigmoid": of
            clean logits, as printed.
        pseudo: Weight of L_Pseudo, Eq. 4.
        alpha1: beta1 = alpha1 * rampup, weight of L_Self, Eq. 6.
        alpha2: beta2 = alpha2 * rampup, weight of L_Perturb, Eq. 8.
        rampup_epochs: Number of epochs of the ramp-up of beta1 and beta2.
        eta: Eq. 7: size of the perturbation.
        noise: Eq. 7: place of the noise: "z", as printed; "logits" of h^u, as released.
        perturb: Eq. 8: "new": outputs of h^u, as in the text and as released; "joint": of h^a, as
            printed.
        replay: Weight of L_Replay, Eq. 10.
        draws: Eq. 10: number of features drawn per class and epoch.
        sigma: Eq. 10: variance per "class", as printed; one "shared" by all, as released.
        replay_temperature: Whether Eq. 10 uses the temperature of h^a; released: no.
        omega: omega_fd, weight of L_Distill, Eq. 11.
        distill: Eq. 11: "global": Z as a whole, as released; distances of "all" nodes, or of "new"
            nodes, as printed.
        novel: Weight of the first three terms.
        lam: lambda of Eq. 14, weight of the old classes against the new.
        class_mean: Whether Eqs. 6 and 10 are divided by the number of classes, as printed.
        pair_nodes: Number of new nodes above which an epoch compares pairs of a sample, in Eq. 4.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> fitted = nova.fit(old, "gcn", epochs=20)
        >>> nova.discover(fitted, new, nova.Sword(epochs=5))
        Model(gcn, 4 classes, 2 of them discovered)

        As printed, and without self-training:

        >>> printed = nova.Sword(epochs=5, alpha1=0.0, **nova.Sword.READINGS["printed"])
        >>> sorted(nova.discover(fitted, new, printed).stages[-1].history)
        ['distill', 'perturb', 'pseudo', 'replay']
    """

    batches: ClassVar[bool] = True  # works with a model fitted on batches of nodes

    READINGS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "printed": {
            "joint_head": "linear",
            "similarity": "sigmoid",
            "perturb": "joint",
            "distill": "new",
            "class_mean": True,
        },
        "released": {"noise": "logits", "sigma": "shared", "draws": 2, "novel": 1.2, "lam": 0.5},
    }

    epochs: int = setting(600, at_least=1)
    joint_head: str = choice("unit", "linear")
    k: int = setting(3, at_least=1)
    similarity: str = choice("softmax", "sigmoid")
    pseudo: float = setting(1.0, at_least=0)
    alpha1: float = setting(0.08, at_least=0)
    alpha2: float = setting(5.0, at_least=0)
    rampup_epochs: int = setting(50, at_least=0)
    eta: float = setting(0.2, at_least=0)
    noise: str = choice("z", "logits")
    perturb: str = choice("new", "joint")
    replay: float = setting(1.0, at_least=0)
    draws: int = setting(20, at_least=1)
    sigma: str = choice("class", "shared")
    replay_temperature: bool = False
    omega: float = setting(10.0, at_least=0)
    distill: str = choice("global", "all", "new")
    novel: float = setting(1.0, at_least=0)
    lam: float = setting(0.4, at_least=0)
    class_mean: bool = False
    pair_nodes: int = setting(4096, at_least=1)

    def discover(self, model: Model, task: NewTask) -> Model:
        g, n_old, memory = model.encoder(), model.num_columns, model.memory
        read = trained_head if self.joint_head == "unit" else linear_head
        h_a = grow(read(model, "sword"), task.number)
        h_u = nn.Linear(g.spec.hidden, task.number).to(model.device)
        ids = torch.from_numpy(task.ids).to(model.device)
        over = h_a.num_classes if self.class_mean else 1
        batches = Batches(g, task.graph, ids, slice(None))
        with torch.no_grad():
            z_old = model.frozen_encoder()(task.graph)  # (N, hidden), the same in every epoch

        def terms(epoch: int) -> dict[str, Tensor]:
            graph, (new, every) = batches.draw()
            z = g(graph)  # (N, hidden)
            z_u = z[new.rows]  # (n, hidden)
            logits_u = h_u(z_u)  # (n, new)
            if self.noise == "z":
                z_prime = perturb(z_u, torch.randn_like(z_u), self.eta)
                logits_prime = h_u(z_prime)
            else:
                z_prime, draw = z_u, torch.randn_like(logits_u)
                logits_prime = perturb_logits(logits_u, h_u(z[every.rows]), draw, self.eta)
            novel, base, ramp = self.novel, self.lam, rampup(epoch, self.rampup_epochs)
            parts = {}
            if novel and self.pseudo:
                pairs = sample(len(z_u), self.pair_nodes, model.device)
                mine, key = logits_u[pairs], top_k_sets(z_u[pairs], self.k)
                others = logits_prime[pairs] if self.similarity == "softmax" else mine
                l_pseudo = l_pairs(mine, others, key, self.similarity)
                parts["pseudo"] = novel * self.pseudo * l_pseudo
            if novel and self.alpha1:
                y_hat = n_old + logits_u.detach().argmax(dim=1)  # Eq. 5
                parts["self"] = novel * self.alpha1 * ramp * l_self(h_a(z_u), y_hat) / over
            if novel and self.alpha2:
                both = (logits_u, logits_prime)
                if self.perturb == "joint":
                    both = (h_a(z_u), h_a(z_prime))
                parts["perturb"] = novel * self.alpha2 * ramp * l_perturb(*both)
            if base and self.replay:
                noise = torch.randn(self.draws, *memory.replay.mean.shape, device=model.device)
                z_c, y_c = memory.replay.draw(noise, self.sigma)
                scale = 1.0 if self.replay_temperature else h_a.temperature
                parts["replay"] = base * self.replay * l_replay(h_a(z_c) * scale, y_c) / over
            if base and self.omega:
                some = new if self.distill == "new" else every
                apart = l_distill_global if self.distill == "global" else l_distill
                parts["distill"] = base * self.omega * apart(z_old[some.ids], z[some.rows])
            return parts

        history = self._train(terms, [g, h_a, h_u])
        with torch.no_grad():
            y_hat = h_u(g(task.graph)[ids]).argmax(dim=1)
        new = Memory.remember(g, task.graph, ids, y_hat, task.number)
        known = memory.append(new)
        return model.grown(encoder=g, head=h_a, novel_head=h_u, memory=known, history=history)
