"""Rules that count new classes, on Prism's representation.

Prism's own; the silhouette, HDBSCAN, and how wide clusters are beside the old classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import silhouette_score

from nodenova.bench.features import directions, draw_seed, features_of
from nodenova.discovery import count_new
from nodenova.model.model import Model
from nodenova.settings import check_settings, setting
from nodenova.task import NewTask

MAX_COUNT = 15  # new classes that a rule may find
MAX_COMPARED = 1000  # nodes among which a silhouette is measured


@dataclass(frozen=True)
class Counted:
    """How many new classes there are, and, where a rule says so, which numbers are likely too.

    Attributes:
        number: The best guess.
        likely: The numbers one of which is true in four cases of five.
    """

    number: int
    likely: tuple[int, ...] = ()


@runtime_checkable
class CountingRule(Protocol):
    """Says how many new classes there are among unlabelled nodes."""

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """How many new classes there are among the nodes of a task.

        PyTorch's generator is seeded before the call; every random number comes from it.

        Args:
            model: Of the old classes.
            task: Where every node is new (mixed=False), the answer is at least 1. Its `num_new` is
                not looked at.
        """


@dataclass(frozen=True)
class PrismCount:
    """Prism's own count: see `nodenova.count_new`."""

    prefers: ClassVar[str] = "prism"

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """How many new classes there are among the nodes of a task; see `CountingRule`."""
        count = count_new(model, task, seed=draw_seed())
        return Counted(count.number, count.likely)


@dataclass(frozen=True)
class Silhouette:
    """As many clusters of plain k-means as have the highest mean silhouette, less the old ones."""

    prefers: ClassVar[str] = "prism"

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """How many new classes there are among the nodes of a task; see `CountingRule`."""
        num_old = len(model.classes) if task.mixed else 0
        x = _unlabelled(model, task)
        some = np.random.default_rng(draw_seed()).permutation(len(x))[:MAX_COMPARED]
        scores = {}
        for k in range(max(2, num_old), min(num_old + MAX_COUNT, len(some) - 1) + 1):
            said = KMeans(k, n_init=3, random_state=draw_seed()).fit_predict(x)
            if len(np.unique(said[some])) > 1:
                scores[k] = float(silhouette_score(x[some], said[some]))
        return Counted(max(scores, key=lambda k: scores[k]) - num_old if scores else 1)


@dataclass(frozen=True)
class HDBSCANCount:
    """The clusters that scikit-learn's HDBSCAN finds, less the old ones (at least none, or one).

    Attributes:
        share: Of the nodes, in the smallest cluster.
        at_least: How many nodes in it.
    """

    prefers: ClassVar[str] = "prism"

    share: float = setting(0.02, above=0)
    at_least: int = setting(8, at_least=2)

    def __post_init__(self) -> None:
        check_settings(self)

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """How many new classes there are among the nodes of a task; see `CountingRule`."""
        x = _unlabelled(model, task)
        smallest = min(max(self.at_least, round(self.share * len(x))), len(x))
        # Without `copy` it may write into the rows; newer versions warn unless it is said.
        clusters = int(HDBSCAN(min_cluster_size=smallest, copy=True).fit(x).labels_.max()) + 1
        return Counted(max(clusters - len(model.classes), 0) if task.mixed else max(clusters, 1))


@dataclass(frozen=True)
class ScatterRule:
    """The least number of new classes at which clusters are no wider than old classes are.

        W(k) = sum over clusters of |u - mean|^2 / (N - clusters),   o + k clusters of plain k-means

    The first k with W(k) <= `times` the scatter within old classes, as phase 1 remembers it.

    Attributes:
        times: How much wider than the old classes clusters may be.
    """

    prefers: ClassVar[str] = "prism"

    times: float = setting(1.15, above=0)

    def __post_init__(self) -> None:
        check_settings(self)

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """How many new classes there are among the nodes of a task; see `CountingRule`."""
        num_old = len(model.classes) if task.mixed else 0
        n = _classes_expected(model)
        u = features_of(model, task.graph, n)[task.ids]
        x, bound = _unlabelled(model, task), self.times * _old_scatter(model, n)
        for k in range(max(1 - num_old, 0), MAX_COUNT + 1):
            clusters = num_old + k
            if clusters >= len(u):
                break
            said = KMeans(clusters, n_init=3, random_state=draw_seed()).fit_predict(x)
            parts = [u[said == c] for c in np.unique(said)]
            within = sum(len(part) * float(part.var(axis=0).sum()) for part in parts)
            if within / (len(u) - clusters) <= bound:
                return Counted(k)
        return Counted(MAX_COUNT)


RULES: dict[str, type[Any]] = {
    "count": PrismCount,
    "silhouette": Silhouette,
    "hdbscan": HDBSCANCount,
    "scatter": ScatterRule,
}


def _unlabelled(model: Model, task: NewTask) -> np.ndarray:
    n = _classes_expected(model)
    return directions(features_of(model, task.graph, n), task.ids, n)[task.ids]


def _classes_expected(model: Model) -> int:
    """For how many classes the representation is cut before anybody knows how many there are."""
    num_old = len(model.classes)
    return max(2 * num_old, num_old + 4, 6)


def _old_scatter(model: Model, num_classes: int) -> float:
    """The mean squared distance of a node from the mean of its old class, as remembered."""
    multirank = model.frozen_encoder().spec.multirank
    used = model.lda.ranks_for(multirank, num_classes)
    known = model.memory.classes.at(multirank.columns_of(used).to(model.device))
    scale = used.per_column(known.view_scale).square().double()
    total = known.factor.double().square().sum(dim=0) + known.diag
    return float((total * scale).sum() / known.dof)
