"""How likely unlabelled nodes are new, by the number of labelled nodes in their cell.

Cells are small regions of the representation, found without labels. Labelled nodes are a sample of
the known classes: if all unlabelled nodes are of known classes, every cell holds its share of
labelled nodes, however many modes a class has. A cell with many unlabelled and hardly any labelled
nodes is evidence of a new class.
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
    kmeans_pp,
    lloyd,
    squared_distances,
    whitening,
)
from nodenova.open_world.count_weights import ODDS

REPETITIONS = 3  # partitions, each from other starting points
CELLS_PER_CLASS, MIN_CELLS, MAX_CELLS = 8, 20, 64
MIN_NODES_PER_CELL = 8  # on average, where nodes are few
MIN_LABELLED = 3  # labelled nodes of a class in a cell that are stored by their number;
FEW = 1.5  # stored for fewer of them, so that no entry shows a single node
MAX_NODES = 20_000  # nodes on which cells are found
PARTITION_STEPS = 30  # iterations of k-means
RATE_STEPS = 60  # iterations of the fixed point for the rates
MAX_EXCESS = 1.5  # limit of what a cell claims for known classes, in multiples of its share
MIN_SELF = 1e-3  # lower bound of a cell's self-likeness, in multiples of the mean of the classes
MIN_ODDS, MAX_ODDS = 0.02, 3.0  # bounds of the weight of a node
FLOOR = 1e-8  # lower bound of a p-value
NODE_LIKENESS = 0.7  # decrease of the log-odds for each standard deviation of a node's likeness
POOLED = 0.75  # share of the cells that are pooled, the least like known classes first


@dataclass(frozen=True, eq=False)
class Partition:
    """Cells, and how many labelled nodes phase 1 had in each: sums over nodes, no single node."""

    ranks: Tensor  # (q,) ranks at which cells are found
    basis: Tensor  # (D, r) of the `Directions` in which they are found
    shift: Tensor  # (r,) of the `Directions`
    center: Tensor  # (T, M, r) centers of M cells, in T repetitions
    table: Tensor  # (T, M, C) number of labelled nodes of each class in each cell; 1.5 for 1 or 2

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
        """Find cells on nodes `every` (m, hidden); count labelled nodes z (n, hidden), y (n,)."""
        o = len(known.center)
        used = lda.ranks_for(multirank, 2 * o)
        scale = used.per_column(known.view_scale)
        columns = multirank.columns_of(used).to(z.device)
        white = whitening(known.covariance(columns, lda.prior, scale))
        u = used(every) * scale
        directions = Directions.of(u, white, 3 * o)
        points = directions(u).double().cpu().numpy()
        most = min(max(CELLS_PER_CLASS * o, MIN_CELLS), MAX_CELLS)
        count = max(min(most, len(points) // MIN_NODES_PER_CELL), 1)
        rng, even = numpy_generator(), np.ones(len(points))
        none = np.zeros((0, points.shape[1]))
        centers = []
        for _ in range(REPETITIONS):
            start = kmeans_pp(points, none, count, rng, even)
            centers.append(lloyd(points, none, start, even, PARTITION_STEPS)[0])
        cells = cls(
            torch.tensor(used.ranks, device=z.device),
            directions.basis,
            directions.shift,
            torch.from_numpy(np.stack(centers)).float().to(z.device),
            torch.zeros(REPETITIONS, count, 0, device=z.device),
        )
        return cells.append(multirank, known, z, y, o)

    def used(self, multirank: MultiRank) -> MultiRank:
        """The ranks at which cells are found."""
        return replace(multirank, ranks=tuple(self.ranks.tolist()))

    def locate(self, multirank: MultiRank, known: ClassStatistics, z: Tensor) -> np.ndarray:
        """(T, n) the cell of each node z (n, hidden), in each repetition."""
        used = self.used(multirank)
        u = used(z) * used.per_column(known.view_scale)
        points = Directions(self.basis, self.shift)(u).double().cpu().numpy()
        centers = self.center.double().cpu().numpy()
        return np.stack([squared_distances(points, center).argmin(axis=1) for center in centers])

    def append(
        self, multirank: MultiRank, known: ClassStatistics, z: Tensor, y: Tensor, num_classes: int
    ) -> Partition:
        """Add classes 0..num_classes-1 with nodes z (n, hidden), y (n,) to the table."""
        cell, label = self.locate(multirank, known, z), y.cpu().numpy()
        count = np.zeros((*self.center.shape[:2], num_classes))
        for repetition, cells in enumerate(cell):
            np.add.at(count[repetition], (cells, label), 1)
        count[(count > 0) & (count < MIN_LABELLED)] = FEW
        more = torch.from_numpy(count).to(self.table)
        return replace(self, table=torch.cat([self.table, more], dim=2))

    def select(self, classes: Sequence[int]) -> Partition:
        """The same cells, some of the classes."""
        return replace(self, table=self.table[:, :, list(classes)])

    def to(self, device: torch.device) -> Partition:
        return self.map(lambda tensor: tensor.to(device))

    def map(self, change: Callable[[Tensor], Tensor]) -> Partition:
        return Partition(**{f.name: change(getattr(self, f.name)) for f in fields(self)})


def numpy_generator() -> np.random.Generator:
    """A generator seeded by PyTorch's."""
    return np.random.default_rng(int(torch.randint(2**31, (1,))))


