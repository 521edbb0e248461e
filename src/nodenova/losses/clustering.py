"""Clusters as soft assignments to centres (Xie et al. 2016; Han et al. 2019)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def student_t(z: Tensor, mu: Tensor, alpha: float = 1.0) -> Tensor:
    """q_ij ~ (1 + |z_i - mu_j|^2 / alpha)^(-(alpha + 1) / 2), rows summing to 1. (n, hidden), (C, hidden) -> (n, C)."""
    # Squared distances without the square root, whose gradient is not defined where a node lies on a centre.
    distance = z.square().sum(1, keepdim=True) + mu.square().sum(1) - 2.0 * z @ mu.t()  # (n, C)
    return F.softmax(-(alpha + 1.0) / 2.0 * (distance.clamp_min(0.0) / alpha).log1p(), dim=1)


def target_distribution(q: Tensor) -> Tensor:
    """p_ij ~ q_ij^2 / f_j with f_j = sum_i q_ij, rows summing to 1: surer than q, and no cluster swallows the others.

    q: (n, C). Returns (n, C) without gradient.
    """
    q = q.detach()
    p = q.square() / q.sum(dim=0)
    return p / p.sum(dim=1, keepdim=True)


def l_cluster(p: Tensor, q: Tensor, eps: float = 1e-12) -> Tensor:
    """KL(p || q) = sum_j p_ij log(p_ij / q_ij), mean over nodes; both (n, C), p without gradient."""
    return (p * ((p + eps).log() - (q + eps).log())).sum(dim=1).mean()
