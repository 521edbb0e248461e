"""What is said of labelled nodes by classifiers that have not seen their labels.

Five-fold: the classes are learnt anew from the labels of the other parts, by the shrinkage LDA of
phase 1; discovered and merged classes are as the model remembers them. The views are as they were:
their weights and their whitening, some numbers for all nodes, have seen every label.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nodenova.encoders.prism.lda import lda_head
from nodenova.errors import SettingError
from nodenova.model.model import Model
from nodenova.nn.multirank import MultiRank
from nodenova.nn.seeding import fixed_threads
from nodenova.nn.statistics import ClassStatistics
from nodenova.open_world.anchored_kmeans import whitening

FOLDS = 5
MAX_LEARNT_FROM = 5000  # labelled nodes; the others are judged by what these say
NODES_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Labelled nodes, judged without their labels.

    Attributes:
        ids: (n,) which nodes.
        p: (n, C) the probability of every class; NaN for the only node of its class.
        fit: (n,) how well each lies in the class that it fits best: see `best_fits`.
    """

    ids: np.ndarray
    p: np.ndarray
    fit: np.ndarray

    def threshold(self, none_share: float) -> float:
        """The fit below which a node is of none of the classes: so few of these nodes are.

        A conformal quantile: a further node of the known classes falls below it with a probability
        of `none_share` at the most.

        Raises:
            SettingError: There are too few labelled nodes to tell.

        Examples:
            >>> fit = np.array([0.5, 0.1, 0.9, 0.7])
            >>> HeldOut(np.arange(4), np.zeros((4, 2)), fit).threshold(0.4)
            0.5
        """
        fit = np.sort(self.fit[~np.isnan(self.fit)])
        rank = int(none_share * (len(fit) + 1))  # of the nodes, those below it
        if rank < 1:
            need = int(np.ceil(1 / none_share)) - 1
            raise SettingError(
                f"a share of {none_share:g} of nodes that fit no class takes at least {need:,} "
                f"labelled nodes to tell, and there are {len(fit):,}"
            )
        return float(fit[rank - 1])


