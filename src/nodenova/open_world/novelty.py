"""What cells say of unlabelled nodes: how likely each is new, and whether any is.

Cells: small regions of the representation, found without labels, and how many labelled nodes lie
in each.

Labelled nodes are a sample of the known classes. Where unlabelled nodes are all of known classes,
every cell holds its share of labelled nodes, however many modes a class has; a cell with many
unlabelled and hardly any labelled nodes is evidence of something new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from scipy.special import expit, logit
from scipy.stats import poisson
from torch import Tensor

from nodenova.encoders.prism.lda import LDASettings
from nodenova.nn.multirank import MultiRank
from nodenova.nn.statistics import ClassStatistics
from nodenova.open_world.anchored_kmeans import (
    Directions,
    group_sums,
    seeds,
    settle,
    squared_distances,
    whitening,
)
from nodenova.open_world.count_weights import ODDS

CELLINGS = 3  # times that cells are found, each from other starting points
CELLS_PER_CLASS, MIN_CELLS, MAX_CELLS = 8, 20, 64
MIN_NODES_PER_CELL = 8  # on the mean, where nodes are few
MIN_LABELLED = 3  # of a class in a cell that are remembered by their number;
FEW = 1.5  # below it they are some, neither one nor two
MAX_NODES = 20_000  # on which cells are found
PARTITION_STEPS = 30  # of k-means


@dataclass(frozen=True, eq=False)
class Partition:
    """What phase 1 keeps of where the labelled nodes are: sums over nodes, no node.

    ranks:         (q,) the ranks that cells are found on.
    basis, shift:  (D, r), (r,) of the `Directions` in which they are found.
    center:        (T, M, r) of T cellings with M cells each.
    table:         (T, M, C) how many labelled nodes of each class lie in each cell; one or two are
                   1.5.
    """

    ranks: Tensor
    basis: Tensor
    shift: Tensor
    center: Tensor
    table: Tensor

    @classmethod
    def of(
        cls,
        multirank: MultiRank,
        known: ClassStatistics,
        every: Tensor,
        z: Tensor,
        y: Tensor,
        lda: LDASettings,
    ) -> Partition:
        """Partition of nodes, and where the labelled ones with classes y are.

        Args:
            multirank: How z is read.
            known: Statistics of the classes y.
            every: (m, hidden) all nodes the graph shows, or MAX_NODES of them. Which of them are
                labelled does not matter here.
            z: (n, hidden) the labelled nodes.
            y: (n,) their classes.
            lda: How classes are compared.
        """
        o = len(known.center)
        used = lda.ranks_for(multirank, 2 * o)
        scale = used.per_column(known.view_scale)
        columns = multirank.columns_of(used).to(z.device)
        white = whitening(known.covariance(columns, lda.prior, scale))
        u = used(every) * scale
        directions = Directions.of(u, white, 3 * o)
        points = directions(u).double().cpu().numpy()
        wanted = min(max(CELLS_PER_CLASS * o, MIN_CELLS), MAX_CELLS)
        count = max(min(wanted, len(points) // MIN_NODES_PER_CELL), 1)
        rng, even = generator(), np.ones(len(points))
        none = np.zeros((0, points.shape[1]))
        center = np.stack(
            [
                settle(points, none, seeds(points, none, count, rng, even), even, PARTITION_STEPS)[
                    0
                ]
                for _ in range(CELLINGS)
            ]
        )
        cells = cls(
            torch.tensor(used.ranks, device=z.device),
            directions.basis,
            directions.shift,
            torch.from_numpy(center).float().to(z.device),
            torch.zeros(CELLINGS, count, 0, device=z.device),
        )
        return cells.append(multirank, known, z, y, o)

    def used(self, multirank: MultiRank) -> MultiRank:
        """The ranks that cells are found on."""
        return replace(multirank, ranks=tuple(self.ranks.tolist()))

    def directions(self, multirank: MultiRank, known: ClassStatistics, z: Tensor) -> Tensor:
        used = self.used(multirank)
        u = used(z) * used.per_column(known.view_scale)
        return Directions(self.basis, self.shift)(u)

    def where(self, multirank: MultiRank, known: ClassStatistics, z: Tensor) -> np.ndarray:
        """(T, n) the cell of each node, a row a celling."""
        points = self.directions(multirank, known, z).double().cpu().numpy()
        centers = self.center.double().cpu().numpy()
        return np.stack([squared_distances(points, center).argmin(axis=1) for center in centers])

    def append(
        self, multirank: MultiRank, known: ClassStatistics, z: Tensor, y: Tensor, num_classes: int
    ) -> Partition:
        """The same cells and where nodes of further classes are: (n, hidden) z with classes y,
        0..num_classes-1."""
        cell, label = self.where(multirank, known, z), y.cpu().numpy()
        count = np.zeros((*self.center.shape[:2], num_classes))
        for t, mine in enumerate(cell):
            np.add.at(count[t], (mine, label), 1)
        count[(count > 0) & (count < MIN_LABELLED)] = FEW
        more = torch.from_numpy(count).to(self.table)
        return replace(self, table=torch.cat([self.table, more], dim=2))

    def select(self, classes: Sequence[int]) -> Partition:
        """What is known of some classes."""
        return replace(self, table=self.table[:, :, list(classes)])

    def to(self, device: torch.device) -> Partition:
        return self.map(lambda tensor: tensor.to(device))

    def map(self, change: Callable[[Tensor], Tensor]) -> Partition:
        return Partition(**{f.name: change(getattr(self, f.name)) for f in fields(self)})


def generator() -> np.random.Generator:
    """Seeded by PyTorch's, so that whoever seeds that one has seeded this."""
    return np.random.default_rng(int(torch.randint(2**31, (1,))))


