"""Sparse products: features times weights, sums and means over neighbors.

Bag-of-words features are about 1% dense, and a normalized adjacency in CSR form replaces a gather
and a scatter over every edge. With a gradient (`SparseMatrix`) both need the transposed matrix in
the backward pass, so it is stored. Without one (`BagMatrix`) the kernel is that of an embedding
bag.

How edge weights count: S = D^-1/2 (A + L) D^-1/2, with A the weights and L the self-loop of a node,
which weighs what its edges weigh on average. So a node keeps the share 1 / (neighbors + 1) of
itself that it has without weights, and scaling all weights changes nothing.
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

from nodenova.errors import GraphError
from nodenova.graph import Graph, SampledGraph
from nodenova.nn.seeding import threads_by_rows
from nodenova.nn.threaded_matmul import without_autocast

BLOCK_ENTRIES = 2**24  # entries of a matrix on disk that are used at a time: 128 MiB
BLOCK_COLUMNS = 2**15  # of a block of a transpose: as many dense rows stay in the cache
MIN_TOTAL = (
    1e-30  # sum of a row of features below which it counts as a row of zeros: safe in float32
)
MIN_ENTRIES = 8  # mean entries per row of such a block: each block goes through all rows

Empty = Callable[[int, type[np.generic]], np.ndarray]


@dataclass(frozen=True, eq=False)
class BlockMatrix:
    """A CSR matrix as blocks of rows or columns; a product adds up those of the blocks."""

    shape: tuple[int, int]  # (n, m)
    nnz: int
    device: torch.device
    places: tuple[tuple[slice, slice], ...]  # rows and columns of each block
    blocks: tuple[Tensor, ...]

    @classmethod
    def of_rows(cls, matrix: sp.csr_array, device: torch.device) -> BlockMatrix:
        """Blocks of rows over the arrays of a SciPy matrix, read one after the other."""
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
    def of_transpose(cls, matrix: sp.csr_array, device: torch.device, empty: Empty) -> BlockMatrix:
        """The transpose (n, m) of a matrix (m, n), as blocks of columns."""
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
    """Number of blocks of the transpose of a matrix."""
    rows, columns = matrix.shape
    return max(min(-(-rows // BLOCK_COLUMNS), matrix.nnz // max(MIN_ENTRIES * columns, 1)), 1)


def row_blocks(indptr: np.ndarray, entries: int | None = None) -> Iterator[tuple[int, int]]:
    """First and last row, exclusive, of blocks of one row or at most `entries` entries.

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
    """A PyTorch CSR tensor over the arrays of SciPy's, as far as their types allow."""
    # MKL's kernel takes 32-bit indices as they are; 64-bit ones are converted in every product.
    index = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
    with quiet_torch():
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(index, copy=False)),
            torch.from_numpy(matrix.indices.astype(index, copy=False)),
            torch.from_numpy(matrix.data.astype(np.float32, copy=False)),
            matrix.shape,
            check_invariants=False,  # SciPy keeps them
        ).to(device)


@contextmanager
def quiet_torch() -> Iterator[None]:
    """Ignore the warnings that sparse CSR is in beta and that a mapped array is read-only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        yield


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, matrix: SparseMatrix, dense: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.matrix = matrix
        return _multiply(matrix.csr, dense)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[None, Tensor]:  # type: ignore[no-untyped-def]
        return None, _multiply(ctx.matrix.csr_t, grad.contiguous())


def _multiply(csr: Tensor | BlockMatrix, dense: Tensor) -> Tensor:
    nnz = csr.nnz if isinstance(csr, BlockMatrix) else csr.values().shape[0]
    with threads_by_rows(nnz * dense.shape[-1]):
        return csr @ dense


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A constant CSR matrix; `matrix @ dense` has a gradient for the dense side."""

    csr: Tensor | BlockMatrix  # (n, m)
    # returns the (m, n) transpose; called on first use
    build_transpose: Callable[[], Tensor | BlockMatrix]

    @cached_property
    def csr_t(self) -> Tensor | BlockMatrix:
        return self.build_transpose()

    @classmethod
    def of(
        cls,
        matrix: sp.csr_array,
        device: torch.device,
        symmetric: bool = False,
        graph: Graph | None = None,
    ) -> Self:
        """From a SciPy matrix. A symmetric one is its own transpose.

        With `graph`, new arrays are placed beside the graph's and large products go by blocks.
        """
        csr = _wrap(matrix, device, graph)

        def build_transpose() -> Tensor | BlockMatrix:
            if graph is None or device.type != "cpu":
                return torch_csr(sp.csr_array(matrix.T), device)
            turned = BlockMatrix.of_transpose(matrix, device, graph.empty)
            return turned if len(turned.blocks) > 1 else turned.blocks[0]

        return cls(csr, (lambda: csr) if symmetric else build_transpose)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        n, m = self.csr.shape
        return int(n), int(m)

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return self.csr.nnz if isinstance(self.csr, BlockMatrix) else self.csr.values().shape[0]

    def transpose(self) -> SparseMatrix:
        """(m, n)."""
        return SparseMatrix(self.csr_t, lambda: self.csr)

    def __matmul__(self, dense: Tensor) -> Tensor:
        with without_autocast(dense.device):
            return _Product.apply(self, dense)  # type: ignore[no-untyped-call]

    def dropout(self, p: float) -> SparseMatrix:
        """Each number zero with probability p, else 1 / (1 - p) times as large."""
        assert isinstance(self.csr, Tensor)
        assert isinstance(self.csr_t, Tensor)
        values = F.dropout(self.csr.values(), p)
        turned = _with_values(self.csr_t, values[self._turned])
        return SparseMatrix(_with_values(self.csr, values), lambda: turned)

    @cached_property
    def _turned(self) -> Tensor:
        """Index in the matrix of each number of the transpose."""
        assert isinstance(self.csr, Tensor)
        start = self.csr.crow_indices().cpu().numpy()
        columns = self.csr.col_indices().cpu().numpy()
        numbers = (np.arange(len(columns)), columns, start)
        numbered = sp.csr_array(numbers, shape=tuple(self.csr.shape))
        return torch.from_numpy(sp.csr_array(numbered.T).data).to(self.csr.device)


