"""The fast operators against dense formulas and loops.

CSR values are float32, hence the tolerances.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodenova.graph import Graph
from nodenova.nn.sparse import SparseMatrix, features, gcn_operator, mean_operator

CPU = torch.device("cpu")


def dense(matrix: SparseMatrix) -> np.ndarray:
    return matrix.csr.to_dense().numpy()


@pytest.fixture
def graph(make_graph) -> Graph:
    return make_graph(nodes=14, features=8, edges=20)


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


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("row_normalize", [True, False])
def test_features(make_graph, sparse: bool, row_normalize: bool) -> None:
    graph = make_graph(sparse=sparse)
    x = graph.x.toarray() if sp.issparse(graph.x) else graph.x
    if row_normalize:
        x = np.array([row / row.sum() if row.sum() else row for row in x])
    built = features(graph, CPU, row_normalize)
    assert isinstance(built, SparseMatrix) == sparse
    assert np.allclose(
        dense(built) if isinstance(built, SparseMatrix) else built.numpy(), x, atol=1e-6
    )


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


@pytest.fixture
def ragged() -> SparseMatrix:
    """5 x 7 with an empty row and an empty column."""
    rng = np.random.default_rng(0)
    full = (rng.random((5, 7)) + 0.5) * (rng.random((5, 7)) < 0.6)
    full[2], full[:, 4] = 0.0, 0.0
    return SparseMatrix.of(sp.csr_array(full), CPU)


@pytest.mark.parametrize("p", [0.3, 0.7])
def test_dropout_zeroes_numbers_and_makes_the_others_larger(ragged: SparseMatrix, p: float) -> None:
    torch.manual_seed(0)
    before, after = dense(ragged), dense(ragged.dropout(p))
    kept = after != 0
    assert 0 < kept.sum() < (before != 0).sum()
    assert np.allclose(after[kept], before[kept] / (1 - p), rtol=1e-6)
    assert not after[before == 0].any()
    assert np.array_equal(dense(ragged), before)  # it is another matrix


def test_dropout_keeps_the_transpose_the_transpose(ragged: SparseMatrix) -> None:
    torch.manual_seed(0)
    for _ in range(5):
        dropped = ragged.dropout(0.5)
        assert np.array_equal(dropped.csr_t.to_dense().numpy(), dense(dropped).T)


def test_dropout_of_a_product_has_the_gradient_of_what_it_let_through(ragged: SparseMatrix) -> None:
    torch.manual_seed(0)
    dropped = ragged.dropout(0.5)
    right, upstream = torch.randn(7, 3, requires_grad=True), torch.randn(5, 3)
    out = dropped @ right
    twin = torch.from_numpy(dense(dropped)) @ right
    assert torch.allclose(out, twin, atol=1e-6)
    ours, theirs = (torch.autograd.grad(each, right, upstream)[0] for each in (out, twin))
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_dropout_is_right_on_average_and_another_one_each_time(ragged: SparseMatrix) -> None:
    torch.manual_seed(0)
    draws = [dense(ragged.dropout(0.4)) for _ in range(4000)]
    assert not np.array_equal(draws[0], draws[1])
    # A number of size v has a standard error of v sqrt(0.4 / 0.6 / 4000) = 0.013 v.
    assert np.allclose(np.mean(draws, axis=0), dense(ragged), rtol=0.065)
    assert np.array_equal(dense(ragged.dropout(0.0)), dense(ragged))
