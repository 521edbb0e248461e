"""Decompositions: the ordinary way bit for bit, the fallback, and the sentence after it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from nodenova.errors import NumericsError
from nodenova.nn import numerics
from nodenova.nn.numerics import (
    all_finite,
    check_finite,
    cholesky,
    eigh,
    krylov,
    largest_eigh,
    solve,
)
from nodenova.progress import DISCOVER, FIT, no_progress, reporting_to


def spd(size: int = 6, dtype: torch.dtype = torch.float64) -> Tensor:
    rows = torch.randn(20, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (rows.t() @ rows).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_ordinary_matrix_takes_the_ordinary_way(dtype: torch.dtype) -> None:
    matrix, right = spd(dtype=dtype), torch.ones(6, 2, dtype=dtype)
    assert all(map(torch.equal, eigh(matrix, "m"), torch.linalg.eigh(matrix)))
    assert torch.equal(cholesky(matrix, "m"), torch.linalg.cholesky(matrix))
    assert torch.equal(solve(matrix, right, "m"), torch.linalg.solve(matrix, right))


def fail(*args: object, **options: object) -> None:
    raise torch.linalg.LinAlgError("The algorithm failed to converge")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_eigenvectors_are_found_again_where_lapack_gives_up(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = spd(dtype=dtype)
    expected, _ = torch.linalg.eigh(matrix)
    monkeypatch.setattr(torch.linalg, "eigh", fail)
    values, vectors = eigh(matrix, "m")
    assert values.dtype == vectors.dtype == dtype
    assert torch.allclose(values, expected, rtol=1e-5)
    assert torch.allclose(vectors * values @ vectors.t(), matrix, rtol=1e-4)


def test_a_result_that_is_not_finite_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = spd()
    expected = torch.linalg.eigvalsh(matrix)
    broken = (expected, torch.full_like(matrix, torch.nan))
    monkeypatch.setattr(torch.linalg, "eigh", lambda _: broken)
    values, vectors = eigh(matrix, "m")
    assert torch.allclose(values, expected)
    assert all_finite(vectors)


def test_jitter_is_added_in_fixed_steps_and_taken_off_the_eigenvalues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matrix, tried = spd(), []
    ordinary = numerics.scipy.linalg.eigh

    def third_time(array: np.ndarray, driver: str) -> tuple[np.ndarray, np.ndarray]:
        tried.append(float(np.trace(array) - matrix.trace()))
        if len(tried) < 3:
            raise np.linalg.LinAlgError
        return ordinary(array, driver=driver)

    monkeypatch.setattr(torch.linalg, "eigh", fail)
    monkeypatch.setattr(numerics.scipy.linalg, "eigh", third_time)
    values, _ = eigh(matrix, "m")
    trace = float(matrix.trace())
    assert tried == pytest.approx([0, 1e-12 * trace, 1e-9 * trace], abs=1e-12)
    assert values.sum() == pytest.approx(trace, rel=1e-12)
    monkeypatch.setattr(numerics.scipy.linalg, "eigh", fail)
    with pytest.raises(NumericsError, match="m cannot be decomposed; divide features"):
        eigh(matrix, "m")


def test_a_singular_matrix_gets_a_factor_and_a_solution() -> None:
    matrix, right = torch.ones(4, 4, dtype=torch.float64), torch.ones(4, 1, dtype=torch.float64)
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.cholesky(matrix)
    factor = cholesky(matrix, "m")
    assert torch.allclose(factor @ factor.t(), matrix, atol=1e-6)
    assert torch.allclose(matrix @ solve(matrix, right, "m"), right, atol=1e-3)
    nothing = torch.zeros(3, 3, dtype=torch.float64)
    assert all_finite(cholesky(nothing, "m"))
    assert torch.equal(solve(nothing, nothing, "m"), nothing)


def test_a_matrix_with_negative_eigenvalues_has_no_factor() -> None:
    with pytest.raises(NumericsError, match="the covariance cannot be decomposed"):
        cholesky(-spd(), "the covariance")


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_not_finite_is_named_with_its_phase(value: float) -> None:
    matrix = spd()
    matrix[1, 2] = matrix[2, 1] = value
    for decompose in (eigh, cholesky, lambda m, name: solve(m, torch.ones(6, 1).double(), name)):
        for phase, number in ((FIT, 1), (DISCOVER, 2)):
            sentence = f"^phase {number}: 2 of 36 numbers of the scatter are not finite; [^;]*$"
            with reporting_to(no_progress, phase), pytest.raises(NumericsError, match=sentence):
                decompose(matrix, "the scatter")
    right = torch.full((6, 1), value, dtype=torch.float64)
    with pytest.raises(NumericsError, match="6 of 6 numbers of the right side of m"):
        solve(spd(), right, "m")


def test_some_eigenvectors_of_a_matrix_on_which_iteration_fails() -> None:
    start = np.ones(60)
    matrix = spd(60)
    values, vectors = largest_eigh(matrix, 3, start, "m")
    assert torch.allclose(values, torch.linalg.eigvalsh(matrix)[-3:])
    assert torch.allclose(matrix @ vectors, values * vectors, atol=1e-8)
    nothing = torch.zeros(60, 60, dtype=torch.float64)  # ARPACK may find no start in it
    values, vectors = largest_eigh(nothing, 3, start, "m")
    assert torch.equal(values, torch.zeros(3, dtype=torch.float64))
    assert torch.allclose(vectors.t() @ vectors, torch.eye(3, dtype=torch.float64), atol=1e-9)
    with pytest.raises(NumericsError, match="m are not finite"):
        largest_eigh(nothing / 0, 3, start, "m")


def test_an_iteration_that_does_not_converge_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*args: object, **options: object) -> None:
        raise numerics.ArpackError(-1)

    matrix = spd(60)
    expected = torch.linalg.eigh(matrix)
    monkeypatch.setattr(numerics, "eigsh", give_up)
    values, vectors = largest_eigh(matrix, 3, np.ones(60), "m")
    assert torch.equal(values, expected[0][-3:])
    assert torch.equal(vectors, expected[1][:, -3:])


def test_finite_is_neither_nan_nor_infinity_anywhere() -> None:
    for value in (torch.nan, torch.inf, -torch.inf):
        for place in range(4):
            tensor = torch.zeros(2, 2)
            tensor.view(-1)[place] = value
            assert not all_finite(tensor)
    largest = torch.tensor([torch.finfo(torch.float32).max])
    both = torch.tensor([torch.inf, -torch.inf])
    assert not all_finite(both)
    for fine in (largest.repeat(3), -largest, torch.zeros(0), torch.ones(2, dtype=torch.long)):
        assert all_finite(fine)
        assert check_finite(fine, "it") is fine


def test_krylov_is_exact_for_a_low_rank_and_gives_up_where_eigenvalues_are_alike() -> None:
    torch.manual_seed(0)
    rows = torch.randn(500, 9) @ torch.randn(9, 400)
    found = krylov(rows, 32, "m")
    assert found is not None
    values, vectors = found
    all_values, _ = torch.linalg.eigh(rows.double().t() @ rows.double())
    assert torch.allclose(values[-9:], all_values[-9:], rtol=1e-5)
    assert float(values[:-9].abs().max()) < 1e-5 * float(values[-1])
    again = vectors[:, -9:] @ (values[-9:, None] * vectors[:, -9:].t())
    assert torch.allclose(again, rows.double().t() @ rows.double(), atol=1e-5 * float(values[-1]))
    nothing = krylov(torch.zeros(500, 400), 32, "m")
    assert nothing is not None
    assert not nothing[0].any()
    assert krylov(torch.eye(600) + 1e-3 * torch.randn(600, 600), 32, "m") is None
    with pytest.raises(NumericsError, match="of m are not finite"):
        krylov(rows / 0, 32, "m")
