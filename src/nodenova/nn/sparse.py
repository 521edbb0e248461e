"""Sparse products with a gradient: features times weights, neighbors' sums and means.

Two facts make this the fast path: bag-of-words features are ~1 % dense, and a normalized adjacency
in CSR form replaces a gather and a scatter over every edge. Both need the transposed matrix in the
backward pass, so it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn import blocks
from nodenova.nn.blocks import Blocks, quiet, row_blocks, torch_csr
from nodenova.nn.edge_weights import inverse_root, weigh, weighted_links
from nodenova.nn.seeding import threads_by_rows


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
    large = graph is not None and graph.is_mapped and matrix.nnz > blocks.BLOCK_ENTRIES
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

    return once(graph, ("features", device, row_normalize), build)


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

    return once(graph, ("gcn", device), build)


def mean_operator(graph: Graph, device: torch.device) -> SparseMatrix:
    """D^-1 A: the mean over neighbors, zero for an isolated node (GraphSAGE's mean aggregator)."""

    def build() -> SparseMatrix:
        degree = weighted_links(graph).sum(axis=1)
        scale = np.divide(1.0, degree, out=np.zeros(graph.num_nodes), where=degree > 0)
        return SparseMatrix.of(sp.csr_array(sp.diags_array(scale) @ weighted_links(graph)), device)

    return once(graph, ("mean", device), build)


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