STEPS = 60  # of the fixed point for the rates
MAX_EXCESS = 1.5  # a cell may claim so many times its share of unlabelled nodes for known classes
MIN_SELF = 1e-3  # of the mean self-likeness of classes that a cell has at least
MIN_ODDS, MAX_ODDS = 0.02, 3.0  # how much a node counts
FLOOR = 1e-8  # of a p-value
NODE_LIKENESS = 0.7  # what a spread of a node's own likeness takes from its log-odds
POOLED = 0.75  # of the cells, the least like known classes first


@dataclass(frozen=True, eq=False)
class Coverage:
    """One celling of unlabelled nodes.

    cell:     (n,) of each node.
    size:     (M,) nodes in each cell.
    labelled: (M, C) labelled nodes of each known class in it.
    rate:     (C,) unlabelled nodes for each labelled one.
    likeness: (M, C) the correlation of a cell with each known class, freed of sampling noise; 1:
        the same.
    node_likeness: (n,) the cosine of each node with the known class that it is most like.
    """

    cell: np.ndarray
    size: np.ndarray
    labelled: np.ndarray
    rate: np.ndarray
    likeness: np.ndarray
    node_likeness: np.ndarray

    def features(self) -> np.ndarray:
        """(M, 5) what the odds of being new depend on, a cell each."""
        nearest, like = self.likeness.argmax(axis=1), self.likeness.max(axis=1)
        total = self.labelled.sum(axis=1)
        expected = self.size / self.rate[nearest]
        fewest = self.size / self.rate.max()
        ratio = np.clip(0.9 * expected + total * np.log(0.1), -5, 5)
        cautious = np.clip(0.9 * fewest + total * np.log(0.1), -5, 5)
        lacking = np.log((total + 0.5) / (expected + 0.5))
        return np.stack([np.ones_like(like), like, lacking, cautious, ratio], axis=1)

    def chance(self) -> np.ndarray:
        """(M,) of each cell to be new."""
        return expit(self.features() @ np.array(ODDS))

    def p_values(self) -> np.ndarray:
        """(cells with nodes,) how often so few labelled nodes would be there if all nodes were of
        known classes.

        The rate is that of the class labelled most thinly: the cell may be of it.
        """
        some = self.size > 0
        expected = self.size[some] / self.rate.max()
        return poisson.cdf(np.floor(self.labelled.sum(axis=1)[some]), expected)

    def pooled(self) -> float:
        """The least such value over pools of cells, from the least like known classes on."""
        order = np.argsort(np.where(self.size > 0, self.likeness.max(axis=1), np.inf))
        order = order[: max(1, int(POOLED * (self.size > 0).sum()))]
        expected = np.cumsum(self.size[order]) / self.rate.max()
        found = np.cumsum(self.labelled.sum(axis=1)[order])
        return float(poisson.cdf(np.floor(found), expected).min())


