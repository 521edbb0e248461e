"""Training the joint head on what the head for new classes says (Eq. 6-8)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def l_self(logits_a: Tensor, y_hat: Tensor) -> Tensor:
    """Eq. 6: cross-entropy of the joint head against pseudo-labels, mean over nodes.

    Args:
        logits_a: (n, C) of the joint head.
        y_hat: (n,) pseudo-labels.
    """
    return F.cross_entropy(logits_a, y_hat)


def perturbed(z: Tensor, noise: Tensor, eta: float) -> Tensor:
    """Eq. 7: z' = z + eta * sigma_k * noise, sigma_k the spread of dimension k over the nodes.

    Args:
        z: (n, hidden).
        noise: (n, hidden), standard normal.
        eta: Size of the perturbation, in standard deviations.
    """
    return z + eta * z.detach().std(dim=0, unbiased=False) * noise


def perturbed_logits(logits: Tensor, everywhere: Tensor, noise: Tensor, eta: float) -> Tensor:
    """Eq. 7 as the released code reads it: noise on h^u's logits, one spread for all.

    Args:
        logits: (n, C) of h^u on the new nodes.
        everywhere: (N, C) of h^u on all nodes: their standard deviation is taken.
        noise: (n, C), standard normal.
        eta: Size of the perturbation, in standard deviations.
    """
    return logits + eta * everywhere.detach().std() * noise


def l_perturb(logits: Tensor, logits_prime: Tensor) -> Tensor:
    """Eq. 8: mean squared difference of the two softmaxes.

    Args:
        logits: (n, C).
        logits_prime: (n, C) of perturbed nodes.
    """
    return F.mse_loss(F.softmax(logits, dim=1), F.softmax(logits_prime, dim=1))
