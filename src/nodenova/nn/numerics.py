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
