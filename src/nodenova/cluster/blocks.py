"""Blocks of rows of a graph folder: what is done on the machine that has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor

from nodenova.graph import Features, Graph
from nodenova.io.mmap_graph import MappedGraph, csr_over, read_prepared
from nodenova.nn.distributed import OfBlock
from nodenova.nn.sparse import apply_edge_weights, inverse_root, quiet_torch, weighted_sums

KEPT = 4  # blocks of a graph that a process keeps open


@dataclass(frozen=True)
class Place:
    """A block of rows of a graph folder.

    Attributes:
        folder: The same on every machine.
        start: Its first row.
        end: Its last row, exclusive.
    """

    folder: str
    start: int
    end: int


class BlockGraph(MappedGraph):
    """Some rows of a graph as a graph: its nodes are these, its edges lead to all N."""

    is_mapped = False  # what is derived from it is small, and in memory

    def empty(self, size: int, dtype: type[np.generic]) -> np.ndarray:
        """(size,) in memory."""
        return np.empty(size, dtype=dtype)


class Part(NamedTuple):
    """Some columns of some rows of a matrix, as CSR.

    Attributes:
        indptr: (n + 1,) where rows begin.
        columns: (entries,) numbered from 0.
        data: (entries,) float32.
    """

    indptr: np.ndarray
    columns: np.ndarray
    data: np.ndarray


class SmoothRows(NamedTuple):
    """Rows of S = D^-1/2 (A + I) D^-1/2.

    Where a row has an entry or more in every block of columns, each block is a part, and is
    multiplied with the block of the operand as it is. Else the one part is over the columns that
    have an entry, and these rows of the operand are picked first.

    Attributes:
        parts: As many as blocks, or one.
        needed: (m,) numbers of the nodes that the one part takes from, ascending; None for many.
    """

    parts: tuple[Part, ...]
    needed: np.ndarray | None


@lru_cache(maxsize=1)
def _whole(folder: str) -> Graph:
    return read_prepared(Path(folder))[0].graph


@lru_cache(maxsize=KEPT)
def block_of(place: Place) -> BlockGraph:
    """Its rows; arrays are mapped, and no label is among them."""
    whole = _whole(place.folder)
    start, end = place.start, place.end
    links, x = whole.adjacency, whole.x
    first, last = int(links.indptr[start]), int(links.indptr[end])
    own = csr_over(
        links.data[first:last],
        links.indices[first:last],
        links.indptr[start : end + 1] - first,
        (end - start, whole.num_nodes),
    )
    rows: Features
    if isinstance(x, np.ndarray):
        rows = x[start:end]
    else:
        a, b = int(x.indptr[start]), int(x.indptr[end])
        parts = (x.data[a:b], x.indices[a:b], x.indptr[start : end + 1] - a)
        rows = csr_over(*parts, (end - start, x.shape[1]))
    weight = None if whole.edge_weight is None else whole.edge_weight[first:last]
    vectors = None if whole.vectors is None else whole.vectors[start:end]
    names, ids = whole.feature_names, whole.node_ids[start:end]
    return BlockGraph(rows, own, ids, names, Path(place.folder), weight, vectors)


def smooth_rows(place: Place, root: np.ndarray, starts: Sequence[int]) -> SmoothRows:
    """Rows of S.

    Args:
        place: Which.
        root: (N,) D^-1/2.
        starts: The first row of each block of the graph, and N.
    """
    graph = block_of(place)
    links, n = graph.adjacency, place.end - place.start
    size = np.diff(links.indptr) + 1  # of a row with its node itself
    indptr = np.concatenate([[0], np.cumsum(size, dtype=np.int64)])
    row = np.repeat(np.arange(n), size - 1)
    before = np.bincount(row[links.indices < row + place.start], minlength=n)
    is_other = np.ones(indptr[-1], dtype=bool)
    is_other[indptr[:-1] + before] = False
    columns = np.empty(indptr[-1], dtype=np.int64)
    columns[is_other] = links.indices
    columns[~is_other] = np.arange(place.start, place.end)
    data = root[np.repeat(np.arange(place.start, place.end), size)] * root[columns]
    apply_edge_weights(graph, data, 0, n, is_other)
    index = np.int32 if len(columns) < 2**31 else np.int64
    if len(columns) < n * (len(starts) - 1):
        needed, within = np.unique(columns, return_inverse=True)
        return SmoothRows((Part(indptr.astype(index), within.astype(index), data),), needed)
    block = np.searchsorted(starts, columns, side="right") - 1
    row = np.repeat(np.arange(n), size)
    parts = []
    for number, start in enumerate(starts[:-1]):
        mine = block == number
        each = np.bincount(row[mine], minlength=n)
        pointers = np.concatenate([[0], np.cumsum(each)]).astype(index)
        parts.append(Part(pointers, (columns[mine] - start).astype(index), data[mine]))
    return SmoothRows(tuple(parts), None)


def root_of(graph: BlockGraph) -> Tensor:
    """(n, 1) D^-1/2 of its nodes."""
    return torch.from_numpy(inverse_root(graph)[:, None])


@torch.no_grad()
def multiply(rows: SmoothRows, starts: Sequence[int], *operand: np.ndarray) -> np.ndarray:
    """(n, c) rows of S times columns.

    Args:
        rows: Which.
        starts: The first row of each block of the columns, and N.
        *operand: The blocks.
    """
    if rows.needed is not None:
        ends = np.searchsorted(rows.needed, starts)
        taken = np.empty((len(rows.needed), operand[0].shape[1]), dtype=np.float32)
        for block, start, a, b in zip(operand, starts[:-1], ends[:-1], ends[1:], strict=True):
            np.take(block, rows.needed[a:b] - start, axis=0, out=taken[a:b])
        operand = (taken,)
    product = torch.zeros(len(rows.parts[0].indptr) - 1, operand[0].shape[1])
    with quiet_torch():
        for part, block in zip(rows.parts, operand, strict=True):
            shape = (len(product), len(block))
            indptr, columns, data = (torch.from_numpy(array) for array in part)
            matrix = torch.sparse_csr_tensor(indptr, columns, data, shape, check_invariants=False)
            product += weighted_sums(matrix, torch.from_numpy(block))
    return product.numpy()


@torch.no_grad()
def apply(function: OfBlock, place: Place, *columns: np.ndarray) -> np.ndarray:
    """What a function makes of a block of the graph and of columns on it."""
    with quiet_torch():
        made = function(block_of(place), *(torch.from_numpy(block) for block in columns))
    return made.numpy()


def add(*parts: np.ndarray) -> np.ndarray:
    """Their sum, from the first to the last, in double precision."""
    total = parts[0].astype(np.float64)
    for part in parts[1:]:
        total += part
    return total


def pick(rows: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Some rows of a block."""
    return block[rows]


def run(function: Callable[..., Any], *given: Any) -> Any:
    """A task: a function of the above, on one thread."""
    _one_thread()
    return function(*given)


@cache
def _one_thread() -> None:
    """For good: the other processes of a machine have cores of their own."""
    torch.set_num_threads(1)
    threadpool_limits(1)