def held_out(model: Model, z: np.ndarray, row: np.ndarray) -> HeldOut | None:
    """Judge labelled nodes by classifiers that have not seen their labels.

    Args:
        model: With the classes that they may be of.
        z: (N, hidden) of all nodes.
        row: (N,) the class of the label of each, a row of `model.classes`; -1 for none.

    Returns:
        None for encoders that are trained, which have seen the labels, and without labels.

    Examples:
        >>> import nodenova as nova
        >>> data = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> model = nova.fit(nova.split(data, [0, 1])[0])
        >>> y = np.where(data.y < 2, data.y, -1)
        >>> said = held_out(model, model.embed(data.graph), y)
        >>> bool((said.p.argmax(axis=1) == y[said.ids]).mean() > 0.9)
        True
    """
    ids = np.flatnonzero(row >= 0)
    if model.frozen_encoder().spec.trainable or not len(ids):
        return None
    y = row[ids]
    part = np.empty(len(y), dtype=np.int64)
    part[np.argsort(y, kind="stable")] = np.arange(len(y)) % FOLDS  # of every class its share
    learnt = np.zeros(len(y), dtype=bool)
    most = max(MAX_LEARNT_FROM // len(model.classes), FOLDS)
    for c in np.unique(y):
        mine = np.flatnonzero(y == c)
        learnt[mine[:: -(-len(mine) // most)]] = True
    p = np.full((len(ids), len(model.classes)), np.nan)
    fit = np.full(len(ids), np.nan)
    alone = np.bincount(y, minlength=len(model.classes))[y] < 2
    columns = [model.column_class_ids.count(c.id) for c in model.classes]
    plain = np.array([not c.is_new for c in model.classes]) & (np.array(columns) == 1)
    learnt &= plain[y]  # labels say little of a class that was discovered or merged
    with torch.no_grad(), fixed_threads():
        remembered = _Judge.of(model)
        rows = torch.from_numpy(z[ids]).to(model.device)
        for fold in range(FOLDS):
            others = torch.from_numpy(np.flatnonzero(learnt & (part != fold)))
            mine = np.flatnonzero((part == fold) & ~alone)
            if len(others) and len(mine):
                judge = remembered.taught(rows[others], torch.from_numpy(y)[others])
                p[mine], fit[mine] = judge(rows[torch.from_numpy(mine)])
    return HeldOut(ids, p, fit)


def best_fits(model: Model, z: np.ndarray) -> np.ndarray:
    """(N,) how well nodes lie in the class that each fits best, as the model remembers them.

    The cosine of node and mean of the class, in the space where classes are round.

    Args:
        model: With the classes.
        z: (N, hidden) of the nodes.
    """
    with torch.no_grad(), fixed_threads():
        judge = _Judge.of(model)
        return judge(torch.from_numpy(z).to(model.device))[1]


def check_none_share(none_share: float) -> None:
    """Raise unless it is a share.

    Raises:
        SettingError: It is not from 0 to below 1.
    """
    if not 0 <= none_share < 1:
        raise SettingError(f"none_share is a share from 0 to below 1, not {none_share:g}")


def spare_fit(
    model: Model, z: np.ndarray, judged: HeldOut | None, none_share: float
) -> np.ndarray | None:
    """(N,) how much better nodes fit a class than they must; below 0 they fit none of them.

    Args:
        model: With the classes.
        z: (N, hidden) of the nodes, which need not be those that were judged.
        judged: Labelled nodes, by which the share is calibrated.
        none_share: About so many nodes of the known classes are below 0.

    Returns:
        None for a share of 0, which asks for nothing.

    Raises:
        SettingError: It is no share, or labelled nodes are missing or too few to tell.
    """
    check_none_share(none_share)
    if none_share == 0:
        return None
    if judged is None:
        raise SettingError(
            "which nodes fit no class is told by labelled nodes, on the prism encoder only; "
            "there are none (leave out the share of nodes that fit none)"
        )
    return best_fits(model, z) - judged.threshold(none_share)


@dataclass(frozen=True, eq=False)
class _Judge:
    """Shrinkage LDA and the space where classes are round, from statistics at the ranks in use."""

    model: Model
    used: MultiRank
    known: ClassStatistics

    @classmethod
    def of(cls, model: Model) -> _Judge:
        """By what the model remembers."""
        multirank = model.frozen_encoder().spec.multirank
        used = model.lda.ranks_for(multirank, model.num_columns)
        whole = model.memory.classes
        known = whole.at(multirank.columns_of(used).to(whole.center.device))
        of = torch.tensor(model.column_class_ids)
        rows = [torch.nonzero(of == c.id).flatten() for c in model.classes]
        center = [_mean(known.center[some], known.nodes[some]) for some in rows]
        count = torch.stack([known.nodes[some].sum() for some in rows])
        return cls(model, used, _replaced(known, torch.stack(center), count))

    def taught(self, z: Tensor, y: Tensor) -> _Judge:
        """The same with the classes of y learnt from the nodes z, and their scatter."""
        labels = torch.unique(y)
        views = self.used.views
        found = ClassStatistics.estimate(
            self.used(z), torch.searchsorted(labels, y), len(labels), views
        )
        center, count = self.known.center.clone(), self.known.nodes.clone()
        center[labels], count[labels] = found.center, found.count
        taught = _replaced(found.with_view_scale(self.known.view_scale), center, count)
        return _Judge(self.model, self.used, taught)

    def __call__(self, z: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """(n, C) probabilities and (n,) the fit of nodes z."""
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
    return (center * (count / count.sum())[:, None]).sum(dim=0)


def _replaced(of: ClassStatistics, center: Tensor, count: Tensor) -> ClassStatistics:
    """The scatter of some statistics, and other means."""
    return ClassStatistics(center, of.factor, of.diag, of.dof, of.temperature, of.view_scale, count)
