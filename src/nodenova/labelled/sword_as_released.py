"""SWORD as its authors' script for new classes runs it: with the new nodes' labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nodenova.data.answers import GivenTask
from nodenova.heads import grow
from nodenova.losses.remembering import l_replay
from nodenova.losses.self_training import l_perturb, l_self, perturbed
from nodenova.model import Model, trained_head
from nodenova.prototypes import Prototypes
from nodenova.settings import check_settings
from nodenova.training import minimise, rampup

LEAKS = ("novel", "joint")


@dataclass(frozen=True)
class SwordAsReleased:
    """Hou et al., CIKM 2024, released code: shows what the labels in it are worth. Not the paper's method; that is `Sword`.

        L = 1.2 (L_CE + beta1 L_Self + beta2 L_Perturb) + 0.5 (L_Replay + omega L_Distill),   beta = alpha * rampup(epoch)

    L_CE is cross-entropy of h^u with the TRUE classes of the new training nodes; L_Pseudo (Eq. 4) is left out. The joint
    head learns new classes from h^u's verdicts (L_Self), which are then right. Also as released:
    - L_Perturb puts the noise on h^u's logits;
    - L_Replay draws 2 features a class with one sigma for all classes and dimensions, and leaves out the temperature;
    - L_Distill is one norm over all nodes, |Z_old - Z|_F;
    - fixed epochs, which the authors choose by dataset; 530 is Cora with GCN.

    What differs: phase 1 is everybody's. `leak="joint"` puts the labels into the joint head instead of h^u.
    """

    prefers: ClassVar[str] = "gcn"
    needs: ClassVar[tuple[str, ...]] = ("new_labels",)

    epochs: int = 530
    lr: float = 0.01
    weight_decay: float = 5e-4
    leak: str = "novel"
    alpha1: float = 0.08
    alpha2: float = 5.0
    rampup_epochs: int = 50
    eta: float = 0.2
    draws: int = 2
    omega: float = 10.0
    novel: float = 1.2  # weight of what is about new classes
    base: float = 0.5  # weight of what is about old classes

    def __post_init__(self) -> None:
        weights = ("alpha1", "alpha2", "omega", "novel", "base")
        check_settings(
            self,
            counts=("epochs", "draws"),
            not_negative=("lr", "weight_decay", "rampup_epochs", "eta", *weights),
            choices={"leak": LEAKS},
        )

    def learn(self, model: Model, given: GivenTask) -> Model:
        g, h_a = model.encoder(), grow(trained_head(model, "sword_as_released"), given.num_new)
        assert given.y is not None
        h_u = nn.Linear(g.spec.hidden, given.num_new).to(model.device)
        n_old, prototypes = len(model.classes), model.prototypes
        sigma = prototypes.var.mean().sqrt()
        ids, y = (torch.from_numpy(a).to(model.device) for a in (given.ids, given.y))
        with torch.no_grad():
            z_old = model.frozen_encoder()(given.graph)  # (N, hidden)

        def terms(epoch: int) -> dict[str, Tensor]:
            z = g(given.graph)  # (N, hidden)
            z_u = z[ids]  # (n, hidden)
            logits_u = h_u(z_u)  # (n, new)
            logits_prime = perturbed(logits_u, torch.randn_like(logits_u), self.eta)
            ramp = rampup(epoch, self.rampup_epochs)
            noise = torch.randn(self.draws, *prototypes.mean.shape, device=model.device)
            z_c = (prototypes.mean + sigma * noise).flatten(0, 1)
            y_c = torch.arange(n_old, device=model.device).repeat(self.draws)
            ce = F.cross_entropy(logits_u, y) if self.leak == "novel" else F.cross_entropy(h_a(z_u), n_old + y)
            y_hat = n_old + logits_u.detach().argmax(dim=1)  # Eq. 5
            return {
                "ce": self.novel * ce,
                "self": self.novel * self.alpha1 * ramp * l_self(h_a(z_u), y_hat),
                "perturb": self.novel * self.alpha2 * ramp * l_perturb(logits_u, logits_prime),
                "replay": self.base * l_replay(h_a(z_c) * h_a.temperature, y_c),
                "distill": self.base * self.omega * ((z_old - z).square().sum() + 1e-12).sqrt(),
            }

        history = minimise(terms, [g, h_a, h_u], epochs=self.epochs, lr=self.lr, weight_decay=self.weight_decay)
        new = Prototypes.remember(g, given.graph, ids, y, given.num_new)
        known = prototypes.followed_by(new)
        return model.grown(encoder=g, head=h_a, novel_head=h_u, prototypes=known, history=history)
