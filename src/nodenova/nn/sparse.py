"""Sparse products with a gradient: features times weights, neighbors' sums and means.

Two facts make this the fast path: bag-of-words features are ~1 % dense, and a normalized adjacency
in CSR form replaces a gather and a scatter over every edge. Both need the transposed matrix in the
backward pass, so it is stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn.seeding import threads_by_rows

BLOCK_ENTRIES = 2**24  # of a matrix on disk that are used at a time: 128 MiB


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, matrix: SparseMatrix, dense: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.matrix = matrix
        return _multiplied(matrix.csr, dense)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[None, Tensor]:  # type: ignore[no-untyped-def]
        return None, _multiplied(ctx.matrix.csr_t, grad.contiguous())


def _multiplied(csr: Tensor, dense: Tensor) -> Tensor:
    with threads_by_rows(csr.values().shape[0] * dense.shape[-1]):
        return csr @ dense


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A constant CSR matrix with its transpose; `matrix @ dense` has a gradient for the dense side.

    Attributes:
        csr: (n, m).
        csr_t: (m, n).
    """

    csr: Tensor | RowBlocks
    csr_t: Tensor | RowBlocks

    @classmethod
    def of(
        cls,
        matrix: sp.csr_array,
        device: torch.device,
        symmetric: bool = False,
        graph: Graph | None = None,
    ) -> SparseMatrix:
        """From SciPy's. A symmetric matrix is its own transpose, and is stored once.

        Args:
            matrix: Which.
            device: Where to.
            symmetric: Whether it is.
            graph: Beside whose arrays the transpose is put; in memory unless given. On a graph on
                disk, products go by blocks of rows.
        """
        on_disk = graph is not None and graph.is_mapped
        by_blocks = on_disk and device.type == "cpu" and matrix.nnz > BLOCK_ENTRIES
        wrap = RowBlocks.of if by_blocks else _torch_csr
        csr = wrap(matrix, device)
        if symmetric:
            return cls(csr, csr)
        if graph is None or not on_disk:
            return cls(csr, wrap(sp.csr_array(matrix.T), device))
        return cls(csr, wrap(_transposed(matrix, graph), device))

    def __matmul__(self, dense: Tensor) -> Tensor:
        return _Product.apply(self, dense)  # type: ignore[no-untyped-call]

    def dropout(self, p: float) -> SparseMatrix:
        """The same, each number zero with probability p, else 1 / (1 - p) times as large."""
        assert isinstance(self.csr, Tensor)
        assert isinstance(self.csr_t, Tensor)
        values = F.dropout(self.csr.values(), p)
        turned = _with_values(self.csr_t, values[self._turned])
        return SparseMatrix(_with_values(self.csr, values), turned)

    @cached_property
    def _turned(self) -> Tensor:
        """Where each number of the transpose stands in the matrix."""
        assert isinstance(self.csr, Tensor)
        start = self.csr.crow_indices().cpu().numpy()
        columns = self.csr.col_indices().cpu().numpy()
        numbers = (np.arange(len(columns)), columns, start)
        numbered = sp.csr_array(numbers, shape=tuple(self.csr.shape))
        return torch.from_numpy(sp.csr_array(numbered.T).data).to(self.csr.device)


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """A CSR matrix on disk as blocks of rows; a product reads one after the other.

    Attributes:
        shape: (n, m).
        device: The processor.
        starts: Where each block begins, and n.
        blocks: (rows, m) each.
    """

    shape: tuple[int, int]
    device: torch.device
    starts: tuple[int, ...]
    blocks: tuple[Tensor, ...]

    @classmethod
    def of(cls, matrix: sp.csr_array, device: torch.device) -> RowBlocks:
        """From SciPy's, over the same arrays."""
        blocks, starts = [], [0]
        for start, end in row_blocks(matrix.indptr):
            first, last = int(matrix.indptr[start]), int(matrix.indptr[end])
            part = sp.csr_array((end - start, matrix.shape[1]), dtype=np.float32)
            part.indptr = matrix.indptr[start : end + 1] - first
            part.indices, part.data = matrix.indices[first:last], matrix.data[first:last]
            blocks.append(_torch_csr(part, device))
            starts.append(end)
        return cls(matrix.shape, device, tuple(starts), tuple(blocks))

    def __matmul__(self, dense: Tensor) -> Tensor:
        out = dense.new_empty(self.shape[0], dense.shape[1])
        for start, end, block in zip(self.starts, self.starts[1:], self.blocks, strict=False):
            out[start:end] = block @ dense
        return out


