"""Class statistics for a linear classifier: means, and one covariance within all classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.nn.multirank import MultiRank
from nodenova.nn.numerics import eigh, krylov, largest_eigh
from nodenova.nn.seeding import fixed_sample
from nodenova.nn.threaded_matmul import cross_products

MAX_SMALL = 320  # size up to which all eigenvectors are found as fast as some
FACTORS = 32  # rank of the remembered covariance, beside its diagonal
MAX_SCATTER = 5_000  # nodes whose scatter is computed; of more, a sample stands for all
SUMMED_ROWS = 4_096  # rows that are summed in single precision at a time


@dataclass(frozen=True, eq=False)
class ClassStatistics:
    """Means and pooled scatter of C classes on multi-rank features u: what shrinkage LDA needs."""

    center: Tensor  # (C, D) mean of u over each class
    factor: Tensor  # (q, D); the scatter within all classes is ~ factor' factor + diag(diag)
    diag: Tensor  # (D,) what the factors leave of its diagonal
    dof: Tensor  # () number of nodes behind the scatter, less one per class
    temperature: Tensor  # () divisor of logits from these statistics that makes them probabilities
    view_scale: Tensor  # (views,) factor of each view before distances are computed
    count: Tensor  # (C,) nodes of each class; empty in models saved before it was kept

    @classmethod
    def estimate(cls, u: Tensor, y: Tensor, num_classes: int, views: int) -> ClassStatistics:
        """From nodes u (n, D) with classes y (n,); an empty class gets the mean of all."""
        return cls._of(means(u, y, num_classes), lambda some: u[some], y, views)

    @classmethod
    def of_nodes(
        cls, z: Tensor, y: Tensor, num_classes: int, multirank: MultiRank
    ) -> ClassStatistics:
        """From z (n, hidden); u, several times as wide, is never held as a whole."""
        if len(z) <= MAX_SCATTER:
            return cls.estimate(multirank(z), y, num_classes, multirank.views)
        total = torch.zeros(num_classes + 1, multirank.size, dtype=torch.float64, device=z.device)
        for rows, mine in zip(z.split(SUMMED_ROWS), y.split(SUMMED_ROWS), strict=True):  # type: ignore[no-untyped-call]
            u = multirank(rows)
            member = F.one_hot(mine, num_classes).to(u)
            total[:-1] += member.t() @ u
            total[-1] += u.sum(dim=0)
        count = torch.bincount(y, minlength=num_classes)
        mean = total[-1] / len(z)  # for a class without nodes
        center = torch.where(count[:, None] > 0, total[:-1] / count.clamp_min(1)[:, None], mean)
        return cls._of(center.float(), lambda some: multirank(z[some]), y, multirank.views)

    @classmethod
    def _of(
        cls, center: Tensor, read: Callable[[Tensor | slice], Tensor], y: Tensor, views: int
    ) -> ClassStatistics:
        """With u of nodes from `read`."""
        some = fixed_sample(len(y), MAX_SCATTER)
        rows = read(some) - center[y[some]]
        factor, diag = low_rank(rows)
        share = len(y) / max(len(rows), 1)  # 1 where all of them are taken
        dof = torch.tensor(float(max(len(y) - len(center), 1)), device=y.device)
        one, ones = torch.tensor(1.0, device=y.device), torch.ones(views, device=y.device)
        count = torch.bincount(y, minlength=len(center)).to(center.dtype)
        return cls(center, share**0.5 * factor, share * diag, dof, one, ones, count)

    def with_temperature(self, temperature: float) -> ClassStatistics:
        """A copy with another temperature."""
        return replace(self, temperature=torch.tensor(temperature, device=self.center.device))

    def with_view_scale(self, view_scale: Tensor) -> ClassStatistics:
        """A copy with another scale of each view."""
        return replace(self, view_scale=view_scale)

    def covariance(self, columns: Tensor, prior: float, scale: Tensor) -> Tensor:
        """The shrunk covariance within classes on the masked columns, in double precision.

            (1 - s) scatter / dof + s t I,  s = prior / (prior + dof),  t the mean variance

        `scale` is the factor of each of the columns.
        """
        factor = (self.factor[:, columns] * scale).double()
        dof = float(self.dof)
        within = (factor.t() @ factor + (self.diag[columns] * scale.square()).double().diag()) / dof
        share = prior / max(prior + dof, 1e-12)
        variance = within.diagonal().mean()
        # With one node per class the width is unknown.
        variance = variance if variance > 0 else torch.ones_like(variance)
        sphere = torch.eye(len(within), dtype=within.dtype, device=within.device) * variance
        return (1 - share) * within + share * sphere

    def append(self, new: ClassStatistics) -> ClassStatistics:
        """Add the classes of a later stage; pool the scatter, new nodes weighted by classes."""
        fair = float(self.dof) * len(new.center) / len(self.center)
        share = min(1.0, fair / float(new.dof))
        factor, more = low_rank(torch.cat([self.factor, share**0.5 * new.factor]))
        return replace(
            self,
            center=torch.cat([self.center, new.center]),
            factor=factor,
            diag=self.diag + share * new.diag + more,
            dof=self.dof + share * new.dof,
            count=torch.cat([self.nodes, new.nodes]),
        )

    @property
    def nodes(self) -> Tensor:
        """(C,) nodes of each class; evenly divided where they were not kept."""
        if len(self.count):
            return self.count
        return ((self.dof + len(self.center)) / len(self.center)).repeat(len(self.center))

    def select(self, keep: Sequence[int]) -> ClassStatistics:
        """Keep some classes; the scatter stays that of all."""
        some = list(keep)
        count = self.count[some] if len(self.count) else self.count
        return replace(self, center=self.center[some], count=count)

    def with_parts(self, parts: ClassStatistics) -> ClassStatistics:
        """Add parts of a class, whose nodes are in the scatter already."""
        count = torch.cat([self.count, parts.count]) if len(self.count) else self.count
        return replace(self, center=torch.cat([self.center, parts.center]), count=count)

    def at(self, columns: Tensor) -> ClassStatistics:
        """Keep some columns of u: a mask (D,)."""
        return replace(
            self,
            center=self.center[:, columns],
            factor=self.factor[:, columns],
            diag=self.diag[columns],
        )


def means(rows: Tensor, y: Tensor, num_classes: int) -> Tensor:
    """(C, D) mean of the rows (n, D) of each class; of all rows for a class without any."""
    every = torch.ones_like(y, dtype=torch.bool)
    of = [rows[y == c if (y == c).any() else every] for c in range(num_classes)]
    return torch.stack([each.mean(0) for each in of])


def low_rank(rows: Tensor, factors: int | None = None) -> tuple[Tensor, Tensor]:
    """factor (q, D) and diag (D,), rows' rows ~ factor' factor + diag(diag), q <= `factors`."""
    factors = FACTORS if factors is None else factors
    n, d = rows.shape
    if n <= factors:
        return rows.float(), torch.zeros(d, device=rows.device)
    square = rows.square().sum(0).double()
    name = "the scatter within classes"
    found = krylov(rows, factors, name) if min(n, d) > MAX_SMALL else None
    if found is not None:
        value, vector = found
        factor = (value.clamp_min(0).sqrt() * vector).t()
    elif n > d:
        gram = torch.zeros(d, d, dtype=torch.float64, device=rows.device)
        for block in rows.split(SUMMED_ROWS):  # type: ignore[no-untyped-call]
            gram += cross_products(block)
        value, vector = eigh(gram, name)
        factor = (value[-factors:].clamp_min(0).sqrt() * vector[:, -factors:]).t()
    else:
        rows = rows.double()
        factor = eigh(rows @ rows.t(), name)[1][:, -factors:].t() @ rows
    factor = factor.flip(0)
    return factor.float(), (square - factor.square().sum(0)).clamp_min(0).float()


def largest_eigenvectors(matrix: Tensor, count: int, rank: int) -> Tensor:
    """(D, count) eigenvectors of a symmetric matrix (D, D), that of the largest eigenvalue first.

    `rank` bounds the rank of the matrix: where it is hardly above `count`, iterating may not
    converge.
    """
    if min(len(matrix), rank) <= 4 * count + 16:
        return eigh(matrix, "the scatter of the nodes")[1][:, -count:].flip(1)
    # A fixed start makes it repeatable.
    start = np.random.default_rng(0).standard_normal(len(matrix))
    value, vector = largest_eigh(matrix, count, start, "the scatter of the nodes")
    order = np.argsort(-value.cpu().numpy())
    return torch.from_numpy(vector.cpu().numpy()[:, order].copy()).to(matrix)
