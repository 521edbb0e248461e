"""Prism: discovery without training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch

from nodenova.clustering import cluster
from nodenova.errors import SettingError
from nodenova.heads import LadderHead
from nodenova.model import Model
from nodenova.prototypes import Prototypes, ladder, rung_columns
from nodenova.task import NewTask


class Spec(Protocol):
    """What Prism must know of an encoder: z is `views` blocks of `view_size` columns, remembered at the ranks `rungs`."""

    @property
    def views(self) -> int: ...
    @property
    def view_size(self) -> int: ...
    @property
    def rungs(self) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class Prism:
    """Cluster the unlabelled nodes in a representation that no label has shaped, then one classifier for all.

    An encoder trained on old classes throws away what tells new ones apart; smoothed and projected features keep it.

        u      = ladder of z, each view at a rank near r n for r in `ranks`, n the number of classes, to unit length
        groups = k-means of the new nodes' u on its first k principal components
        mu_c   = mean of u over the class, old ones from memory
        Sigma  = (1 - s) pooled scatter within classes / dof + s t I,  s = prior / (prior + dof), t its mean variance
        logit  = (u . Sigma^-1 mu_c - mu_c . Sigma^-1 mu_c / 2) / number of blocks of u

    The blocks of u say much the same thing, so their evidence is averaged. Works on any encoder; `prism` (the closed-form
    views) is the one it is meant for.
    """

    prefers: ClassVar[str] = "prism"

    rank_low: float = 1.0  # the lower rank, in multiples of the number of classes
    rank_high: float = 8.0  # the higher rank
    prior: float = 500.0  # the identity counts as this many nodes in the covariance
    pool: bool = True  # let the scatter of the new nodes speak too
    restarts: int = 20  # of k-means

    def __post_init__(self) -> None:
        for name in ("rank_low", "rank_high", "prior", "restarts"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingError(f"{name} must be positive, it is {getattr(self, name)}")

    def discover(self, model: Model, task: NewTask) -> Model:
        g, old = model.frozen_encoder(), model.prototypes
        n = len(model.classes) + task.num_new
        with torch.no_grad():
            z_u = g(task.graph)[torch.from_numpy(task.ids).to(model.device)]  # (n_u, views * view_size)
        rungs = self.rungs(g.spec.rungs, n)
        groups = cluster(ladder(z_u, g.spec.view_size, rungs), task.num_new, self.restarts)
        new = Prototypes.of(z_u, groups, task.num_new, g.spec.view_size, g.spec.rungs)
        both = old.followed_by(new)
        head = self.head(g.spec, both, both if self.pool else old)
        return model.grown(encoder=g, head=head, new_prototypes=new)

    def head(self, spec: Spec, classes: Prototypes, scatter: Prototypes) -> LadderHead:
        """The linear classifier of `classes`, with the covariance within those that `scatter` is of."""
        n = len(classes.centre)
        rungs = self.rungs(spec.rungs, n)
        columns = rung_columns(spec.views, spec.rungs, rungs).to(classes.centre.device)
        head = LadderHead(spec.views, spec.view_size, rungs, n, temperature=spec.views * len(rungs))
        head = head.to(classes.centre.device)
        return head.set_gaussian(classes.centre[:, columns], scatter.covariance(columns, self.prior))

    def rungs(self, known: Sequence[int], classes: int) -> tuple[int, ...]:
        """The remembered ranks nearest, as ratios, to the wanted multiples of the number of classes."""
        wanted = (self.rank_low * classes, self.rank_high * classes)
        return tuple(sorted({min(known, key=lambda rung: abs(math.log(rung / rank))) for rank in wanted}))
