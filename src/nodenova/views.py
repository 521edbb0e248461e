"""Prism's representation: smoothed and projected features, several views side by side, fitted in closed form.

A view is the truncated SVD of S^K X W: S = D^-1/2 (A + I) D^-1/2, X who has which word, W weights of words, K a depth.
No label takes part. Nothing dense of size N x d or N x N is built: features are projected first and smoothed afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from nodenova.graph import Graph
from nodenova.propagation import SparseMatrix, gcn_operator

DEPTHS = (0, 2, 8)  # a node's own words, its neighbours', the wider community's
WEIGHTS = ("common", "rare")  # what frequent words say, what rare words say
RUNGS = (6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # ranks at which classes are remembered
CENTRING = 0.5  # how much of the mean over all nodes is subtracted


@dataclass(frozen=True)
class ViewsSpec:
    """Everything but the numbers, saved beside them."""

    name: str
    num_features: int
    view_size: int  # rank of each view
    views: int = len(DEPTHS) * len(WEIGHTS)
    is_random: bool = False

    @property
    def hidden(self) -> int:
        return self.views * self.view_size

    @property
    def rungs(self) -> tuple[int, ...]:
        return tuple(sorted({min(rung, self.view_size) for rung in RUNGS}))

    def as_settings(self) -> dict[str, object]:
        return {"depths": DEPTHS, "weights": WEIGHTS, "rank": self.view_size}


class Views(nn.Module):
    """g: Graph -> z of shape (N, views * rank), linear in the weighted features but for a shift."""

    def __init__(self, spec: ViewsSpec) -> None:
        super().__init__()
        self.spec = spec
        self.register_buffer("word_weight", torch.zeros(len(WEIGHTS), spec.num_features))
        self.register_buffer("basis", torch.zeros(spec.views, spec.num_features, spec.view_size))
        self.register_buffer("shift", torch.zeros(spec.views, spec.view_size))
        self.word_weight: Tensor
        self.basis: Tensor
        self.shift: Tensor

    @classmethod
    @torch.no_grad()
    def fit(cls, graph: Graph, device: torch.device) -> Views:
        """The basis of each view from the graph alone."""
        rank = min(max(RUNGS), min(graph.x.shape) - 1)
        views = cls(ViewsSpec("prism", graph.num_features, max(rank, 1))).to(device)
        views.word_weight.copy_(torch.from_numpy(word_weights(graph)))
        smooth = gcn_operator(graph, device)
        for number, (weight, depth) in enumerate(views._kinds()):
            x = views._weighted(graph, weight)
            views.basis[number] = _right_basis(smooth, x, depth, views.spec.view_size)
        for number, view in enumerate(views._unshifted(graph)):
            views.shift[number] = CENTRING * view.mean(0)
        return views

    def forward(self, graph: Graph) -> Tensor:
        shifted = [view - shift for view, shift in zip(self._unshifted(graph), self.shift, strict=True)]
        return torch.cat(shifted, dim=1)

    def _unshifted(self, graph: Graph):  # type: ignore[no-untyped-def]
        smooth = gcn_operator(graph, self.basis.device)
        for (weight, depth), basis in zip(self._kinds(), self.basis, strict=True):
            yield _smoothed(smooth, self._weighted(graph, weight) @ basis, depth)

    def _kinds(self) -> list[tuple[int, int]]:
        return [(weight, depth) for depth in DEPTHS for weight in range(len(WEIGHTS))]

    def _weighted(self, graph: Graph, weight: int) -> SparseMatrix | Tensor:
        return weighted_words(graph, self.word_weight[weight].cpu().numpy(), WEIGHTS[weight], self.basis.device)


def word_weights(graph: Graph) -> np.ndarray:
    """(2, d): df^-1/4 for what common words say, idf^2 for what rare ones say."""
    n = graph.num_nodes
    if isinstance(graph.x, np.ndarray):
        # Measurements, not words: as they are, and each divided by its spread.
        spread = graph.x.std(axis=0)
        return np.stack([np.ones_like(spread), np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)])
    df = np.maximum(np.bincount(graph.x.indices, minlength=graph.num_features), 1)
    return np.stack([df**-0.25, np.log(n / df) ** 2]).astype(np.float32)


def weighted_words(graph: Graph, weight: np.ndarray, kind: str, device: torch.device) -> SparseMatrix | Tensor:
    """(N, d): who has which word, times the word's weight; for common words, long texts do not count for more."""
    x = graph.x
    if isinstance(x, np.ndarray):
        return torch.from_numpy((x - x.mean(axis=0)) * weight.astype(np.float32)).to(device)
    length = np.maximum(np.diff(x.indptr), 1)
    row = np.repeat(length**-0.5 if kind == "common" else np.ones(len(length)), np.diff(x.indptr))
    data = (row * weight[x.indices]).astype(np.float32)
    return SparseMatrix.of(sp.csr_array((data, x.indices, x.indptr), shape=x.shape), device)


def _smoothed(smooth: SparseMatrix, columns: Tensor, depth: int) -> Tensor:
    for _ in range(depth):
        columns = smooth @ columns
    return columns


def _right_basis(
    smooth: SparseMatrix, x: SparseMatrix | Tensor, depth: int, rank: int, rounds: int = 3, spare: int = 16
) -> Tensor:
    """(d, rank) right singular vectors of S^depth x by block power iteration (Halko et al. 2011), S being symmetric."""
    transposed = SparseMatrix(x.csr_t, x.csr) if isinstance(x, SparseMatrix) else x.t()
    d = x.csr.shape[1] if isinstance(x, SparseMatrix) else x.shape[1]
    # The start is the same for every graph and seed: the views are a function of the graph.
    q = torch.randn(d, min(rank + spare, d), generator=torch.Generator().manual_seed(0)).to(smooth.csr.device)
    for _ in range(rounds):
        left = torch.linalg.qr(_smoothed(smooth, x @ q, depth))[0]
        q = torch.linalg.qr(transposed @ _smoothed(smooth, left, depth))[0]
    projected = _smoothed(smooth, x @ q, depth)
    vectors = torch.linalg.eigh((projected.t() @ projected).double())[1]
    return q @ vectors.flip(1)[:, :rank].float()
