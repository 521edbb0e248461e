"""Sparse products: values, gradients, blocks and embedding bags."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import nodenova as nova
from nodenova.graph import Graph
from nodenova.io.graph_folder.prepare import convert
from nodenova.nn import seeding, sparse
from nodenova.nn.seeding import fixed_threads
from nodenova.nn.sparse import (
    BagMatrix,
    BlockMatrix,
    SparseMatrix,
    features,
    gcn_operator,
    mean_operator,
    num_transposed,
    smooth_operator,
)

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


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_rows_whose_sum_is_next_to_nothing_are_zero(store) -> None:
    graph = Graph.of(store(np.array([[2.0, 2.0], [1e-40, 0.0], [0.0, 0.0]])), [[0], [1]])
    x = sparse.features(graph, torch.device("cpu"), row_normalize=True)
    x = dense(x) if isinstance(x, SparseMatrix) else x.numpy()
    assert x.tolist() == [[0.5, 0.5], [0.0, 0.0], [0.0, 0.0]]


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


def numpy_empty(size: int, dtype: type[np.generic]) -> np.ndarray:
    return np.full(size, 99, dtype=dtype)  # nothing may be left as it comes


@pytest.fixture
def matrix() -> sp.csr_array:
    return sp.random_array((30, 23), density=0.3, format="csr", dtype=np.float32, rng=0)


@pytest.mark.parametrize("width", [1, 7, 30, 1000])
def test_blocks_of_a_transpose_are_the_transpose(
    matrix: sp.csr_array, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse, "BLOCK_COLUMNS", width)
    monkeypatch.setattr(sparse, "MIN_ENTRIES", 0)
    split = BlockMatrix.of_transpose(matrix, CPU, numpy_empty)
    assert len(split.blocks) == -(-30 // min(width, 30))
    assert split.nnz == matrix.nnz == sum(block.values().shape[0] for block in split.blocks)
    assert np.array_equal((split @ torch.eye(30)).numpy(), matrix.toarray().T)
    for (_, columns), block in zip(split.places, split.blocks, strict=True):
        assert np.array_equal(block.to_dense().numpy(), matrix.toarray()[columns].T)


def test_a_transpose_is_divided_only_where_its_columns_are_many_and_its_rows_are_long(
    matrix: sp.csr_array, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert num_transposed(matrix) == 1
    monkeypatch.setattr(sparse, "MIN_ENTRIES", 1)
    monkeypatch.setattr(sparse, "BLOCK_COLUMNS", 6)
    assert num_transposed(matrix) == 5
    monkeypatch.setattr(sparse, "BLOCK_COLUMNS", 1)
    assert num_transposed(matrix) == matrix.nnz // 23
    assert num_transposed(sp.csr_array((5, 9))) == 1


def test_products_with_gradients_go_by_blocks_as_well(
    tmp_path: Path, labelled: nova.LabelledGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = gcn_operator(labelled.graph, CPU)
    convert(labelled, tmp_path / "graph")
    monkeypatch.setattr(sparse, "BLOCK_ENTRIES", 50)
    split = gcn_operator(nova.load_graph(tmp_path / "graph").graph, CPU)
    assert isinstance(split.csr, BlockMatrix)
    dense = torch.rand(120, 4, requires_grad=True)
    other = dense.detach().clone().requires_grad_()
    (split @ dense).square().sum().backward()
    (whole @ other).square().sum().backward()
    assert torch.allclose(split @ dense, whole @ other, atol=1e-6)
    assert dense.grad is not None
    assert other.grad is not None
    assert torch.allclose(dense.grad, other.grad, atol=1e-5)


def test_the_transpose_is_made_when_it_is_asked_for(matrix: sp.csr_array) -> None:
    words = SparseMatrix.of(matrix, CPU)
    assert "csr_t" not in vars(words)
    assert np.array_equal(words.transpose().csr.to_dense().numpy(), matrix.toarray().T)  # type: ignore[union-attr]
    assert words.transpose().csr_t is words.csr


def test_classes_do_not_depend_on_the_blocks(
    labelled: nova.LabelledGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    monkeypatch.setattr(sparse, "MIN_ENTRIES", 1)
    for width in (sparse.BLOCK_COLUMNS, 25):
        monkeypatch.setattr(sparse, "BLOCK_COLUMNS", width)
        graph = replace(labelled.graph)
        given = nova.LabelledGraph(graph, labelled.y, labelled.class_names)
        old, new, exam = nova.split(given, [0, 1])
        found.append(nova.discover(nova.fit(old), new).predict_proba(exam.graph))
    assert np.allclose(*found, atol=1e-3)


@pytest.fixture
def random_matrix() -> sp.csr_array:
    """Rows of all lengths, one of them empty."""
    made = sp.random_array((40, 300), density=0.2, format="lil", dtype=np.float32, rng=0)
    made[7] = 0
    return sp.csr_array(made)


@pytest.fixture
def columns() -> torch.Tensor:
    return torch.randn(300, 50, generator=torch.Generator().manual_seed(0))


def test_a_product_is_the_naive_sum(random_matrix: sp.csr_array, columns: torch.Tensor) -> None:
    naive = random_matrix.toarray().astype(np.float64) @ columns.double().numpy()
    bags = BagMatrix.of(random_matrix, CPU)
    assert np.allclose((bags @ columns).numpy(), naive, atol=1e-5)
    back = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
    naive = random_matrix.toarray().T.astype(np.float64) @ back.double().numpy()
    assert np.allclose((bags.transpose() @ back).numpy(), naive, atol=1e-5)
    assert isinstance(bags.transpose().transpose(), BagMatrix)


@pytest.mark.parametrize("at_once", [1, 2, 7, 8, 16, 48])
def test_a_column_does_not_depend_on_the_others(
    random_matrix: sp.csr_array, columns: torch.Tensor, at_once: int
) -> None:
    bags = BagMatrix.of(random_matrix, CPU)
    parts = [bags @ part for part in columns.split(at_once, dim=1)]  # type: ignore[no-untyped-call]
    assert torch.equal(torch.cat(parts, dim=1), bags @ columns)


@pytest.mark.parametrize("threads", [2, 3])
def test_a_product_does_not_depend_on_the_number_of_threads(
    random_matrix: sp.csr_array,
    columns: torch.Tensor,
    threads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeding, "MIN_DIVIDED", 0)
    bags = BagMatrix.of(random_matrix, CPU)
    with fixed_threads(1):
        one = bags @ columns
    with fixed_threads(threads):
        assert torch.equal(bags @ columns, one)


def test_a_graph_is_smoothed_alike_with_and_without_a_gradient(
    tmp_path: Path, labelled: nova.LabelledGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = torch.rand(120, 5, generator=torch.Generator().manual_seed(0))
    smooth = smooth_operator(labelled.graph, CPU)
    assert torch.allclose(smooth @ column, gcn_operator(labelled.graph, CPU) @ column, atol=1e-6)
    assert smooth.csr is gcn_operator(labelled.graph, CPU).csr  # the arrays are there once
    assert smooth_operator(labelled.graph, CPU) is smooth
    convert(labelled, tmp_path / "graph")
    monkeypatch.setattr(sparse, "BLOCK_ENTRIES", 50)
    mapped = smooth_operator(nova.load_graph(tmp_path / "graph").graph, CPU)
    assert isinstance(mapped.csr, sparse.BlockMatrix)
    assert torch.equal(mapped @ column, smooth @ column)


def test_nothing_is_derived(random_matrix: sp.csr_array, columns: torch.Tensor) -> None:
    assert not (BagMatrix.of(random_matrix, CPU) @ columns.requires_grad_()).requires_grad
