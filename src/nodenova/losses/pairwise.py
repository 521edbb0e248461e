"""Which unlabelled nodes belong together (Eq. 2-4)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def same_top_k(z: Tensor, k: int) -> Tensor:
    """Eq. 3: y~_ij = 1 if z_i and z_j have the same set of k most active dimensions.

    Each set becomes one whole number, so no pair is enumerated.

    Args:
        z: (n, hidden).
        k: How many dimensions; all of them where there are fewer.

    Returns:
        (n, n) of 0 and 1.
    """
    top = z.detach().topk(min(k, z.shape[1]), dim=1).indices.sort(dim=1).values  # (n, k)
    key = torch.unique(top, dim=0, return_inverse=True)[1]  # (n,)
    return (key[:, None] == key[None, :]).to(z.dtype)


def similarity_softmax(logits: Tensor, logits_prime: Tensor) -> Tensor:
    """Eq. 2 as the released code reads it: s_ij = p_i . p'_j, p the softmax of h^u.

    Args:
        logits: (n, C) of h^u.
        logits_prime: (n, C) of h^u on perturbed nodes.

    Returns:
        (n, n).
    """
    return F.softmax(logits, dim=1) @ F.softmax(logits_prime, dim=1).t()


def similarity_sigmoid(logits: Tensor, logits_prime: Tensor) -> Tensor:
    """Eq. 2 as printed: s_ij = sigmoid(h^u(z_i) . h^u(z_j)).

    Args:
        logits: (n, C) of h^u.
        logits_prime: (n, C) of h^u.

    Returns:
        (n, n).
    """
    return torch.sigmoid(logits @ logits_prime.t())


def l_pseudo(s: Tensor, y: Tensor, eps: float = 1e-7) -> Tensor:
    """Eq. 4: binary cross-entropy of similarities against pairwise labels, mean over pairs.

    Args:
        s: (n, n) similarities in [0, 1].
        y: (n, n) of 0 and 1.
        eps: Keeps the logarithm finite.
    """
    return -(torch.where(y > 0, s, 1.0 - s) + eps).log().mean()
