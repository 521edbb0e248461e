"""Degenerate graphs: what is left when edges, features, classes or differences are missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

import nodenova as nova

NODES = 48
NO_EDGES = np.zeros((2, 0), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Case:
    """Arguments of `Graph.of`, true classes, and which nodes have a label."""

    x: Any
    edges: np.ndarray
    y: np.ndarray  # (N,) true classes; those below `num_old` are known
    labelled: np.ndarray  # (N,) mask of nodes of known classes whose label is given
    num_old: int = 2
    num_new: int = 2
    edge_weight: Any = None

    def graph(self) -> nova.Graph:
        return nova.Graph.of(self.x, self.edges, edge_weight=self.edge_weight)

    def given(self) -> list[int | None]:
        """Labels for `NodeDiscoverer`."""
        return [int(c) if known else None for c, known in zip(self.y, self.labelled, strict=True)]

    def tasks(self, mixed: bool = False) -> tuple[nova.OldTask, nova.NewTask, nova.Exam]:
        """Tasks of both phases; every second known node without a label is for validation."""
        graph = self.graph()
        train = np.flatnonzero(self.labelled)
        val = np.flatnonzero(~self.labelled & (self.y < self.num_old))[::2]
        new = ~self.labelled if mixed else self.y >= self.num_old
        names = tuple(f"class {c}" for c in range(self.num_old))
        old = nova.OldTask(graph, train, self.y[train], val, self.y[val], names)
        task = nova.NewTask(graph, np.flatnonzero(new), self.num_new, mixed)
        sizes = (self.num_old, int(self.y.max()) + 1 - self.num_old)
        every = np.arange(graph.num_nodes)
        return old, task, nova.Exam(graph, every, self.y, sizes, tuple(map(str, range(sum(sizes)))))

    def labelled_task(self) -> nova.LabelledNewTask:
        """The task of phase 2 with labels; the number of new classes is that of the labels."""
        old, new, _ = self.tasks()
        _, y = np.unique(self.y[new.ids], return_inverse=True)
        parts = (new.ids, int(y.max()) + 1, y, old.train_ids, old.train_y, old.val_ids, old.val_y)
        return nova.LabelledNewTask(new.graph, *parts)


def ordinary(nodes: int = NODES, classes: int = 4) -> Case:
    """Dense positive features and edges within classes: nothing is missing yet."""
    rng = np.random.default_rng(7)
    y = np.arange(nodes) % classes
    x = rng.random((nodes, 6)) + np.eye(6)[y % 6]
    ring = np.stack([np.arange(nodes), (np.arange(nodes) + classes) % nodes])
    labelled = (y < 2) & (np.arange(nodes) % (3 * classes) < 2 * classes)
    return Case(
        x, np.concatenate([ring, rng.integers(nodes, size=(2, nodes))], axis=1), y, labelled
    )


def with_x(x: Any) -> Case:
    return replace(ordinary(), x=x)


def with_edges(edges: Any, **parts: Any) -> Case:
    return replace(ordinary(), edges=np.asarray(edges, dtype=np.int64), **parts)


def every_pair(nodes: np.ndarray) -> np.ndarray:
    return np.stack(np.meshgrid(nodes, nodes)).reshape(2, -1)


def alternate(*values: float) -> np.ndarray:
    """(N, 6) features of `ordinary`, columns times these values in turn."""
    return ordinary().x * np.resize(np.array(values), 6)


def one_entry() -> Case:
    x = np.zeros((NODES, 6))
    x[0, 0] = 1.0
    return with_x(x)


def isolated_nodes() -> Case:
    case = ordinary()
    return replace(case, edges=case.edges[:, (case.edges % 3 > 0).all(axis=0)])


def disconnected_new_nodes() -> Case:
    case = ordinary()
    is_new = case.y[case.edges] >= 2
    return replace(case, edges=case.edges[:, ~is_new.any(axis=0)])


def two_components() -> Case:
    case = ordinary()
    half = case.edges < NODES // 2
    return replace(case, edges=case.edges[:, half[0] == half[1]])


def bipartite() -> Case:
    even = 2 * np.arange(NODES // 2)
    return with_edges(np.stack([np.repeat(even, 3), (np.repeat(even, 3) + [1, 5, 9] * 24) % NODES]))


def identical_new_nodes() -> Case:
    case = ordinary()
    x = case.x.copy()
    x[case.y >= 2] = 1.0
    return replace(disconnected_new_nodes(), x=x)


def identical_class() -> Case:
    """All labelled nodes of class 0 are the same, also in their neighborhood."""
    case = ordinary()
    x, zero = case.x.copy(), np.flatnonzero(case.labelled & (case.y == 0))
    x[zero] = 1.0
    return replace(case, x=x, edges=case.edges[:, ~np.isin(case.edges, zero).any(axis=0)])


def one_label_each() -> Case:
    case = ordinary()
    return replace(case, labelled=np.arange(NODES) < 2)


def one_known_class() -> Case:
    case = ordinary()
    return replace(case, labelled=case.labelled & (case.y == 0), num_old=1, num_new=3)


def two_nodes() -> Case:
    return Case(np.eye(2), np.array([[0], [1]]), np.array([0, 1]), np.arange(2) < 1, 1, 1)


def four_nodes() -> Case:
    return Case(np.eye(4), np.array([[0], [1]]), np.arange(4), np.arange(4) < 2)


def more_classes_than_nodes() -> Case:
    case = four_nodes()
    return replace(case, num_new=3)


def as_many_classes_as_nodes() -> Case:
    case = ordinary()
    return replace(case, num_new=int((case.y >= 2).sum()))


def five_hundred_classes() -> Case:
    rng = np.random.default_rng(3)
    y = np.arange(2000) % 500
    x = sp.csr_array(np.eye(250, dtype=np.float32)[y // 2] + (rng.random((2000, 250)) < 0.01))
    labelled = (y < 490) & (np.arange(2000) < 1000)
    return Case(
        x, np.stack([np.arange(2000), (np.arange(2000) + 500) % 2000]), y, labelled, 490, 10
    )


def hub() -> Case:
    """A star of 10^5 edges."""
    nodes = 100_001
    case = ordinary(nodes)
    leaves = np.arange(1, nodes)
    return replace(case, edges=np.stack([np.zeros_like(leaves), leaves]))


def million_words() -> Case:
    """Each node has eight words out of a million."""
    case, rng = ordinary(), np.random.default_rng(5)
    places = rng.integers(100_000, size=(NODES, 8)) + 250_000 * case.y[:, None]
    rows = np.repeat(np.arange(NODES), 8)
    x = sp.coo_array((np.ones(rows.size), (rows, places.ravel())), shape=(NODES, 10**6))
    return replace(case, x=x)


def weights(low: float, high: float) -> Case:
    case = ordinary()
    size = case.edges.shape[1]
    return replace(case, edge_weight=np.where(np.arange(size) % 2, low, high))


def ones(columns: int = 5) -> np.ndarray:
    return np.ones((NODES, columns))


STAR = np.stack([np.zeros(NODES - 1, dtype=np.int64), np.arange(1, NODES)])
CASES: dict[str, Callable[[], Case]] = {
    "ordinary": ordinary,
    "no edges": lambda: with_edges(NO_EDGES),
    "one edge": lambda: with_edges([[0], [1]]),
    "isolated nodes": isolated_nodes,
    "complete graph": lambda: with_edges(every_pair(np.arange(NODES))),
    "star": lambda: with_edges(STAR),
    "self-loops only": lambda: with_edges([range(NODES)] * 2),
    "duplicate edges": lambda: with_edges(np.tile(ordinary().edges, 3)),
    "bipartite": bipartite,
    "two components": two_components,
    "new nodes disconnected": disconnected_new_nodes,
    "tiny weights": lambda: weights(1e-30, 1e-29),
    "huge weights": lambda: weights(1e28, 1e29),
    "tiny and huge weights": lambda: weights(1e-30, 1e29),
    "identical features": lambda: with_x(ones()),
    "identical features, no edges": lambda: replace(with_x(ones()), edges=NO_EDGES),
    "identical features, complete": lambda: replace(
        with_x(ones()), edges=every_pair(np.arange(NODES))
    ),
    "zero features": lambda: with_x(np.zeros((NODES, 5))),
    "zero features, no edges": lambda: replace(with_x(np.zeros((NODES, 5))), edges=NO_EDGES),
    "one feature": lambda: with_x(ordinary().x[:, :1]),
    "one sparse feature": lambda: with_x(sp.csr_array(np.eye(NODES, 1))),
    "constant feature": lambda: with_x(ones(1)),
    "one entry": one_entry,
    "one dense entry": lambda: with_x(one_entry().x.astype(bool)),
    "huge features": lambda: with_x(alternate(1e30)),
    "largest features": lambda: with_x(alternate(3e38)),
    "large features": lambda: with_x(alternate(1e14)),
    "tiny features": lambda: with_x(alternate(1e-30)),
    "denormal features": lambda: with_x(alternate(1e-40)),
    "small features": lambda: with_x(alternate(1e-10)),
    "mixed scales": lambda: with_x(alternate(1e14, 1.0, 1e-30)),
    "negative features": lambda: with_x(-ordinary().x),
    "large negative features": lambda: with_x(alternate(-1e14)),
    "mixed signs": lambda: with_x(alternate(1.0, -1.0)),
    "rows that sum to zero": lambda: with_x(np.hstack([ordinary().x, -ordinary().x])),
    "whole numbers": lambda: with_x((10 * ordinary().x).astype(np.int64)),
    "truth values": lambda: with_x(ordinary().x > 0.7),
    "two nodes": two_nodes,
    "four nodes": four_nodes,
    "more classes than nodes": more_classes_than_nodes,
    "as many classes as nodes": as_many_classes_as_nodes,
    "one label per class": one_label_each,
    "one known class": one_known_class,
    "one known class, identical": lambda: replace(one_known_class(), x=ones(), edges=NO_EDGES),
    "identical new nodes": identical_new_nodes,
    "identical nodes of a class": identical_class,
    "one new class": lambda: replace(ordinary(), num_new=1),
    "NaN": lambda: with_x(np.full((NODES, 2), np.nan)),
    "infinite": lambda: with_x(np.full((NODES, 2), np.inf)),
}
LARGE: dict[str, Callable[[], Case]] = {
    "500 classes": five_hundred_classes,
    "hub": hub,
    "a million words": million_words,
}


@cache
def made(name: str) -> Case:
    return (CASES | LARGE)[name]()
