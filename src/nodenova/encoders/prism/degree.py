"""Numbers of words and neighbors, of a node and around it: a view of Prism beside words."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from nodenova.graph import Graph
from nodenova.nn.distributed import (
    Columns,
    SplitColumns,
    centered_moments,
    join_columns,
    map_rows,
    smoothing,
    split_of,
)
from nodenova.nn.sparse import degree as weighted_degree

STEPS = (0, 1, 2, 8)  # steps of the walk over which counts are averaged
RBF_CENTERS = (-2.0, -1.0, 0.0, 1.0, 2.0)  # in standard deviations from the mean
COLUMNS = 2 * len(STEPS) * len(RBF_CENTERS)


class DegreeFeatures(nn.Module):
    """Graph -> (N, 40) numbers of neighbors and words of a node, and averages around it.

        c_k    = P^k log(1 + count),  P = D^-1 (A + I),  k in STEPS      (8 numbers per node)
        bump_j = exp(-(c - j)^2 / 2),  c standardized,  j in RBF_CENTERS

    The bumps are radial basis functions: with them a class can lie in the middle of a scale. Views
    of words, scaled to unit length, hold little of either count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(2 * len(STEPS)))
        self.register_buffer("spread", torch.ones(2 * len(STEPS)))
        self.centre: Tensor
        self.spread: Tensor

    @classmethod
    def fit(cls, graph: Graph, device: torch.device) -> DegreeFeatures:
        """Fit the mean and the standard deviation of the counts of a graph."""
        counts = cls().to(device)
        number = averaged_counts(graph, device)
        if isinstance(number, SplitColumns):
            mean, products = centered_moments(number)
            spread = (products.diagonal() / graph.num_nodes).sqrt().float()
        else:
            mean, spread = number.mean(dim=0), number.std(dim=0, unbiased=False)
        counts.centre.copy_(mean)
        # A count that is the same for all nodes differs at most by rounding.
        counts.spread.copy_(torch.where(spread > 1e-4, spread, torch.inf))
        return counts

    def forward(self, graph: Graph) -> Columns:
        return map_rows(self.bumps, averaged_counts(graph, self.centre.device))

    def bumps(self, number: Tensor) -> Tensor:
        """(n, 40) bumps of c_k (n, 8)."""
        c = (number - self.centre) / self.spread
        return torch.cat([torch.exp(-(c - at).square() / 2) for at in RBF_CENTERS], dim=1)


def averaged_counts(graph: Graph, device: torch.device) -> Columns:
    """(N, 8) c_k of neighbors and of words, by P^k = D^-1/2 S^k D^1/2."""
    split, smooth = split_of(graph), cast(Any, smoothing(graph, device))
    column: Any = _root_counts(graph).to(device) if split is None else split.each(_root_counts)
    found: list[Columns] = []
    for step in range(max(STEPS) + 1):
        if step in STEPS:
            over = _over_root(graph, column) if split is None else split.each(_over_root, column)
            found.append(over)
        column = smooth @ column
    return join_columns(found)


def _root_counts(graph: Graph) -> Tensor:
    """(n, 2) D^1/2 log(1 + count) of neighbors and of words."""
    x = graph.x
    degree = np.diff(graph.adjacency.indptr)
    words = np.count_nonzero(x, axis=1) if isinstance(x, np.ndarray) else np.diff(x.indptr)
    counts = np.log1p(np.stack([degree, words], axis=1)).astype(np.float32)
    return torch.from_numpy(counts) * _root(graph)


def _over_root(graph: Graph, column: Tensor) -> Tensor:
    return column / _root(graph).to(column.device)


def _root(graph: Graph) -> Tensor:
    """(n, 1) D^1/2."""
    return torch.from_numpy(np.sqrt(weighted_degree(graph))[:, None].astype(np.float32))
