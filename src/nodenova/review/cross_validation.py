"""Cross-validation of the user's labels, and outliers calibrated by it.

Five-fold: the known classes are refitted on the labels of the other folds by the shrinkage LDA of
phase 1; discovered and merged classes stay as the model stores them. The weights and the whitening
of the views, a few numbers for all nodes, have seen every label.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nodenova.display import percent, plural
from nodenova.encoders.prism.lda import lda_head
from nodenova.errors import SettingError
from nodenova.model.model import Model
from nodenova.nn.multirank import MultiRank
from nodenova.nn.seeding import fixed_threads
from nodenova.nn.statistics import ClassStatistics
from nodenova.open_world.anchored_kmeans import whitening

FOLDS = 5
MAX_TRAINING_NODES = 5000  # labelled nodes to fit on; all of them are judged
NODES_AT_ONCE = 4096
SURE = 0.9  # probability from which a held-out node counts as sure


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Labelled nodes, judged without their labels."""

    ids: np.ndarray  # (n,) numbers of the nodes
    p: np.ndarray  # (n, C) class probabilities; NaN for the only labelled node of a class
    fit: np.ndarray  # (n,) fit to the best class, see `best_fits`

    def threshold(self, none_share: float) -> float:
        """Fit below which a known-class node falls with a probability of at most `none_share`.

        A conformal quantile. Raises SettingError where there are too few labelled nodes for it.

        Examples:
            >>> fit = np.array([0.5, 0.1, 0.9, 0.7])
            >>> HeldOut(np.arange(4), np.zeros((4, 2)), fit).threshold(0.4)
            0.5
        """
        fit = np.sort(self.fit[~np.isnan(self.fit)])
        rank = int(none_share * (len(fit) + 1))  # number of nodes at or below the threshold
        if rank < 1:
            need = int(np.ceil(1 / none_share)) - 1
            raise SettingError(
                f"a share of {none_share:g} of nodes that fit no class needs at least {need:,} "
                f"labelled nodes, and there are {len(fit):,}"
            )
        return float(fit[rank - 1])


@dataclass(frozen=True)
class HeldOutScores:
    """How often held-out nodes get the class of their label, as (correct, total).

    Examples:
        >>> p = np.array([[0.95, 0.05], [0.6, 0.4], [0.3, 0.7]])
        >>> held_out = HeldOut(np.array([0, 1, 2]), p, np.zeros(3))
        >>> scores = HeldOutScores.of(held_out, np.array([0, 1, 1]), np.array([False, False]))
        >>> scores.by_class, scores.sure, scores.unsure
        (((1, 1), (1, 2)), (1, 1), (1, 2))
        >>> scores.sentence
        'Of your 3 labels, each judged without itself, 67% land in their class (100% where the \
model is at least 90% sure, 50% otherwise).'
    """

    by_class: tuple[tuple[int, int], ...]  # for every class
    sure: tuple[int, int]  # where the probability is at least 90%
    unsure: tuple[int, int]  # elsewhere
    landed: tuple[int, ...]  # held-out nodes that each class gets
    in_new: int | None  # labels of known classes among them that a discovered class gets; None
    # where nothing is discovered

    @classmethod
    def of(cls, held_out: HeldOut, rows: np.ndarray, is_new: np.ndarray) -> HeldOutScores:
        """Score held-out nodes by (N,) the class row of every node's label, -1 for none.

        `is_new` is (C,) which classes are discovered.
        """
        there = ~np.isnan(held_out.p).any(axis=1)
        p, y = held_out.p[there], rows[held_out.ids[there]]
        right, is_sure = p.argmax(axis=1) == y, p.max(axis=1, initial=0) >= SURE

        def counts(some: np.ndarray) -> tuple[int, int]:
            return int(right[some].sum()), int(some.sum())

        by_class = tuple(counts(y == c) for c in range(held_out.p.shape[1]))
        landed = np.bincount(p.argmax(axis=1), minlength=held_out.p.shape[1])
        in_new = int((is_new[p.argmax(axis=1)] & ~is_new[y]).sum()) if is_new.any() else None
        return cls(by_class, counts(is_sure), counts(~is_sure), tuple(landed.tolist()), in_new)

    @property
    def num_right(self) -> int:
        """Number of held-out nodes that get the class of their label."""
        return self.sure[0] + self.unsure[0]

    @property
    def sentence(self) -> str:
        """The scores in one or two sentences; "" where there are no labels."""
        right, total = self.num_right, sum(self.landed)
        if not total:
            return ""
        text = f"Of your {plural(total, 'label')}, each judged without itself, "
        text += f"{percent(right / total)} land in their class"
        if self.sure[1] and self.unsure[1]:
            sure, unsure = (percent(right / of) for right, of in (self.sure, self.unsure))
            text += (
                f" ({sure} where the model is at least {percent(SURE)} sure, {unsure} otherwise)"
            )
        if self.in_new is None:
            return text + "."
        share = percent(self.in_new / total)
        return (
            f"{text} and {share} in a discovered one. So about {share} of all nodes of known "
            "classes are in discovered classes."
        )


