"""NCL as in its paper: with the old labelled nodes in phase 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.data.labels import LabelledNewTask
from nodenova.losses import (
    l_neighborhood,
    l_perturb,
    l_pseudo,
    l_same_class,
    perturb,
    same_direction,
    similarity_softmax,
)
from nodenova.methods._two_heads import joined_model, new_head
from nodenova.methods.ncl import check_contrast
from nodenova.model.model import Model, trained_head
from nodenova.nn.seeding import sample
from nodenova.nn.training import TrainedMethod, rampup
from nodenova.settings import choice, setting
from nodenova.supervised._shared import gather_nodes, refresh_memory


@dataclass(frozen=True)
class NCLNCD(TrainedMethod):
    """NCL (neighborhood contrastive learning) with the old labelled nodes, as in its paper.

    Zhong et al., "Neighborhood Contrastive Learning for Novel Class Discovery", CVPR 2021.

        eta     = softmax(h^u(z)),  eta' and p' of the perturbed z'
        L_CE    = cross-entropy of h^l on the old nodes
        L_BCE   = pairwise cross-entropy of eta_i . eta'_j against cos(z_i, z_j) > lam, of new nodes
        L_MSE   = mean over old and new nodes of (p - p')^2, of h^l and of h^u
        l(z, y) = - log exp(cos(z, y)/tau)
                        / (exp(cos(z, z')/tau) + sum over M (and N) of exp(cos(z, .)/tau))
        L_NCL   = alpha l(z, z') + (1 - alpha) mean over the m nearest z~ in M of l(z, z~),
                  of new nodes, M the other ones
        N       = hard negatives: M's least similar entries mixed with old nodes,
                  the most similar mixtures kept
        L_SCL   = mean over z' and the old nodes z~ of the same class of l(z, z~),
                  of old nodes, M the other ones, no N
        L       = L_CE + L_BCE + omega(t) L_MSE + beta L_NCL + gamma L_SCL
        omega(t) = omega exp(-5 (1 - t/T)^2)

    Numbers are the released code's, where scripts differ those for CIFAR-10. What differs from the
    paper is what differs in `NCL`, which is this method without old nodes, and:

    - N is a fifth of the memory, or as many as there are old nodes if that is less.
    - The paper has no classifier for all classes; h^l and h^u stand side by side in one
      (`_two_heads`), with the means of the old classes recomputed from their nodes.
    - One new class: there is nothing to separate, L_BCE and L_NCL are left out.

    Attributes:
        epochs: Number of epochs, of one step each; released scripts.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        old: Weight of L_CE; released code.
        pairwise: Weight of L_BCE; released code.
        lam: Cosine above which two nodes count as the same class, in L_BCE; released code.
        omega: Weight of L_MSE after the ramp-up; released script for CIFAR-10.
        rampup_epochs: T of omega(t); released script for CIFAR-10.
        contrast: beta, weight of L_NCL; released code.
        old_contrast: gamma, weight of L_SCL; released code.
        alpha: Share of the node's own second view in L_NCL, neighbors have the rest; released code.
        neighbors: m of L_NCL; 0 is half of what a new class has on average, as in the released
            code.
        hard: Size of N in shares of the memory, 400 of 2000 as released; 0: none.
        tau: Temperature of the contrast l(z, y); released code.
        eta: Size of the perturbation z', SWORD's.
        new_rows: "concatenated": h^u's rows behind the old head's; "untrained": as `grow` makes
            them.
        pair_nodes: Number of new (or old) nodes above which an epoch compares pairs of a sample.
    """

    needs: ClassVar[tuple[str, ...]] = ("old_nodes", "old_labels")

    old: float = setting(1.0, at_least=0)
    pairwise: float = setting(1.0, at_least=0)
    lam: float = 0.95
    omega: float = setting(5.0, at_least=0)
    rampup_epochs: int = setting(50, at_least=0)
    contrast: float = setting(1.0, at_least=0)
    old_contrast: float = setting(0.1, at_least=0)
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

    def learn(self, model: Model, task: LabelledNewTask) -> Model:
        g, h_l, nodes = model.encoder(), trained_head(model, "ncl_ncd"), gather_nodes(model, task)
        h_u, m = new_head(h_l, task.num_new), len(nodes.old)

        def terms(epoch: int) -> dict[str, Tensor]:
            some = sample(len(nodes.new), self.pair_nodes, model.device)
            z = g(nodes.task.graph)[torch.cat([nodes.old, nodes.new[some]])]  # (m + n, hidden)
            z_prime = perturb(z, torch.randn_like(z), self.eta)
            logits_l, logits_u = h_l(z), h_u(z)  # (m + n, old), (m + n, new)
            prime_l, prime_u = h_l(z_prime), h_u(z_prime)
            parts = {}
            if self.old:
                parts["old"] = self.old * F.cross_entropy(logits_l[:m], nodes.y_old)
            if self.pairwise and task.num_new > 1:
                s = similarity_softmax(logits_u[m:], prime_u[m:])
                parts["pairwise"] = self.pairwise * l_pseudo(s, same_direction(z[m:], self.lam))
            if self.omega:
                l_mse = l_perturb(logits_l, prime_l) + l_perturb(logits_u, prime_u)
                parts["consistency"] = self.omega * rampup(epoch, self.rampup_epochs) * l_mse
            unit, unit_prime = F.normalize(z, dim=1), F.normalize(z_prime, dim=1)
            if self.contrast and task.num_new > 1:
                n = len(some)
                few = torch.randperm(m, device=model.device)[: round(self.hard * n)]
                near = self.neighbors or max(1, n // (2 * task.num_new))
                new, new_prime, old = unit[m:], unit_prime[m:], unit[few]
                l_ncl = l_neighborhood(new, new_prime, old, near, self.alpha, self.tau)
                parts["contrast"] = self.contrast * l_ncl
            if self.old_contrast:
                few = sample(m, self.pair_nodes, model.device)
                l_scl = l_same_class(unit[few], unit_prime[few], nodes.y_old[few], self.tau)
                parts["old_contrast"] = self.old_contrast * l_scl
            return parts

        history = self._train(terms, [g, h_l, h_u])
        model = refresh_memory(model, g, nodes)
        return joined_model(model, nodes.task, g, h_l, self.new_rows, h_u, history)
