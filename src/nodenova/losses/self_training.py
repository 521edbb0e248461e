"""Teaching the joint head from the head for new classes (Eq. 6-8)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def l_self(logits_a: Tensor, y_hat: Tensor) -> Tensor:
    """Eq. 6: cross-entropy of the joint head (n, C) against pseudo-labels (n,), mean over nodes."""
    return F.cross_entropy(logits_a, y_hat)


def perturbed(z: Tensor, noise: Tensor, eta: float) -> Tensor:
    """Eq. 7: z' = z + eta * sigma_k * noise, sigma_k the standard deviation of dimension k over the nodes."""
    return z + eta * z.detach().std(dim=0, unbiased=False) * noise


def perturbed_logits(logits: Tensor, everywhere: Tensor, noise: Tensor, eta: float) -> Tensor:
    """Eq. 7 as the released code reads it: noise on h^u's logits, one standard deviation over all nodes and classes."""
    return logits + eta * everywhere.detach().std() * noise


def l_perturb(logits: Tensor, logits_prime: Tensor) -> Tensor:
    """Eq. 8: mean squared difference of the two softmaxes, (n, C) each."""
    return F.mse_loss(F.softmax(logits, dim=1), F.softmax(logits_prime, dim=1))
