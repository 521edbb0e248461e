"""Clusters as soft assignments to centers (Xie et al. 2016; Han et al. 2019)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def student_t(z: Tensor, mu: Tensor, alpha: float = 1.0) -> Tensor:
    """Student's t kernel: how much each node belongs to each center.

        q_ij ~ (1 + |z_i - mu_j|^2 / alpha)^(-(alpha + 1) / 2),  rows summing to 1

    Args:
        z: (n, hidden) nodes.
        mu: (C, hidden) centers.
        alpha: Degrees of freedom.

    Returns:
        (n, C).
    """
    # Squared distances without the square root, whose gradient is not defined where a node lies on
    # a center.
    distance = z.square().sum(1, keepdim=True) + mu.square().sum(1) - 2.0 * z @ mu.t()  # (n, C)
    return F.softmax(-(alpha + 1.0) / 2.0 * (distance.clamp_min(0.0) / alpha).log1p(), dim=1)


def target_distribution(q: Tensor) -> Tensor:
    """The target of deep clustering: surer than q, and no cluster swallows the others.

        p_ij ~ q_ij^2 / f_j,  f_j = sum_i q_ij,  rows summing to 1

    Args:
        q: (n, C) soft assignments.

    Returns:
        (n, C) without gradient.
    """
    q = q.detach()
    p = q.square() / q.sum(dim=0)
    return p / p.sum(dim=1, keepdim=True)


def l_cluster(p: Tensor, q: Tensor, eps: float = 1e-12) -> Tensor:
    """KL(p || q) = sum_j p_ij log(p_ij / q_ij), mean over nodes.

    Args:
        p: (n, C) targets, without gradient.
        q: (n, C) soft assignments.
        eps: Keeps the logarithms finite.
    """
    return (p * ((p + eps).log() - (q + eps).log())).sum(dim=1).mean()
