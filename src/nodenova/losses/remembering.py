"""Keeping the old classes without their nodes (Eq. 10-11), and an old head's answers."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def l_replay(logits_a: Tensor, y: Tensor) -> Tensor:
    """Eq. 10: cross-entropy of the joint head on features drawn from the prototypes, mean over draws."""
    return F.cross_entropy(logits_a, y)


def l_distill(z_old: Tensor, z: Tensor) -> Tensor:
    """Eq. 11 with a plus sign: mean over nodes of |g^l(i) - g(i)|_2; both (n, hidden), z_old without gradient."""
    # The norm has no gradient at zero, where training starts; the small constant gives it one.
    return ((z_old - z).square().sum(dim=1) + 1e-12).sqrt().mean()


def l_distill_global(z_old: Tensor, z: Tensor) -> Tensor:
    """Eq. 11 as the released code reads it: |Z^l/|Z^l| - Z/|Z||, each (n, hidden) brought to length 1 as a whole."""
    return ((z_old / z_old.norm() - z / z.norm()).square().sum() + 1e-12).sqrt()


def l_soft_targets(logits: Tensor, logits_old: Tensor, temperature: float) -> Tensor:
    """Learning without forgetting (Li & Hoiem 2016): - sum_c p_ic log p'_ic, mean over nodes.

    p = softmax(logits_old / T) without gradient, p' = softmax(logits / T); both (n, C).
    """
    p = F.softmax(logits_old.detach() / temperature, dim=1)
    return -(p * F.log_softmax(logits / temperature, dim=1)).sum(dim=1).mean()
