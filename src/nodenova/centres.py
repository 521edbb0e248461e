"""New classes as centres in z, started by k-means and learnt from there."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nodenova.clustering import cluster


@torch.no_grad()
def start_centres(z_u: Tensor, num_new: int, restarts: int) -> tuple[nn.Linear, float]:
    """h^u, whose weight (new, hidden) is mu, the means of k-means' groups of z_u (n, hidden); and sigma, a unit of length.

    sigma is the root mean square distance of the nodes from their centres. The old head reads z/|z|, so the length of z was
    never learnt and means nothing; Student's t, which sees distances against 1, needs them in a unit that means something.
    """
    groups = cluster(z_u, num_new, restarts)
    member = nn.functional.one_hot(groups, num_new).to(z_u.dtype)  # (n, new)
    mu = member.t() @ z_u / member.sum(dim=0).clamp_min(1.0)[:, None]  # (new, hidden)
    # As many centres as nodes: no spread within; a small part of the length of z stands in for it.
    least = 1e-3 * float(z_u.norm(dim=1).mean()) + 1e-12
    sigma = max(float((z_u - mu[groups]).square().sum(dim=1).mean().sqrt()), least)
    h_u = nn.Linear(z_u.shape[1], num_new).to(z_u.device)
    h_u.weight.copy_(mu)
    h_u.bias.requires_grad_(False)
    return h_u, sigma


@torch.no_grad()
def decide_by_centres(h_u: nn.Linear) -> None:
    """Set the bias so that argmax h^u(z) is the nearest centre: |z - mu|^2 = |z|^2 - 2 (mu . z - |mu|^2 / 2)."""
    h_u.bias.copy_(-0.5 * h_u.weight.square().sum(dim=1))
