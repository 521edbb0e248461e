"""A graph folder whose rows are split into blocks over a Ray cluster.

Blocks of columns are Ray objects made by tasks, so that Ray computes one again when it is lost with
its machine; no process holds a state that another could not rebuild. The first half of the file
runs on the machine that has a block, the second half (`RaySplit`) on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor

from nodenova.cluster.session import ray_module, remote
from nodenova.errors import NodenovaError, SettingError, first_line
from nodenova.graph import Features, Graph
from nodenova.io.mmap_graph import MappedGraph, csr_over, read_graph_folder
from nodenova.nn.distributed import GraphSplit, OfBlock, SplitColumns
from nodenova.nn.sparse import apply_edge_weights, inverse_root, quiet_torch, weighted_sums

OPEN_BLOCKS = 4  # blocks of a graph that a process keeps open
# The blocks depend on the graph alone, so that the result does not depend on the cluster.
MIN_BLOCKS, MAX_BLOCKS = 8, 64  # within the following limits
MIN_ENTRIES, MAX_ENTRIES = 2**22, 2**26  # edges and words of a block
MAX_RETRIES = 8  # of a task whose process or machine is lost
MAX_COLUMNS = 144  # columns multiplied at a time, if they fit in
MEMORY_SHARE = 0.15  # of the object store of the smallest machine
FAN_IN = 16  # sums that a task adds up


@dataclass(frozen=True)
class RowBlock:
    """Rows start..end-1 of a graph folder, which has the same path on every machine."""

    folder: str
    start: int
    end: int


class BlockGraph(MappedGraph):
    """Some rows of a graph as a graph, with edges from these n nodes to all N."""

    is_mapped = False  # arrays derived from it are small, and in memory

    def empty(self, size: int, dtype: type[np.generic]) -> np.ndarray:
        """(size,) in memory."""
        return np.empty(size, dtype=dtype)


class Part(NamedTuple):
    """Some columns, numbered from 0, of some rows of a matrix, as CSR parts."""

    indptr: np.ndarray
    columns: np.ndarray
    data: np.ndarray


class SmoothRows(NamedTuple):
    """Rows of S = D^-1/2 (A + I) D^-1/2.

    If rows have about one entry or more per block of columns, there is a part for each block, to
    be multiplied with that block of the operand. Else there is one part, over the columns `needed`
    (m,), which are picked from the operand first.
    """

    parts: tuple[Part, ...]
    needed: np.ndarray | None


@lru_cache(maxsize=1)
def _read_graph(folder: str) -> Graph:
    return read_graph_folder(Path(folder))[0].graph


@lru_cache(maxsize=OPEN_BLOCKS)
def open_block(block: RowBlock) -> BlockGraph:
    """Open the rows of a block: mapped arrays, and no labels."""
    whole = _read_graph(block.folder)
    start, end = block.start, block.end
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
    return BlockGraph(rows, own, ids, names, Path(block.folder), weight, vectors)


def smooth_rows(rows: RowBlock, root: np.ndarray, starts: Sequence[int]) -> SmoothRows:
    """Rows of S, given (N,) D^-1/2 and the first row of each block of the graph, and N."""
    graph = open_block(rows)
    links, n = graph.adjacency, rows.end - rows.start
    size = np.diff(links.indptr) + 1  # entries of a row, with the diagonal
    indptr = np.concatenate([[0], np.cumsum(size, dtype=np.int64)])
    row = np.repeat(np.arange(n), size - 1)
    before = np.bincount(row[links.indices < row + rows.start], minlength=n)
    is_other = np.ones(indptr[-1], dtype=bool)
    is_other[indptr[:-1] + before] = False
    columns = np.empty(indptr[-1], dtype=np.int64)
    columns[is_other] = links.indices
    columns[~is_other] = np.arange(rows.start, rows.end)
    data = root[np.repeat(np.arange(rows.start, rows.end), size)] * root[columns]
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
    """(n, 1) D^-1/2 of the block's nodes."""
    return torch.from_numpy(inverse_root(graph)[:, None])


