"""Prism: discovery without training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from nodenova.encoders.prism.lda import RESAMPLES, RIDGE, fit_joint_classifier, refit_rows
from nodenova.graph import NewTask
from nodenova.model.model import Model
from nodenova.nn.encode_cache import encode_rows
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.kmeans import spherical_kmeans
from nodenova.nn.seeding import sample
from nodenova.open_world.mixed import fit_mixed_classifier
from nodenova.open_world.novelty import Partition, node_odds
from nodenova.settings import check_settings, setting

MAX_GROUPED = 20_000  # unlabelled nodes among which new classes are looked for


@dataclass(frozen=True)
class Prism:
    """Prism: k-means on untrained multi-rank features, then one linear classifier for all classes.

    An encoder trained on old classes throws away what tells new ones apart; smoothed and projected
    features keep it. In the field's words: spherical k-means on multi-rank features, shrinkage LDA
    over old and new classes, a consensus over resampled groupings, a ridge refit on all visible
    nodes.

        u      = z, each view cut to a rank near r n for two r, n the number of classes, and brought
                 to unit length, times the root of the view's weight, which was learned on pairs of
                 old nodes in phase 1
        groups = k-means of the new nodes by the direction of u in its first 3k/2 principal
                 components
        mu_c   = mean of u over the class, old ones from memory
        Sigma  = (1 - s) pooled scatter within classes / dof + s t I,
                 s = prior / (prior + dof), t its mean variance
        logit  = (u . Sigma^-1 mu_c - mu_c . Sigma^-1 mu_c / 2) / T
        p      = mean softmax(logit) over groupings of two thirds of the new nodes, for every
                 visible node; fitted anew by ridge regression on u: see `refit_on_all_nodes`

    T was calibrated on old nodes in phase 1, for its ranks r and its prior. Works on any encoder;
    the views of `prism` are what it is meant for.

    Where nodes may be of old classes too (a mixed task):

        x      = Sigma^-1/2 u, Sigma of the old classes
        groups = k-means of x by direction with the old means as anchors, centers that do not move;
                 nodes nearest to one of them are in no group
        weight = odds that a node is new, by how many labelled nodes phase 1 had met in its cell:
                 see `nodenova.open_world.novelty`; principal components too are those of nodes with
                 this weight, and of the old means

    and then the same classifier.

    Attributes:
        pool: Whether the scatter of the new nodes counts in Sigma too.
        restarts: Starts of k-means, the best of which is taken.
        refit: Whether all visible nodes have a say in the classifier: the ridge regression of p.
        n_resamples: Groupings of two thirds of the new nodes over which p is averaged; 12 unless
            given, 0 for the one grouping of all.
        weigh: Whether nodes of a mixed task count by their odds of being new.
        ridge: What holds the refitted classifier back counts as this many nodes; 3 unless given.

    Raises:
        SettingError: If a number is impossible.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> model = nova.discover(nova.fit(old), new, nova.Prism(restarts=2))
        >>> len(model.classes)
        4
    """

    prefers: ClassVar[str] = "prism"
    mixed: ClassVar[bool] = True  # nodes it is given may be of known classes

    pool: bool = True
    restarts: int = setting(20, at_least=1)
    refit: bool = True
    n_resamples: int = setting(RESAMPLES, at_least=0)
    ridge: float = setting(RIDGE, above=0)
    weigh: bool = True

    def __post_init__(self) -> None:
        check_settings(self)

    def discover(self, model: Model, task: NewTask) -> Model:
        """The model with the new classes of `task`; called by `nova.discover`."""
        g = model.frozen_encoder()
        ids = torch.from_numpy(task.ids).to(model.device)
        ids = ids[sample(len(ids), MAX_GROUPED, ids.device)]
        z_new, z = encode_rows(g, task.graph, ids, refit_rows(task.graph))  # (n, hidden) each
        multirank, old, cells, lda = g.spec.multirank, model.memory, model.cells, model.lda
        ridge = self.ridge if self.refit else None
        if task.mixed:
            odds = None
            if cells is not None and self.weigh:
                odds = partial(node_odds, multirank, old.classes, cells, lda)
            found = fit_mixed_classifier(
                multirank,
                old,
                z,
                z_new,
                task.number,
                odds=odds,
                lda=lda,
                pool=self.pool,
                resamples=self.n_resamples,
                ridge=ridge,
            )
        else:
            found = fit_joint_classifier(
                multirank,
                old,
                z,
                z_new,
                task.number,
                group=self.group,
                lda=lda,
                pool=self.pool,
                resamples=self.n_resamples,
                ridge=ridge,
            )
        if cells is not None:
            cells = _with_new(cells, model, found.head, z_new, task)
        return model.grown(
            encoder=g,
            head=found.head,
            memory=found.memory,
            cells=cells,
            times_found=found.times_found,
        )

    def group(self, u: Tensor, num_new: int) -> Tensor:
        """(n_u,) which of the new classes each unlabelled node is put in."""
        return spherical_kmeans(u, num_new, self.restarts)


@torch.no_grad()
def _with_new(
    cells: Partition, model: Model, head: UnitLinearHead, z: Tensor, task: NewTask
) -> Partition:
    """The cells with the nodes of the new classes in them, as the head tells them, for later."""
    old = model.memory
    logits, o = head(z), len(old)
    new = torch.ones(len(z), dtype=torch.bool, device=z.device)
    if task.mixed:
        new = logits.argmax(dim=1) >= o
    groups = logits[new, o:].argmax(dim=1)
    multirank = model.frozen_encoder().spec.multirank
    return cells.append(multirank, old.classes, z[new], groups, task.number)
