"""Features at several ranks: what distances between nodes are taken on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class MultiRank:
    """Each view of z cut to each of some ranks and brought to unit length, side by side: z -> u.

    A class of few members is told apart by few directions, many classes need many; cut at two ranks
    and put side by side, a view says both. What is left has no length that could decide.

    Attributes:
        views: Blocks of columns that z is made of.
        view_size: Columns of a block, by falling importance.
        ranks: How many columns of each block are taken, ascending.

    Examples:
        >>> u = MultiRank(views=1, view_size=3, ranks=(1, 3))(torch.tensor([[3.0, 0.0, 4.0]]))
        >>> [round(value, 1) for value in u[0].tolist()]
        [1.0, 0.6, 0.0, 0.8]
    """

    views: int
    view_size: int
    ranks: tuple[int, ...]

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
        if self.is_whole:  # nothing to cut, and gradients add up in the order they always had
            return F.normalize(z, dim=1)
        views = z.split(self.view_size, dim=1)  # type: ignore[no-untyped-call]
        return torch.cat([part for view in views for part in self._cut(view)], dim=1)

    def of_view(self, view: Tensor) -> Tensor:
        """(n, sum of ranks) the columns of u that come from one view (n, max rank or more)."""
        return torch.cat(self._cut(view), dim=1)

    def _cut(self, view: Tensor) -> list[Tensor]:
        return [F.normalize(view[:, :rank], dim=1) for rank in self.ranks]

    def nearest(self, wanted: Iterable[float]) -> MultiRank:
        """The same at those of its ranks that are nearest, as ratios, to the wanted ones.

        Examples:
            >>> MultiRank(1, 64, (8, 16, 32, 64)).nearest([7, 56]).ranks
            (8, 64)
        """
        near = {min(self.ranks, key=lambda rank: abs(math.log(rank / want))) for want in wanted}
        return replace(self, ranks=tuple(sorted(near)))

    def columns_of(self, some: MultiRank) -> Tensor:
        """(size,) which columns of u are those at the ranks of `some`: a mask."""
        one_view = torch.cat([torch.full((rank,), rank in some.ranks) for rank in self.ranks])
        return one_view.repeat(self.views)

    def per_column(self, by_view: Tensor) -> Tensor:
        """(size,) a number for each column from one for each view, (views,)."""
        return by_view.repeat_interleave(sum(self.ranks))
