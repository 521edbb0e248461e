"""Truncated SVD of smoothed features by subspace iteration, a few columns at a time.

A column of a sparse product does not depend on the other columns, so the result is the same to the
last bit however many are multiplied at a time. A few columns fit into the cache and into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, overload

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.nn.distributed import (
    Columns,
    Smooth,
    SplitColumns,
    SplitMatrix,
    Words,
    gram,
    join_columns,
    map_rows,
    read_rows,
)
from nodenova.nn.numerics import eigh
from nodenova.nn.seeding import on_threads, release_freed_memory, threads_by_rows
from nodenova.nn.sparse import SparseMatrix

DEPTHS = (0, 2, 8)  # the node's own words, with those of its neighbors, of the wider community
AVERAGED = 2  # the depth whose P is the mean of all powers up to it
ROUNDS = (3, 2, 1)  # power iterations per depth; the last depth starts from the one before
SPARE = 16  # columns beyond the rank, which make the power iteration accurate
NEGLIGIBLE = 1e-6  # share of the energy of the last directions, up to which they are dropped
CHUNK = 2**26  # bytes of columns that are multiplied at a time, within
MIN_COLUMNS, MAX_COLUMNS = 8, 64  # these bounds of their number
MANY_NODES = 2**17  # number of nodes from which on freed memory is given back


@overload
def project(
    smooth: SparseMatrix, x: SparseMatrix | Tensor, basis: Tensor, depth: int, average: bool
) -> Tensor: ...
@overload
def project(smooth: Smooth, x: Words, basis: Tensor, depth: int, average: bool) -> Columns: ...
def project(smooth: Smooth, x: Words, basis: Tensor, depth: int, average: bool) -> Columns:
    """(N, columns) P x basis for x (N, d): P is S^depth, or the mean of S^0 to S^depth."""
    work = partial(_project_part, smooth, x, depth, average)
    used = int(basis.any(dim=0).nonzero().max()) + 1 if basis.any() else 1
    return _by_columns(work, basis, _shape(x)[0], x, used)


def right_bases(
    smooth: Smooth, x: Words, rank: int, ids: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield, per depth, the first right singular vectors V (d, rank) of M = P x, and rows of M V.

    By block power iteration q <- orth(M' M q) (Halko et al. 2011); P is symmetric. The start is the
    same for every graph and seed: the views are a function of the graph. Directions that together
    hold at most NEGLIGIBLE of the energy |M q|^2 at the last depth are dropped (columns of 0).
    The rows are the mean row (rank,) and those of the nodes `ids` (n, rank).
    """
    transposed: Any = x.t() if isinstance(x, Tensor) else x.transpose()
    d = _shape(x)[1]
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(d, min(rank + SPARE, d), generator=generator)
    if isinstance(smooth, SparseMatrix):
        start = start.to(smooth.csr.device)
    q = start
    for depth, rounds in zip(DEPTHS, ROUNDS, strict=True):

        def multiply_back(half: Any, depth: int = depth) -> Tensor:
            product: Tensor = transposed @ _smooth_columns(smooth, half, depth, depth == AVERAGED)
            return product

        def squared(part: Tensor, depth: int = depth) -> Tensor:
            half = _project_part(smooth, x, depth, depth == AVERAGED, part)
            return multiply_back(half, depth)

        if depth == DEPTHS[1]:  # own words are too far from smoothed ones to start from
            q = start
        if depth == DEPTHS[-1]:
            rows = project(smooth, x, q, depth, depth == AVERAGED)
            values, vectors, _ = _principal(rows)
            count = _num_significant(values)
            if count < q.shape[1]:
                q = q @ vectors[:, :count]
            elif isinstance(rows, Tensor):  # half of a round is done
                q = torch.linalg.qr(_by_columns(multiply_back, rows, d, x))[0]
                rounds -= 1
            del rows
        for _ in range(rounds):
            q = torch.linalg.qr(_by_columns(squared, q, d, x))[0]
        rows = project(smooth, x, q, depth, depth == AVERAGED)
        _, vectors, mean = _principal(rows)
        vectors = F.pad(vectors[:, :rank], (0, max(rank - q.shape[1], 0)))
        found = read_rows(rows, ids) @ vectors
        del rows  # never those of two depths at a time
        yield q @ vectors, mean @ vectors, found


