"""Matrices in blocks: the products are those of the whole matrix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import nodenova as nova
from nodenova.io.graph_folder.prepare import convert
from nodenova.nn import sparse
from nodenova.nn.sparse import BlockMatrix, SparseMatrix, gcn_operator, num_transposed

CPU = torch.device("cpu")


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
