"""DTC: deep transfer clustering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nodenova.graph import NewTask
from nodenova.losses import l_cluster, l_perturb, perturb
from nodenova.methods._centers import start_centers
from nodenova.methods._two_heads import joined_model, trained_parts
from nodenova.model.model import Model
from nodenova.nn.sampling import Batches
from nodenova.nn.training import TrainedMethod, rampup
from nodenova.settings import choice, setting


@dataclass(frozen=True)
class DTC(TrainedMethod):
    """Deep transfer clustering: centers in z, sharpened by their own assignments (DTC-Pi).

    Han et al., "Learning to Discover Novel Visual Categories via Deep Transfer Clustering", ICCV
    2019.

        mu   = centers of k-means on the new nodes, k the number of new classes,
               then learned together with the encoder
        q_ij = (1 + |z_i - mu_j|^2 / alpha)^(-(alpha + 1) / 2), rows to sum 1
        p_ij = q_ij^2 / sum_i q_ij, rows to sum 1,
               as k-means left it for some epochs, then renewed every few
        L    = KL(p || q) + omega(t) mean of (q_i - q'_i)^2,  q' of the perturbed z'
        omega(t) = omega exp(-5 (1 - t/T)^2), t from the end of the warm-up, during which it is 0

    Numbers are those of the released script for DTC-Pi on CIFAR-10 (k-means starts and alpha are in
    its code). What differs from the paper:

    - PCA to k dimensions serves k-means only; the paper makes it a layer. Without it z keeps what
      the old head reads.
    - Distances are in units of sigma, their root mean square after k-means: a head that
      reads z/|z| ignores the length of z.
    - KL is a mean over nodes; the released code divides it by the number of new classes once more.
    - q' comes from z with noise (eta * std per dimension) instead of another crop.
    - One step per epoch, on all new nodes, with Adam at phase 1's rate and decay, and as many
      epochs as phase 1 has: the script's 10 + 100 epochs of SGD (0.1, then 0.05, momentum 0.9,
      decay 1e-4, batches of 128) are some 20,000 steps.
    - The paper estimates the number of classes with old probe classes; here it is given. Nothing
      preserves the old classes.
    - argmax q is linear in z (weight mu, bias -|mu|^2/2), and that is h^u. It is not linear in
      z/|z|, so the joint head gets rows from the class means of DTC's own assignments (see
      `_two_heads`) behind the old head's.
    - One new class: there is nothing to separate, nothing is trained.

    Attributes:
        epochs: Number of epochs, of one step each, on all new nodes.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        alpha: Degrees of freedom of Student's t, in q_ij; released code.
        clustering: Weight of KL(p || q); released code.
        warmup: Number of first epochs, with KL against the first p only; released script.
        update: Number of epochs between later updates of p; released script.
        omega: Weight of the consistency after the ramp-up; released script.
        rampup_epochs: T of omega(t); released script.
        eta: Size of the perturbation z', SWORD's.
        restarts: Number of starts of k-means; released code.
        new_rows: "concatenated": rows from class means; "untrained": as `grow` makes them.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> model = nova.discover(nova.fit(old, "gcn", epochs=20), new, nova.DTC(epochs=5))
        >>> model
        Model(gcn, 4 classes, 2 of them discovered)
        >>> sorted(model.stages[-1].history)  # KL(p || q) and the consistency, epoch by epoch
        ['clustering', 'consistency']
    """

    batches: ClassVar[bool] = True  # works with a model fitted on batches of nodes

    alpha: float = setting(1.0, above=0)
    clustering: float = setting(1.0, at_least=0)
    warmup: int = setting(10, at_least=0)
    update: int = setting(5, at_least=1)
    omega: float = setting(10.0, at_least=0)
    rampup_epochs: int = setting(5, at_least=0)
    eta: float = setting(0.2, at_least=0)
    restarts: int = setting(20, at_least=1)
    new_rows: str = choice("concatenated", "untrained")

    def discover(self, model: Model, task: NewTask) -> Model:
        g, head, task, ids = trained_parts(model, task, "dtc")
        with torch.no_grad():
            centers = start_centers(g(task.graph)[ids], task.number, self.restarts, self.alpha)
        p = centers.target(g, task)  # (n, new)
        batches = Batches(g, task.graph, ids)

        def terms(epoch: int) -> dict[str, Tensor]:
            nonlocal p
            t = epoch - self.warmup
            if t > 0 and (t - 1) % self.update == 0:
                p = centers.target(g, task)
            graph, (new,) = batches.draw()
            z_u = g(graph)[new.rows]
            q = centers.assign(z_u)  # (n, new)
            parts = {}
            if self.clustering:
                parts["clustering"] = self.clustering * l_cluster(p[new.at], q)
            if self.omega:
                omega = self.omega * rampup(t, self.rampup_epochs) if t > 0 else 0.0
                q_prime = centers.assign(perturb(z_u, torch.randn_like(z_u), self.eta))
                parts["consistency"] = omega * l_perturb(q.log(), q_prime.log())
            return parts

        epochs = self.epochs if task.number > 1 else 0
        history = self._train(terms, [g, centers.h_u], epochs)
        h_u = centers.nearest_center_head()
        return joined_model(model, task, g, head, self.new_rows, h_u, history)
