"""Multi-rank features: what distances between nodes are computed on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class MultiRank:
    """z -> u: each view of z, cut to each of some ranks and scaled to unit length, concatenated.

    A few directions separate few classes, many classes need many directions; cut at two ranks a
    view serves both. No length is left that could decide.

    Examples:
        >>> u = MultiRank(views=1, view_size=3, ranks=(1, 3))(torch.tensor([[3.0, 0.0, 4.0]]))
        >>> [round(value, 1) for value in u[0].tolist()]
        [1.0, 0.6, 0.0, 0.8]
    """

    views: int  # number of blocks of columns in z
    view_size: int  # columns of a block, by falling importance
    ranks: tuple[int, ...]  # number of leading columns of each block that are used, ascending

    @classmethod
    def whole(cls, size: int) -> MultiRank:
        """z as one view at its full rank: u = z/|z|."""
        return cls(1, size, (size,))

    @property
    def size(self) -> int:
        """Columns of u."""
        return self.views * sum(self.ranks)

    @property
    def is_whole(self) -> bool:
        return self == MultiRank.whole(self.view_size)

    def __call__(self, z: Tensor) -> Tensor:
        """u (n, size) of z (n, views * view_size)."""
        if self.is_whole:  # nothing to cut, and the order of gradient sums stays
            return F.normalize(z, dim=1)
        views = z.split(self.view_size, dim=1)  # type: ignore[no-untyped-call]
        return torch.cat([part for view in views for part in self._cut(view)], dim=1)

    def of_view(self, view: Tensor) -> Tensor:
        """(n, sum of ranks) the columns of u that come from one view (n, max rank or more)."""
        return torch.cat(self._cut(view), dim=1)

    def _cut(self, view: Tensor) -> list[Tensor]:
        return [F.normalize(view[:, :rank], dim=1) for rank in self.ranks]

    def nearest(self, targets: Iterable[float]) -> MultiRank:
        """The same at those of its ranks that are nearest, as ratios, to the targets.

        >>> MultiRank(1, 64, (8, 16, 32, 64)).nearest([7, 56]).ranks
        (8, 64)
        """
        near = {min(self.ranks, key=lambda rank: abs(math.log(rank / goal))) for goal in targets}
        return replace(self, ranks=tuple(sorted(near)))

    def columns_of(self, some: MultiRank) -> Tensor:
        """(size,) mask of the columns of u at the ranks of `some`."""
        one_view = torch.cat([torch.full((rank,), rank in some.ranks) for rank in self.ranks])
        return one_view.repeat(self.views)

    def per_column(self, by_view: Tensor) -> Tensor:
        """(size,) one number per column from one per view (views,)."""
        return by_view.repeat_interleave(sum(self.ranks))
