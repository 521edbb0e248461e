"""AutoNovel as in its paper: with the old labelled nodes in phase 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.data.labels import LabelledNewTask
from nodenova.errors import SettingError
from nodenova.losses import l_pairs, l_perturb, l_self, perturb, top_k_sets
from nodenova.methods._two_heads import joined_model, new_head
from nodenova.model.model import Model, trained_head
from nodenova.nn.class_memory import Memory
from nodenova.nn.heads import grow
from nodenova.nn.seeding import sample
from nodenova.nn.training import TrainedMethod, rampup
from nodenova.settings import setting
from nodenova.supervised._shared import gather_nodes, refresh_memory


@dataclass(frozen=True)
class AutoNovelNCD(TrainedMethod):
    """AutoNovel with the old labelled nodes in phase 2, as in its paper.

    Han et al., "Automatically Discovering and Learning New Visual Categories with Ranking
    Statistics", ICLR 2020.

        eta   = softmax(h^u(z)),  eta' and p' of the perturbed z'
        L_CE  = cross-entropy of h^l on the old nodes
        s_ij  = 1 if top_k(z_i) = top_k(z_j) as sets, else 0, of new nodes i, j
        L_BCE = - mean over pairs of s_ij log(eta_i . eta'_j) + (1 - s_ij) log(1 - eta_i . eta'_j)
        L_MSE = mean over old and new nodes of (p - p')^2, of h^l and of h^u
        L     = L_CE + L_BCE + omega(t) L_MSE,  omega(t) = omega exp(-5 (1 - t/T)^2)

    `incremental` is the paper's variant that ends in one classifier for all classes: h^l grows by
    the new classes at the start, L_CE and L_MSE are over all its logits, and it learns the new ones
    from h^u:

        L    += increment exp(-5 (1 - t/T)^2) cross-entropy of h^l on the new nodes with argmax h^u

    Without it h^l has old classes only, and the two heads are joined afterwards (see `_two_heads`).

    Numbers are those of the released script for CIFAR-10 (k and `increment` are the same in all).
    What differs from the paper is what differs in `AutoNovel`, which is this method without old
    nodes, and:

    - Both heads read z/|z| at the joint head's temperature, h^u without bias.
    - One new class: there is nothing to separate, L_BCE is left out; the rest is trained, and with
      `incremental` every new node is then known to be of that class.

    Attributes:
        epochs: Number of epochs, of one step each; released scripts.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        old: Weight of L_CE; released code.
        k: Number of top activations that must agree, in s_ij; released code.
        pairwise: Weight of L_BCE; released code.
        omega: Weight of L_MSE after the ramp-up; released script for CIFAR-10.
        rampup_epochs: T of omega(t); released script for CIFAR-10.
        incremental: Whether one head learns old and new classes together.
        increment: Weight of the pseudo-labels argmax h^u after the ramp-up; released scripts.
        eta: Size of the perturbation z', SWORD's.
        pair_nodes: Number of new nodes above which each epoch takes a random sample of them.
    """

    needs: ClassVar[tuple[str, ...]] = ("old_nodes", "old_labels")

    old: float = setting(1.0, at_least=0)
    k: int = setting(5, at_least=1)
    pairwise: float = setting(1.0, at_least=0)
    omega: float = setting(5.0, at_least=0)
    rampup_epochs: int = setting(50, at_least=0)
    incremental: bool = True
    increment: float = setting(0.05, at_least=0)
    eta: float = setting(0.2, at_least=0)
    pair_nodes: int = setting(4096, at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.incremental, bool):
            raise SettingError(f"incremental must be true or false, it is {self.incremental!r}")

    def learn(self, model: Model, task: LabelledNewTask) -> Model:
        g = model.encoder()
        head = trained_head(model, "autonovel_ncd")
        nodes = gather_nodes(model, task)
        h_l = grow(head, task.num_new) if self.incremental else head
        h_u = new_head(head, task.num_new)
        n_old, m = head.num_classes, len(nodes.old)

        def terms(epoch: int) -> dict[str, Tensor]:
            ramp = rampup(epoch, self.rampup_epochs)
            some = sample(len(nodes.new), self.pair_nodes, model.device)
            z = g(nodes.task.graph)[torch.cat([nodes.old, nodes.new[some]])]  # (m + n, hidden)
            z_prime = perturb(z, torch.randn_like(z), self.eta)
            logits_l, logits_u = h_l(z), h_u(z)  # (m + n, old or all), (m + n, new)
            prime_l, prime_u = h_l(z_prime), h_u(z_prime)
            parts = {}
            if self.old:
                parts["old"] = self.old * F.cross_entropy(logits_l[:m], nodes.y_old)
            if self.pairwise and task.num_new > 1:
                key = top_k_sets(z[m:], self.k)
                parts["pairwise"] = self.pairwise * l_pairs(logits_u[m:], prime_u[m:], key)
            if self.omega:
                l_mse = l_perturb(logits_l, prime_l) + l_perturb(logits_u, prime_u)
                parts["consistency"] = self.omega * ramp * l_mse
            if self.incremental and self.increment:
                y_hat = n_old + logits_u[m:].detach().argmax(dim=1)
                parts["self"] = self.increment * ramp * l_self(logits_l[m:], y_hat)
            return parts

        history = self._train(terms, [g, h_l, h_u])
        model = refresh_memory(model, g, nodes)
        if not self.incremental:
            return joined_model(model, nodes.task, g, h_l, "concatenated", h_u, history)
        with torch.no_grad():
            groups = h_u(g(nodes.task.graph)[nodes.new]).argmax(dim=1)
        new = Memory.remember(g, nodes.task.graph, nodes.new, groups, task.num_new)
        known = model.memory.append(new)
        return model.grown(
            encoder=g, head=h_l, novel_head=h_u.linear, memory=known, history=history
        )
