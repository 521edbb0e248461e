"""What people use instead: communities, random projections, density clusters, scikit-learn alone.

Each is a `Baseline`: it gets the labelled nodes, so its line is marked. Leiden and EVōC choose the
number of clusters themselves; clusters beyond the number of classes stand for no class.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import normalize

from nodenova.bench.baselines import Counted, GCDKMeans, directions, draw_seed, features_of
from nodenova.data.labels import OldTask
from nodenova.errors import SettingError
from nodenova.graph import Graph, NewTask
from nodenova.model.model import Model
from nodenova.settings import check_settings, setting

COMPONENTS = 64  # of raw features, for scikit-learn alone
FOLDS = 5  # of the cross-validation that sets its threshold
MIN_COMMUNITY = 0.02  # least share of the nodes of a community that counts as a class


def require(package: str) -> ModuleType:
    """Import a package that only a rival needs, or raise with the command that installs it."""
    try:
        return import_module(package)
    except ModuleNotFoundError:
        raise SettingError(f"this entrant needs {package}: pip install {package}") from None


def adjacency(graph: Graph) -> sp.csr_array:
    """(N, N) symmetric weights of the edges, without self-loops."""
    source, target = graph.edge_index
    weight = np.ones(len(source)) if graph.edge_weight is None else graph.edge_weight
    n = graph.num_nodes
    return sp.csr_array((weight.astype(float), (source, target)), shape=(n, n))


def name_by_majority(groups: np.ndarray, old: OldTask, ids: np.ndarray) -> np.ndarray:
    """(N,) classes: a group with labelled nodes gets their most frequent class.

    The other groups are new classes, the one with most of the unlabelled nodes `ids` first.
    """
    num_old, num_groups = len(old.class_names), int(groups.max()) + 1
    votes = np.zeros((num_groups, num_old), dtype=np.int64)
    np.add.at(votes, (groups[old.train_ids], old.train_y), 1)
    size = np.bincount(groups[ids], minlength=num_groups)
    nameless = np.flatnonzero(votes.sum(axis=1) == 0)
    name = votes.argmax(axis=1)
    name[nameless[np.argsort(-size[nameless], kind="stable")]] = num_old + np.arange(len(nameless))
    return name[groups]


def name_one_to_one(groups: np.ndarray, old: OldTask) -> np.ndarray:
    """(N,) classes: each known class gets the one group that suits it best; the others are new."""
    num_old, num_groups = len(old.class_names), int(groups.max()) + 1
    votes = np.zeros((num_old, num_groups), dtype=np.int64)
    np.add.at(votes, (old.train_y, groups[old.train_ids]), 1)
    known, chosen = linear_sum_assignment(votes, maximize=True)
    name = np.full(num_groups, -1)
    name[chosen] = known
    name[name < 0] = num_old + np.arange((name < 0).sum())
    return name[groups]


def communities(graph: Graph, resolution: float) -> np.ndarray:
    """(N,) community of each node by igraph's Leiden algorithm, by modularity."""
    igraph = require("igraph")
    random = np.random.default_rng(draw_seed())
    upper = sp.triu(adjacency(graph), k=1).tocoo()
    edges = np.stack(upper.coords, axis=1)
    network = igraph.Graph(n=graph.num_nodes, edges=edges)
    # igraph draws from a generator of Python's `random` interface.
    igraph.set_random_number_generator(_Generator(random))
    try:
        found = network.community_leiden(
            objective_function="modularity",
            weights=upper.data.tolist(),
            resolution=resolution,
            n_iterations=-1,
        )
    finally:
        igraph.set_random_number_generator(None)
    return np.array(found.membership)