@dataclass(frozen=True, eq=False)
class CellNovelty:
    """Unlabelled nodes in the cells of one repetition."""

    cell: np.ndarray  # (n,) cell of each node
    size: np.ndarray  # (M,) unlabelled nodes in each cell
    labelled: np.ndarray  # (M, C) labelled nodes of each known class in each cell
    rate: np.ndarray  # (C,) unlabelled nodes of a class for each labelled one
    # (M, C) correlation of a cell with each known class, without sampling noise
    likeness: np.ndarray
    node_likeness: np.ndarray  # (n,) cosine of each node with the known class most like it

    def features(self) -> np.ndarray:
        """(M, 5) features of each cell, by which its odds of being new are computed."""
        nearest, like = self.likeness.argmax(axis=1), self.likeness.max(axis=1)
        total = self.labelled.sum(axis=1)
        expected = self.size / self.rate[nearest]
        fewest = self.size / self.rate.max()
        ratio = np.clip(0.9 * expected + total * np.log(0.1), -5, 5)
        cautious = np.clip(0.9 * fewest + total * np.log(0.1), -5, 5)
        lacking = np.log((total + 0.5) / (expected + 0.5))
        return np.stack([np.ones_like(like), like, lacking, cautious, ratio], axis=1)

    def probability(self) -> np.ndarray:
        """(M,) probability that a node of each cell is new."""
        return expit(self.features() @ np.array(ODDS))

    def p_values(self) -> np.ndarray:
        """P(at most as many labelled nodes | all nodes known), for each cell that is not empty."""
        occupied = self.size > 0
        # The cell may be of the class with the fewest labels per node, so its rate is used.
        expected = self.size[occupied] / self.rate.max()
        return poisson.cdf(np.floor(self.labelled.sum(axis=1)[occupied]), expected)

    def pooled_p_value(self) -> float:
        """The smallest such p-value over pools of the 1, 2, ... cells least like known classes."""
        order = np.argsort(np.where(self.size > 0, self.likeness.max(axis=1), np.inf))
        order = order[: max(1, int(POOLED * (self.size > 0).sum()))]
        expected = np.cumsum(self.size[order]) / self.rate.max()
        labelled = np.cumsum(self.labelled.sum(axis=1)[order])
        return float(poisson.cdf(np.floor(labelled), expected).min())


@torch.no_grad()
def cell_novelty(
    multirank: MultiRank, known: ClassStatistics, cells: Partition, lda: LDASettings, z: Tensor
) -> list[CellNovelty]:
    """Put unlabelled nodes z (n, hidden) into the cells of each repetition."""
    used = cells.used(multirank)
    columns = multirank.columns_of(used).to(z.device)
    scale = used.per_column(known.view_scale)
    white = whitening(known.covariance(columns, lda.prior, scale))
    x = ((used(z) * scale).double() @ white).cpu().numpy()
    mean = ((known.center[:, columns] * scale).double() @ white).cpu().numpy()
    own = self_likeness(known, columns, scale, white, mean)
    table = cells.table.double().cpu().numpy()
    if table.shape[2] < len(mean):  # classes of a method that does not count them in cells
        table = np.pad(table, ((0, 0), (0, 0), (0, len(mean) - table.shape[2])))
    cosine = _unit(x) @ _unit(mean).T
    return [
        _measure(x, mean, own, cell, labelled, cosine.max(axis=1))
        for cell, labelled in zip(cells.locate(multirank, known, z), table, strict=True)
    ]


