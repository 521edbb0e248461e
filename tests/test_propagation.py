"""The fast operators against dense formulas and loops. CSR values are float32, hence the tolerances."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodenova.graph import Graph
from nodenova.propagation import Neighbourhoods, SparseMatrix, features, gcn_operator, mean_operator, neighbourhoods

CPU = torch.device("cpu")


def dense(matrix: SparseMatrix) -> np.ndarray:
    return matrix.csr.to_dense().numpy()


@pytest.fixture
def graph(make_graph) -> Graph:
    return make_graph(nodes=14, features=8, edges=20)


@pytest.fixture
def loops(graph: Graph) -> Neighbourhoods:
    return neighbourhoods(graph, CPU)


def test_gcn_operator_is_the_dense_formula(graph: Graph) -> None:
    a = graph.adjacency.toarray() + np.eye(graph.num_nodes)
    d = np.diag(1 / np.sqrt(a.sum(axis=1)))
    operator = gcn_operator(graph, CPU)
    assert np.allclose(dense(operator), d @ a @ d, atol=1e-6)
    assert np.allclose(operator.csr_t.to_dense().numpy(), (d @ a @ d).T, atol=1e-6)
    assert dense(operator)[-1, -1] == 1  # the isolated node keeps itself


def test_mean_operator_is_the_dense_formula(graph: Graph) -> None:
    a = graph.adjacency.toarray()
    expected = np.array([row / row.sum() if row.sum() else row for row in a])
    operator = mean_operator(graph, CPU)
    assert np.allclose(dense(operator), expected, atol=1e-6)
    assert np.allclose(operator.csr_t.to_dense().numpy(), expected.T, atol=1e-6)
    assert not dense(operator)[-1].any()


def test_operators_of_a_graph_without_edges() -> None:
    graph = Graph.of(np.ones((3, 2)), np.empty((2, 0)))
    assert (dense(gcn_operator(graph, CPU)) == np.eye(3)).all()
    assert not dense(mean_operator(graph, CPU)).any()
    assert neighbourhoods(graph, CPU).source.tolist() == [0, 1, 2]


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("row_normalise", [True, False])
def test_features(make_graph, sparse: bool, row_normalise: bool) -> None:
    graph = make_graph(sparse=sparse)
    x = graph.x.toarray() if sp.issparse(graph.x) else graph.x
    if row_normalise:
        x = np.array([row / row.sum() if row.sum() else row for row in x])
    built = features(graph, CPU, row_normalise)
    assert isinstance(built, SparseMatrix) == sparse
    assert np.allclose(dense(built) if isinstance(built, SparseMatrix) else built.numpy(), x, atol=1e-6)


def test_row_normalising_does_not_change_the_graph(make_graph) -> None:
    graph = make_graph()
    before = graph.x.toarray()
    features(graph, CPU, True)
    assert (graph.x.toarray() == before).all()


def test_an_operator_is_built_once_a_graph(graph: Graph) -> None:
    assert gcn_operator(graph, CPU) is gcn_operator(graph, CPU)
    assert features(graph, CPU, True) is not features(graph, CPU, False)


def test_product_value_and_gradient_are_the_dense_ones() -> None:
    rng = np.random.default_rng(0)
    matrix = sp.csr_array(rng.random((5, 7)) * (rng.random((5, 7)) < 0.4))
    right = torch.randn(7, 3, requires_grad=True)
    upstream = torch.randn(5, 3)
    out = SparseMatrix.of(matrix, CPU) @ right
    full = torch.from_numpy(matrix.toarray().astype(np.float32))
    assert torch.allclose(out, full @ right, atol=1e-6)
    (gradient,) = torch.autograd.grad(out, right, upstream)
    assert torch.allclose(gradient, full.t() @ upstream, atol=1e-6)


def test_product_gradient_of_a_transposed_upstream() -> None:
    """A gradient that arrives as a view must be read right."""
    matrix = sp.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))
    right = torch.randn(2, 2, requires_grad=True)
    upstream = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    out = SparseMatrix.of(matrix, CPU) @ right
    (gradient,) = torch.autograd.grad(out.t(), right, upstream)
    assert torch.allclose(gradient, torch.tensor([[1.0, 0.0], [2.0, 3.0]]) @ upstream.t())


def test_neighbourhoods_are_the_edges_and_one_self_loop_a_node(graph: Graph, loops: Neighbourhoods) -> None:
    expected = {(int(a), int(b)) for a, b in graph.edge_index.T} | {(i, i) for i in range(graph.num_nodes)}
    pairs = list(zip(loops.source.tolist(), loops.target.tolist(), strict=True))
    assert set(pairs) == expected
    assert len(pairs) == len(expected)
    assert loops.target.tolist() == sorted(loops.target.tolist())
    for i in range(graph.num_nodes):
        assert (loops.target[loops.start[i] : loops.start[i + 1]] == i).all()
    for e, (a, b) in enumerate(pairs):
        assert pairs[int(loops.turned[e])] == (b, a)


def naive_softmax(loops: Neighbourhoods, score: torch.Tensor) -> torch.Tensor:
    rows = []
    for e, t in enumerate(loops.target.tolist()):
        total = sum(score[f].exp() for f, other in enumerate(loops.target.tolist()) if other == t)
        rows.append(score[e].exp() / total)
    return torch.stack(rows)


def naive_weighted_sum(loops: Neighbourhoods, weight: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    rows = [torch.zeros_like(h[0]) for _ in h]
    for e, (s, t) in enumerate(zip(loops.source.tolist(), loops.target.tolist(), strict=True)):
        rows[t] = rows[t] + weight[e][:, None] * h[s]
    return torch.stack(rows)


def test_softmax_value_and_gradient_are_the_loops(loops: Neighbourhoods) -> None:
    score = torch.randn(len(loops.source), 2, dtype=torch.float64, requires_grad=True)
    ours, twin = loops.softmax(score), naive_softmax(loops, score)
    assert torch.allclose(ours, twin)
    upstream = torch.randn_like(ours)
    assert torch.allclose(torch.autograd.grad(ours, score, upstream)[0], torch.autograd.grad(twin, score, upstream)[0])
    assert torch.autograd.gradcheck(loops.softmax, score)


def test_softmax_does_not_overflow(loops: Neighbourhoods) -> None:
    score = torch.full((len(loops.source), 1), 1e4)
    sums = torch.zeros(len(loops.start) - 1, 1).index_add(0, loops.target, loops.softmax(score))
    assert torch.allclose(sums, torch.ones_like(sums))


def test_weighted_sum_value_and_gradient_are_the_loops(graph: Graph, loops: Neighbourhoods) -> None:
    weight = torch.randn(len(loops.source), 2, dtype=torch.float64, requires_grad=True)
    h = torch.randn(graph.num_nodes, 2, 3, dtype=torch.float64, requires_grad=True)
    ours, twin = loops.weighted_sum(weight, h), naive_weighted_sum(loops, weight, h)
    assert torch.allclose(ours, twin)
    upstream = torch.randn_like(ours)
    for one, other in zip(
        torch.autograd.grad(ours, (weight, h), upstream), torch.autograd.grad(twin, (weight, h), upstream), strict=True
    ):
        assert torch.allclose(one, other)
    assert torch.autograd.gradcheck(loops.weighted_sum, (weight, h))
