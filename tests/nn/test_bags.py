"""Products by embedding bags are those of the matrix, whatever the columns and threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import nodenova as nova
from nodenova.io.graph_folder.prepare import convert
from nodenova.nn import seeding, sparse
from nodenova.nn.seeding import fixed_threads
from nodenova.nn.sparse import BagMatrix, gcn_operator, smooth_operator

CPU = torch.device("cpu")


@pytest.fixture
def matrix() -> sp.csr_array:
    """Rows of all lengths, one of them empty."""
    made = sp.random_array((40, 300), density=0.2, format="lil", dtype=np.float32, rng=0)
    made[7] = 0
    return sp.csr_array(made)


@pytest.fixture
def columns() -> torch.Tensor:
    return torch.randn(300, 50, generator=torch.Generator().manual_seed(0))


def test_a_product_is_the_naive_sum(matrix: sp.csr_array, columns: torch.Tensor) -> None:
    naive = matrix.toarray().astype(np.float64) @ columns.double().numpy()
    bags = BagMatrix.of(matrix, CPU)
    assert np.allclose((bags @ columns).numpy(), naive, atol=1e-5)
    back = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
    naive = matrix.toarray().T.astype(np.float64) @ back.double().numpy()
    assert np.allclose((bags.transpose() @ back).numpy(), naive, atol=1e-5)
    assert isinstance(bags.transpose().transpose(), BagMatrix)


@pytest.mark.parametrize("at_once", [1, 2, 7, 8, 16, 48])
def test_a_column_does_not_depend_on_the_others(
    matrix: sp.csr_array, columns: torch.Tensor, at_once: int
) -> None:
    bags = BagMatrix.of(matrix, CPU)
    parts = [bags @ part for part in columns.split(at_once, dim=1)]  # type: ignore[no-untyped-call]
    assert torch.equal(torch.cat(parts, dim=1), bags @ columns)


@pytest.mark.parametrize("threads", [2, 3])
def test_a_product_does_not_depend_on_the_number_of_threads(
    matrix: sp.csr_array, columns: torch.Tensor, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeding, "MIN_DIVIDED", 0)
    bags = BagMatrix.of(matrix, CPU)
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


def test_nothing_is_derived(matrix: sp.csr_array, columns: torch.Tensor) -> None:
    assert not (BagMatrix.of(matrix, CPU) @ columns.requires_grad_()).requires_grad
