"""Sparse products that training can differentiate: features times weights, neighbours' sums and means.

Two facts make this the fast path: bag-of-words features are ~1 % dense, and a normalised adjacency in CSR form
replaces a gather and a scatter over every edge. Both need the transposed matrix in the backward pass, so it is stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
import torch
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
    """A constant CSR matrix with its transpose; `matrix @ dense` has a gradient for the dense side."""

    csr: Tensor
    csr_t: Tensor

    @classmethod
    def of(cls, matrix: sp.csr_array, device: torch.device, symmetric: bool = False) -> SparseMatrix:
        csr = _torch_csr(matrix, device)
        return cls(csr, csr if symmetric else _torch_csr(sp.csr_array(matrix.T), device))

    def __matmul__(self, dense: Tensor) -> Tensor:
        return _Product.apply(self, dense)  # type: ignore[no-untyped-call]


def _torch_csr(matrix: sp.csr_array, device: torch.device) -> Tensor:
    # 32-bit indices are what MKL's kernel takes as it is; 64-bit ones are converted in every product.
    index = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
    with _quiet():
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(index)),
            torch.from_numpy(matrix.indices.astype(index)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            matrix.shape,
            check_invariants=False,  # the matrix comes from SciPy, which keeps them
        ).to(device)


def features(graph: Graph, device: torch.device, row_normalise: bool) -> SparseMatrix | Tensor:
    """(N, d) features as something `@ weight` works on; rows divided by their sum when `row_normalise`."""

    def build() -> SparseMatrix | Tensor:
        x = graph.x
        if row_normalise:
            total = np.asarray(x.sum(axis=1)).ravel()
            scale = np.divide(1.0, total, out=np.zeros_like(total), where=total != 0)
            x = sp.csr_array(sp.diags_array(scale) @ x) if sp.issparse(x) else x * scale[:, None]
        if sp.issparse(x):
            return SparseMatrix.of(x, device)
        return torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)).to(device)

    return _once(graph, ("features", device, row_normalise), build)


def gcn_operator(graph: Graph, device: torch.device) -> SparseMatrix:
    """D^-1/2 (A + I) D^-1/2, the propagation of Kipf & Welling's GCN."""

    def build() -> SparseMatrix:
        a = graph.adjacency + sp.eye_array(graph.num_nodes, dtype=np.float32, format="csr")
        half = sp.diags_array(1.0 / np.sqrt(a.sum(axis=1)))
        return SparseMatrix.of(sp.csr_array(half @ a @ half), device, symmetric=True)

    return _once(graph, ("gcn", device), build)


def mean_operator(graph: Graph, device: torch.device) -> SparseMatrix:
    """D^-1 A: the mean over the neighbours, zero for an isolated node (GraphSAGE's mean aggregator)."""

    def build() -> SparseMatrix:
        degree = graph.adjacency.sum(axis=1)
        scale = np.divide(1.0, degree, out=np.zeros(graph.num_nodes), where=degree > 0)
        return SparseMatrix.of(sp.csr_array(sp.diags_array(scale) @ graph.adjacency), device)

    return _once(graph, ("mean", device), build)


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Edges with one self-loop a node, sorted by target: what attention runs over."""

    source: Tensor  # (E,) int64
    target: Tensor  # (E,) int64, ascending
    start: Tensor  # (N + 1,) where each target's edges begin
    turned: Tensor  # (E,) the number of each edge's opposite edge: edge (j, i) of edge (i, j)

    def softmax(self, score: Tensor) -> Tensor:
        """(E, heads) scores into weights that sum to one over each target's edges."""
        # A shift per target leaves the result as it is and keeps exp() from overflowing.
        top = torch.segment_reduce(score.detach(), "max", offsets=self.start, axis=0)
        weight = (score - top[self.target]).exp()
        return weight / torch.zeros_like(top).index_add(0, self.target, weight)[self.target]

    def weighted_sum(self, weight: Tensor, h: Tensor) -> Tensor:
        """sum over each target's edges of weight (E, heads) times h (N, heads, size) at the source: (N, heads, size)."""
        return _WeightedSum.apply(self, weight, h)  # type: ignore[no-untyped-call]

    def matrix(self, values: Tensor) -> Tensor:
        """(N, N) CSR with `values` on the edges. Its transpose is matrix(values[turned])."""
        n = len(self.start) - 1
        with _quiet():
            return torch.sparse_csr_tensor(self.start.int(), self.source.int(), values, (n, n), check_invariants=False)


class _WeightedSum(torch.autograd.Function):
    """One sparse product a head, instead of a message of full size for every edge."""

    @staticmethod
    def forward(ctx, edges: Neighbourhoods, weight: Tensor, h: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.edges = edges
        weight, h = weight.t().contiguous(), h.transpose(0, 1).contiguous()  # heads first
        ctx.save_for_backward(weight, h)
        return torch.stack([edges.matrix(w) @ h_k for w, h_k in zip(weight, h, strict=True)], dim=1)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[None, Tensor, Tensor]:  # type: ignore[no-untyped-def]
        weight, h = ctx.saved_tensors
        edges, grad = ctx.edges, grad.transpose(0, 1).contiguous()
        empty = edges.matrix(torch.zeros_like(weight[0]))
        # d weight_e = <grad of the target, h of the source>, taken only where there is an edge.
        d_weight = [
            torch.sparse.sampled_addmm(empty, g, h_k.t(), beta=0.0).values() for g, h_k in zip(grad, h, strict=True)
        ]
        d_h = [edges.matrix(w[edges.turned]) @ g for w, g in zip(weight, grad, strict=True)]
        return None, torch.stack(d_weight, dim=1), torch.stack(d_h, dim=1)


def neighbourhoods(graph: Graph, device: torch.device) -> Neighbourhoods:
    """The graph's edges and self-loops for attention."""

    def build() -> Neighbourhoods:
        pattern = sp.csr_array(graph.adjacency + sp.eye_array(graph.num_nodes, dtype=np.float32, format="csr"))
        pattern.sort_indices()
        numbered = sp.csr_array((np.arange(pattern.nnz), pattern.indices, pattern.indptr), shape=pattern.shape)
        turned = sp.csr_array(numbered.T)
        turned.sort_indices()
        target = np.repeat(np.arange(graph.num_nodes), np.diff(pattern.indptr))
        parts = (pattern.indices, target, pattern.indptr, turned.data)
        return Neighbourhoods(*(torch.from_numpy(part.astype(np.int64)).to(device) for part in parts))

    return _once(graph, ("neighbourhoods", device), build)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        yield


Built = TypeVar("Built")


def _once(graph: Graph, key: object, build: Callable[[], Built]) -> Built:
    if key not in graph.derived:
        graph.derived[key] = build()
    return graph.derived[key]  # type: ignore[return-value]