@torch.no_grad()
def coverages(
    multirank: MultiRank, known: ClassStatistics, cells: Partition, lda: LDASettings, z: Tensor
) -> list[Coverage]:
    """What each celling says of the unlabelled nodes z (n, hidden)."""
    used = cells.used(multirank)
    columns = multirank.columns_of(used).to(z.device)
    scale = used.per_column(known.view_scale)
    white = whitening(known.covariance(columns, lda.prior, scale))
    x = ((used(z) * scale).double() @ white).cpu().numpy()
    mean = ((known.center[:, columns] * scale).double() @ white).cpu().numpy()
    own = self_likeness(known, columns, scale, white, mean)
    table = cells.table.double().cpu().numpy()
    if table.shape[2] < len(mean):  # classes found by a method that does not say where
        table = np.pad(table, ((0, 0), (0, 0), (0, len(mean) - table.shape[2])))
    cosine = _unit(x) @ _unit(mean).T
    return [
        _coverage(x, mean, own, cell, labelled, cosine.max(axis=1))
        for cell, labelled in zip(cells.where(multirank, known, z), table, strict=True)
    ]


def self_likeness(
    known: ClassStatistics, columns: Tensor, scale: Tensor, white: Tensor, mean: np.ndarray
) -> np.ndarray:
    """(C,) |mu_c|^2 of whitened means, freed of what the noise of n_c nodes adds to it."""
    within = known.covariance(columns, 0.0, scale)
    noise = float((within @ white * white).sum())
    count = known.nodes.double().cpu().numpy().clip(1)
    own = (mean**2).sum(axis=1) - noise / count
    return np.maximum(own, 1e-3 * (mean**2).sum(axis=1).mean() + 1e-12)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def _coverage(
    x: np.ndarray,
    mean: np.ndarray,
    own: np.ndarray,
    cell: np.ndarray,
    labelled: np.ndarray,
    node_likeness: np.ndarray,
) -> Coverage:
    size = np.bincount(cell, minlength=len(labelled)).astype(float)
    total = group_sums(x, cell, len(labelled))
    square = np.bincount(cell, (x**2).sum(axis=1), minlength=len(labelled))
    alike = ((total**2).sum(axis=1) - square) / np.maximum(size * (size - 1), 1)
    center = total / np.maximum(size, 1)[:, None]
    floor = MIN_SELF * own.mean()
    likeness = center @ mean.T / np.sqrt(np.maximum(alike, floor)[:, None] * own)
    rate = _rates(size, labelled)
    return Coverage(cell, size, labelled, rate, np.clip(likeness, -2, 2), node_likeness)


def _rates(size: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """(C,) unlabelled nodes of a class for each labelled one, by a fixed point: cells share out
    their nodes."""
    count = labelled.sum(axis=0)
    rate = np.full(labelled.shape[1], size.sum() / max(labelled.sum(), 1))
    for _ in range(STEPS):
        claim = np.minimum(size / np.maximum(labelled @ rate, 1e-9), MAX_EXCESS)
        rate = np.maximum(rate * (labelled.T @ claim) / np.maximum(count, 1e-9), 1e-6)
    return rate


def chance_of_new(found: list[Coverage]) -> np.ndarray:
    """(n,) the probability that each node is new, the mean over cellings."""
    return np.mean([one.chance()[one.cell] for one in found], axis=0)


def odds_of_new(found: list[Coverage]) -> np.ndarray:
    """(n,) how much each node counts when new classes are looked for.

    Within a cell a node is the likelier new the less it is like any known class: where few nodes
    are new, cells alone are too coarse.
    """
    like = found[0].node_likeness
    off = (like - like.mean()) / max(float(like.std()), 1e-9)
    logit_of_new = logit(np.clip(chance_of_new(found), 1e-6, 1 - 1e-6)) - NODE_LIKENESS * off
    return np.clip(np.exp(logit_of_new), MIN_ODDS, MAX_ODDS)


def node_odds(
    multirank: MultiRank, known: ClassStatistics, cells: Partition, lda: LDASettings, z: Tensor
) -> np.ndarray:
    """(n,) `odds_of_new` of the unlabelled nodes z (n, hidden)."""
    return odds_of_new(coverages(multirank, known, cells, lda, z))


def coverage_test(found: list[Coverage]) -> float:
    """The p-value of all cellings together: twice the median of Bonferroni's over the cells of
    each."""
    each = [min(1.0, len(p) * p.min()) for p in (one.p_values() for one in found)]
    return min(1.0, 2 * float(np.median(each)))


def simes_test(found: list[Coverage]) -> float:
    """The same by Simes' rule, which several cells with small values count in."""
    each = []
    for one in found:
        p = np.sort(one.p_values())
        each.append(float((len(p) * p / np.arange(1, len(p) + 1)).min()))
    return min(1.0, 2 * float(np.median(each)))
