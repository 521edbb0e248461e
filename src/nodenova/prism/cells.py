"""Cells: small regions of the representation, found without labels, and how many labelled nodes lie
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
from torch import Tensor

from nodenova.nn.multirank import MultiRank
from nodenova.nn.statistics import ClassStatistics
from nodenova.prism.anchored import Directions, seeds, settle, squared_distances, whitening
from nodenova.prism.classifier import LDASettings

CELLINGS = 3  # times that cells are found, each from other starting points
CELLS_PER_CLASS, MIN_CELLS, MAX_CELLS = 8, 20, 64
MIN_NODES_PER_CELL = 8  # on the mean, where nodes are few
MIN_LABELLED = 3  # of a class in a cell that are remembered by their number;
FEW = 1.5  # below it they are some, neither one nor two
MAX_NODES = 20_000  # on which cells are found
STEPS = 30  # of k-means


@dataclass(frozen=True, eq=False)
class Cells:
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
    ) -> Cells:
        """Cells of nodes, and where the labelled ones with classes y are.

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
                settle(points, none, seeds(points, none, count, rng, even), even, STEPS)[0]
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
    ) -> Cells:
        """The same cells and where nodes of further classes are: (n, hidden) z with classes y,
        0..num_classes-1."""
        cell, label = self.where(multirank, known, z), y.cpu().numpy()
        count = np.zeros((*self.center.shape[:2], num_classes))
        for t, mine in enumerate(cell):
            np.add.at(count[t], (mine, label), 1)
        count[(count > 0) & (count < MIN_LABELLED)] = FEW
        more = torch.from_numpy(count).to(self.table)
        return replace(self, table=torch.cat([self.table, more], dim=2))

    def select(self, classes: Sequence[int]) -> Cells:
        """What is known of some classes."""
        return replace(self, table=self.table[:, :, list(classes)])

    def to(self, device: torch.device) -> Cells:
        return self.map(lambda tensor: tensor.to(device))

    def map(self, change: Callable[[Tensor], Tensor]) -> Cells:
        return Cells(**{f.name: change(getattr(self, f.name)) for f in fields(self)})


def generator() -> np.random.Generator:
    """Seeded by PyTorch's, so that whoever seeds that one has seeded this."""
    return np.random.default_rng(int(torch.randint(2**31, (1,))))
