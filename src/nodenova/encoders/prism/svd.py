"""Truncated SVD of smoothed features by subspace iteration, a few columns at a time.

A column of a sparse product does not depend on the others, so that it makes no difference how many
are taken at a time: to the last bit. Few of them stay in the cache, and of many nodes they alone
are held.
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
from nodenova.nn.seeding import on_threads, release_freed_memory, threads_by_rows
from nodenova.nn.sparse import SparseMatrix

DEPTHS = (0, 2, 8)  # a node's own words, its neighbors' beside them, the wider community's
AVERAGED = 2  # the depth at which every step up to it counts alike
# Of power iteration, a depth each; a deeper view starts from what the one before found.
ROUNDS = (3, 2, 1)
SPARE = 16  # columns beyond the rank that make the power iteration accurate
NEGLIGIBLE = 1e-6  # the share of the energy up to which the last directions are left out
CHUNK = 2**26  # bytes of columns that are multiplied at a time, as long as
MIN_COLUMNS, MAX_COLUMNS = 8, 64  # there are no fewer and no more of them
MANY_NODES = 2**17  # whose columns are large enough to be missed


@overload
def projected(
    smooth: SparseMatrix, x: SparseMatrix | Tensor, basis: Tensor, depth: int, averaged: bool
) -> Tensor: ...
@overload
def projected(smooth: Smooth, x: Words, basis: Tensor, depth: int, averaged: bool) -> Columns: ...
def projected(smooth: Smooth, x: Words, basis: Tensor, depth: int, averaged: bool) -> Columns:
    """(N, columns) P x basis.

    Args:
        smooth: S.
        x: (N, d).
        basis: (d, columns).
        depth: P is S^depth,
        averaged: or the mean of S^0 to S^depth.
    """
    work = partial(_projected, smooth, x, depth, averaged)
    used = int(basis.any(dim=0).nonzero().max()) + 1 if basis.any() else 1
    return _by_columns(work, basis, _shape(x)[0], x, used)


def right_bases(
    smooth: Smooth, x: Words, rank: int, ids: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The main right singular vectors V of M = P x for each depth.

    By block power iteration q <- orth(M' M q) (Halko et al. 2011); P is symmetric. The start is the
    same for every graph and seed: the views are a function of the graph.

    The deepest P leaves next to nothing of most directions where a graph is well mixed: those that
    together hold no more than NEGLIGIBLE of the energy |M q|^2 are dropped from q as soon as it is
    measured, and their columns of V are empty.

    Args:
        smooth: S.
        x: (N, d).
        rank: How many.
        ids: (n,) nodes whose rows are asked for.

    Yields:
        (d, rank) V, (rank,) the mean row of M V and (n, rank) those of the nodes `ids`.
    """
    transposed: Any = x.t() if isinstance(x, Tensor) else x.transpose()
    d = _shape(x)[1]
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(d, min(rank + SPARE, d), generator=generator)
    if isinstance(smooth, SparseMatrix):
        start = start.to(smooth.csr.device)
    q = start
    for depth, rounds in zip(DEPTHS, ROUNDS, strict=True):

        def turned_back(half: Any, depth: int = depth) -> Tensor:
            product: Tensor = transposed @ _smoothed(smooth, half, depth, depth == AVERAGED)
            return product

        def squared(part: Tensor, depth: int = depth) -> Tensor:
            half = _projected(smooth, x, depth, depth == AVERAGED, part)
            return turned_back(half, depth)

        if depth == DEPTHS[1]:  # a node's own words are too far from smoothed ones to start from
            q = start
        if depth == DEPTHS[-1]:
            rows = projected(smooth, x, q, depth, depth == AVERAGED)
            values, vectors, _ = _main(rows)
            kept = _kept(values)
            if kept < q.shape[1]:
                q = q @ vectors[:, :kept]
            elif isinstance(rows, Tensor):  # half of a round is done
                q = torch.linalg.qr(_by_columns(turned_back, rows, d, x))[0]
                rounds -= 1
            del rows
        for _ in range(rounds):
            q = torch.linalg.qr(_by_columns(squared, q, d, x))[0]
        rows = projected(smooth, x, q, depth, depth == AVERAGED)
        _, vectors, mean = _main(rows)
        vectors = F.pad(vectors[:, :rank], (0, max(rank - q.shape[1], 0)))
        found = read_rows(rows, ids) @ vectors
        del rows  # never those of two depths at a time
        yield q @ vectors, mean @ vectors, found


