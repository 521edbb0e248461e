"""NCL: neighborhood contrastive learning."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.errors import SettingError
from nodenova.graph import NewTask
from nodenova.losses import (
    l_neighborhood,
    l_perturb,
    l_pseudo,
    perturb,
    same_direction,
    similarity_softmax,
)
from nodenova.methods._two_heads import joined_model, new_head, trained_parts
from nodenova.model.model import Model
from nodenova.nn.sampling import Batches
from nodenova.nn.seeding import sample
from nodenova.nn.training import TrainedMethod, rampup
from nodenova.settings import choice, setting


@dataclass(frozen=True)
class NCL(TrainedMethod):
    """Neighborhood contrastive learning: near nodes attract, mixtures with old features repel.

    Zhong et al., "Neighborhood Contrastive Learning for Novel Class Discovery", CVPR 2021.

        eta     = softmax(h^u(z)),  eta' of the perturbed z'
        L_BCE   = pairwise cross-entropy of eta_i . eta'_j against cos(z_i, z_j) > lam
        L_MSE   = mean of (eta_i - eta'_i)^2
        l(z, M) = alpha l(z, z')
                  + (1 - alpha) mean over the m nearest z~ in the memory M of l(z, z~)
        l(z, y) = - log exp(cos(z, y)/tau)
                        / (exp(cos(z, z')/tau) + sum over M and N of exp(cos(z, .)/tau))
        N       = hard negatives: the memory's least similar entries mixed with old features,
                  the most similar mixtures kept
        L       = L_BCE + omega(t) L_MSE + beta l(z, M),  omega(t) = omega exp(-5 (1 - t/T)^2)

    Numbers are the released code's, where scripts differ those for CIFAR-10 (for CIFAR-100 omega =
    50 and T = 150). What differs from the paper:

    - L_CE and supervised contrast are dropped with the old nodes; N mixes with features drawn from
      the statistics of the old classes, which are as surely of another class as the paper's
      labelled images are. Nothing else preserves the old classes.
    - The memory M is the present features of all the other new nodes, not a queue of the last 2000:
      there are fewer nodes, and all are in the batch. Sizes are the released code's in proportion:
      m is half of a class, N a fifth of the memory, made of a fifth of it (the code's share unless
      there are five new classes; then it is 1/40, one node or two here).
    - Mixtures are made once per epoch, not five times, and from the first epoch, not from the
      fourth.
    - z' is z with noise (eta * std per dimension). Contrast acts on z/|z|, not on a projection of
      it.
    - One step per epoch, on all new nodes, with Adam at phase 1's rate and decay, as in
      `AutoNovel`; so is the joint head.
    - One new class: there is nothing to separate (every negative would be of the same class),
      nothing is trained.

    Attributes:
        epochs: Number of epochs, of one step each; released scripts.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        pairwise: Weight of L_BCE; released code.
        lam: Cosine above which two nodes count as the same class, in L_BCE; released code.
        omega: Weight of L_MSE after the ramp-up; released script for CIFAR-10.
        rampup_epochs: T of omega(t); released script for CIFAR-10.
        contrast: beta, weight of l(z, M); released code.
        alpha: Share of the node's own second view in l(z, M), neighbors have the rest; released
            code.
        neighbors: m of l(z, M); 0 is half of what a new class has on average, as in the released
            code.
        hard: Size of N in shares of the memory, 400 of 2000 as released; 0: none.
        tau: Temperature of the contrast l(z, y); released code.
        eta: Size of the perturbation z', SWORD's.
        new_rows: "concatenated": h^u's rows behind the old head's; "untrained": as `grow` makes
            them.
        pair_nodes: Number of new nodes above which each epoch takes a random sample of them.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> model = nova.discover(nova.fit(old, "gcn", epochs=20), new, nova.NCL(epochs=5))
        >>> model
        Model(gcn, 4 classes, 2 of them discovered)
        >>> sorted(model.stages[-1].history)  # L_MSE, l(z, M) and L_BCE, epoch by epoch
        ['consistency', 'contrast', 'pairwise']
    """

    batches: ClassVar[bool] = True  # works with a model fitted on batches of nodes

    pairwise: float = setting(1.0, at_least=0)
    lam: float = 0.95
    omega: float = setting(5.0, at_least=0)
    rampup_epochs: int = setting(50, at_least=0)
    contrast: float = setting(1.0, at_least=0)
    alpha: float = setting(0.2, at_least=0)
    neighbors: int = setting(0, at_least=0)
    hard: float = setting(0.2, at_least=0)
    tau: float = setting(0.05, above=0)
    eta: float = setting(0.2, at_least=0)
    new_rows: str = choice("concatenated", "untrained")
    pair_nodes: int = setting(1024, at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_contrast(self.lam, self.alpha)

    def discover(self, model: Model, task: NewTask) -> Model:
        g, head, task, ids = trained_parts(model, task, "ncl")
        h_u, old = new_head(head, task.number), model.memory.replay
        batches = Batches(g, task.graph, ids)

        def terms(epoch: int) -> dict[str, Tensor]:
            graph, (new,) = batches.draw()
            z = g(graph)[new.rows]
            z_u = z[sample(len(z), self.pair_nodes, model.device)]  # (n, hidden)
            z_prime = perturb(z_u, torch.randn_like(z_u), self.eta)
            logits, logits_prime = h_u(z_u), h_u(z_prime)  # (n, new)
            parts = {}
            if self.pairwise:
                s = similarity_softmax(logits, logits_prime)
                parts["pairwise"] = self.pairwise * l_pseudo(s, same_direction(z_u, self.lam))
            if self.omega:
                omega = self.omega * rampup(epoch, self.rampup_epochs)
                parts["consistency"] = omega * l_perturb(logits, logits_prime)
            if self.contrast:
                n, drawn = len(z_u), z_u[:0]
                e = round(self.hard * n)
                if e:
                    count = math.ceil(e / len(old.mean))  # draws per old class
                    noise = torch.randn(count, *old.mean.shape, device=model.device)
                    drawn = F.normalize(old.draw(noise)[0][:e], dim=1)
                unit, unit_prime = F.normalize(z_u, dim=1), F.normalize(z_prime, dim=1)
                near = self.neighbors or max(1, n // (2 * task.number))
                l_ncl = l_neighborhood(unit, unit_prime, drawn, near, self.alpha, self.tau)
                parts["contrast"] = self.contrast * l_ncl
            return parts

        epochs = self.epochs if task.number > 1 else 0
        history = self._train(terms, [g, h_u], epochs)
        return joined_model(model, task, g, head, self.new_rows, h_u, history)


def check_contrast(lam: float, alpha: float) -> None:
    """Raise unless `lam` is a cosine and `alpha` a share."""
    if not -1 <= lam < 1:
        raise SettingError(f"lam is a cosine, at least -1 and below 1, it is {lam}")
    if alpha > 1:
        raise SettingError(f"alpha is a share, at most 1, it is {alpha}")
