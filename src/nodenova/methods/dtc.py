"""DTC: deep transfer clustering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nodenova.centres import decide_by_centres, start_centres
from nodenova.joining import JOINTS, joined_model
from nodenova.losses.clustering import l_cluster, student_t, target_distribution
from nodenova.losses.self_training import l_perturb, perturbed
from nodenova.model import Model, trained_head
from nodenova.settings import check_settings
from nodenova.task import NewTask
from nodenova.training import minimise, rampup


@dataclass(frozen=True)
class Dtc:
    """Han et al., "Learning to Discover Novel Visual Categories via Deep Transfer Clustering", ICCV 2019 (DTC-Pi).

        mu   = centres of k-means on the new nodes, k the number of new classes, then learnt together with the encoder
        q_ij = (1 + |z_i - mu_j|^2 / alpha)^(-(alpha + 1) / 2), rows to sum 1
        p_ij = q_ij^2 / sum_i q_ij, rows to sum 1, renewed every few epochs
        L    = KL(p || q) + omega(t) mean of (q_i - q'_i)^2,  omega(t) = omega exp(-5 (1 - t/T)^2);  q' of the perturbed z'

    What differs from the paper:
    - PCA to k dimensions serves k-means only; the paper makes it a layer. Without it z keeps what the old head reads.
    - Distances are in units of sigma, their root mean square after k-means: the cosine head has left z without a scale.
    - q' comes from z with noise (eta * std per dimension) instead of another crop. Adam on the full batch.
    - The paper estimates the number of classes with old probe classes; here it is given. Nothing holds the old classes.
    - argmax q is linear in z (weight mu, bias -|mu|^2/2), and that is h^u. It is not linear in z/|z|, so the joint head
      gets rows from the class means of DTC's own assignments (see `joining`) behind the old head's.
    - One new class: nothing to cluster, nothing is trained.
    """

    prefers: ClassVar[str] = "gcn"

    epochs: int = 200
    lr: float = 0.01
    weight_decay: float = 5e-4
    alpha: float = 1.0  # degrees of freedom of Student's t
    clustering: float = 1.0  # weight of KL(p || q)
    update: int = 5  # renew p every so many epochs
    omega: float = 10.0  # weight of the consistency once it is in
    rampup_epochs: int = 5  # T
    eta: float = 0.2  # size of the perturbation
    restarts: int = 20  # of k-means
    joint: str = "concatenated"  # "strict": the joint head's new rows as `grow` made them

    def __post_init__(self) -> None:
        not_negative = ("lr", "weight_decay", "clustering", "omega", "rampup_epochs", "eta")
        counts, choices = ("epochs", "update", "restarts"), {"joint": JOINTS}
        check_settings(self, counts=counts, positive=("alpha",), not_negative=not_negative, choices=choices)

    def discover(self, model: Model, task: NewTask) -> Model:
        g, head = model.encoder(), trained_head(model, "dtc")
        ids = torch.from_numpy(task.ids).to(model.device)
        several = task.num_new > 1  # of one class q is always sure: constants, whose only effect would be weight decay
        with torch.no_grad():
            z_u = g(task.graph)[ids]
        h_u, sigma = start_centres(z_u, task.num_new, self.restarts)  # its weight is mu

        def assigned(z_u: Tensor) -> Tensor:
            return student_t(z_u / sigma, h_u.weight / sigma, self.alpha)  # q, (n, new)

        p = target_distribution(assigned(z_u))  # (n, new)

        def terms(epoch: int) -> dict[str, Tensor]:
            nonlocal p
            if epoch > 1 and (epoch - 1) % self.update == 0:
                with torch.no_grad():
                    p = target_distribution(assigned(g.eval()(task.graph)[ids]))
                g.train()
            z_u = g(task.graph)[ids]
            q = assigned(z_u)  # (n, new)
            parts = {}
            if self.clustering and several:
                parts["clustering"] = self.clustering * l_cluster(p, q)
            if self.omega and several:
                q_prime = assigned(perturbed(z_u, torch.randn_like(z_u), self.eta))
                parts["consistency"] = self.omega * rampup(epoch, self.rampup_epochs) * l_perturb(q.log(), q_prime.log())
            return parts

        history = minimise(terms, [g, h_u], epochs=self.epochs, lr=self.lr, weight_decay=self.weight_decay)
        decide_by_centres(h_u)
        with torch.no_grad():
            groups = h_u(g(task.graph)[ids]).argmax(dim=1)
        return joined_model(model, task, g, head, groups, self.joint, novel_head=h_u, history=history)
