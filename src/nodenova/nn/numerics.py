"""Numbers that must be finite: one check, and matrix decompositions with a fallback.

An ordinary matrix takes the ordinary way, bit for bit. Only if LAPACK gives up, or its result is
not finite, the decomposition is tried again in double precision, by the slower and more robust
driver `ev` for eigenvectors, and with JITTER times the mean size of the diagonal added to it. If
this does not help either, or the matrix itself is not finite, a NumericsError names the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.linalg
import torch
from scipy.sparse.linalg import ArpackError, eigsh
from torch import Tensor

from nodenova.errors import NumericsError
from nodenova.progress import current_phase

JITTER = (0.0, 1e-12, 1e-9, 1e-6, 1e-3)  # tried in this order
ADVICE = "divide features by their largest value"
KRYLOV_COLUMNS, KRYLOV_STEPS = 24, 20
KRYLOV_CHECKED = 2  # steps between two checks whether it has converged
KRYLOV_ERROR = 2e-6  # residual of an eigenvector at which it has converged, of the largest value
MIN_LENGTH = 1e-3  # squared length of a direction of a basis below which it is rounding
FAILURES = (np.linalg.LinAlgError, torch.linalg.LinAlgError)  # type: ignore[attr-defined]


def numerics_error(problem: str, advice: str = ADVICE) -> NumericsError:
    """Return the error for numbers that are not finite; it names the phase and a fix."""
    phase = current_phase()
    return NumericsError(f"{phase}: {problem}; {advice}" if phase else f"{problem}; {advice}")


def all_finite(tensor: Tensor) -> bool:
    """Return whether a tensor has neither NaN nor infinity."""
    # Any NaN or infinity is in the sum too, which takes a twentieth of the time of isfinite. The
    # sum of finite numbers may overflow, so only a finite one is an answer.
    return bool(torch.isfinite(tensor.sum())) or bool(torch.isfinite(tensor).all())


def check_finite(tensor: Tensor, name: str) -> Tensor:
    """Return the tensor; raise a NumericsError that names it if a number is not finite."""
    if all_finite(tensor):
        return tensor
    bad = int((~torch.isfinite(tensor)).sum())
    raise numerics_error(f"{bad:,} of {tensor.numel():,} numbers of {name} are not finite")


def eigh(matrix: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """Eigenvalues of a symmetric matrix (D, D), ascending, and its eigenvectors, as columns."""
    try:
        values, vectors = torch.linalg.eigh(matrix)
        if all_finite(values) and all_finite(vectors):
            return values, vectors
    except FAILURES:
        pass

    def again(jitter: float, shaken: Tensor) -> tuple[Tensor, Tensor]:
        found = scipy.linalg.eigh(shaken.cpu().numpy(), driver="ev")
        values, vectors = (torch.from_numpy(part).to(matrix) for part in found)
        return values - jitter, vectors

    values, vectors = _retry(again, matrix, name)
    return values, vectors


def largest_eigh(matrix: Tensor, count: int, start: np.ndarray, name: str) -> tuple[Tensor, Tensor]:
    """The `count` largest eigenvalues and their eigenvectors, by iteration from `start` (D,)."""
    try:
        found = eigsh(matrix.cpu().numpy(), count, which="LA", v0=start)
        values, vectors = (torch.from_numpy(part).to(matrix) for part in found)
        if all_finite(values) and all_finite(vectors):
            return values, vectors
    except ArpackError:  # also if it does not converge
        pass
    values, vectors = eigh(matrix, name)
    return values[-count:], vectors[:, -count:]


def krylov(rows: Tensor, count: int, name: str) -> tuple[Tensor, Tensor] | None:
    """The `count` largest eigenvalues of rows' rows (D, D), ascending, and their eigenvectors.

    By block Krylov iteration (Golub and Underwood 1977) on rows (n, D), so that the matrix is never
    built. None if it does not converge within KRYLOV_STEPS, as where many eigenvalues are alike.
    """
    check_finite(rows, name)
    generator = torch.Generator().manual_seed(0)  # a fixed start makes it repeatable
    start = torch.randn(rows.shape[1], KRYLOV_COLUMNS, generator=generator)
    block = torch.linalg.qr(start.to(rows))[0]
    basis, image = rows.new_empty(rows.shape[1], 0), rows.new_empty(rows.shape[1], 0)
    for step in range(1, KRYLOV_STEPS + 1):
        product = ((rows @ block).t() @ rows).t()  # faster than with the rows transposed
        basis, image = torch.cat([basis, block], 1), torch.cat([image, product], 1)
        if step % KRYLOV_CHECKED == 0 and len(basis.t()) > 3 * count:
            values, mixed = _rayleigh_ritz(basis, image, count)
            vectors = basis @ mixed.to(basis)
            away = image @ mixed.to(basis) - vectors * values.to(basis)
            if float(torch.linalg.vector_norm(away, dim=0).max()) <= KRYLOV_ERROR * values[-1]:
                return values, vectors.double()
        block = torch.linalg.qr(product - basis @ (basis.t() @ product))[0]
    return None


def _rayleigh_ritz(basis: Tensor, image: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest eigenvalues of a matrix on a span, and their vectors in terms of the basis."""
    # In single precision the columns are not quite orthogonal, and hardly differ where the rows
    # have a low rank: then some are left out.
    length, turn = torch.linalg.eigh((basis.t() @ basis).double())
    turn = turn[:, length > MIN_LENGTH] / length[length > MIN_LENGTH].sqrt()
    inner = turn.t() @ (basis.t() @ image).double() @ turn
    values, vectors = torch.linalg.eigh((inner + inner.t()) / 2)
    return values[-count:], turn @ vectors[:, -count:]


def cholesky(matrix: Tensor, name: str) -> Tensor:
    """Lower triangular L with L L' = matrix, which is symmetric and positive definite."""
    factor, info = torch.linalg.cholesky_ex(matrix)
    if not bool(info) and all_finite(factor):
        return factor

    def again(jitter: float, shaken: Tensor) -> tuple[Tensor]:
        return (torch.linalg.cholesky(shaken).to(matrix),)

    return _retry(again, matrix, name)[0]


def solve(matrix: Tensor, right: Tensor, name: str) -> Tensor:
    """X (D, k) with matrix X = right."""
    check_finite(matrix, name)  # the solution with an infinite entry can be finite
    try:
        solution = torch.linalg.solve(matrix, right)
        if all_finite(solution):
            return solution
    except FAILURES:
        pass
    check_finite(right, f"the right side of {name}")

    def again(jitter: float, shaken: Tensor) -> tuple[Tensor]:
        return (torch.linalg.solve(shaken, right.double()).to(right),)

    return _retry(again, matrix, name)[0]


def _retry(
    again: Callable[[float, Tensor], tuple[Tensor, ...]], matrix: Tensor, name: str
) -> tuple[Tensor, ...]:
    """The first finite result of `again` over the jitters of a finite matrix."""
    check_finite(matrix, name)
    for jitter, shaken in _shaken(matrix.detach().double()):
        try:
            result = again(jitter, shaken)
        except FAILURES:
            continue
        if all(map(all_finite, result)):
            return result
    raise numerics_error(f"{name} cannot be decomposed")


def _shaken(matrix: Tensor) -> Iterator[tuple[float, Tensor]]:
    size = float(matrix.diagonal().abs().mean()) or 1.0
    one = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    for jitter in JITTER:
        yield jitter * size, matrix + jitter * size * one
