"""Grouping of unlabelled nodes that may belong to known classes too, by anchored k-means.

`fit_joint_classifier` turns the grouping into one classifier for known and new classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from nodenova.encoders.prism.lda import Grouping, LDASettings
from nodenova.nn.kmeans import Mixture, fit_mixture
from nodenova.nn.multirank import MultiRank
from nodenova.nn.statistics import ClassStatistics
from nodenova.open_world.anchored_kmeans import (
    Directions,
    anchored_kmeans,
    assign_new,
    match_numbers,
    whitening,
)
from nodenova.open_world.novelty import numpy_generator
from nodenova.progress import report

RESTARTS = 8  # starts of anchored k-means
RESAMPLE_RESTARTS = 2  # starts for each resampled grouping


@dataclass(frozen=True, eq=False)
class WhitenedSpace:
    """Unlabelled nodes and known classes in the space in which nodes are grouped.

    used, known: ranks in use, and statistics of the known classes at these ranks.
    u:       (n, D) scaled multi-rank features of the nodes.
    points:  (n, r) the same whitened, in their principal components, at unit length.
    anchors: (o, r) means of the known classes in the same components.
    white:   (D, D) the whitening.
    """

    used: MultiRank
    known: ClassStatistics
    u: Tensor
    points: np.ndarray
    anchors: np.ndarray
    white: Tensor

    @classmethod
    def of(
        cls,
        multirank: MultiRank,
        known: ClassStatistics,
        z: Tensor,
        num_new: int,
        lda: LDASettings,
        odds: np.ndarray | None = None,
    ) -> WhitenedSpace:
        """Build the space for nodes `z`, given `num_new` and optionally (n,) odds of being new."""
        num_classes = len(known.center) + num_new
        used = lda.ranks_for(multirank, num_classes)
        small = known.at(multirank.columns_of(used).to(z.device))
        scale = used.per_column(known.view_scale)
        every = torch.ones(len(scale), dtype=torch.bool, device=z.device)
        white = whitening(small.covariance(every, lda.prior, scale))
        u, mean = used(z) * scale, small.center * scale
        rows, weight = u, None
        if odds is not None:
            # Every class gets the same weight: known ones by their means, new ones by the nodes
            # that are probably new. Where most nodes are known, the components of all nodes would
            # be those in which known classes differ, and new ones would lie on top of each other.
            rows = torch.cat([u, mean])
            weight = torch.from_numpy(np.append(odds * num_new / odds.sum(), np.ones(len(mean))))
        directions = Directions.of(rows, white, 3 * num_classes // 2, weight)
        points = directions(u).double().cpu().numpy()
        anchors = directions(mean).double().cpu().numpy()
        return cls(used, small, u, points, anchors, white)

    def mixture(self, num_new: int, restarts: int, weight: np.ndarray | None) -> Mixture:
        """New classes beside the anchors: k-means, then a mixture with unequal shares."""
        rng = numpy_generator()
        weight = np.ones(len(self.points)) if weight is None else weight
        center = anchored_kmeans(self.points, self.anchors, num_new, restarts, rng, weight)
        return fit_mixture(self.points, self.anchors, center, weight)

    def part(self, rows: np.ndarray) -> WhitenedSpace:
        """The same space with some of the nodes."""
        at = torch.from_numpy(rows).to(self.u.device)
        return replace(self, u=self.u[at], points=self.points[rows])


def mixed_grouping(
    multirank: MultiRank,
    known: ClassStatistics,
    z: Tensor,
    num_new: int,
    lda: LDASettings,
    odds: np.ndarray | None = None,
) -> Grouping:
    """Group nodes z (n, hidden) by anchored k-means, weighted by their (n,) odds of being new."""
    space = WhitenedSpace.of(multirank, known, z, num_new, lda, odds)
    mixture = space.mixture(num_new, RESTARTS, odds)
    groups = assign_new(mixture.distances(space.points), num_new)

    def regroup(rows: Tensor, times: int) -> Iterator[Tensor]:
        some = rows.cpu().numpy()
        part, weight = space.part(some), None if odds is None else odds[some]
        for number in range(times):
            report(number + 1, times, "grouping")
            yield torch.from_numpy(_regroup(part, groups[some], num_new, weight)).to(z.device)

    numbers = torch.from_numpy(groups).to(z.device)
    return Grouping(space.used, space.known, z, numbers, num_new, regroup)


def _regroup(
    space: WhitenedSpace, groups: np.ndarray, num_new: int, weight: np.ndarray | None
) -> np.ndarray:
    """(n,) grouping by classes found on two thirds of the nodes, numbered like `groups`."""
    some = torch.randperm(len(groups))[: max(num_new, -(-2 * len(groups) // 3))].numpy()
    mixture = space.part(some).mixture(
        num_new, RESAMPLE_RESTARTS, None if weight is None else weight[some]
    )
    return match_numbers(assign_new(mixture.distances(space.points), num_new), groups, num_new)
