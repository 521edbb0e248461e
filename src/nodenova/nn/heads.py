"""Heads h: z -> logits. One reads z as it is, the other its direction only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from nodenova.graph import Graph
from nodenova.nn.distributed import Columns, SplitColumns, gather_rows, map_rows
from nodenova.nn.multirank import MultiRank

NODES_AT_ONCE = 16_384  # nodes whose features are held at a time
MIN_SPREAD = 1e-12  # share of squared differences of means in their squares, below which they are 0
TEMPERATURE = 0.1  # of a joint head on z/|z|, as in the released code of SWORD


class LinearHead(nn.Module):
    """h(z) = W z + b: what phase 1 trains.

    The length of z matters: it is the confidence in a class.
    """

    temperature: ClassVar[float] = 1.0

    def __init__(self, hidden: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden, classes)

    @property
    def num_classes(self) -> int:
        return self.linear.out_features

    def features(self, z: Tensor) -> Tensor:
        """(n, hidden) what W is multiplied with."""
        return z

    def forward(self, z: Tensor) -> Tensor:
        logits: Tensor = self.linear(z)
        return logits

    def description(self) -> dict[str, Any]:
        """What `build_head` needs to build an empty one like it."""
        return {"kind": "linear", "hidden": self.linear.in_features, "classes": self.num_classes}

    def with_num_classes(self, classes: int) -> Self:
        """A freshly initialized head like it with `classes` rows."""
        return type(self)(self.linear.in_features, classes)

    @torch.no_grad()
    def on_sphere(self, temperature: float = TEMPERATURE) -> UnitLinearHead:
        """The same rows, read on z/|z|."""
        read = UnitLinearHead.on_sphere(self.linear.in_features, self.num_classes, temperature)
        read.to(self.linear.weight.device)
        read.linear.load_state_dict(self.linear.state_dict())
        return read


class UnitLinearHead(nn.Module):
    """h(z) = (W u + b) / temperature, with u the multi-rank features of z, which have unit length.

    No class can win by the length of z. On z/|z| as a whole (`UnitLinearHead.on_sphere`) phase 2
    trains it; on the views of `prism` it is computed.
    """

    def __init__(
        self, multirank: MultiRank, classes: int, temperature: float = TEMPERATURE
    ) -> None:
        super().__init__()
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature must be positive, it is {temperature}")
        self.multirank = multirank
        self.linear = nn.Linear(multirank.size, classes)
        self.temperature = temperature

    @classmethod
    def on_sphere(
        cls, hidden: int, classes: int, temperature: float = TEMPERATURE
    ) -> UnitLinearHead:
        """A head on z/|z|."""
        return cls(MultiRank.whole(hidden), classes, temperature)

    @property
    def num_classes(self) -> int:
        return self.linear.out_features

    def features(self, z: Tensor) -> Tensor:
        """(n, D) what W is multiplied with."""
        return self.multirank(z)

    def forward(self, z: Tensor) -> Tensor:
        return self.linear(self.multirank(z)) / self.temperature

    def from_views(self, views: Iterable[Tensor]) -> Tensor:
        """`forward` for views (n, max rank or more) that come one by one.

        Only one view and the logits are held at a time.
        """
        weights = iter(self.linear.weight.chunk(self.multirank.views, dim=1))
        logits: Tensor | None = None
        view: Tensor | None
        for view in views:  # zip and enumerate would hold a view while the next is computed
            if logits is None:
                logits = self.linear.bias.repeat(len(view), 1)
            weight = next(weights).t()
            for start in range(0, len(view), NODES_AT_ONCE):
                nodes = slice(start, start + NODES_AT_ONCE)
                logits[nodes] += self.multirank.of_view(view[nodes]) @ weight
            view = None
        assert logits is not None
        return logits.div_(self.temperature)

    def description(self) -> dict[str, Any]:
        """What `build_head` needs to build an empty one like it, in the words of saved models."""
        rest = {"classes": self.num_classes, "temperature": self.temperature}
        if self.multirank.is_whole:
            return {"kind": "cosine", "hidden": self.multirank.size, **rest}
        shape = {"views": self.multirank.views, "view_size": self.multirank.view_size}
        return {"kind": "ladder", **shape, "rungs": list(self.multirank.ranks), **rest}

    def with_num_classes(self, classes: int) -> Self:
        """A freshly initialized head like it with `classes` rows."""
        return type(self)(self.multirank, classes, self.temperature)


TrainedHead = TypeVar("TrainedHead", bound=LinearHead | UnitLinearHead)


@torch.no_grad()
def grow(head: TrainedHead, num_new: int) -> TrainedHead:
    """h^l into h^a: the old rows and `num_new` fresh ones, drawn by PyTorch's generator."""
    n_old = head.num_classes
    grown: TrainedHead = head.with_num_classes(n_old + num_new)  # type: ignore[assignment]
    grown.to(head.linear.weight.device)
    grown.linear.weight[:n_old] = head.linear.weight
    grown.linear.bias[:n_old] = head.linear.bias
    # New classes must earn their probability: they start below the least likely old class.
    grown.linear.bias[n_old:] = head.linear.bias.min() - 1.0
    return grown