def self_likeness(
    known: ClassStatistics, columns: Tensor, scale: Tensor, white: Tensor, mean: np.ndarray
) -> np.ndarray:
    """(C,) |mu_c|^2 of whitened means (C, D), minus the noise of a mean of n_c nodes."""
    within = known.covariance(columns, 0.0, scale)
    noise = float((within @ white * white).sum())
    count = known.nodes.double().cpu().numpy().clip(1)
    own = (mean**2).sum(axis=1) - noise / count
    return np.maximum(own, 1e-3 * (mean**2).sum(axis=1).mean() + 1e-12)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def _measure(
    x: np.ndarray,
    mean: np.ndarray,
    own: np.ndarray,
    cell: np.ndarray,
    labelled: np.ndarray,
    node_likeness: np.ndarray,
) -> CellNovelty:
    size = np.bincount(cell, minlength=len(labelled)).astype(float)
    total = group_sums(x, cell, len(labelled))
    square = np.bincount(cell, (x**2).sum(axis=1), minlength=len(labelled))
    alike = ((total**2).sum(axis=1) - square) / np.maximum(size * (size - 1), 1)
    center = total / np.maximum(size, 1)[:, None]
    floor = MIN_SELF * own.mean()
    likeness = center @ mean.T / np.sqrt(np.maximum(alike, floor)[:, None] * own)
    rate = _rates(size, labelled)
    return CellNovelty(cell, size, labelled, rate, np.clip(likeness, -2, 2), node_likeness)


def _rates(size: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """(C,) unlabelled nodes for each labelled one: fixed point of cells that share out nodes."""
    count = labelled.sum(axis=0)
    rate = np.full(labelled.shape[1], size.sum() / max(labelled.sum(), 1))
    for _ in range(RATE_STEPS):
        claim = np.minimum(size / np.maximum(labelled @ rate, 1e-9), MAX_EXCESS)
        rate = np.maximum(rate * (labelled.T @ claim) / np.maximum(count, 1e-9), 1e-6)
    return rate


def probability_of_new(novelty: Sequence[CellNovelty]) -> np.ndarray:
    """(n,) probability that each node is new, the mean over repetitions."""
    return np.mean([one.probability()[one.cell] for one in novelty], axis=0)


def log_odds_of_new(novelty: Sequence[CellNovelty]) -> np.ndarray:
    """(n,) log-odds that each node is new, by its cell and by its own likeness to known classes."""
    # Where few nodes are new, cells alone are too coarse: within a cell, a node is the more likely
    # new the less it resembles any known class.
    like = novelty[0].node_likeness
    off = (like - like.mean()) / max(float(like.std()), 1e-9)
    p = np.clip(probability_of_new(novelty), 1e-6, 1 - 1e-6)
    found: np.ndarray = logit(p) - NODE_LIKENESS * off
    return found


def odds_of_new(novelty: Sequence[CellNovelty]) -> np.ndarray:
    """(n,) weight of each node when new classes are searched for."""
    return np.clip(np.exp(log_odds_of_new(novelty)), MIN_ODDS, MAX_ODDS)


def bonferroni_test(novelty: Sequence[CellNovelty]) -> float:
    """p-value of "all nodes are known": twice the median of Bonferroni's over repetitions."""
    each = [min(1.0, len(p) * p.min()) for p in (one.p_values() for one in novelty)]
    return min(1.0, 2 * float(np.median(each)))


def simes_test(novelty: Sequence[CellNovelty]) -> float:
    """The same by Simes' rule, to which several cells with small p-values contribute."""
    each = []
    for one in novelty:
        p = np.sort(one.p_values())
        each.append(float((len(p) * p / np.arange(1, len(p) + 1)).min()))
    return min(1.0, 2 * float(np.median(each)))