def _principal(rows: Columns) -> tuple[Tensor, Tensor, Tensor]:
    """Squared singular values, descending; right singular vectors; the mean row."""
    if isinstance(rows, SplitColumns):
        products, mean = rows.moments()
    else:
        products, mean = gram(rows), rows.mean(0)
    values, vectors = eigh(products, "the scatter of the smoothed features")
    return values.flip(0), vectors.flip(1).float(), mean


def _num_significant(energy: Tensor) -> int:
    """Number of directions whose descending energy is not negligible, a multiple of MIN_COLUMNS."""
    rest = energy.clamp_min(0).flip(0).cumsum(0).flip(0)  # of each direction and those after it
    count = int((rest > NEGLIGIBLE * rest[0]).sum())
    return min(-(-max(count, 1) // MIN_COLUMNS) * MIN_COLUMNS, len(energy))


def _project_part(smooth: Smooth, x: Words, depth: int, average: bool, part: Tensor) -> Columns:
    return _smooth_columns(smooth, x @ part, depth, average)


def _shape(x: Words) -> tuple[int, ...]:
    return (x.csr if isinstance(x, SparseMatrix) else x).shape


def _smooth_columns(smooth: Any, columns: Any, depth: int, average: bool) -> Any:
    """S^depth columns, or the mean of S^0 columns to S^depth columns."""
    total = columns
    for step in range(depth):
        columns = smooth @ columns
        if average and step and isinstance(total, Tensor):
            total += columns  # in place: allocating memory for many nodes costs time
        else:
            total = total + columns if average else columns
    if average and isinstance(total, Tensor):
        return total.div_(depth + 1) if depth else total
    return total / (depth + 1) if average else total


def _pad(size: int, rows: Tensor) -> Tensor:
    return F.pad(rows, (0, size))


def _by_columns(
    work: Callable[[Tensor], Any], columns: Tensor, rows: int, x: Words, used: int | None = None
) -> Any:
    """(rows, columns) results of `work` on a few columns at a time; 0 after column `used`."""
    size = columns.shape[1]
    used = used or size
    if isinstance(x, SplitMatrix):
        starts = range(0, used, x.split.at_once)
        ends = [min(at + x.split.at_once, used) for at in starts]
        found = [
            work(columns[:, at:end].contiguous()) for at, end in zip(starts, ends, strict=True)
        ]
        result = join_columns(found)
        return result if used == size else map_rows(partial(_pad, size - used), result)
    result = torch.empty(rows, size, device=columns.device)
    result[:, used:] = 0
    at_once = MAX_COLUMNS
    if isinstance(x, SparseMatrix):  # a dense product reads all of x for every few columns
        fit = CHUNK // (4 * x.csr.shape[0] * MIN_COLUMNS) * MIN_COLUMNS
        at_once = min(max(fit, MIN_COLUMNS), MAX_COLUMNS)
    places = result[:, :used].split(at_once, dim=1)  # type: ignore[no-untyped-call]
    parts = columns[:, :used].split(at_once, dim=1)  # type: ignore[no-untyped-call]

    def fill(number: int) -> None:
        places[number].copy_(work(parts[number].contiguous()))

    if isinstance(x, SparseMatrix):  # every operation is row by row
        with threads_by_rows(x.nnz * at_once):
            for number in range(len(parts)):
                fill(number)
    else:  # each dense product on one thread
        on_threads(fill, range(len(parts)))
    if _shape(x)[0] > MANY_NODES:
        release_freed_memory()
    return result
