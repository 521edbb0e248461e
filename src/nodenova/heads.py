"""Heads h: z -> logits. The joint head grows when new classes are found."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CosineHead(nn.Module):
    """h(z) = (W z/|z| + b) / temperature, in training, replay and inference alike."""

    def __init__(self, hidden: int, classes: int, temperature: float = 0.1) -> None:
        super().__init__()
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature must be positive, it is {temperature}")
        self.linear = nn.Linear(hidden, classes)
        self.temperature = temperature

    @property
    def num_classes(self) -> int:
        return self.linear.out_features

    def forward(self, z: Tensor) -> Tensor:
        return self.linear(F.normalize(z, dim=-1)) / self.temperature


@torch.no_grad()
def grow(head: CosineHead, num_new: int) -> CosineHead:
    """h^l into h^a: the old rows are kept, `num_new` fresh ones are added behind them."""
    n_old = head.num_classes
    grown = CosineHead(head.linear.in_features, n_old + num_new, head.temperature).to(head.linear.weight.device)
    grown.linear.weight[:n_old] = head.linear.weight
    grown.linear.bias[:n_old] = head.linear.bias
    # New classes must earn their probability: they start below the least likely old class.
    grown.linear.bias[n_old:] = head.linear.bias.min() - 1.0
    return grown