def _main(rows: Columns) -> tuple[Tensor, Tensor, Tensor]:
    """Squared singular values, falling, right singular vectors and the mean of all rows."""
    if isinstance(rows, SplitColumns):
        products, mean = rows.moments()
    else:
        products, mean = gram(rows), rows.mean(0)
    values, vectors = torch.linalg.eigh(products)
    return values.flip(0), vectors.flip(1).float(), mean


def _kept(energy: Tensor) -> int:
    """How many of the directions with so much energy, the first the most, are not negligible.

    A multiple of MIN_COLUMNS, as they are multiplied so many at a time.
    """
    rest = energy.clamp_min(0).flip(0).cumsum(0).flip(0)  # of each direction and those after it
    kept = int((rest > NEGLIGIBLE * rest[0]).sum())
    return min(-(-max(kept, 1) // MIN_COLUMNS) * MIN_COLUMNS, len(energy))


def _projected(smooth: Smooth, x: Words, depth: int, averaged: bool, part: Tensor) -> Columns:
    return _smoothed(smooth, x @ part, depth, averaged)


def _shape(x: Words) -> tuple[int, ...]:
    return (x.csr if isinstance(x, SparseMatrix) else x).shape


def _smoothed(smooth: Any, columns: Any, depth: int, averaged: bool) -> Any:
    """S^depth columns, or the mean of S^0 columns to S^depth columns."""
    total = columns
    for step in range(depth):
        columns = smooth @ columns
        if averaged and step and isinstance(total, Tensor):
            total += columns  # of many nodes, memory that is asked for anew costs time
        else:
            total = total + columns if averaged else columns
    if averaged and isinstance(total, Tensor):
        return total.div_(depth + 1) if depth else total
    return total / (depth + 1) if averaged else total


def _padded(size: int, rows: Tensor) -> Tensor:
    return F.pad(rows, (0, size))


def _by_columns(
    work: Callable[[Tensor], Any], columns: Tensor, rows: int, x: Words, used: int | None = None
) -> Any:
    """(rows, columns) what `work` makes of some columns at a time; of those after `used`, zeros."""
    size = columns.shape[1]
    used = used or size
    if isinstance(x, SplitMatrix):
        starts = range(0, used, x.split.at_once)
        ends = [min(at + x.split.at_once, used) for at in starts]
        found = [
            work(columns[:, at:end].contiguous()) for at, end in zip(starts, ends, strict=True)
        ]
        made = join_columns(found)
        return made if used == size else map_rows(partial(_padded, size - used), made)
    made = torch.empty(rows, size, device=columns.device)
    made[:, used:] = 0
    many = MAX_COLUMNS
    if isinstance(x, SparseMatrix):  # a dense product reads all of x for every few columns
        fit = CHUNK // (4 * x.csr.shape[0] * MIN_COLUMNS) * MIN_COLUMNS
        many = min(max(fit, MIN_COLUMNS), MAX_COLUMNS)
    places = made[:, :used].split(many, dim=1)  # type: ignore[no-untyped-call]
    parts = columns[:, :used].split(many, dim=1)  # type: ignore[no-untyped-call]

    def fill(number: int) -> None:
        places[number].copy_(work(parts[number].contiguous()))

    if isinstance(x, SparseMatrix):  # all that is done is done row by row
        with threads_by_rows(x.nnz * many):
            for number in range(len(parts)):
                fill(number)
    else:  # sums of a dense product: each on one thread
        on_threads(fill, range(len(parts)))
    if _shape(x)[0] > MANY_NODES:
        release_freed_memory()
    return made
