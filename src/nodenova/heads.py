"""Heads h: z -> logits. One that is trained and grows when new classes are found, one that is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nodenova.prototypes import ladder


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

    def description(self) -> dict[str, Any]:
        """What `build_head` needs to make an empty one like it."""
        hidden = self.linear.in_features
        return {"kind": "cosine", "hidden": hidden, "classes": self.num_classes, "temperature": self.temperature}


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


class LadderHead(nn.Module):
    """h(z) = (W u + b) / temperature with u the ladder of z: each view at some ranks, to unit length."""

    def __init__(self, views: int, view_size: int, rungs: Sequence[int], classes: int, temperature: float) -> None:
        super().__init__()
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature must be positive, it is {temperature}")
        self.views, self.view_size, self.rungs = views, view_size, tuple(rungs)
        self.linear = nn.Linear(views * sum(rungs), classes)
        self.temperature = temperature

    @property
    def num_classes(self) -> int:
        return self.linear.out_features

    def forward(self, z: Tensor) -> Tensor:
        return self.linear(ladder(z, self.view_size, self.rungs)) / self.temperature

    def description(self) -> dict[str, Any]:
        """What `build_head` needs to make an empty one like it."""
        shape = {"views": self.views, "view_size": self.view_size, "rungs": list(self.rungs)}
        return {"kind": "ladder", **shape, "classes": self.num_classes, "temperature": self.temperature}

    @torch.no_grad()
    def set_gaussian(self, centre: Tensor, covariance: Tensor, scale: Tensor) -> LadderHead:
        """The classifier of Gaussian classes with these means (C, D) and one covariance (D, D), which is a linear one.

        Both are of u times `scale` (D,), which is folded into the weights.
        """
        weight = torch.linalg.solve(covariance.double(), centre.t().double()).t()  # (C, D)
        self.linear.weight.copy_(weight * scale)
        self.linear.bias.copy_(-0.5 * (weight * centre).sum(dim=1))
        return self


Head: TypeAlias = "CosineHead | LadderHead"
KINDS = {"cosine": CosineHead, "ladder": LadderHead}


def build_head(description: Mapping[str, Any]) -> Head:
    """An empty head of the described kind and shape, for a saved one's numbers."""
    settings = dict(description)
    return KINDS[settings.pop("kind")](**settings)
