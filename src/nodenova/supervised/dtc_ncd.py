"""DTC with the old labelled nodes in phase 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.data.labels import LabelledNewTask
from nodenova.losses import l_cluster, l_perturb, perturb
from nodenova.methods._centers import start_centers
from nodenova.methods._two_heads import joined_model
from nodenova.model.model import Model, trained_head
from nodenova.nn.training import TrainedMethod, rampup
from nodenova.settings import choice, setting
from nodenova.supervised._shared import gather_nodes, refresh_memory


@dataclass(frozen=True)
class DTCNCD(TrainedMethod):
    """DTC (deep transfer clustering, DTC-Pi) with the old labelled nodes in phase 2.

    Han et al., "Learning to Discover Novel Visual Categories via Deep Transfer Clustering", ICCV
    2019.

        L_CE = cross-entropy of h^l on the old nodes
        mu   = centers of k-means on the new nodes, k the number of new classes,
               then learned together with the encoder
        q_ij = (1 + |z_i - mu_j|^2 / alpha)^(-(alpha + 1) / 2), rows to sum 1, of new nodes i
        p_ij = q_ij^2 / sum_i q_ij, rows to sum 1,
               as k-means left it for some epochs, then renewed every few
        L    = L_CE + KL(p || q) + omega(t) mean of (q_i - q'_i)^2,  q' of the perturbed z'
        omega(t) = omega exp(-5 (1 - t/T)^2), t from the end of the warm-up, during which it is 0

    L_CE IS NOT IN THE PAPER, nor in its released code. There the old classes serve twice: the
    encoder is pre-trained on them (here that is phase 1), and when the number of new classes is not
    known it is estimated with their help (here it is given). Phase 2 itself sees unlabelled data
    only, which is `DTC`. L_CE is the least that old nodes can add to it: the encoder keeps
    separating the old classes while it clusters the new ones. `old=0` leaves it out; old nodes then
    only give the means of their classes.

    Other numbers are those of the released script for DTC-Pi on CIFAR-10. What else differs from
    the paper is what differs in `DTC`, and:

    - The paper has no classifier for all classes. Here the joint head has h^l and, behind it, rows
      from the means of DTC's own groups (see `_two_heads`), with the means of the old classes
      recomputed from their nodes.
    - One new class: there is nothing to separate, L_CE alone is trained.

    Attributes:
        epochs: Number of epochs, of one step each, on all nodes.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        old: Weight of L_CE, which is ours.
        alpha: Degrees of freedom of Student's t, in q_ij; released code.
        clustering: Weight of KL(p || q); released code.
        warmup: Number of first epochs, with KL against the first p only; released script.
        update: Number of epochs between later updates of p; released script.
        omega: Weight of the consistency after the ramp-up; released script.
        rampup_epochs: T of omega(t); released script.
        eta: Size of the perturbation z', SWORD's.
        restarts: Number of starts of k-means; released code.
        new_rows: "concatenated": rows from class means; "untrained": as `grow` makes them.
    """

    needs: ClassVar[tuple[str, ...]] = ("old_nodes", "old_labels")

    old: float = setting(1.0, at_least=0)
    alpha: float = setting(1.0, above=0)
    clustering: float = setting(1.0, at_least=0)
    warmup: int = setting(10, at_least=0)
    update: int = setting(5, at_least=1)
    omega: float = setting(10.0, at_least=0)
    rampup_epochs: int = setting(5, at_least=0)
    eta: float = setting(0.2, at_least=0)
    restarts: int = setting(20, at_least=1)
    new_rows: str = choice("concatenated", "untrained")

    def learn(self, model: Model, task: LabelledNewTask) -> Model:
        g, h_l, nodes = model.encoder(), trained_head(model, "dtc_ncd"), gather_nodes(model, task)
        new_task = nodes.task
        with torch.no_grad():
            z_u = g(new_task.graph)[nodes.new]
        centers = start_centers(z_u, new_task.number, self.restarts, self.alpha)
        p = centers.target(g, new_task)  # (n, new)

        def terms(epoch: int) -> dict[str, Tensor]:
            nonlocal p
            t = epoch - self.warmup
            if t > 0 and (t - 1) % self.update == 0:
                p = centers.target(g, new_task)
            z = g(new_task.graph)
            z_u = z[nodes.new]
            parts = {}
            if self.old:
                parts["old"] = self.old * F.cross_entropy(h_l(z[nodes.old]), nodes.y_old)
            if self.clustering and new_task.number > 1:
                parts["clustering"] = self.clustering * l_cluster(p, centers.assign(z_u))
            if self.omega and new_task.number > 1:
                omega = self.omega * rampup(t, self.rampup_epochs) if t > 0 else 0.0
                q = centers.assign(z_u)
                q_prime = centers.assign(perturb(z_u, torch.randn_like(z_u), self.eta))
                parts["consistency"] = omega * l_perturb(q.log(), q_prime.log())
            return parts

        history = self._train(terms, [g, h_l, centers.h_u])
        model = refresh_memory(model, g, nodes)
        h_u = centers.nearest_center_head()
        return joined_model(model, new_task, g, h_l, self.new_rows, h_u, history)
