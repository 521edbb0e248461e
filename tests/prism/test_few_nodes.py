"""A few nodes by their neighborhood alone: what the pass over all nodes says of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.encoders.prism.local_inference import few_rows, reach_of
from nodenova.errors import GraphError
from nodenova.nn.sparse import gcn_operator

CPU = torch.device("cpu")


def long_path(weighted: bool = False, nodes: int = 60) -> nova.Graph:
    """A path, on which eight steps are far from everything."""
    rng = np.random.default_rng(3)
    ends = np.stack([np.arange(nodes - 1), np.arange(1, nodes)])
    weight = rng.random(nodes - 1) + 0.1 if weighted else None
    x = (rng.random((nodes, 40)) < 0.2).astype(np.float32)
    return nova.Graph.of(x, ends, edge_weight=weight, dense=False)


@pytest.mark.parametrize("kind", ["sparse", "dense", "path", "weighted path"])
def test_z_of_a_few_nodes_is_that_of_the_pass_over_all(
    kind: str, make_graph: Callable[..., nova.Graph]
) -> None:
    if "path" in kind:
        graph = long_path("weighted" in kind)
    else:
        graph = make_graph(nodes=80, features=30, sparse=kind == "sparse", edges=200)
    encoder = PrismEncoder.fit(graph, CPU)
    ids = np.array([graph.num_nodes - 1, 1, 30, 5])  # the last one of some stands alone
    z, few = encoder(graph)[torch.from_numpy(ids)], few_rows(encoder, graph, ids)
    torch.testing.assert_close(few, z, rtol=1e-4, atol=1e-5)
    assert few_rows(encoder, graph, ids[:0]).shape == (0, encoder.spec.hidden)


def test_views_of_models_saved_before_there_were_averages_are_read_too() -> None:
    graph = long_path()
    encoder = PrismEncoder.fit(graph, CPU)
    before = PrismEncoder(
        type(encoder.spec)("prism", graph.num_features, encoder.spec.view_size, 6)
    )
    state = {k: v for k, v in encoder.state_dict().items() if not k.startswith("count")}
    before.load_state_dict({**state, "shift": state["shift"][:6]})
    ids = np.array([3, 50])
    torch.testing.assert_close(
        few_rows(before, graph, ids), before(graph)[torch.from_numpy(ids)], rtol=1e-4, atol=1e-5
    )


def test_counts_that_hardly_differ_are_those_of_the_pass_over_all() -> None:
    # On a dense graph averages over eight steps are nearly the same for all nodes.
    graph = nova.synthetic(nodes=3_000, classes=2, words=40, degree=60).graph
    encoder = PrismEncoder.fit(graph, CPU)
    ids = np.arange(0, 3_000, 100)
    z, few = encoder(graph)[torch.from_numpy(ids)], few_rows(encoder, graph, ids)
    place = slice(6 * encoder.spec.view_size, 7 * encoder.spec.view_size)
    torch.testing.assert_close(few[:, place], z[:, place], rtol=0, atol=1e-5)


def test_only_nodes_within_reach_are_looked_at() -> None:
    path = long_path()
    reach = reach_of(path, np.array([30]), 8, CPU)
    assert reach.nodes is not None
    assert reach.nodes.tolist() == list(range(22, 39))
    whole = gcn_operator(path, CPU)
    column = torch.eye(60)[:, [30]]
    near = torch.eye(len(reach.nodes))[:, [8]]
    for _ in range(8):
        column, near = whole @ column, reach.smooth @ near
    torch.testing.assert_close(near, column[torch.from_numpy(reach.nodes)])


@pytest.mark.parametrize("encoder", ["prism", "gcn", "gat", "sage"])
def test_a_model_says_the_same_of_some_nodes_as_of_all(
    labelled: nova.LabelledGraph,
    tasks: tuple[nova.OldTask, nova.NewTask, nova.Exam],
    encoder: str,
) -> None:
    settings = {} if encoder == "prism" else {"hidden": 8, "epochs": 3}
    model, graph = nova.fit(tasks[0], encoder, **settings), labelled.graph
    asked = [117, 3, 3, 40]
    p = model.predict_proba(graph)
    np.testing.assert_allclose(model.predict_proba(graph, only=asked), p[asked], atol=1e-5)
    assert (model.predict(graph, only=map(str, asked)) == model.predict(graph)[asked]).all()
    half = float(np.median(p.max(axis=1)[asked]))
    unsure = model.predict(graph, half, only=asked) == -1
    assert unsure.tolist() == (p.max(axis=1)[asked] < half).tolist()
    many = np.arange(120).repeat(2)  # more than few: one pass over all
    np.testing.assert_array_equal(model.predict(graph, only=many), model.predict(graph)[many])


def test_a_node_that_the_graph_lacks_is_named(labelled: nova.LabelledGraph) -> None:
    with pytest.raises(GraphError, match="no node 'x', nor 1 more"):
        labelled.graph.numbers_of([1, "x", "y"])
