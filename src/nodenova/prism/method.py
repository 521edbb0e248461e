"""Prism: discovery without training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nodenova.model.model import Model
from nodenova.nn.kmeans import cluster_directions
from nodenova.nn.passes import encode
from nodenova.prism.classifier import GROUPINGS, PRIOR, RANKS, RIDGE, found
from nodenova.settings import check_settings, setting
from nodenova.task import NewTask


@dataclass(frozen=True)
class Prism:
    """Group the unlabelled nodes in a representation that training has not narrowed, then one linear classifier for all.

    An encoder trained on old classes throws away what tells new ones apart; smoothed and projected features keep it.

        u      = z, each view cut to a rank near r n for two r, n the number of classes, and brought to unit length,
                 times the root of the view's weight, which was learnt on pairs of old nodes in phase 1
        groups = k-means of the new nodes by the direction of u in its first 3k/2 principal components
        mu_c   = mean of u over the class, old ones from memory
        Sigma  = (1 - s) pooled scatter within classes / dof + s t I,  s = prior / (prior + dof), t its mean variance
        logit  = (u . Sigma^-1 mu_c - mu_c . Sigma^-1 mu_c / 2) / T
        p      = mean softmax(logit) over groupings of two thirds of the new nodes, for every visible node;
                 fitted anew by ridge regression on u: see `relearnt`

    T was calibrated on old nodes in phase 1. Works on any encoder; the views of `prism` are what it is meant for.
    """

    prefers: ClassVar[str] = "prism"

    rank_low: float = setting(RANKS[0], above=0)  # the lower rank, in multiples of the number of classes
    rank_high: float = setting(RANKS[1], above=0)  # the higher rank
    prior: float = setting(PRIOR, above=0)  # the identity counts as this many nodes in the covariance
    pool: bool = True  # let the scatter of the new nodes speak too
    restarts: int = setting(20, at_least=1)  # of k-means
    relearn: bool = True  # let all visible nodes have a say in the classifier
    groupings: int = setting(GROUPINGS, at_least=0)  # of parts of the new nodes, over which p is averaged; 0: none
    ridge: float = setting(RIDGE, above=0)  # what holds the relearnt classifier back counts as this many nodes

    def __post_init__(self) -> None:
        check_settings(self)

    def discover(self, model: Model, task: NewTask) -> Model:
        g = model.frozen_encoder()
        z = encode(g, task.graph)  # (N, views * view_size)
        both, head = found(
            g.spec,
            model.prototypes,
            z,
            torch.from_numpy(task.ids).to(model.device),
            task.num_new,
            group=self.group,
            ranks=(self.rank_low, self.rank_high),
            prior=self.prior,
            pool=self.pool,
            groupings=self.groupings,
            ridge=self.ridge if self.relearn else None,
        )
        return model.grown(encoder=g, head=head, prototypes=both)

    def group(self, u: Tensor, num_new: int) -> Tensor:
        """(n_u,) which of the new classes each unlabelled node is put in."""
        return cluster_directions(u, num_new, self.restarts)
