"""Drawing nodes to their neighbors, or to their class (Zhong et al., CVPR 2021)."""

from __future__ import annotations

import torch
from torch import Tensor

from nodenova.losses.contrast import l_contrast, mixed_negatives, nearest


def l_neighborhood(
    z: Tensor, z_prime: Tensor, old: Tensor, m: int, alpha: float, tau: float
) -> Tensor:
    """alpha l(z, z') + (1 - alpha) mean over the m nearest others z~ of l(z, z~), mean over nodes.

        l(z, y) = - log exp(z . y / tau) / (exp(z . z' / tau) + sum over y~ of exp(z . y~ / tau))

    with y~ the others and N: e hard negatives, mixed of the others that are least like z and of
    `old`, surely of other classes. Gradient flows into the first z only.

    Args:
        z: (n, hidden) of unit length, as are the next two.
        z_prime: (n, hidden) a second view of the same nodes.
        old: (e, hidden) features of old classes; may be empty.
        m: How many of the nearest others count as positive.
        alpha: Weight of the second view against the nearest others.
        tau: Temperature.
    """
    s = view_and_others(z, z_prime)  # (n, 1 + n)
    is_view, is_near = torch.zeros_like(s), torch.zeros_like(s)
    is_view[:, 0] = 1.0
    is_near[:, 1:] = nearest(s[:, 1:], m)
    if len(old):
        hard = mixed_negatives(z, z.detach(), old.detach(), len(old))  # (n, e, hidden)
        s = torch.cat([s, (hard @ z[:, :, None]).squeeze(2)], dim=1)  # (n, 1 + n + e)
        nobody = s.new_zeros(len(s), s.shape[1] - is_view.shape[1])
        is_view = torch.cat([is_view, nobody], dim=1)
        is_near = torch.cat([is_near, nobody], dim=1)
    s = s / tau
    return alpha * l_contrast(s, is_view) + (1 - alpha) * l_contrast(s, is_near)


def l_same_class(z: Tensor, z_prime: Tensor, y: Tensor, tau: float) -> Tensor:
    """Mean over z' and the others z~ of the same class of l(z, z~), without N; mean over nodes.

    l is that of `l_neighborhood`. Gradient flows into the first z only.

    Args:
        z: (n, hidden) of unit length.
        z_prime: (n, hidden) a second view of the same nodes, of unit length.
        y: (n,) classes.
        tau: Temperature.
    """
    same = (y[:, None] == y[None, :]).to(z.dtype).fill_diagonal_(0.0)  # (n, n)
    positive = torch.cat([torch.ones_like(same[:, :1]), same], dim=1)  # (n, 1 + n)
    return l_contrast(view_and_others(z, z_prime) / tau, positive)


def view_and_others(z: Tensor, z_prime: Tensor) -> Tensor:
    """(n, 1 + n) similarities of z to its own second view, then to all nodes, -inf to itself."""
    alone = torch.eye(len(z), dtype=torch.bool, device=z.device)
    among = (z @ z.detach().t()).masked_fill(alone, -torch.inf)
    return torch.cat([(z * z_prime.detach()).sum(dim=1, keepdim=True), among], dim=1)
