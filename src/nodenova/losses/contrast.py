"""Who is near whom, and drawing neighbors together (Zhong et al., CVPR 2021)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def same_direction(z: Tensor, threshold: float) -> Tensor:
    """y~_ij = 1 if cos(z_i, z_j) > threshold.

    Args:
        z: (n, hidden).
        threshold: Of the cosine.

    Returns:
        (n, n) of 0 and 1; a node is always like itself.
    """
    unit = F.normalize(z.detach(), dim=1)
    y = (unit @ unit.t() > threshold).to(z.dtype)
    return y.fill_diagonal_(1.0)


def nearest(s: Tensor, m: int) -> Tensor:
    """Which m other nodes each node is most similar to.

    Args:
        s: (n, n) similarities.
        m: How many; all others where there are fewer.

    Returns:
        (n, n) of 0 and 1, the diagonal 0.
    """
    n = len(s)
    others = s.detach().clone().fill_diagonal_(-torch.inf)
    top = others.topk(min(m, n - 1), dim=1).indices  # (n, m)
    return torch.zeros_like(others).scatter_(1, top, 1.0)


def mixed_negatives(z: Tensor, memory: Tensor, old: Tensor, hard: int) -> Tensor:
    """Hard negatives by mixing what is surely negative: least similar nodes and old classes.

    The e entries of `memory` that are least like z_i are mixed one to one with the e rows of `old`,
    once 1 : 2 and once 2 : 1, brought to unit length, and the `hard` mixtures most like z_i are
    kept.

    Args:
        z: (n, hidden) of unit length, as are the next two.
        memory: (M, hidden) among which the least similar are looked for.
        old: (e, hidden) features of old classes.
        hard: How many mixtures to keep.

    Returns:
        (n, min(hard, 2 e), hidden) without gradient.
    """
    z = z.detach()
    memory = memory.detach()
    e = min(len(old), len(memory))
    easy = memory[(z @ memory.t()).topk(e, dim=1, largest=False).indices]  # (n, e, hidden)
    mixtures = torch.cat([easy + 2.0 * old[:e], 2.0 * easy + old[:e]], dim=1)  # (n, 2e, hidden)
    mixtures = F.normalize(mixtures, dim=2)
    top = (mixtures @ z[:, :, None]).squeeze(2).topk(min(hard, 2 * e), dim=1).indices  # (n, hard)
    return mixtures.gather(1, top[:, :, None].expand(-1, -1, z.shape[1]))


def l_contrast(s: Tensor, positive: Tensor) -> Tensor:
    """- 1/|P_i| sum over j in P_i of log softmax_j(s_i), mean over nodes.

    A node without positives counts as 0.

    Args:
        s: (n, M) similarities over the temperature, -inf for what does not take part.
        positive: (n, M) of 0 and 1: who is in P_i.
    """
    log_p = F.log_softmax(s, dim=1)
    of_positives = torch.where(positive > 0, log_p, torch.zeros_like(log_p)).sum(dim=1)
    return -(of_positives / positive.sum(dim=1).clamp_min(1.0)).mean()
