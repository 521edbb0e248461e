"""Sparse products without a gradient, by the kernel that recommender systems sum embeddings with.

A row of a product is a weighted sum of rows of the dense side: an embedding bag. FBGEMM's kernel
fetches rows ahead of their use, so that a matrix need not be cut to fit the cache. One product is
about twice as fast as PyTorch's CSR product of as many columns; against one that was cut, a whole
fit gains on several threads, not on one.

Sparse matrices that are too large to be used in one piece, as blocks of rows or of columns.

Sparse products with a gradient: features times weights, neighbors' sums and means.

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
from typing import Self

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn.edge_weights import inverse_root, weigh, weighted_links
from nodenova.nn.seeding import threads_by_rows

BLOCK_ENTRIES = 2**24  # of a matrix on disk that are used at a time: 128 MiB
# Every row of transposed features picks from all of the dense side, of which so many rows at a time
# stay in the cache: that many columns has a block, or more where
BLOCK_COLUMNS = 2**15
MIN_ENTRIES = 8  # entries of a row would be too few: each block has all rows to go through

Empty = Callable[[int, type[np.generic]], np.ndarray]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A CSR matrix as blocks; a product takes one after the other and adds up what they say.

    Attributes:
        shape: (n, m).
        nnz: How many entries it has.
        device: The processor.
        places: Rows and columns of each block.
        blocks: (rows, columns) each.
    """

    shape: tuple[int, int]
    nnz: int
    device: torch.device
    places: tuple[tuple[slice, slice], ...]
    blocks: tuple[Tensor, ...]

    @classmethod
    def of_rows(cls, matrix: sp.csr_array, device: torch.device) -> Blocks:
        """Over the same arrays as SciPy's, of which a product has some in memory at a time."""
        places, blocks = [], []
        for start, end in row_blocks(matrix.indptr):
            first, last = int(matrix.indptr[start]), int(matrix.indptr[end])
            part = sp.csr_array((end - start, matrix.shape[1]), dtype=np.float32)
            part.indptr = matrix.indptr[start : end + 1] - first
            part.indices, part.data = matrix.indices[first:last], matrix.data[first:last]
            places.append((slice(start, end), slice(None)))
            blocks.append(torch_csr(part, device))
        return cls(matrix.shape, matrix.nnz, device, tuple(places), tuple(blocks))

    @classmethod
    def of_transpose(cls, matrix: sp.csr_array, device: torch.device, empty: Empty) -> Blocks:
        """The transpose of a matrix, some columns each, in arrays of its own.

        Args:
            matrix: (m, n); a block is the transpose of some of its rows.
            device: The processor.
            empty: Makes the arrays.
        """
        m, n = matrix.shape
        width = -(-m // num_transposed(matrix))
        indices, data = empty(matrix.nnz, np.int32), empty(matrix.nnz, np.float32)
        places, blocks = [], []
        for start in range(0, m, width):
            end = min(start + width, m)
            mine = slice(int(matrix.indptr[start]), int(matrix.indptr[end]))
            pointers = matrix.indptr[start : end + 1] - mine.start
            rows = (matrix.data[mine], matrix.indices[mine], pointers)
            turned = sp.csr_array(sp.csr_array(rows, shape=(end - start, n)).T)
            indices[mine], data[mine] = turned.indices, turned.data
            turned.indices, turned.data = indices[mine], data[mine]
            places.append((slice(None), slice(start, end)))
            blocks.append(torch_csr(turned, device))
        return cls((n, m), matrix.nnz, device, tuple(places), tuple(blocks))

    def __matmul__(self, dense: Tensor) -> Tensor:
        out = dense.new_zeros(self.shape[0], dense.shape[1])
        for (rows, columns), block in zip(self.places, self.blocks, strict=True):
            torch.addmm(out[rows], block, dense[columns], out=out[rows])
        return out


def num_transposed(matrix: sp.csr_array) -> int:
    """How many blocks the transpose of a matrix is made of.

    Examples:
        >>> num_transposed(sp.eye_array(10, format="csr"))
        1
    """
    rows, columns = matrix.shape
    return max(min(-(-rows // BLOCK_COLUMNS), matrix.nnz // max(MIN_ENTRIES * columns, 1)), 1)


def row_blocks(indptr: np.ndarray, entries: int | None = None) -> Iterator[tuple[int, int]]:
    """First and last row, exclusive, of blocks of at most so many entries, or of one row.

    Args:
        indptr: Where the rows of a CSR matrix start.
        entries: BLOCK_ENTRIES unless given.

    Examples:
        >>> list(row_blocks(np.array([0, 4, 5, 6]), entries=4))
        [(0, 1), (1, 3)]
    """
    start, rows = 0, len(indptr) - 1
    entries = entries or BLOCK_ENTRIES
    while start < rows:
        most = np.searchsorted(indptr, indptr[start] + entries, side="right") - 1
        end = min(max(int(most), start + 1), rows)
        yield start, end
        start = end


def torch_csr(matrix: sp.csr_array, device: torch.device) -> Tensor:
    """PyTorch's over the arrays of SciPy's, as far as their types allow."""
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


@contextmanager
def quiet() -> Iterator[None]:
    """Without PyTorch's warnings that sparse matrices are young, and that a file is read-only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        yield


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, matrix: SparseMatrix, dense: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.matrix = matrix
        return _multiplied(matrix.csr, dense)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[None, Tensor]:  # type: ignore[no-untyped-def]
        return None, _multiplied(ctx.matrix.csr_t, grad.contiguous())


def _multiplied(csr: Tensor | Blocks, dense: Tensor) -> Tensor:
    nnz = csr.nnz if isinstance(csr, Blocks) else csr.values().shape[0]
    with threads_by_rows(nnz * dense.shape[-1]):
        return csr @ dense


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A constant CSR matrix; `matrix @ dense` has a gradient for the dense side.

    Attributes:
        csr: (n, m).
        turn: Makes (m, n) the transpose, when it is first asked for.
    """

    csr: Tensor | Blocks
    turn: Callable[[], Tensor | Blocks]

    @cached_property
    def csr_t(self) -> Tensor | Blocks:
        """(m, n)."""
        return self.turn()

    @classmethod
    def of(
        cls,
        matrix: sp.csr_array,
        device: torch.device,
        symmetric: bool = False,
        graph: Graph | None = None,
    ) -> Self:
        """From SciPy's. A symmetric matrix is its own transpose, and is stored once.

        Args:
            matrix: Which.
            device: Where to.
            symmetric: Whether it is.
            graph: Beside whose arrays others are put, and whose products go by blocks; in one piece
                unless given.
        """
        csr = _wrapped(matrix, device, graph)

        def turn() -> Tensor | Blocks:
            if graph is None or device.type != "cpu":
                return torch_csr(sp.csr_array(matrix.T), device)
            turned = Blocks.of_transpose(matrix, device, graph.empty)
            return turned if len(turned.blocks) > 1 else turned.blocks[0]

        return cls(csr, (lambda: csr) if symmetric else turn)

    @property
    def nnz(self) -> int:
        """How many entries it has."""
        return self.csr.nnz if isinstance(self.csr, Blocks) else self.csr.values().shape[0]

    def transpose(self) -> SparseMatrix:
        """(m, n) as one of its own."""
        return SparseMatrix(self.csr_t, lambda: self.csr)

    def __matmul__(self, dense: Tensor) -> Tensor:
        return _Product.apply(self, dense)  # type: ignore[no-untyped-call]

    def dropout(self, p: float) -> SparseMatrix:
        """The same, each number zero with probability p, else 1 / (1 - p) times as large."""
        assert isinstance(self.csr, Tensor)
        assert isinstance(self.csr_t, Tensor)
        values = F.dropout(self.csr.values(), p)
        turned = _with_values(self.csr_t, values[self._turned])
        return SparseMatrix(_with_values(self.csr, values), lambda: turned)

    @cached_property
    def _turned(self) -> Tensor:
        """Where each number of the transpose stands in the matrix."""
        assert isinstance(self.csr, Tensor)
        start = self.csr.crow_indices().cpu().numpy()
        columns = self.csr.col_indices().cpu().numpy()
        numbers = (np.arange(len(columns)), columns, start)
        numbered = sp.csr_array(numbers, shape=tuple(self.csr.shape))
        return torch.from_numpy(sp.csr_array(numbered.T).data).to(self.csr.device)


def _wrapped(matrix: sp.csr_array, device: torch.device, graph: Graph | None) -> Tensor | Blocks:
    large = graph is not None and graph.is_mapped and matrix.nnz > BLOCK_ENTRIES
    if large and device.type == "cpu":
        return Blocks.of_rows(matrix, device)
    return torch_csr(matrix, device)


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

    return graph.cached(("features", device, row_normalize), build)


def gcn_operator(graph: Graph, device: torch.device) -> SparseMatrix:
    """D^-1/2 (A + I) D^-1/2, the propagation of Kipf & Welling's GCN; weighted if edges are.

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
        root = inverse_root(graph)
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
            weigh(graph, smooth.data[first:last], start, end, is_other)
        return SparseMatrix.of(smooth, device, symmetric=True, graph=graph)

    return graph.cached(("gcn", device), build)


def mean_operator(graph: Graph, device: torch.device) -> SparseMatrix:
    """D^-1 A: the mean over neighbors, zero for an isolated node (GraphSAGE's mean aggregator)."""

    def build() -> SparseMatrix:
        degree = weighted_links(graph).sum(axis=1)
        scale = np.divide(1.0, degree, out=np.zeros(graph.num_nodes), where=degree > 0)
        return SparseMatrix.of(sp.csr_array(sp.diags_array(scale) @ weighted_links(graph)), device)

    return graph.cached(("mean", device), build)


class BagMatrix(SparseMatrix):
    """A constant CSR matrix whose products nobody derives.

    A number of a product is added up by one thread, in the order of its row: it depends neither on
    the number of threads nor on the other columns.

    Examples:
        >>> import scipy.sparse as sp
        >>> eye = BagMatrix.of(sp.eye_array(2, format="csr"), torch.device("cpu"))
        >>> eye @ torch.tensor([[1.0], [3.0]])
        tensor([[1.],
                [3.]])
    """

    def transpose(self) -> BagMatrix:
        """(m, n) as one of its own."""
        return BagMatrix(self.csr_t, lambda: self.csr)

    @torch.no_grad()
    def __matmul__(self, dense: Tensor) -> Tensor:
        with threads_by_rows(self.nnz * dense.shape[1]):
            if dense.device.type != "cpu":
                return self.csr @ dense
            dense = dense.contiguous()
            if isinstance(self.csr, Tensor):
                return weighted_sums(self.csr, dense)
            out = dense.new_zeros(self.csr.shape[0], dense.shape[1])
            for (rows, columns), block in zip(self.csr.places, self.csr.blocks, strict=True):
                out[rows] += weighted_sums(block, dense[columns])
            return out


def smooth_operator(graph: Graph, device: torch.device) -> BagMatrix:
    """`gcn_operator`, over the same arrays, for products without a gradient."""

    def build() -> BagMatrix:
        csr = gcn_operator(graph, device).csr
        return BagMatrix(csr, lambda: csr)

    return graph.cached(("smooth", device), build)


def weighted_sums(csr: Tensor, dense: Tensor) -> Tensor:
    """(n, c) the sum over the entries of each row of a CSR matrix of entry times row of `dense`."""
    return F.embedding_bag(
        csr.col_indices(),
        dense,
        csr.crow_indices(),
        mode="sum",
        per_sample_weights=csr.values(),
        include_last_offset=True,
    )
