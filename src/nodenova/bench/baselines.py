"""Baselines of the open-world benches, all but SimGCD on Prism's representation.

Semi-supervised k-means of generalized category discovery, SimGCD with its labelled nodes, and
rules that count new classes: Prism's own, the silhouette, HDBSCAN, and the width of clusters
compared with the old classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import silhouette_score

from nodenova.data.labels import OldTask
from nodenova.discovery import count_new
from nodenova.encoders.prism.lda import scaled_features
from nodenova.errors import SettingError
from nodenova.graph import Graph, NewTask
from nodenova.methods.simgcd import SimGCD
from nodenova.model.model import Model
from nodenova.nn.encode_cache import encode
from nodenova.open_world.novelty import cell_novelty, log_odds_of_new
from nodenova.settings import check_settings, setting


def features_of(model: Model, graph: Graph, num_classes: int) -> np.ndarray:
    """(N, D) features on which Prism measures distances, given the number of classes."""
    g = model.frozen_encoder()
    scale = model.memory.classes.view_scale
    u = scaled_features(g.spec.multirank, encode(g, graph), num_classes, scale, model.lda)
    return u.double().cpu().numpy()


def directions(u: np.ndarray, ids: np.ndarray, num_classes: int) -> np.ndarray:
    """(N, r) all nodes on the r = 3/2 `num_classes` principal components of `ids`, unit length."""
    mean = u[ids].mean(axis=0)
    centered = u[ids] - mean
    vectors = np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, : (3 * num_classes + 1) // 2]
    x = (u - mean) @ vectors
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


def draw_seed() -> int:
    """Draw a seed for NumPy and scikit-learn from PyTorch's generator, which is seeded."""
    return int(torch.randint(2**31, (1,)))


MAX_COUNT = 15  # largest number of new classes of a rule
MAX_COMPARED = 1000  # nodes of a silhouette


@dataclass(frozen=True)
class Counted:
    """Estimated number of new classes, and a set that holds the true one in four of five cases."""

    number: int
    likely: tuple[int, ...] = ()


@runtime_checkable
class CountingRule(Protocol):
    """Estimates the number of new classes among unlabelled nodes."""

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """Return the number of new classes in a task, at least 1 where every node is new.

        PyTorch's generator is seeded before the call; every random number comes from it.
        """


@dataclass(frozen=True)
class PrismCount:
    """Prism's own estimate: see `nodenova.count_new`."""

    prefers: ClassVar[str] = "prism"

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """Return the number of new classes; see `CountingRule`."""
        count = count_new(model, task, seed=draw_seed())
        return Counted(count.number, count.likely)


@dataclass(frozen=True)
class Silhouette:
    """Number of k-means clusters with the highest mean silhouette, minus the old classes."""

    prefers: ClassVar[str] = "prism"

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """Return the number of new classes; see `CountingRule`."""
        num_old = len(model.classes) if task.mixed else 0
        x = _unlabelled(model, task)
        some = np.random.default_rng(draw_seed()).permutation(len(x))[:MAX_COMPARED]
        scores = {}
        for k in range(max(2, num_old), min(num_old + MAX_COUNT, len(some) - 1) + 1):
            labels = KMeans(k, n_init=3, random_state=draw_seed()).fit_predict(x)
            if len(np.unique(labels[some])) > 1:
                scores[k] = float(silhouette_score(x[some], labels[some]))
        return Counted(max(scores, key=lambda k: scores[k]) - num_old if scores else 1)


@dataclass(frozen=True)
class HDBSCANCount:
    """Number of clusters of scikit-learn's HDBSCAN, minus the old classes."""

    prefers: ClassVar[str] = "prism"

    # Smallest cluster, as a share of the nodes and in nodes.
    share: float = setting(0.02, above=0)
    at_least: int = setting(8, at_least=2)

    def __post_init__(self) -> None:
        check_settings(self)

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """Return the number of new classes; see `CountingRule`."""
        x = _unlabelled(model, task)
        smallest = min(max(self.at_least, round(self.share * len(x))), len(x))
        # Without `copy` it may write into the rows; newer versions warn unless it is given.
        clusters = int(HDBSCAN(min_cluster_size=smallest, copy=True).fit(x).labels_.max()) + 1
        return Counted(max(clusters - len(model.classes), 0) if task.mixed else max(clusters, 1))


@dataclass(frozen=True)
class ScatterRule:
    """The smallest number of new classes at which clusters are no wider than the old classes.

        W(k) = sum over clusters of |u - mean|^2 / (N - clusters),   o + k clusters of plain k-means

    The first k with W(k) <= `times` the scatter within old classes, as phase 1 stores it.
    """

    prefers: ClassVar[str] = "prism"

    times: float = setting(1.15, above=0)

    def __post_init__(self) -> None:
        check_settings(self)

    def count_classes(self, model: Model, task: NewTask) -> Counted:
        """Return the number of new classes; see `CountingRule`."""
        num_old = len(model.classes) if task.mixed else 0
        n = _classes_expected(model)
        u = features_of(model, task.graph, n)[task.ids]
        x, bound = _unlabelled(model, task), self.times * _old_scatter(model, n)
        for k in range(max(1 - num_old, 0), MAX_COUNT + 1):
            clusters = num_old + k
            if clusters >= len(u):
                break
            labels = KMeans(clusters, n_init=3, random_state=draw_seed()).fit_predict(x)
            parts = [u[labels == c] for c in np.unique(labels)]
            within = sum(len(part) * float(part.var(axis=0).sum()) for part in parts)
            if within / (len(u) - clusters) <= bound:
                return Counted(k)
        return Counted(MAX_COUNT)


def _unlabelled(model: Model, task: NewTask) -> np.ndarray:
    n = _classes_expected(model)
    return directions(features_of(model, task.graph, n), task.ids, n)[task.ids]