def cross_validate(model: Model, z: np.ndarray, row: np.ndarray) -> HeldOut | None:
    """Judge labelled nodes by classifiers that have not seen their labels.

    `z` is (N, hidden), `row` (N,) the row in `model.classes` of each label, -1 for none. None
    without labels, and for trained encoders, which have seen the labels.
    """
    ids = np.flatnonzero(row >= 0)
    if model.frozen_encoder().spec.trainable or not len(ids):
        return None
    y = row[ids]
    part = np.empty(len(y), dtype=np.int64)
    part[np.argsort(y, kind="stable")] = np.arange(len(y)) % FOLDS  # stratified
    in_training = np.zeros(len(y), dtype=bool)
    most = max(MAX_TRAINING_NODES // len(model.classes), FOLDS)
    for c in np.unique(y):
        mine = np.flatnonzero(y == c)
        in_training[mine[:: -(-len(mine) // most)]] = True
    p = np.full((len(ids), len(model.classes)), np.nan)
    fit = np.full(len(ids), np.nan)
    alone = np.bincount(y, minlength=len(model.classes))[y] < 2
    columns = [model.column_class_ids.count(c.id) for c in model.classes]
    plain = np.array([not c.is_new for c in model.classes]) & (np.array(columns) == 1)
    in_training &= plain[y]  # a discovered or merged class is not what its few labels are
    with torch.no_grad(), fixed_threads():
        stored = _Judge.of(model)
        rows = torch.from_numpy(z[ids]).to(model.device)
        for fold in range(FOLDS):
            others = torch.from_numpy(np.flatnonzero(in_training & (part != fold)))
            mine = np.flatnonzero((part == fold) & ~alone)
            if len(others) and len(mine):
                judge = stored.refitted(rows[others], torch.from_numpy(y)[others])
                p[mine], fit[mine] = judge(rows[torch.from_numpy(mine)])
    return HeldOut(ids, p, fit)


def best_fits(model: Model, z: np.ndarray) -> np.ndarray:
    """(N,) cosine of each node and the nearest class mean, in the space where classes are round."""
    with torch.no_grad(), fixed_threads():
        return _Judge.of(model)(torch.from_numpy(z).to(model.device))[1]


def check_none_share(none_share: float) -> None:
    """Raise SettingError unless `none_share` is in [0, 1)."""
    if not 0 <= none_share < 1:
        raise SettingError(f"none_share is a share from 0 to below 1, not {none_share:g}")


def spare_fit(
    model: Model, z: np.ndarray, held_out: HeldOut | None, none_share: float
) -> np.ndarray | None:
    """(N,) fit above the threshold; a node below 0 fits none of the classes. None for a share of 0.

    `z` is (N, hidden) of any nodes; the labelled nodes in `held_out` calibrate the threshold.
    """
    check_none_share(none_share)
    if none_share == 0:
        return None
    if held_out is None:
        raise SettingError(
            "nodes that fit no class are found by labelled nodes and the prism encoder, and this "
            "run has none; leave out none_share (--none-share)"
        )
    return best_fits(model, z) - held_out.threshold(none_share)


@dataclass(frozen=True, eq=False)
class _Judge:
    """Shrinkage LDA and the space where classes are round, from statistics at the ranks in use."""

    model: Model
    used: MultiRank
    known: ClassStatistics

    @classmethod
    def of(cls, model: Model) -> _Judge:
        """From the statistics that the model stores."""
        multirank = model.frozen_encoder().spec.multirank
        used = model.lda.ranks_for(multirank, model.num_columns)
        whole = model.memory.classes
        known = whole.at(multirank.columns_of(used).to(whole.center.device))
        of = torch.tensor(model.column_class_ids)
        rows = [torch.nonzero(of == c.id).flatten() for c in model.classes]
        center = [_mean(known.center[some], known.nodes[some]) for some in rows]
        count = torch.stack([known.nodes[some].sum() for some in rows])
        return cls(model, used, _with_means(known, torch.stack(center), count))

    def refitted(self, z: Tensor, y: Tensor) -> _Judge:
        """Refit the classes of y, and the scatter, on the nodes z."""
        labels = torch.unique(y)
        rows = torch.searchsorted(labels, y)
        found = ClassStatistics.estimate(self.used(z), rows, len(labels), self.used.views)
        center, count = self.known.center.clone(), self.known.nodes.clone()
        center[labels], count[labels] = found.center, found.count
        refitted = _with_means(found.with_view_scale(self.known.view_scale), center, count)
        return _Judge(self.model, self.used, refitted)

    def __call__(self, z: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """(n, C) probabilities and (n,) fit of nodes z."""
        temperature = float(self.model.memory.classes.temperature)
        lda = self.model.lda
        head = lda_head(self.used, self.known, self.known, temperature, lda, self.used)
        scale = self.used.per_column(self.known.view_scale)
        every = torch.ones(len(scale), dtype=torch.bool, device=scale.device)
        white = whitening(self.known.covariance(every, lda.prior, scale)).to(scale)
        mean = torch.nn.functional.normalize((self.known.center * scale) @ white, dim=1)

        def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for some in torch.split(z, NODES_AT_ONCE):
                x = torch.nn.functional.normalize((self.used(some) * scale) @ white, dim=1)
                fit = (x @ mean.t()).max(dim=1).values
                yield head(some).softmax(dim=1).cpu().numpy(), fit.cpu().numpy()

        p, fit = zip(*parts(), strict=True)
        return np.concatenate(p), np.concatenate(fit)


def _mean(center: Tensor, count: Tensor) -> Tensor:
    count = count if count.any() else torch.ones_like(count)  # a class without nodes
    return (center * (count / count.sum())[:, None]).sum(dim=0)


def _with_means(of: ClassStatistics, center: Tensor, count: Tensor) -> ClassStatistics:
    """Statistics `of` with other means and numbers of nodes."""
    return ClassStatistics(center, of.factor, of.diag, of.dof, of.temperature, of.view_scale, count)
