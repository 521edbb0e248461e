"""Keeping the old classes without their nodes (Eq. 10-11), and an old head's answers."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def l_replay(logits_a: Tensor, y: Tensor) -> Tensor:
    """Eq. 10: cross-entropy of the joint head on replayed features of old classes, mean over draws.

    Args:
        logits_a: (draws, C) of the joint head.
        y: (draws,) the class that each was drawn from.
    """
    return F.cross_entropy(logits_a, y)


def l_distill(z_old: Tensor, z: Tensor) -> Tensor:
    """Eq. 11 with a plus sign: mean over nodes of |g^l(i) - g(i)|_2.

    Args:
        z_old: (n, hidden) of the encoder before phase 2, without gradient.
        z: (n, hidden) of the encoder in training.
    """
    # The norm has no gradient at zero, where training starts; the small constant gives it one.
    return ((z_old - z).square().sum(dim=1) + 1e-12).sqrt().mean()


def l_distill_global(z_old: Tensor, z: Tensor) -> Tensor:
    """Eq. 11 as the released code reads it: |Z^l/|Z^l| - Z/|Z||, each of length 1 as a whole.

    Args:
        z_old: (n, hidden) of the encoder before phase 2, without gradient.
        z: (n, hidden) of the encoder in training.
    """
    return ((z_old / z_old.norm() - z / z.norm()).square().sum() + 1e-12).sqrt()


def l_soft_targets(logits: Tensor, logits_old: Tensor, temperature: float) -> Tensor:
    """Learning without forgetting (Li & Hoiem 2016): - sum_c p_ic log p'_ic, mean over nodes.

        p = softmax(logits_old / T) without gradient,  p' = softmax(logits / T)

    Args:
        logits: (n, C) of the head in training.
        logits_old: (n, C) of the head before.
        temperature: T.
    """
    p = F.softmax(logits_old.detach() / temperature, dim=1)
    return -(p * F.log_softmax(logits / temperature, dim=1)).sum(dim=1).mean()