@torch.no_grad()
def multiply(rows: SmoothRows, starts: Sequence[int], *operand: np.ndarray) -> np.ndarray:
    """(n, c) rows of S times columns, which come as blocks that begin at `starts`."""
    if rows.needed is not None:
        ends = np.searchsorted(rows.needed, starts)
        picked = np.empty((len(rows.needed), operand[0].shape[1]), dtype=np.float32)
        for block, start, a, b in zip(operand, starts[:-1], ends[:-1], ends[1:], strict=True):
            np.take(block, rows.needed[a:b] - start, axis=0, out=picked[a:b])
        operand = (picked,)
    product = torch.zeros(len(rows.parts[0].indptr) - 1, operand[0].shape[1])
    with quiet_torch():
        for part, block in zip(rows.parts, operand, strict=True):
            shape = (len(product), len(block))
            indptr, columns, data = (torch.from_numpy(array) for array in part)
            matrix = torch.sparse_csr_tensor(indptr, columns, data, shape, check_invariants=False)
            product += weighted_sums(matrix, torch.from_numpy(block))
    return product.numpy()


@torch.no_grad()
def apply(function: OfBlock, rows: RowBlock, *columns: np.ndarray) -> np.ndarray:
    """Call a function with a block of the graph and the block's rows of columns."""
    with quiet_torch():
        result = function(open_block(rows), *(torch.from_numpy(block) for block in columns))
    return result.numpy()


def add(*parts: np.ndarray) -> np.ndarray:
    """Sum arrays from first to last, in double precision."""
    total = parts[0].astype(np.float64)
    for part in parts[1:]:
        total += part
    return total


