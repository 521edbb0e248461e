"""New classes as centers in z, started by k-means and learned from there.

Xie et al. 2016; Han et al. 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nodenova.graph import NewTask
from nodenova.losses import student_t, target_distribution
from nodenova.nn.encoder import Encoder
from nodenova.nn.kmeans import cluster


@dataclass(frozen=True, eq=False)
class SoftCenters:
    """Centers of the new classes, with soft assignments by Student's t."""

    h_u: nn.Linear  # h^u, whose weight (new, hidden) is mu, the centers
    # Root mean square distance of nodes from their centers at the start: Student's t compares
    # distances with 1, and the joint head, which reads z/|z|, leaves the length of z undetermined.
    sigma: float
    alpha: float = 1.0  # degrees of freedom of Student's t

    def assign(self, z_u: Tensor) -> Tensor:
        """Return q, soft assignments to the centers: (n, hidden) -> (n, new), rows sum to 1."""
        return student_t(z_u / self.sigma, self.h_u.weight / self.sigma, self.alpha)

    @torch.no_grad()
    def target(self, g: Encoder, task: NewTask) -> Tensor:
        """Return p (n, new): the sharpened q of the new nodes, by the encoder without dropout."""
        was_training = g.training
        z_u = g.eval()(task.graph)[torch.from_numpy(task.ids).to(self.h_u.weight.device)]
        g.train(was_training)
        return target_distribution(self.assign(z_u))

    @torch.no_grad()
    def nearest_center_head(self) -> nn.Linear:
        """Return h^u with the bias that makes argmax h^u(z) the nearest center."""
        # |z - mu|^2 = |z|^2 - 2 (mu . z - |mu|^2 / 2)
        self.h_u.bias.copy_(-0.5 * self.h_u.weight.square().sum(dim=1))
        return self.h_u


@torch.no_grad()
def start_centers(z_u: Tensor, num_new: int, restarts: int, alpha: float = 1.0) -> SoftCenters:
    """Return centers at the means of the k-means groups of z_u (n, hidden)."""
    groups = cluster(z_u, num_new, restarts)
    member = nn.functional.one_hot(groups, num_new).to(z_u.dtype)  # (n, new)
    mu = member.t() @ z_u / member.sum(dim=0).clamp_min(1.0)[:, None]  # (new, hidden)
    # With as many centers as nodes there is no spread; a small part of the length of z replaces it.
    least = 1e-3 * float(z_u.norm(dim=1).mean()) + 1e-12
    sigma = max(float((z_u - mu[groups]).square().sum(dim=1).mean().sqrt()), least)
    h_u = nn.Linear(z_u.shape[1], num_new).to(z_u.device)
    h_u.weight.copy_(mu)
    h_u.bias.requires_grad_(False)
    return SoftCenters(h_u, sigma, alpha)
