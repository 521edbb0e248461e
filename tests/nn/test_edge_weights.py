"""Weights of edges in smoothing: the formula, no scale, and nothing where there are none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.encoders.gnn import GNN, GNNSpec
from nodenova.encoders.prism.degree import averaged_counts
from nodenova.graph import Graph
from nodenova.nn.sparse import degree, gcn_operator, loop_weight, mean_operator

CPU = torch.device("cpu")


def weighted(scale: float = 1.0, seed: int = 0) -> Graph:
    """50 nodes, 120 edges of many weights, the last node alone."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, 49, (2, 120))
    return Graph.of(rng.random((50, 6)), edges, edge_weight=scale * rng.gamma(1.0, 1.0, 120))


def dense_links(graph: Graph) -> np.ndarray:
    a = np.zeros((graph.num_nodes,) * 2)
    assert graph.edge_weight is not None
    a[tuple(graph.edge_index)] = graph.edge_weight
    return a


def dense(matrix: object) -> np.ndarray:
    return (matrix @ torch.eye(50)).numpy()  # type: ignore[operator]


def test_the_smoothing_is_the_dense_formula() -> None:
    graph = weighted()
    a = dense_links(graph)
    assert (a == a.T).all()
    neighbors = (a > 0).sum(axis=1)
    loops = np.where(neighbors > 0, a.sum(axis=1) / np.maximum(neighbors, 1), 1.0)
    a = a + np.diag(loops)
    root = a.sum(axis=1) ** -0.5
    assert np.allclose(dense(gcn_operator(graph, CPU)), root[:, None] * a * root, atol=1e-6)
    assert np.allclose(loop_weight(graph), loops)
    assert np.allclose(degree(graph), a.sum(axis=1))


def test_a_node_keeps_the_share_of_itself_that_it_has_without_weights() -> None:
    graph = weighted()
    plain = Graph(graph.x, graph.edge_index, graph.node_ids)
    own, before = (np.diag(dense(gcn_operator(g, CPU))) for g in (graph, plain))
    assert np.allclose(own, before, atol=1e-6)


def test_weights_ten_times_as_large_change_nothing() -> None:
    one, ten = weighted(), weighted(scale=10.0)
    for operator in (gcn_operator, mean_operator):
        assert np.allclose(dense(operator(one, CPU)), dense(operator(ten, CPU)), atol=1e-6)
    assert torch.allclose(averaged_counts(one, CPU), averaged_counts(ten, CPU), atol=1e-5)


def test_a_heavy_neighbor_is_heard_more() -> None:
    graph = Graph.of([[1.0], [0.0], [0.0]], [[0, 0], [1, 2]], edge_weight=[3.0, 1.0])
    row = (gcn_operator(graph, CPU) @ torch.eye(3))[0]
    # degrees 6 (4 and the mean, 2), 6 and 2: 3 / 6 and 1 / sqrt(12)
    assert row.tolist() == pytest.approx([2 / 6, 3 / 6, 12**-0.5])
    mean = (mean_operator(graph, CPU) @ torch.eye(3))[0]
    assert mean.tolist() == pytest.approx([0, 0.75, 0.25])


def test_equal_weights_are_no_weights_but_for_rounding() -> None:
    graph = weighted()
    plain = Graph(graph.x, graph.edge_index, graph.node_ids)
    alike = Graph(
        *(graph.x, graph.edge_index, graph.node_ids, None, np.full(graph.num_edges, 7, np.float32))
    )
    for operator in (gcn_operator, mean_operator):
        assert np.allclose(dense(operator(plain, CPU)), dense(operator(alike, CPU)), atol=1e-6)
    assert torch.allclose(averaged_counts(plain, CPU), averaged_counts(alike, CPU), atol=1e-5)


def test_walks_of_counts_stay_averages() -> None:
    """P^k of a count that all nodes share is that count, whatever edges weigh."""
    ring = np.array([np.arange(30), (np.arange(30) + 1) % 30])
    rng = np.random.default_rng(0)
    graph = Graph.of(np.ones((30, 2)), ring, edge_weight=rng.gamma(1.0, 1.0, 30) + 0.1)
    number = averaged_counts(graph, CPU)
    assert torch.allclose(number[:, 0::2], torch.full((30, 4), float(np.log(3))), atol=1e-5)


@pytest.mark.parametrize("name", ["gcn", "sage"])
def test_z_of_some_nodes_needs_only_the_graph_around_them(name: str) -> None:
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 200, (2, 200))
    graph = Graph.of(rng.random((200, 6)), edges, edge_weight=rng.gamma(1.0, 1.0, 200))
    torch.manual_seed(0)
    encoder = GNN(GNNSpec(name, 6, hidden=8)).eval()
    ids = np.array([3, 50, 120])
    field, where = graph.k_hop_subgraph(ids, 3)
    assert field.num_nodes < graph.num_nodes
    with torch.no_grad():
        assert torch.allclose(encoder(field)[where], encoder(graph)[ids], atol=1e-6)


def test_sage_hears_weights_and_gat_does_not() -> None:
    graph = weighted()
    plain = Graph(graph.x, graph.edge_index, graph.node_ids)
    for name, hears in (("gcn", True), ("sage", True), ("gat", False)):
        torch.manual_seed(0)
        encoder = GNN(GNNSpec(name, 6, hidden=8)).eval()
        with torch.no_grad():
            assert torch.equal(encoder(graph), encoder(plain)) is not hears


def noisy(seed: int) -> tuple[nova.LabelledGraph, np.ndarray]:
    """Six classes; most edges lead anywhere, those within a class weigh three times as much."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 6, 500)
    groups = [np.flatnonzero(y == c) for c in range(6)]
    a = rng.integers(0, 500, 2500)
    within = rng.random(2500) < 0.35
    b = np.where(within, [rng.choice(groups[c]) for c in y[a]], rng.integers(0, 500, 2500))
    words = np.where(rng.random((500, 6)) < 0.35, 30 * y[:, None], 0)
    x = np.zeros((500, 180), dtype=np.float32)
    np.put_along_axis(x, (words + rng.integers(0, 30, (500, 6))) % 180, 1.0, axis=1)
    spread = rng.random((500, 180)) < 0.02
    weight = np.where(y[a] == y[b], rng.gamma(3.0, 1.0, 2500), rng.gamma(1.0, 1.0, 2500)) + 0.01
    graph = Graph.of(x + spread, np.stack([a, b]), edge_weight=weight)
    return nova.LabelledGraph(graph, y, tuple("abcdef")), weight


def test_weights_that_say_something_help_to_discover() -> None:
    labelled, _ = noisy(0)
    graph = labelled.graph
    plain = Graph(graph.x, graph.edge_index, graph.node_ids)
    scores = []
    for one in (plain, graph):
        old, new, exam = nova.split(nova.LabelledGraph(one, labelled.y, tuple("abcdef")), [0, 1, 2])
        model = nova.discover(nova.fit(old), new, nova.Prism(n_resamples=0))
        scores.append(nova.grade(model, exam).scores("block")["all"])
    assert scores[1] > scores[0] + 10
