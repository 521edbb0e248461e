"""Prism: discovery without training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nodenova.closed_form import PRIOR, RANKS, RIDGE, gaussian_head, ladder_at, relearnt
from nodenova.clustering import cluster, regroup
from nodenova.encoders import Encoder
from nodenova.heads import LadderHead
from nodenova.model import Model
from nodenova.prototypes import Prototypes
from nodenova.randomness import sample
from nodenova.settings import check_settings
from nodenova.task import NewTask
from nodenova.views import Views

MOST_REGROUPED = 5000  # new nodes that are grouped again


@dataclass(frozen=True)
class Prism:
    """Group the unlabelled nodes in a representation that training has not narrowed, then one linear classifier for all.

    An encoder trained on old classes throws away what tells new ones apart; smoothed and projected features keep it.

        u      = z, each view cut to a rank near r n for two r, n the number of classes, and brought to unit length,
                 times the root of the view's weight, which was learnt on pairs of old nodes in phase 1
        groups = k-means of the new nodes' u on its first k principal components
        mu_c   = mean of u over the class, old ones from memory
        Sigma  = (1 - s) pooled scatter within classes / dof + s t I,  s = prior / (prior + dof), t its mean variance
        logit  = (u . Sigma^-1 mu_c - mu_c . Sigma^-1 mu_c / 2) / T
        p      = mean softmax(logit) over groupings of two thirds of the new nodes, for every visible node;
                 fitted anew by ridge regression on u: see `relearnt`

    T was calibrated on old nodes in phase 1. Works on any encoder; the views of `prism` are what it is meant for.
    """

    prefers: ClassVar[str] = "prism"

    rank_low: float = RANKS[0]  # the lower rank, in multiples of the number of classes
    rank_high: float = RANKS[1]  # the higher rank
    prior: float = PRIOR  # the identity counts as this many nodes in the covariance
    pool: bool = True  # let the scatter of the new nodes speak too
    restarts: int = 20  # of k-means
    relearn: bool = True  # let all visible nodes have a say in the classifier
    groupings: int = 12  # of parts of the new nodes, over which p is averaged; 0: only the one of all
    ridge: float = RIDGE  # what holds the relearnt classifier back counts as this many nodes

    def __post_init__(self) -> None:
        check_settings(
            self, counts=("restarts",), not_negative=("groupings",), positive=("rank_low", "rank_high", "prior", "ridge")
        )

    def discover(self, model: Model, task: NewTask) -> Model:
        g, old = model.frozen_encoder(), model.prototypes
        with torch.no_grad():
            z = g(task.graph)  # (N, views * view_size)
        z_u = z[torch.from_numpy(task.ids).to(model.device)]
        u = ladder_at(g.spec, z_u, model.num_columns + task.num_new, old.view_scale, (self.rank_low, self.rank_high))
        groups = self.group(u, task.num_new)
        both, head = self.classifier(g, old, z_u, groups, task.num_new)
        if self.relearn:
            some = sample(len(u), MOST_REGROUPED, u.device)
            others = regroup(u[some], groups[some], task.num_new, self.groupings) if task.num_new > 1 else []
            heads = [self.classifier(g, old, z_u[some], other, task.num_new)[1] for other in others]
            head = relearnt(heads or [head], z, old.view_scale, self.ridge)
        return model.grown(encoder=g, head=head, prototypes=both)

    def classifier(
        self, g: Encoder | Views, old: Prototypes, z_u: Tensor, groups: Tensor, num_new: int
    ) -> tuple[Prototypes, LadderHead]:
        """What is known of old classes and groups together, and the Gaussian head of all of them."""
        both = old.followed_by(Prototypes.of(z_u, groups, num_new, g.spec.view_size, g.spec.rungs))
        scatter, ranks = both if self.pool else old, (self.rank_low, self.rank_high)
        return both, gaussian_head(g.spec, both, scatter, float(old.temperature), ranks, self.prior)

    def group(self, u: Tensor, num_new: int) -> Tensor:
        """(n_u,) which of the new classes each unlabelled node is put in."""
        return cluster(u, num_new, self.restarts)
