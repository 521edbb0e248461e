"""Heads h: z -> logits. Two that are trained and grow when new classes are found, one that is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nodenova.nn.statistics import ladder

TEMPERATURE = 0.1  # at which a joint head is read on z/|z|, as the released code of SWORD does


class LinearHead(nn.Module):
    """h(z) = W z + b: what phase 1 trains. The length of z means something: how sure a node is of its class."""

    temperature: ClassVar[float] = 1.0

    def __init__(self, hidden: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden, classes)

    @property
    def num_classes(self) -> int:
        return self.linear.out_features

    def forward(self, z: Tensor) -> Tensor:
        logits: Tensor = self.linear(z)
        return logits

    def description(self) -> dict[str, Any]:
        """What `build_head` needs to make an empty one like it."""
        return {"kind": "linear", "hidden": self.linear.in_features, "classes": self.num_classes}

    @torch.no_grad()
    def on_sphere(self, temperature: float = TEMPERATURE) -> CosineHead:
        """The same rows, read on z/|z|."""
        read = CosineHead(self.linear.in_features, self.num_classes, temperature).to(self.linear.weight.device)
        read.linear.load_state_dict(self.linear.state_dict())
        return read


class CosineHead(nn.Module):
    """h(z) = (W z/|z| + b) / temperature: what phase 2 trains. Old and new classes cannot win by the length of z."""

    def __init__(self, hidden: int, classes: int, temperature: float = TEMPERATURE) -> None:
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


TrainedHead = TypeVar("TrainedHead", bound=LinearHead | CosineHead)


@torch.no_grad()
def grow(head: TrainedHead, num_new: int) -> TrainedHead:
    """h^l into h^a: the old rows are kept, `num_new` fresh ones are added behind them."""
    n_old = head.num_classes
    grown = type(head)(**shape_of(head, n_old + num_new))
    grown.to(head.linear.weight.device)
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


Head: TypeAlias = "LinearHead | CosineHead | LadderHead"
KINDS: dict[str, type[LinearHead | CosineHead | LadderHead]] = {
    "linear": LinearHead,
    "cosine": CosineHead,
    "ladder": LadderHead,
}


def shape_of(head: Head, classes: int) -> dict[str, Any]:
    """What to make a head of the same kind with, for so many classes."""
    shape = head.description() | {"classes": classes}
    del shape["kind"]
    return shape


def build_head(description: Mapping[str, Any]) -> Head:
    """An empty head of the described kind and shape, for a saved one's numbers."""
    settings = dict(description)
    return KINDS[settings.pop("kind")](**settings)


def as_nearest_mean(w: Tensor, b: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """kappa (), v (hidden,) and beta () for which w_c ~ kappa m_c + v and b_c ~ beta - kappa |m_c|^2 / 2.

    w, m: (C, hidden), b: (C,). One class says nothing of kappa; it is then the length of its row.
    """
    spread, rows = m - m.mean(dim=0), w - w.mean(dim=0)
    kappa = (rows * spread).sum() / spread.square().sum() if len(m) > 1 else w.norm()
    return kappa, w.mean(dim=0) - kappa * m.mean(dim=0), (b + 0.5 * kappa * m.square().sum(dim=1)).mean()
