"""Prism: discovery without training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nodenova.encoders.prism.lda import (
    RESAMPLES,
    RIDGE,
    Grouping,
    fit_joint_classifier,
    refit_rows,
    strict_grouping,
)
from nodenova.graph import NewTask
from nodenova.model.model import Model
from nodenova.nn.encode_cache import encode_rows
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.kmeans import spherical_kmeans
from nodenova.nn.seeding import sample
from nodenova.open_world.mixed import mixed_grouping
from nodenova.open_world.novelty import Partition, cell_novelty, odds_of_new
from nodenova.settings import check_settings, setting

MAX_GROUPED = 20_000  # unlabelled nodes that are grouped


@dataclass(frozen=True)
class Prism:
    """Prism: k-means on untrained multi-rank features, then one linear classifier for all classes.

    An encoder trained on old classes discards what distinguishes new ones; smoothed and projected
    features keep it. In the field's terms: spherical k-means on multi-rank features, shrinkage LDA
    over old and new classes, a consensus over resampled groupings, and a ridge refit on all visible
    nodes.

        u      = z, each view cut to a rank near r n for two r, n the number of classes, and scaled
                 to unit length, times the root of the view's weight, which phase 1 learned on pairs
                 of old nodes
        groups = k-means of the new nodes by the direction of u in its first 3k/2 principal
                 components
        mu_c   = mean of u over the class, for old classes from memory
        Sigma  = (1 - s) pooled scatter within classes / dof + s t I,
                 s = prior / (prior + dof), t its mean variance
        logit  = (u . Sigma^-1 mu_c - mu_c . Sigma^-1 mu_c / 2) / T
        p      = mean softmax(logit) over groupings of two thirds of the new nodes, for every
                 visible node; refitted by ridge regression on u

    Phase 1 calibrated T on old nodes, for its ranks r and its prior. Prism works on any encoder and
    is designed for the views of `prism`.

    In a mixed task, where nodes may belong to old classes too:

        x      = Sigma^-1/2 u, Sigma of the old classes
        groups = k-means of x by direction with the old means as anchors, centers that do not move;
                 nodes nearest to an anchor are in no group
        weight = odds that a node is new, by the number of labelled nodes that phase 1 had in its
                 cell; principal components are those of the nodes with this weight and of the old
                 means

    and then the same classifier.

    Attributes:
        pool: Whether the scatter of the new nodes is added to Sigma.
        restarts: Number of starts of k-means, the best of which is used.
        refit: Whether the classifier is refitted on all visible nodes by ridge regression of p.
        n_resamples: Number of resampled groupings over which p is averaged; 0 for the one grouping
            of all new nodes.
        ridge: Weight of the ridge penalty, in nodes.
        weigh: Whether nodes of a mixed task are weighted by their odds of being new.

    Raises:
        SettingError: If a setting is out of range.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> model = nova.discover(nova.fit(old), new, nova.Prism(restarts=2))
        >>> len(model.classes)
        4
    """

    prefers: ClassVar[str] = "prism"
    mixed: ClassVar[bool] = True  # its tasks may hold nodes of known classes

    pool: bool = True
    restarts: int = setting(20, at_least=1)
    refit: bool = True
    n_resamples: int = setting(RESAMPLES, at_least=0)
    ridge: float = setting(RIDGE, above=0)
    weigh: bool = True

    def __post_init__(self) -> None:
        check_settings(self)

    def discover(self, model: Model, task: NewTask) -> Model:
        """Return the model with the new classes of `task`; called by `nova.discover`."""
        g = model.frozen_encoder()
        ids = torch.from_numpy(task.ids).to(model.device)
        ids = ids[sample(len(ids), MAX_GROUPED, ids.device)]
        z_new, z = encode_rows(g, task.graph, ids, refit_rows(task.graph))  # (n, hidden) each
        joint = fit_joint_classifier(
            g.spec.multirank,
            model.memory,
            self._group_nodes(model, z_new, task),
            z,
            model.lda,
            pool=self.pool,
            resamples=self.n_resamples,
            ridge=self.ridge if self.refit else None,
        )
        cells = model.cells
        if cells is not None:
            cells = _count_new_nodes(cells, model, joint.head, z_new, task)
        return model.grown(
            encoder=g,
            head=joint.head,
            memory=joint.memory,
            cells=cells,
            times_found=joint.times_found,
        )

    def _group_nodes(self, model: Model, z: Tensor, task: NewTask) -> Grouping:
        multirank, known = model.frozen_encoder().spec.multirank, model.memory.classes
        if not task.mixed:
            return strict_grouping(multirank, known, z, task.number, model.lda, self.group)
        odds = None
        if model.cells is not None and self.weigh:
            odds = odds_of_new(cell_novelty(multirank, known, model.cells, model.lda, z))
        return mixed_grouping(multirank, known, z, task.number, model.lda, odds)

    def group(self, u: Tensor, num_new: int) -> Tensor:
        """Return the group (n,) of each row of u (n, D)."""
        return spherical_kmeans(u, num_new, self.restarts)


@torch.no_grad()
def _count_new_nodes(
    cells: Partition, model: Model, head: UnitLinearHead, z: Tensor, task: NewTask
) -> Partition:
    """The cells with the nodes that the head assigns to new classes, for later stages."""
    known = model.memory.classes
    logits, o = head(z), len(model.memory)
    new = torch.ones(len(z), dtype=torch.bool, device=z.device)
    if task.mixed:
        new = logits.argmax(dim=1) >= o
    groups = logits[new, o:].argmax(dim=1)
    multirank = model.frozen_encoder().spec.multirank
    return cells.append(multirank, known, z[new], groups, task.number)