Head: TypeAlias = "LinearHead | UnitLinearHead"


def build_head(description: Mapping[str, Any]) -> Head:
    """An empty head of the kind and shape that `description()` returned."""
    match dict(description):
        case {"kind": "linear", "hidden": hidden, "classes": classes}:
            return LinearHead(hidden, classes)
        case {"kind": "cosine", "hidden": hidden, "classes": classes, "temperature": temperature}:
            return UnitLinearHead.on_sphere(hidden, classes, temperature)
        case {"kind": "ladder", "views": views, "view_size": size, "rungs": ranks, **rest}:
            multirank = MultiRank(views, size, tuple(ranks))
            return UnitLinearHead(multirank, rest["classes"], rest["temperature"])
    raise ValueError(f"a head of kind {description.get('kind')!r} is not known")


def as_nearest_mean(w: Tensor, b: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Read a linear head as a nearest-mean classifier; return kappa (), v (hidden,) and beta ().

        w_c ~ kappa m_c + v,  b_c ~ beta - kappa |m_c|^2 / 2

    w (C, hidden), b (C,), m (C, hidden) the means of the classes. Where means do not differ, and
    with one class, kappa is the mean of |w_c|.
    """
    spread, rows = m - m.mean(dim=0), w - w.mean(dim=0)
    size = spread.square().sum()
    kappa = (rows * spread).sum() / size if len(m) > 1 else w.norm()
    if len(m) > 1 and size <= MIN_SPREAD * m.square().sum():
        kappa = w.norm(dim=1).mean()
    v = w.mean(dim=0) - kappa * m.mean(dim=0)
    beta = (b + 0.5 * kappa * m.square().sum(dim=1)).mean()
    return kappa, v, beta


def read_split(
    head: UnitLinearHead, views: Iterable[Columns], read: Callable[[Tensor], Tensor]
) -> np.ndarray:
    """`read` of `head.from_views(views)` for split views; only what `read` returns comes here."""
    logits: SplitColumns | None = None
    for number, view in enumerate(views):
        assert isinstance(view, SplitColumns)
        before = () if logits is None else (logits,)
        logits = view.split.each(partial(_with_view, head, number), view, *before)
    assert logits is not None
    result = map_rows(partial(_read, read, head.temperature), logits)
    return np.asarray(gather_rows(result).numpy())


def _with_view(
    head: UnitLinearHead, number: int, graph: Graph, view: Tensor, logits: Tensor | None = None
) -> Tensor:
    weight = head.linear.weight.chunk(head.multirank.views, dim=1)[number]
    before = head.linear.bias if logits is None else logits
    return before + head.multirank.of_view(view) @ weight.t()


def _read(read: Callable[[Tensor], Tensor], temperature: float, logits: Tensor) -> Tensor:
    return read(logits / temperature)
