"""Small graphs and models that many tests share. All are frozen values, so one of each serves the whole session."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
import torch

with warnings.catch_warnings():
    # PyTorch Geometric uses deprecated parts of PyTorch when it is imported. That is theirs; our warnings are errors.
    warnings.simplefilter("ignore")
    import torch_geometric  # noqa: F401

import nodenova as nova

# These graphs are tiny: a second thread only waits for the first.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def labelled() -> nova.Labelled:
    """120 nodes, 4 classes, sparse features, no published split."""
    return nova.synthetic(nodes=120, classes=4, words=60, words_per_node=8)


@pytest.fixture(scope="session")
def tasks(labelled: nova.Labelled) -> tuple[nova.OldTask, nova.NewTask, nova.Exam]:
    """Classes 0 and 1 are old, 2 and 3 are to be discovered."""
    return nova.split(labelled, [0, 1])


@pytest.fixture(scope="session")
def fitted(tasks: tuple[nova.OldTask, nova.NewTask, nova.Exam]) -> nova.Model:
    return nova.fit(tasks[0], "gcn", hidden=16, epochs=20)


@pytest.fixture(scope="session")
def discovered(fitted: nova.Model, tasks: tuple[nova.OldTask, nova.NewTask, nova.Exam]) -> nova.Model:
    return nova.discover(fitted, tasks[1], nova.Sword(epochs=8))


@pytest.fixture(scope="session")
def make_graph() -> Callable[..., nova.Graph]:
    """Random graphs by size, density of the features and seed. The last node is isolated, one row of x is zero."""

    def make(nodes: int = 30, features: int = 12, sparse: bool = True, seed: int = 0, edges: int = 60) -> nova.Graph:
        rng = np.random.default_rng(seed)
        x = rng.random((nodes, features)).astype(np.float32) + 0.1
        x[rng.random(x.shape) > (0.15 if sparse else 0.8)] = 0.0
        x[1] = 0.0
        graph = nova.Graph.of(x, rng.integers(nodes - 1, size=(2, edges)))
        assert sp.issparse(graph.x) == sparse
        return graph

    return make


@pytest.fixture(scope="session")
def tiny() -> nova.Labelled:
    """Ten nodes, three classes (one node unknown) and a published split, small enough to check by hand."""
    graph = nova.Graph.of(np.eye(10, 4) + 1, [[0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 8]])
    y = np.array([2, 0, 1, 2, 0, 1, 2, 0, 1, -1])
    ids = np.arange(10)
    return nova.Labelled(
        graph, y, ("a", "b", "c"), train=np.isin(ids, [0, 1, 2, 9]), val=np.isin(ids, [3, 4]), test=ids > 4, name="tiny"
    )