def _classes_expected(model: Model) -> int:
    """Number of classes for which the representation is cut before the number is known."""
    num_old = len(model.classes)
    return max(2 * num_old, num_old + 4, 6)


def _old_scatter(model: Model, num_classes: int) -> float:
    """Mean squared distance of a node from the mean of its old class, as phase 1 stores it."""
    multirank = model.frozen_encoder().spec.multirank
    used = model.lda.ranks_for(multirank, num_classes)
    known = model.memory.classes.at(multirank.columns_of(used).to(model.device))
    scale = used.per_column(known.view_scale).square().double()
    total = known.factor.double().square().sum(dim=0) + known.diag
    return float((total * scale).sum() / known.dof)


MAX_STEPS = 100  # of Lloyd's algorithm


@runtime_checkable
class Baseline(Protocol):
    """Assigns every node of a graph to a class; it sees labelled nodes, and its row names them."""

    sees: ClassVar[tuple[str, ...]]

    def assign(self, model: Model, old: OldTask, task: NewTask) -> np.ndarray:
        """Return (N,) the class of every node: old classes by number, new ones after them.

        PyTorch's generator is seeded before the call; every random number comes from it.
        """


@dataclass(frozen=True)
class GCDKMeans:
    """Semi-supervised k-means of Vaze et al. (Generalized Category Discovery, CVPR 2022).

    k-means of labelled and unlabelled nodes together. Labelled nodes stay in the cluster of their
    class, whose center starts at their mean; further centers start by k-means++ among unlabelled
    nodes; all centers move. Every other node goes to the nearest center. The best restart counts.
    """

    prefers: ClassVar[str] = "prism"
    sees: ClassVar[tuple[str, ...]] = ("graph", "new_ids", "old_nodes", "old_labels")

    restarts: int = setting(10, at_least=1)

    def __post_init__(self) -> None:
        check_settings(self)

    def assign(self, model: Model, old: OldTask, task: NewTask) -> np.ndarray:
        """Return (N,) the class of every node; see `Baseline`."""
        num_old, num_new = len(old.class_names), task.num_new or 0
        u = features_of(model, task.graph, num_old + num_new)
        x = directions(u, np.concatenate([old.train_ids, task.ids]), num_old + num_new)
        fixed, y, free = x[old.train_ids], old.train_y, x[task.ids]
        means = np.stack([fixed[y == c].mean(axis=0) for c in range(num_old)])
        best, centers = np.inf, means
        for _ in range(self.restarts):
            found = self._cluster(fixed, y, free, means, num_new)
            loss = float(_squares(free, found).min(axis=1).sum())
            if loss < best:
                best, centers = loss, found
        return _squares(x, centers).argmin(axis=1)

    @staticmethod
    def _cluster(
        fixed: np.ndarray, y: np.ndarray, free: np.ndarray, means: np.ndarray, num_new: int
    ) -> np.ndarray:
        rng, centers = np.random.default_rng(draw_seed()), means
        for _ in range(num_new):  # k-means++
            distance = _squares(free, centers).min(axis=1) + 1e-12
            place = rng.choice(len(free), p=distance / distance.sum())
            centers = np.concatenate([centers, free[place : place + 1]])
        rows, before = np.concatenate([fixed, free]), np.full(len(free), -1)
        for _ in range(MAX_STEPS):
            nearest = _squares(free, centers).argmin(axis=1)
            if (nearest == before).all():
                break
            member = np.concatenate([y, nearest])
            size = np.bincount(member, minlength=len(centers))
            total = np.zeros_like(centers)
            np.add.at(total, member, rows)
            # A new center that lost all its nodes stays where it was.
            centers = np.where(size[:, None] > 0, total / np.maximum(size, 1)[:, None], centers)
            before = nearest
        return centers


def _squares(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(n, k) squared distances."""
    cross = rows @ centers.T
    return np.square(rows).sum(axis=1)[:, None] - 2 * cross + np.square(centers).sum(axis=1)


@dataclass(frozen=True)
class LabelledSimGCD(SimGCD):
    """SimGCD with the labelled nodes themselves, as in its paper: no stand-ins, nothing distilled.

    Its settings are those of `nodenova.SimGCD`; L_FD is for stand-ins, so it has no weight here.
    """

    sees: ClassVar[tuple[str, ...]] = GCDKMeans.sees

    omega_fd: float = setting(0.0, at_least=0)

    def assign(self, model: Model, old: OldTask, task: NewTask) -> np.ndarray:
        """Return (N,) the class of every node; see `Baseline`."""
        ids, y = (torch.from_numpy(each).to(model.device) for each in (old.train_ids, old.train_y))
        g, head, _ = self.train(model, task, (ids, y))
        with torch.no_grad():
            found: np.ndarray = head(g(task.graph)).argmax(dim=1).cpu().numpy()
        return found


@dataclass(frozen=True)
class Phase1:
    """Phase 1 alone: nothing is discovered, and every node is of the most likely known class."""

    prefers: ClassVar[str] = "prism"
    sees: ClassVar[tuple[str, ...]] = ("graph", "new_ids")

    def novelty(self, model: Model, task: NewTask) -> np.ndarray:
        """Return (n,) for each unlabelled node a score that is higher the likelier it is new.

        The log-odds that its cell is new, less so the more the node resembles a known class: what
        Prism weighs the nodes of a mixture by.
        """
        if model.cells is None:
            raise SettingError("phase-1 needs the cells that the encoder prism stores")
        g = model.frozen_encoder()
        z = encode(g, task.graph)[torch.from_numpy(task.ids).to(model.device)]
        known = model.memory.classes
        return log_odds_of_new(cell_novelty(g.spec.multirank, known, model.cells, model.lda, z))