def _wrap(matrix: sp.csr_array, device: torch.device, graph: Graph | None) -> Tensor | BlockMatrix:
    large = graph is not None and graph.is_mapped and matrix.nnz > BLOCK_ENTRIES
    if large and device.type == "cpu":
        return BlockMatrix.of_rows(matrix, device)
    return torch_csr(matrix, device)


def _with_values(matrix: Tensor, values: Tensor) -> Tensor:
    with quiet_torch():
        parts = (matrix.crow_indices(), matrix.col_indices(), values)
        return torch.sparse_csr_tensor(*parts, matrix.shape, check_invariants=False)


def features(graph: Graph, device: torch.device, row_normalize: bool) -> SparseMatrix | Tensor:
    """(N, d) features for `@ weight`, built once per graph and device.

    With `row_normalize`, rows are divided by their sum; a row of zeros stays.
    """

    def build() -> SparseMatrix | Tensor:
        x = graph.x
        if row_normalize:
            total = np.asarray(x.sum(axis=1)).ravel()
            far = np.abs(total) >= MIN_TOTAL
            scale = np.divide(1.0, total, out=np.zeros_like(total), where=far)
            x = sp.csr_array(sp.diags_array(scale) @ x) if sp.issparse(x) else x * scale[:, None]
        if sp.issparse(x):
            return SparseMatrix.of(x, device)
        with quiet_torch():
            return torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)).to(device)

    return graph.cached(("features", device, row_normalize), build)


def are_counts(graph: Graph) -> bool:
    """Whether features are never negative, as bags of words are.

    Those are divided by their sum, as in the paper; others are left alone.
    """
    values = graph.x if isinstance(graph.x, np.ndarray) else graph.x.data
    return bool((values >= 0).all())


def text_vectors(graph: Graph, width: int, device: torch.device) -> Tensor:
    """(N, width) the text vectors of a graph."""
    if graph.vectors is None:
        raise GraphError(
            f"the model was fitted with text vectors of {width} numbers, but this graph has none: "
            "set text_vectors (--text-vectors)"
        )
    if graph.vectors.shape[1] != width:
        raise GraphError(
            f"text vectors have {graph.vectors.shape[1]} numbers, but the model was fitted with "
            f"vectors of {width}: use the same text_vectors (--text-vectors)"
        )
    with quiet_torch():  # they may be memory-mapped; they are only read
        return torch.from_numpy(graph.vectors).to(device)


@dataclass(frozen=True, eq=False)
class FeaturesAndVectors:
    """Sparse features (N, d) and dense columns (N, k) beside them, as one matrix (N, d + k)."""

    words: SparseMatrix
    vectors: Tensor

    def __matmul__(self, dense: Tensor) -> Tensor:
        d = self.words.shape[1]
        return self.words @ dense[:d] + self.vectors @ dense[d:]

    def dropout(self, p: float) -> FeaturesAndVectors:
        """Each number zero with probability p, else 1 / (1 - p) times as large."""
        return FeaturesAndVectors(self.words.dropout(p), F.dropout(self.vectors, p))


def loop_weight(graph: Graph) -> np.ndarray:
    """(N,) weight of each self-loop: the mean weight of the node's edges, 1 without any."""
    if isinstance(graph, SampledGraph):
        whole = graph.whole
        return whole.cached("loop weight", lambda: loop_weight(whole))[graph.nodes]
    ones = np.ones(graph.num_nodes)
    if graph.edge_weight is None:
        return ones
    neighbors = np.diff(graph.adjacency.indptr)
    return np.divide(_total(graph), neighbors, out=ones, where=neighbors > 0)