def pick(rows: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Pick rows of a block."""
    return block[rows]


def run_task(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run one of the functions above, on one thread."""
    _use_one_thread()
    return function(*arguments)


@cache
def _use_one_thread() -> None:
    # For good: the other processes of the machine use the other cores.
    torch.set_num_threads(1)
    threadpool_limits(1)


class ClusterError(NodenovaError):
    """The machines of a cluster were lost, or a task failed on them."""


class RaySplit(GraphSplit):
    """The rows of a graph folder, split over the cluster that this process is connected to."""

    def __init__(self, folder: Path, graph: Graph) -> None:
        if graph.vectors is not None:
            raise SettingError(
                f"--ray: {folder} has text vectors, which cannot be split yet; leave --ray out"
            )
        self.ray = ray_module()
        self.num_nodes = graph.num_nodes
        self.starts = block_starts(graph)
        ends = zip(self.starts[:-1], self.starts[1:], strict=True)
        self.blocks = [RowBlock(str(folder.absolute()), start, end) for start, end in ends]
        stores = [
            node["Resources"].get("object_store_memory", 0.0)
            for node in self.ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU")
        ]
        fit = int(MEMORY_SHARE * min(stores, default=0.0) / (4 * self.num_nodes))
        self.at_once = min(max(fit, 1), MAX_COLUMNS)
        self._run = remote(run_task, max_retries=MAX_RETRIES).remote

    def each(self, function: OfBlock, *columns: SplitColumns) -> SplitColumns:
        return self._wait_for(self._apply(function, columns))

    def total(self, function: OfBlock, *columns: SplitColumns) -> Tensor:
        parts = self._apply(function, columns)
        while len(parts) > 1:
            groups = [parts[n : n + FAN_IN] for n in range(0, len(parts), FAN_IN)]
            parts = [self._run(add, *group) for group in groups]
        return torch.from_numpy(self._get(parts)[0].astype(np.float64))

    def smooth(self, columns: SplitColumns) -> SplitColumns:
        operand = (self._starts, *columns.blocks)
        return self._wait_for([self._run(multiply, rows, *operand) for rows in self._smooth_rows])

    def rows(self, columns: SplitColumns, ids: Tensor) -> Tensor:
        numbers = ids.cpu().numpy()
        block = np.searchsorted(self.starts, numbers, side="right") - 1
        used = np.unique(block)
        if not len(used):  # the number of columns is not known here: fetch a row
            return self.rows(columns, torch.zeros(1, dtype=torch.long))[:0]
        parts = [
            self._run(pick, numbers[block == number] - self.starts[number], columns.blocks[number])
            for number in used
        ]
        result = np.empty(0)
        for number, part in zip(used, parts, strict=True):
            picked = self._get([part])[0]
            if number == used[0]:
                result = np.empty((len(numbers), *picked.shape[1:]), dtype=picked.dtype)
            result[block == number] = picked
        return torch.from_numpy(result)

    @cached_property
    def _smooth_rows(self) -> Sequence[Any]:
        """The rows of S, one Ray object per block."""
        root = self.rows(self.each(root_of), torch.arange(self.num_nodes))
        self._root = self.ray.put(root.numpy().ravel())
        tasks = [self._run(smooth_rows, rows, self._root, self._starts) for rows in self.blocks]
        return self._wait_for(tasks).blocks

    @cached_property
    def _starts(self) -> Any:
        return self.ray.put(self.starts)

    def _apply(self, function: OfBlock, columns: Sequence[SplitColumns]) -> list[Any]:
        reference = self.ray.put(function)
        return [
            self._run(apply, reference, rows, *(each.blocks[number] for each in columns))
            for number, rows in enumerate(self.blocks)
        ]

    def _wait_for(self, parts: list[Any]) -> SplitColumns:
        # Their inputs can then be freed before more is made.
        self.ray.wait(parts, num_returns=len(parts), fetch_local=False)
        return SplitColumns(self, tuple(parts))

    def _get(self, parts: list[Any]) -> list[np.ndarray]:
        try:
            arrays: list[np.ndarray] = self.ray.get(parts)
            return arrays
        except self.ray.exceptions.RayError as error:
            cause: Any = error
            while isinstance(cause, self.ray.exceptions.RayTaskError):
                cause = cause.cause  # the error of a task, or of one that it needed
            if not isinstance(cause, self.ray.exceptions.RayError):
                raise cause from None
            raise ClusterError(
                f"--ray: the cluster failed although lost tasks were tried {MAX_RETRIES} more "
                f"times: {first_line(cause)}"
            ) from None


def block_starts(graph: Graph) -> list[int]:
    """First rows of a graph's blocks, and N; blocks have about as many edges and words."""
    x, n = graph.x, graph.num_nodes
    words = x.shape[1] * np.arange(n + 1) if isinstance(x, np.ndarray) else x.indptr
    before = graph.adjacency.indptr.astype(np.int64) + words
    entries = int(before[-1])
    count = max(MIN_BLOCKS, min(MAX_BLOCKS, entries // MIN_ENTRIES), -(-entries // MAX_ENTRIES))
    wanted = np.linspace(0, entries, min(count, n) + 1)
    starts = np.searchsorted(before, wanted[:-1], side="left").tolist()
    return sorted({0, *starts, n})


@contextmanager
def split_graph(graph: Graph, folder: Path) -> Iterator[None]:
    """Have the cluster compute, within this block, what Prism needs of a graph from a folder."""
    if not graph.is_mapped:
        raise SettingError(
            "--ray needs a graph folder: write one with nodenova prepare, name it with --graph"
        )
    stored = read_graph_folder(folder)[0].graph
    if (stored.num_features, stored.feature_names) != (graph.num_features, graph.feature_names):
        raise SettingError(
            f"--ray: {folder} has other features than the model; "
            "leave --ray out, or prepare the folder from the same columns"
        )
    graph.cache[GraphSplit] = RaySplit(folder, graph)
    try:
        yield
    finally:
        del graph.cache[GraphSplit]
