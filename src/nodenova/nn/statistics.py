"""What is remembered of a class when its nodes are gone: no node, only sums over nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse.linalg import eigsh
from torch import Tensor

from nodenova.graph import Graph

LARGE = 1000  # rows of a matrix from which on some of its eigenvectors are found faster than all
FACTORS = 32  # rank of the remembered covariance, beside its diagonal


def ladder(z: Tensor, view_size: int, rungs: Sequence[int]) -> Tensor:
    """Each view of z cut to each rank in `rungs` and brought to unit length, side by side.

    z: (n, views * view_size), the columns of a view by falling importance. Returns (n, views * sum(rungs)).
    """
    views = z.split(view_size, dim=1)  # type: ignore[no-untyped-call]
    return torch.cat([F.normalize(view[:, :rung], dim=1) for view in views for rung in rungs], dim=1)


def rung_columns(views: int, all_rungs: Sequence[int], rungs: Sequence[int]) -> Tensor:
    """Which columns of ladder(z, all_rungs) make up ladder(z, rungs): a mask."""
    return torch.cat([torch.full((rung,), rung in rungs) for _ in range(views) for rung in all_rungs])


@dataclass(frozen=True, eq=False)
class Prototypes:
    """Statistics of C classes.

    mean, var:     (C, hidden) of the representation z (Eq. 9), from which features are replayed.
    centre:        (C, D) mean of the ladder of z, which has no length left in it: what distances are taken from.
    factor, rest:  (q, D), (D,) the scatter within classes on the ladder, ~ factor' factor + diag(rest).
    dof:           () how many nodes stand behind the scatter, less one a class.
    temperature:   () what logits from these statistics are divided by to be probabilities.
    view_scale:    (views,) what each view is multiplied by before distances are taken.
    """

    mean: Tensor
    var: Tensor
    centre: Tensor
    factor: Tensor
    rest: Tensor
    dof: Tensor
    temperature: Tensor
    view_scale: Tensor

    @classmethod
    def of(cls, z: Tensor, y: Tensor, num_classes: int, view_size: int, rungs: Sequence[int]) -> Prototypes:
        """Statistics of the nodes z with class y; a class without nodes gets the overall mean."""
        z = z.detach()
        unit = ladder(z, view_size, rungs)
        mean, var, centre = [], [], []
        for c in range(num_classes):
            mine = y == c if (y == c).any() else torch.ones_like(y, dtype=torch.bool)
            mean.append(z[mine].mean(0))
            var.append(z[mine].var(0, unbiased=False))
            centre.append(unit[mine].mean(0))
        factor, rest = low_rank(unit - torch.stack(centre)[y])
        dof = torch.tensor(float(max(len(z) - num_classes, 1)), device=z.device)
        one, ones = torch.tensor(1.0, device=z.device), torch.ones(z.shape[1] // view_size, device=z.device)
        return cls(torch.stack(mean), torch.stack(var), torch.stack(centre), factor, rest, dof, one, ones)

    def with_temperature(self, temperature: float) -> Prototypes:
        return replace(self, temperature=torch.tensor(temperature, device=self.mean.device))

    def with_view_scale(self, view_scale: Tensor) -> Prototypes:
        return replace(self, view_scale=view_scale)

    def column_scale(self, rungs: Sequence[int]) -> Tensor:
        """(views * sum(rungs),) what each column of the ladder at `rungs` is multiplied by."""
        return self.view_scale.repeat_interleave(sum(rungs))

    @classmethod
    @torch.no_grad()
    def remember(cls, g: Any, graph: Graph, ids: Tensor, y: Tensor, num_classes: int, passes: int = 0) -> Prototypes:
        """The same of the nodes `ids` as the encoder `g` sees them (Eq. 9), without dropout.

        passes: so many times with dropout instead, all of them together: wider than the nodes are.
        """
        was_training = g.training
        g.train(passes > 0)
        times = passes if passes > 0 and g.spec.is_random else 1
        z = torch.cat([g(graph)[ids] for _ in range(times)])
        g.train(was_training)
        return cls.of(z, y.repeat(times), num_classes, g.spec.view_size, g.spec.rungs)

    def draw(self, noise: Tensor, sigma: str = "class") -> tuple[Tensor, Tensor]:
        """Replayed features and their classes from standard normal `noise` of shape (draws, C, hidden).

        sigma: each class has its own, or with "shared" all have the mean of them, a number a dimension.
        """
        spread = self.var.sqrt() if sigma == "class" else self.var.sqrt().mean(dim=0)
        z = self.mean + spread * noise  # (draws, C, hidden)
        y = torch.arange(self.mean.shape[0], device=z.device).expand(noise.shape[0], -1)
        return z.flatten(0, 1), y.flatten()

    def covariance(self, columns: Tensor, prior: float, scale: Tensor) -> Tensor:
        """The covariance within classes on some columns of the ladder, each times its `scale`.

        The identity counts as `prior` nodes in it.
        """
        factor, dof = (self.factor[:, columns] * scale).double(), float(self.dof)
        within = (factor.t() @ factor + (self.rest[columns] * scale.square()).double().diag()) / dof
        share = prior / (prior + dof)
        variance = within.diagonal().mean()
        variance = variance if variance > 0 else torch.ones_like(variance)  # one node a class: no width is known
        sphere = torch.eye(len(within), dtype=within.dtype, device=within.device) * variance
        return (1 - share) * within + share * sphere

    def followed_by(self, new: Prototypes) -> Prototypes:
        """The statistics of a later stage behind these, the scatter pooled: new nodes speak for their classes, no more."""
        fair = float(self.dof) * len(new.mean) / len(self.mean)
        share = min(1.0, fair / float(new.dof))
        factor, more = low_rank(torch.cat([self.factor, share**0.5 * new.factor]))
        classes = {name: torch.cat([getattr(self, name), getattr(new, name)]) for name in ("mean", "var", "centre")}
        rest, dof = self.rest + share * new.rest + more, self.dof + share * new.dof
        kept = {"temperature": self.temperature, "view_scale": self.view_scale}
        return Prototypes(**classes, factor=factor, rest=rest, dof=dof, **kept)

    def copy(self) -> Prototypes:
        return self.map(Tensor.clone)

    def to(self, device: torch.device) -> Prototypes:
        return self.map(lambda tensor: tensor.to(device))

    def map(self, change: Callable[[Tensor], Tensor]) -> Prototypes:
        return Prototypes(**{f.name: change(getattr(self, f.name)) for f in fields(self)})


def low_rank(rows: Tensor, factors: int | None = None) -> tuple[Tensor, Tensor]:
    """rows' rows as factor' factor + diag(rest), with `factors` rows at the most: (q, D) and (D,)."""
    factors = FACTORS if factors is None else factors
    rows = rows.double()
    n, d = rows.shape
    if n <= factors:
        return rows.float(), torch.zeros(d, device=rows.device)
    if n > d:
        value, vector = _largest(rows.t() @ rows, factors)
        factor = (value.clamp_min(0).sqrt() * vector).t().flip(0)
    else:
        factor = (_largest(rows @ rows.t(), factors)[1].t() @ rows).flip(0)
    rest = (rows.square().sum(0) - factor.square().sum(0)).clamp_min(0)
    return factor.float(), rest.float()


def _largest(matrix: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest eigenvalues, ascending, and their eigenvectors; of a large matrix without all the others."""
    if len(matrix) <= LARGE:
        value, vector = torch.linalg.eigh(matrix)
        return value[-count:], vector[:, -count:]
    found = eigsh(matrix.cpu().numpy(), count, which="LA", v0=np.ones(len(matrix)))
    value, vector = (torch.from_numpy(part).to(matrix) for part in found)
    return value, vector