def degree(graph: Graph) -> np.ndarray:
    """(N,) D: the weights of a node's edges and of its self-loop."""
    if graph.edge_weight is None:
        return np.diff(graph.adjacency.indptr) + 1.0
    return _total(graph) + loop_weight(graph)


def inverse_root(graph: Graph) -> np.ndarray:
    """(N,) D^-1/2, float32; of drawn nodes, that in the whole graph."""
    if isinstance(graph, SampledGraph):
        whole = graph.whole
        return whole.cached("inverse root", lambda: inverse_root(whole))[graph.nodes]
    if graph.edge_weight is not None:
        return (1.0 / np.sqrt(degree(graph))).astype(np.float32)
    size = np.diff(graph.adjacency.indptr) + 1
    return (1.0 / np.sqrt(size.astype(np.float32))).astype(np.float32)


def apply_edge_weights(
    graph: Graph, data: np.ndarray, start: int, end: int, is_other: np.ndarray
) -> None:
    """Multiply entries of the rows start..end of D^-1/2 D^-1/2 by the edge weights, in place.

    `is_other` (entries,) is False at self-loops. Without weights nothing is done.
    """
    if graph.edge_weight is not None:
        indptr = graph.adjacency.indptr
        data[is_other] *= graph.edge_weight[indptr[start] : indptr[end]]
        data[~is_other] *= loop_weight(graph)[start:end].astype(np.float32)


def weighted_links(graph: Graph) -> sp.csr_array:
    """(N, N) symmetric CSR of weights; ones for an unweighted graph."""
    links = graph.adjacency
    if graph.edge_weight is None:
        return links
    parts = (np.asarray(graph.edge_weight), links.indices, links.indptr)
    return sp.csr_array(parts, shape=links.shape)


def _total(graph: Graph) -> np.ndarray:
    """(N,) sum of the weights of each node's edges, in double precision."""

    def build() -> np.ndarray:
        indptr = graph.adjacency.indptr
        linked = np.flatnonzero(np.diff(indptr))
        total = np.zeros(graph.num_nodes)
        if len(linked):
            weight = np.asarray(graph.edge_weight)
            total[linked] = np.add.reduceat(weight, indptr[linked], dtype=np.float64)
        return total

    return graph.cached("total weight", build)


def gcn_operator(graph: Graph, device: torch.device) -> SparseMatrix:
    """D^-1/2 (A + I) D^-1/2, the propagation of Kipf & Welling's GCN; weighted if edges are."""

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
            apply_edge_weights(graph, smooth.data[first:last], start, end, is_other)
        symmetric = not isinstance(graph, SampledGraph)
        return SparseMatrix.of(smooth, device, symmetric=symmetric, graph=graph)

    return graph.cached(("gcn", device), build)


def mean_operator(graph: Graph, device: torch.device) -> SparseMatrix:
    """D^-1 A: mean over neighbors, zero for an isolated node (GraphSAGE's mean aggregator)."""

    def build() -> SparseMatrix:
        degree = weighted_links(graph).sum(axis=1)
        scale = np.divide(1.0, degree, out=np.zeros(graph.num_nodes), where=degree > 0)
        return SparseMatrix.of(sp.csr_array(sp.diags_array(scale) @ weighted_links(graph)), device)

    return graph.cached(("mean", device), build)


class BagMatrix(SparseMatrix):
    """A constant CSR matrix for products without a gradient.

    FBGEMM's embedding-bag kernel fetches rows ahead of their use, about twice as fast as PyTorch's
    CSR product. Each number is added up by one thread in the order of its row: it depends neither
    on the number of threads nor on the other columns.
    """

    def transpose(self) -> BagMatrix:
        """(m, n)."""
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
    """`gcn_operator` over the same arrays, for products without a gradient."""

    def build() -> BagMatrix:
        csr = gcn_operator(graph, device).csr
        return BagMatrix(csr, lambda: csr)

    return graph.cached(("smooth", device), build)


def weighted_sums(csr: Tensor, dense: Tensor) -> Tensor:
    """(n, c) sum over the entries of each row of a CSR matrix of entry times row of `dense`."""
    return weighted_bags(csr.col_indices(), csr.crow_indices(), csr.values(), dense)


def weighted_bags(index: Tensor, start: Tensor, weight: Tensor, dense: Tensor) -> Tensor:
    """(n, c) sum over the entries from start[i] to start[i + 1] of weight times dense[index]."""
    return F.embedding_bag(
        index, dense, start, mode="sum", per_sample_weights=weight, include_last_offset=True
    )
