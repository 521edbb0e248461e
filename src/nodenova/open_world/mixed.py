"""New classes among nodes that may be of known ones too: anchored k-means, then Prism's one
classifier for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from nodenova.encoders.prism.lda import (
    RESAMPLES,
    RIDGE,
    JointFit,
    LDASettings,
    lda_head,
    refit_on_all_nodes,
    times_found,
)
from nodenova.nn.class_memory import Memory
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.multirank import MultiRank
from nodenova.nn.seeding import sample
from nodenova.nn.statistics import ClassStatistics
from nodenova.open_world.anchored_kmeans import (
    Directions,
    anchored_kmeans,
    nearest_new,
    renumbered,
    whitening,
)
from nodenova.open_world.novelty import generator
from nodenova.progress import report

RESTARTS = 8  # of anchored k-means
RESTARTS_AGAIN = 2  # of each grouping of a part
MAX_REGROUPED = 5_000  # of those that are grouped again


@dataclass(frozen=True, eq=False)
class WhitenedSpace:
    """Unlabelled nodes and known classes in the space where they are grouped.

    used, old: the ranks in use and what is known of the old classes at them.
    u:        (n, D) multi-rank features of the nodes.
    points:   (n, r) the same whitened, in its main directions, at unit length, and
    anchors:  (o, r) the old means there.
    white:    (D, D) the whitening.
    """

    used: MultiRank
    old: ClassStatistics
    u: Tensor
    points: np.ndarray
    anchors: np.ndarray
    white: Tensor

    @classmethod
    def of(
        cls,
        multirank: MultiRank,
        old: ClassStatistics,
        z: Tensor,
        num_new: int,
        lda: LDASettings,
        odds: np.ndarray | None = None,
    ) -> WhitenedSpace:
        """That of nodes z when so many classes are new.

        With (n,) the odds of nodes to be new, directions are those of a balanced world, in which
        every class counts alike: the known ones by their means, the new ones by the nodes that are
        likely new. Where most nodes are known, the directions of all of them would be those in
        which known classes differ, and new ones would lie on top of each other.
        """
        num_classes = len(old.center) + num_new
        used = lda.ranks_for(multirank, num_classes)
        small = old.at(multirank.columns_of(used).to(z.device))
        scale = used.per_column(old.view_scale)
        every = torch.ones(len(scale), dtype=torch.bool, device=z.device)
        white = whitening(small.covariance(every, lda.prior, scale))
        u, mean = used(z) * scale, small.center * scale
        rows, weight = u, None
        if odds is not None:
            rows = torch.cat([u, mean])
            weight = torch.from_numpy(np.append(odds * num_new / odds.sum(), np.ones(len(mean))))
        directions = Directions.of(rows, white, 3 * num_classes // 2, weight)
        points = directions(u).double().cpu().numpy()
        anchors = directions(mean).double().cpu().numpy()
        return cls(used, small, u, points, anchors, white)

    def centers(self, num_new: int, restarts: int, weight: np.ndarray | None) -> np.ndarray:
        """(num_new, r) of new classes beside the anchors."""
        rng = generator()
        return anchored_kmeans(self.points, self.anchors, num_new, restarts, rng, weight)

    def part(self, rows: np.ndarray) -> WhitenedSpace:
        """That of some of the nodes, in the same space."""
        at = torch.from_numpy(rows).to(self.u.device)
        return replace(self, u=self.u[at], points=self.points[rows])


def fit_mixed_classifier(
    multirank: MultiRank,
    old: Memory,
    z: Tensor,
    z_new: Tensor,
    num_new: int,
    *,
    odds: Callable[[Tensor], np.ndarray] | None = None,
    lda: LDASettings,
    pool: bool = True,
    restarts: int = RESTARTS,
    resamples: int = RESAMPLES,
    ridge: float | None = RIDGE,
) -> JointFit:
    """What `fit_joint_classifier` finds, where nodes z_new may be of the old classes too.

    Args:
        multirank: How z is read.
        old: What is remembered of the known classes.
        z: (N, hidden) of visible nodes.
        z_new: (n, hidden) of the unlabelled ones.
        num_new: How many new classes to find.
        odds: Those of nodes (n, hidden) to be new, by which they count; see
            `nodenova.open_world.novelty`. Without it all count alike.
        lda: As phase 1 was calibrated.
        pool: Whether the scatter of the new nodes counts too.
        restarts: Of k-means.
        resamples: How often parts of the nodes are grouped again, over which it is averaged what
            they say of all.
        ridge: What holds the refitted classifier back; None leaves it as the one grouping makes it.

    Returns:
        Statistics of the old classes and the new ones, one classifier for all of them, and how
        steadily the new ones are found.
    """
    known = old.classes
    weight = None if odds is None else odds(z_new)
    scene = WhitenedSpace.of(multirank, known, z_new, num_new, lda, weight)
    groups = nearest_new(scene.points, scene.anchors, scene.centers(num_new, restarts, weight))

    def head_of(u: Tensor, mine: np.ndarray) -> UnitLinearHead:
        both = scene.old.append(_statistics(scene.used, u, mine, num_new))
        temperature = float(known.temperature)
        return lda_head(scene.used, both, both if pool else scene.old, temperature, lda, scene.used)

    both = _remembered(old, multirank, z_new, groups, num_new)
    wide = scene.used(z_new)
    if ridge is None:
        return JointFit(both, head_of(wide, groups), ((0, 0),) * num_new)
    some = sample(len(z_new), MAX_REGROUPED, z_new.device).cpu().numpy()
    again = scene.part(some)
    part_weight = None if weight is None else weight[some]
    rows = wide[torch.from_numpy(some).to(z_new.device)]
    heads, others = [], []
    for number in range(resamples):
        report(number + 1, resamples, "grouping")
        others.append(_regrouped(again, groups[some], num_new, part_weight))
        heads.append(head_of(rows, others[-1]))
    heads = heads or [head_of(wide, groups)]
    found = times_found(groups[some], others, num_new)
    return JointFit(both, refit_on_all_nodes(heads, z, known.view_scale, ridge), found)


def _regrouped(
    scene: WhitenedSpace, groups: np.ndarray, num_new: int, weight: np.ndarray | None
) -> np.ndarray:
    """Another grouping, numbered as `groups` is: new centers are found on two thirds of the nodes,
    drawn anew."""
    part = torch.randperm(len(groups))[: max(num_new, -(-2 * len(groups) // 3))].numpy()
    part_weight = None if weight is None else weight[part]
    center = scene.part(part).centers(num_new, RESTARTS_AGAIN, part_weight)
    return renumbered(nearest_new(scene.points, scene.anchors, center), groups, num_new)


def _statistics(used: MultiRank, u: Tensor, groups: np.ndarray, num_new: int) -> ClassStatistics:
    new, y = _grouped(groups, u.device)
    return ClassStatistics.estimate(u[new], y, num_new, used.views)


def _remembered(
    old: Memory, multirank: MultiRank, z: Tensor, groups: np.ndarray, num_new: int
) -> Memory:
    new, y = _grouped(groups, z.device)
    return old.append(Memory.of(z[new], y, num_new, multirank))


def _grouped(groups: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """Which nodes are in a group, and in which."""
    new = np.flatnonzero(groups >= 0)
    return torch.from_numpy(new).to(device), torch.from_numpy(groups[new]).to(device)