class _Generator:
    """Python's `random` interface, as far as igraph uses it, on a seeded generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def random(self) -> float:
        return float(self._rng.random())

    def randint(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high + 1))

    def gauss(self, mean: float, std: float) -> float:
        return float(self._rng.normal(mean, std))


@dataclass(frozen=True)
class Leiden:
    """Leiden communities of the edges alone, each with the majority label of its labelled nodes.

    Communities without a labelled node are new classes. Needs igraph.
    """

    prefers: ClassVar[str] = "prism"
    needs: ClassVar[str] = "igraph"
    sees: ClassVar[tuple[str, ...]] = GCDKMeans.sees

    resolution: float = setting(1.0, above=0)

    def __post_init__(self) -> None:
        check_settings(self)

    def assign(self, model: Model, old: OldTask, task: NewTask) -> np.ndarray:
        """Return (N,) the class of every node; see `Baseline`."""
        return name_by_majority(communities(task.graph, self.resolution), old, task.ids)


@dataclass(frozen=True)
class FastRP:
    """k-means of FastRP embeddings (Chen et al., CIKM 2019), which see edges alone.

        M  = D^-1 A,   R sparse random (N, d),   z = sum_q w_q unit(M^q R),   q = 1, 2, ...

    One cluster for each class; each known class gets the cluster that suits its labels best.
    """

    prefers: ClassVar[str] = "prism"
    sees: ClassVar[tuple[str, ...]] = GCDKMeans.sees

    dimensions: int = setting(256, at_least=1)
    weights: tuple[float, ...] = (0.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        check_settings(self)

    def assign(self, model: Model, old: OldTask, task: NewTask) -> np.ndarray:
        """Return (N,) the class of every node; see `Baseline`."""
        z = self.embed(task.graph)
        count = len(old.class_names) + (task.num_new or 0)
        groups = KMeans(count, n_init=10, random_state=draw_seed()).fit_predict(z)
        return name_one_to_one(groups, old)

    def embed(self, graph: Graph) -> np.ndarray:
        """(N, d) weighted sum of the projected powers of the random-walk matrix."""
        rng = np.random.default_rng(draw_seed())
        weights = adjacency(graph)
        degree = np.maximum(weights.sum(axis=1), 1e-12)
        walk = sp.diags_array(1 / degree) @ weights
        # Very sparse projections: +-sqrt(3) with probability 1/6 each, else 0.
        signs = np.sqrt(3) * np.array([1.0, -1.0, 0.0])
        z = rng.choice(signs, size=(graph.num_nodes, self.dimensions), p=[1 / 6, 1 / 6, 2 / 3])
        total = np.zeros_like(z)
        for weight in self.weights:
            z = walk @ z
            total += weight * normalize(z)
        return total


@dataclass(frozen=True)
class EVoC:
    """EVōC, density clusters of embeddings, on the features that Prism measures distances on.

    It chooses the number of clusters; each has the majority label of its labelled nodes. Nodes that
    it leaves out go to the cluster with the nearest mean. Needs evoc.
    """

    prefers: ClassVar[str] = "prism"
    needs: ClassVar[str] = "evoc"
    sees: ClassVar[tuple[str, ...]] = GCDKMeans.sees

    def assign(self, model: Model, old: OldTask, task: NewTask) -> np.ndarray:
        """Return (N,) the class of every node; see `Baseline`."""
        count = len(old.class_names) + (task.num_new or 0)
        ids = np.union1d(old.train_ids, task.ids)
        x = directions(features_of(model, task.graph, count), ids, count)
        return name_by_majority(density_clusters(x), old, task.ids)


def density_clusters(x: np.ndarray) -> np.ndarray:
    """(n,) EVōC's cluster of each row; rows that it leaves out go to the nearest mean."""
    evoc = require("evoc")
    groups = evoc.EVoC(random_state=draw_seed()).fit_predict(x.astype(np.float32))
    if groups.max() < 0:
        return np.zeros(len(x), dtype=np.int64)
    means = np.stack([x[groups == c].mean(axis=0) for c in range(groups.max() + 1)])
    distance = np.square(means).sum(axis=1) - 2 * x @ means.T
    return np.where(groups < 0, distance.argmin(axis=1), groups)


@dataclass(frozen=True)
class ScikitLearn:
    """scikit-learn alone, without edges: logistic regression, a threshold, k-means on the rest.

    Nodes whose most likely class is less probable than that of all but `share` of the labelled
    nodes, judged by cross-validation, are new.
    """

    prefers: ClassVar[str] = "prism"
    sees: ClassVar[tuple[str, ...]] = GCDKMeans.sees

    share: float = setting(0.1, above=0)

    def __post_init__(self) -> None:
        check_settings(self)

    def assign(self, model: Model, old: OldTask, task: NewTask) -> np.ndarray:
        """Return (N,) the class of every node; see `Baseline`."""
        features, count = sp.csr_array(task.graph.x), min(COMPONENTS, min(task.graph.x.shape) - 1)
        svd = TruncatedSVD(max(count, 1), random_state=draw_seed())
        x = normalize(svd.fit_transform(normalize(features)))
        classifier = LogisticRegression(C=100.0, max_iter=2000)
        rows, y = x[old.train_ids], old.train_y
        folds = min(FOLDS, int(np.bincount(y).min()))
        p = classifier.fit(rows, y).predict_proba(x)
        own = p[old.train_ids]
        if folds > 1:
            own = cross_val_predict(classifier, rows, y, cv=folds, method="predict_proba")
        found: np.ndarray = p.argmax(axis=1)
        unsure = p.max(axis=1) < np.quantile(own.max(axis=1), self.share)
        number = min(task.num_new or 0, int(unsure.sum()))
        if number:
            groups = KMeans(number, n_init=10, random_state=draw_seed()).fit_predict(x[unsure])
            found[unsure] = len(old.class_names) + groups
        return found


@dataclass(frozen=True)
class LeidenCount:
    """Leiden communities of at least 2% of the unlabelled nodes, minus the known classes."""

    prefers: ClassVar[str] = "prism"
    needs: ClassVar[str] = "igraph"

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """Return the number of new classes; see `CountingRule`."""
        return _minus_known(communities(task.graph, 1.0)[task.ids], model, task)


@dataclass(frozen=True)
class EVoCCount:
    """EVōC's clusters of the unlabelled nodes, minus the known classes."""

    prefers: ClassVar[str] = "prism"
    needs: ClassVar[str] = "evoc"

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """Return the number of new classes; see `CountingRule`."""
        count = max(2 * len(model.classes), 6)
        x = directions(features_of(model, task.graph, count), task.ids, count)[task.ids]
        return _minus_known(density_clusters(x), model, task)


def _minus_known(groups: np.ndarray, model: Model, task: NewTask) -> Counted:
    large = int((np.bincount(groups) >= MIN_COMMUNITY * len(groups)).sum())
    return Counted(max(large - len(model.classes), 0) if task.mixed else max(large, 1))
