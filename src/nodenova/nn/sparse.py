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


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, matrix: SparseMatrix, dense: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.matrix = matrix
        return matrix.csr @ dense

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[None, Tensor]:  # type: ignore[no-untyped-def]
        return None, ctx.matrix.csr_t @ grad.contiguous()


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A constant CSR matrix with its transpose; `matrix @ dense` has a gradient for the dense side.

    Attributes:
        csr: (n, m).
        csr_t: (m, n).
    """

    csr: Tensor
    csr_t: Tensor

    @classmethod
    def of(
        cls, matrix: sp.csr_array, device: torch.device, symmetric: bool = False
    ) -> SparseMatrix:
        """From SciPy's. A symmetric matrix is its own transpose, and is stored once."""
        csr = _torch_csr(matrix, device)
        return cls(csr, csr if symmetric else _torch_csr(sp.csr_array(matrix.T), device))

    def __matmul__(self, dense: Tensor) -> Tensor:
        return _Product.apply(self, dense)  # type: ignore[no-untyped-call]

    def dropout(self, p: float) -> SparseMatrix:
        """The same, each number zero with probability p, else 1 / (1 - p) times as large."""
        values = F.dropout(self.csr.values(), p)
        turned = _with_values(self.csr_t, values[self._turned])
        return SparseMatrix(_with_values(self.csr, values), turned)

    @cached_property
    def _turned(self) -> Tensor:
        """Where each number of the transpose stands in the matrix."""
        start = self.csr.crow_indices().cpu().numpy()
        columns = self.csr.col_indices().cpu().numpy()
        numbers = (np.arange(len(columns)), columns, start)
        numbered = sp.csr_array(numbers, shape=tuple(self.csr.shape))
        return torch.from_numpy(sp.csr_array(numbered.T).data).to(self.csr.device)


def _torch_csr(matrix: sp.csr_array, device: torch.device) -> Tensor:
    # 32-bit indices are what MKL's kernel takes as it is; 64-bit ones are converted in every
    # product.
    index = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
    with quiet():
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(index)),
            torch.from_numpy(matrix.indices.astype(index)),
            torch.from_numpy(matrix.data.astype(np.float32)),
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
        a = graph.adjacency + sp.eye_array(graph.num_nodes, dtype=np.float32, format="csr")
        half = sp.diags_array(1.0 / np.sqrt(a.sum(axis=1)))
        return SparseMatrix.of(sp.csr_array(half @ a @ half), device, symmetric=True)

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
    """Without PyTorch's warning that its sparse matrices are young."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
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
