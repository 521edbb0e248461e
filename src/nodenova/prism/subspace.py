"""Truncated SVD of smoothed features by subspace iteration, a few columns at a time.

A column of a sparse product does not depend on the others, so that it makes no difference how many
are taken at a time: to the last bit. Few of them stay in the cache, and of many nodes they alone
are held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from nodenova.nn.seeding import on_threads
from nodenova.nn.sparse import SparseMatrix

DEPTHS = (0, 2, 8)  # a node's own words, its neighbors' beside them, the wider community's
AVERAGED = 2  # the depth at which every step up to it counts alike
# Of power iteration, a depth each; a deeper view starts from what the one before found.
ROUNDS = (3, 2, 1)
SPARE = 16  # columns beyond the rank that make the power iteration accurate
CACHE = 3 * 2**20  # bytes of columns that are multiplied at a time, as long as
MIN_COLUMNS, MAX_COLUMNS = 8, 64  # there are no fewer and no more of them
ROWS = 65_536  # nodes whose sums are taken at a time


def projected(
    smooth: SparseMatrix, x: SparseMatrix | Tensor, basis: Tensor, depth: int, averaged: bool
) -> Tensor:
    """(N, columns) P x basis.

    Args:
        smooth: S.
        x: (N, d).
        basis: (d, columns).
        depth: P is S^depth,
        averaged: or the mean of S^0 to S^depth.
    """
    return _by_columns(
        lambda part: _smoothed(smooth, x @ part, depth, averaged), basis, smooth.csr.shape[0], x
    )


def right_bases(
    smooth: SparseMatrix, x: SparseMatrix | Tensor, rank: int, ids: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The main right singular vectors V of M = P x for each depth.

    By block power iteration q <- orth(M' M q) (Halko et al. 2011); P is symmetric. The start is the
    same for every graph and seed: the views are a function of the graph.

    Args:
        smooth: S.
        x: (N, d).
        rank: How many.
        ids: (n,) nodes whose rows are asked for.

    Yields:
        (d, rank) V, (rank,) the mean row of M V and (n, rank) those of the nodes `ids`.
    """
    transposed = SparseMatrix(x.csr_t, x.csr) if isinstance(x, SparseMatrix) else x.t()
    d = (x.csr if isinstance(x, SparseMatrix) else x).shape[1]
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(d, min(rank + SPARE, d), generator=generator).to(smooth.csr.device)
    q = start
    for depth, rounds in zip(DEPTHS, ROUNDS, strict=True):

        def smoothed(columns: Tensor, depth: int = depth) -> Tensor:
            return _smoothed(smooth, columns, depth, depth == AVERAGED)

        def squared(part: Tensor, smoothed: Callable[[Tensor], Tensor] = smoothed) -> Tensor:
            return transposed @ smoothed(smoothed(x @ part))

        if depth == DEPTHS[1]:  # a node's own words are too far from smoothed ones to start from
            q = start
        for _ in range(rounds):
            q = torch.linalg.qr(_by_columns(squared, q, d, x))[0]
        rows = projected(smooth, x, q, depth, depth == AVERAGED)
        gram = torch.zeros(q.shape[1], q.shape[1], dtype=torch.float64, device=q.device)
        for block in rows.split(ROWS):  # type: ignore[no-untyped-call]
            gram += block.t() @ block
        vectors = torch.linalg.eigh(gram)[1].flip(1)[:, :rank].float()
        yield q @ vectors, rows.mean(0) @ vectors, rows[ids] @ vectors


def _smoothed(smooth: SparseMatrix, columns: Tensor, depth: int, averaged: bool) -> Tensor:
    """S^depth columns, or the mean of S^0 columns to S^depth columns."""
    total = columns
    for _ in range(depth):
        columns = smooth @ columns
        total = total + columns if averaged else columns
    return total / (depth + 1) if averaged else total


def _by_columns(
    work: Callable[[Tensor], Tensor], columns: Tensor, rows: int, x: SparseMatrix | Tensor
) -> Tensor:
    """(rows, columns) what `work` makes of some columns at a time."""
    many = MAX_COLUMNS
    if isinstance(x, SparseMatrix):  # a dense product reads all of x for every few columns
        fit = CACHE // (4 * x.csr.shape[0] * MIN_COLUMNS) * MIN_COLUMNS
        many = min(max(fit, MIN_COLUMNS), MAX_COLUMNS)
    made = torch.empty(rows, columns.shape[1], device=columns.device)
    places = made.split(many, dim=1)  # type: ignore[no-untyped-call]
    parts = columns.split(many, dim=1)  # type: ignore[no-untyped-call]

    def fill(number: int) -> None:
        places[number].copy_(work(parts[number].contiguous()))

    on_threads(fill, range(len(parts)))
    return made
