"""Small graphs and models that many tests share.

All are frozen values, so one of each serves the whole session.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
import torch

with warnings.catch_warnings():
    # PyTorch Geometric uses deprecated parts of PyTorch when it is imported. That is theirs;
    # our warnings are errors.
    warnings.simplefilter("ignore")
    import torch_geometric  # noqa: F401

import nodenova as nova
from nodenova.encoders import registry
from nodenova.model.saving import weights_digest
from nodenova.review.page_data import PageData, collect

HOSTILE = "<script>alert(1)</script>"

# These graphs are tiny: a second thread only waits for the first.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def no_own_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test knows the encoders of one's own that it was given, and no other test's."""
    monkeypatch.setattr(registry, "_OWN", {})


@pytest.fixture(scope="session")
def labelled() -> nova.LabelledGraph:
    """120 nodes, 4 classes, sparse features, no published split."""
    return nova.synthetic(nodes=120, classes=4, words=60, words_per_node=8)


@pytest.fixture(scope="session")
def tasks(labelled: nova.LabelledGraph) -> tuple[nova.OldTask, nova.NewTask, nova.Exam]:
    """Classes 0 and 1 are old, 2 and 3 are to be discovered."""
    return nova.split(labelled, [0, 1])


@pytest.fixture(scope="session")
def fitted(tasks: tuple[nova.OldTask, nova.NewTask, nova.Exam]) -> nova.Model:
    return nova.fit(tasks[0], "gcn", hidden=16, epochs=20)


@pytest.fixture(scope="session")
def discovered(
    fitted: nova.Model, tasks: tuple[nova.OldTask, nova.NewTask, nova.Exam]
) -> nova.Model:
    return nova.discover(fitted, tasks[1], nova.Sword(epochs=8))


@pytest.fixture(scope="session")
def make_graph() -> Callable[..., nova.Graph]:
    """Random graphs by size, density of the features and seed.

    The last node is isolated, one row of x is zero.
    """

    def make(
        nodes: int = 30, features: int = 12, sparse: bool = True, seed: int = 0, edges: int = 60
    ) -> nova.Graph:
        rng = np.random.default_rng(seed)
        x = rng.random((nodes, features)).astype(np.float32) + 0.1
        x[rng.random(x.shape) > (0.15 if sparse else 0.8)] = 0.0
        x[1] = 0.0
        graph = nova.Graph.of(x, rng.integers(nodes - 1, size=(2, edges)))
        assert sp.issparse(graph.x) == sparse
        return graph

    return make


@pytest.fixture(scope="session")
def tiny() -> nova.LabelledGraph:
    """Ten nodes, three classes (one node unknown) and a published split: to check by hand."""
    graph = nova.Graph.of(np.eye(10, 4) + 1, [[0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 8]])
    y = np.array([2, 0, 1, 2, 0, 1, 2, 0, 1, -1])
    ids = np.arange(10)
    return nova.LabelledGraph(
        graph,
        y,
        ("a", "b", "c"),
        train=np.isin(ids, [0, 1, 2, 9]),
        val=np.isin(ids, [3, 4]),
        test=ids > 4,
        name="tiny",
    )


class Case(NamedTuple):
    model: nova.Model  # classes 0, 1 learnt from labels, 2 and 3 discovered
    graph: nova.Graph
    y: np.ndarray  # the true classes
    later: nova.NewTask  # one more class, 4
    method: object


@pytest.fixture(scope="session")
def cases() -> dict[str, Case]:
    labelled = nova.synthetic(nodes=300, classes=5, words=100, words_per_node=10)
    old, (new, later), _ = nova.split_stages(labelled, [0, 1], [[2, 3], [4]])
    made = {}
    for encoder, method in (("prism", nova.Prism()), ("gcn", nova.FrozenKMeans())):
        settings = {} if encoder == "prism" else {"hidden": 16, "epochs": 60}
        model = nova.discover(nova.fit(old, encoder, **settings), new, method)
        made[encoder] = Case(model, labelled.graph, labelled.y, later, method)
    return made


@pytest.fixture(params=["prism", "gcn"])
def case(request: pytest.FixtureRequest, cases: dict[str, Case]) -> Case:
    return cases[request.param]


@pytest.fixture(scope="session")
def hostile() -> tuple[nova.Model, nova.LabelledGraph]:
    """A model that found two classes, and the graph: names everywhere try to be markup."""
    plain = nova.synthetic(
        nodes=240, classes=5, words=80, words_per_node=8, homophily=0.45, topic_share=0.25
    )
    ids = np.array(
        [HOSTILE, "</script><img src=x onerror=alert(2)>", *(f"node & {i}" for i in range(2, 240))]
    )
    words = tuple(f"<b>word {i}</b>" for i in range(80))
    names = ("<i>one</i>", "two & 'more' \"quoted\"", "three", "four", "five")
    labelled = replace(
        plain, class_names=names, graph=replace(plain.graph, node_ids=ids, feature_names=words)
    )
    old, new, _ = nova.split(labelled, [0, 1])
    return nova.discover(nova.fit(old, "prism"), new, nova.Prism()), labelled


@pytest.fixture(scope="session")
def story(hostile: tuple[nova.Model, nova.LabelledGraph]) -> PageData:
    model, labelled = hostile
    return collect(
        model,
        labelled.graph,
        title=f"A {HOSTILE}",
        model_hash=weights_digest(model),
        answers=(labelled.y, labelled.class_names),
        facts={"Data": "</dl><script>alert(3)</script>"},
        versions={"numpy": "<u>1</u>"},
    )