def row_blocks(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last row, exclusive, of blocks of at most BLOCK_ENTRIES entries, or of one row.

    Examples:
        >>> list(row_blocks(np.array([0, BLOCK_ENTRIES, BLOCK_ENTRIES + 1, BLOCK_ENTRIES + 2])))
        [(0, 1), (1, 3)]
    """
    start, rows = 0, len(indptr) - 1
    while start < rows:
        most = np.searchsorted(indptr, indptr[start] + BLOCK_ENTRIES, side="right") - 1
        end = min(max(int(most), start + 1), rows)
        yield start, end
        start = end


def _transposed(matrix: sp.csr_array, graph: Graph) -> sp.csr_array:
    """The transpose in arrays of the graph's own kind, block by block; rows are sorted."""
    n, m = matrix.shape
    count = np.zeros(m, dtype=np.int64)
    for start, end in row_blocks(matrix.indptr):
        part = matrix.indices[matrix.indptr[start] : matrix.indptr[end]]
        count += np.bincount(part, minlength=m)
    indptr = np.concatenate([[0], np.cumsum(count)])
    indices = graph.empty(matrix.nnz, np.int32 if n < 2**31 else np.int64)
    data = graph.empty(matrix.nnz, np.float32)
    filled = indptr[:-1].copy()
    for start, end in row_blocks(matrix.indptr):
        first, last = int(matrix.indptr[start]), int(matrix.indptr[end])
        places = (matrix.indices[first:last], matrix.indptr[start : end + 1] - first)
        block = sp.csr_array((matrix.data[first:last], *places), shape=(end - start, m))
        turned = sp.csr_array(block.T)
        size = np.diff(turned.indptr)
        place = np.repeat(filled - turned.indptr[:-1], size) + np.arange(turned.nnz)
        indices[place] = turned.indices + start
        data[place] = turned.data
        filled += size
    made = sp.csr_array((m, n), dtype=np.float32)
    made.indptr, made.indices, made.data = indptr, indices, data
    return made


def _torch_csr(matrix: sp.csr_array, device: torch.device) -> Tensor:
    # 32-bit indices are what MKL's kernel takes as it is; 64-bit ones are converted in every
    # product.
    index = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
    with quiet():
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(index, copy=False)),
            torch.from_numpy(matrix.indices.astype(index, copy=False)),
            torch.from_numpy(matrix.data.astype(np.float32, copy=False)),
            matrix.shape,
            check_invariants=False,  # the matrix comes from SciPy, which keeps them
        ).to(device)


def _with_values(matrix: Tensor, values: Tensor) -> Tensor:
    with quiet():
        parts = (matrix.crow_indices(), matrix.col_indices(), values)
        return torch.sparse_csr_tensor(*parts, matrix.shape, check_invariants=False)


def features(graph: Graph, device: torch.device, row_normalize: bool) -> SparseMatrix | Tensor:
    """(N, d) features as something `@ weight` works on, built once for a graph and a device.

    Args:
        graph: Whose features.
        device: Where to.
        row_normalize: Whether rows are divided by their sum; a row of zeros stays one.
    """

    def build() -> SparseMatrix | Tensor:
        x = graph.x
        if row_normalize:
            total = np.asarray(x.sum(axis=1)).ravel()
            scale = np.divide(1.0, total, out=np.zeros_like(total), where=total != 0)
            x = sp.csr_array(sp.diags_array(scale) @ x) if sp.issparse(x) else x * scale[:, None]
        if sp.issparse(x):
            return SparseMatrix.of(x, device)
        with quiet():
            return torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)).to(device)

    return once(graph, ("features", device, row_normalize), build)


def gcn_operator(graph: Graph, device: torch.device) -> SparseMatrix:
    """D^-1/2 (A + I) D^-1/2, the propagation of Kipf & Welling's GCN.

    Examples:
        >>> import nodenova as nova
        >>> pair = nova.Graph.of([[1.0], [3.0]], [[0], [1]])
        >>> smoothed = gcn_operator(pair, torch.device("cpu")) @ torch.tensor([[1.0], [3.0]])
        >>> smoothed.round(decimals=4).tolist()
        [[2.0], [2.0]]
    """

    def build() -> SparseMatrix:
        a = graph.adjacency
        size = np.diff(a.indptr) + 1  # of a row with its node itself
        root = (1.0 / np.sqrt(size.astype(np.float32))).astype(np.float32)
        n, nnz = graph.num_nodes, a.nnz + graph.num_nodes
        smooth = sp.csr_array((n, n), dtype=np.float32)
        smooth.indptr = a.indptr.astype(np.int64) + np.arange(n + 1)
        smooth.indices = graph.empty(nnz, np.int32 if n < 2**31 else np.int64)
        smooth.data = graph.empty(nnz, np.float32)
        for start, end in row_blocks(smooth.indptr):
            first, last = int(smooth.indptr[start]), int(smooth.indptr[end])
            others = a.indices[a.indptr[start] : a.indptr[end]]
            row = np.repeat(np.arange(start, end), size[start:end] - 1)
            before = np.bincount(row[others < row] - start, minlength=end - start)
            own = smooth.indptr[start:end] - first + before
            is_other = np.ones(last - first, dtype=bool)
            is_other[own] = False
            columns = smooth.indices[first:last]
            columns[is_other] = others
            columns[own] = np.arange(start, end)
            row = np.repeat(np.arange(start, end), size[start:end])
            np.multiply(root[row], root[columns], out=smooth.data[first:last])
        return SparseMatrix.of(smooth, device, symmetric=True, graph=graph)

    return once(graph, ("gcn", device), build)


def mean_operator(graph: Graph, device: torch.device) -> SparseMatrix:
    """D^-1 A: the mean over neighbors, zero for an isolated node (GraphSAGE's mean aggregator)."""

    def build() -> SparseMatrix:
        degree = graph.adjacency.sum(axis=1)
        scale = np.divide(1.0, degree, out=np.zeros(graph.num_nodes), where=degree > 0)
        return SparseMatrix.of(sp.csr_array(sp.diags_array(scale) @ graph.adjacency), device)

    return once(graph, ("mean", device), build)


@contextmanager
def quiet() -> Iterator[None]:
    """Without PyTorch's warnings that sparse matrices are young, and that a file is read-only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        yield


Built = TypeVar("Built")


def once(graph: Graph, key: object, build: Callable[[], Built]) -> Built:
    """What `build` makes of a graph, made when it is first asked for and kept with the graph.

    Args:
        graph: With which it is kept.
        key: By what it is known.
        build: Makes it.
    """
    if key not in graph.derived:
        graph.derived[key] = build()
    return graph.derived[key]  # type: ignore[return-value]
