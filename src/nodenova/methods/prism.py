"""Prism: discovery without training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from nodenova.encoders.prism.lda import (
    RESAMPLES,
    RIDGE,
    Grouping,
    fit_head,
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
MAX_PREVIEWED = 2_000  # the same for a preview
PREVIEW_RESAMPLES = 3  # resampled groupings that a preview averages


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Nodes of a task as a discovery reads them."""

    z: Tensor  # (n, hidden) unlabelled nodes that are grouped
    visible: Tensor  # (m, hidden) nodes that the classifier is refitted on
    odds: np.ndarray | None  # (n,) odds of being new, in a mixed task


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
                 components, then a mixture of round classes with unequal shares, by 15 steps of
                 expectation and maximization, so that large classes are not cut
        mu_c   = mean of u over the class, for old classes from memory
        Sigma  = (1 - s) pooled scatter within classes / dof + s t I,
                 s = prior / (prior + dof), t its mean variance
        logit  = (u . Sigma^-1 mu_c - mu_c . Sigma^-1 mu_c / 2) / T, for old classes plus
                 tr(Sigma^-1 S) / (2 n_c T), which the noise of a mean of n_c labelled nodes takes
                 off, S the scatter within old classes / dof
        p      = mean softmax(logit) over groupings of two thirds of the new nodes, for every
                 visible node; refitted by ridge regression on u

    Phase 1 calibrated T on old nodes, for its ranks r and its prior. Prism works on any encoder and
    is designed for the views of `prism`.

    In a mixed task, where nodes may belong to old classes too:

        x      = Sigma^-1/2 u, Sigma of the old classes
        groups = k-means of x by direction with the old means as anchors, centers that do not move,
                 then the mixture, in which anchors keep their direction and have the length of the
                 mean of their nodes; nodes nearest to an anchor are in no group
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

    batches: ClassVar[bool] = True  # works with a model fitted on batches of nodes
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
        nodes = self._read_nodes(model, task, MAX_GROUPED)
        joint = fit_joint_classifier(
            g.spec.multirank,
            model.memory,
            self._group_nodes(model, nodes, task.mixed, task.number),
            nodes.visible,
            model.lda,
            pool=self.pool,
            resamples=self.n_resamples,
            ridge=self.ridge if self.refit else None,
        )
        cells = model.cells
        if cells is not None:
            cells = _count_new_nodes(cells, model, joint.head, nodes.z, task)
        return model.grown(
            encoder=g,
            head=joint.head,
            memory=joint.memory,
            cells=cells,
            times_found=joint.times_found,
        )

    def preview(self, model: Model, task: NewTask) -> Callable[[int], UnitLinearHead]:
        """Return a function from a number of new classes to a joint head for them.

        It costs a fraction of `discover`: all numbers share what does not depend on the number,
        fewer nodes are grouped, and fewer groupings are averaged.
        """
        nodes = self._read_nodes(model, task, MAX_PREVIEWED)

        def head_at(number: int) -> UnitLinearHead:
            grouping = self._group_nodes(model, nodes, task.mixed, number)
            return fit_head(
                grouping,
                nodes.visible,
                model.lda,
                pool=self.pool,
                resamples=min(self.n_resamples, PREVIEW_RESAMPLES),
                ridge=self.ridge if self.refit else None,
                share_scatter=True,
            )[0]

        return head_at

    def _read_nodes(self, model: Model, task: NewTask, most: int) -> _Nodes:
        """What does not depend on the number of new classes; at most `most` nodes are grouped."""
        g = model.frozen_encoder()
        ids = torch.from_numpy(task.ids).to(model.device)
        ids = ids[sample(len(ids), most, ids.device)]
        z, visible = encode_rows(g, task.graph, ids, refit_rows(task.graph))
        odds = None
        if task.mixed and model.cells is not None and self.weigh:
            multirank, known = g.spec.multirank, model.memory.classes
            odds = odds_of_new(cell_novelty(multirank, known, model.cells, model.lda, z))
        return _Nodes(z, visible, odds)

    def _group_nodes(self, model: Model, nodes: _Nodes, mixed: bool, number: int) -> Grouping:
        multirank, known = model.frozen_encoder().spec.multirank, model.memory.classes
        if not mixed:
            return strict_grouping(multirank, known, nodes.z, number, model.lda, self.group)
        return mixed_grouping(multirank, known, nodes.z, number, model.lda, nodes.odds)

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
