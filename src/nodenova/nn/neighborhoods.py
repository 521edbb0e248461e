"""The edges of a graph as attention runs over them: sums, products, blocks of one head's edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn.blocks import quiet
from nodenova.nn.seeding import MIN_DIVIDED, on_threads
from nodenova.nn.sparse import once

BLOCK = 2**17  # numbers in a block of attention v2: half a MiB
# Scores that differ by less need no shift of their own in a softmax: e^-16 is far from underflow.
SAME_SHIFT = 16.0


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """Edges with one self-loop a node, sorted by target: what attention runs over.

    For every edge its opposite is there. Everything here is heads first and works on one head at a
    time: a vector of E numbers stays in the processor's cache.

    Attributes:
        source: (E,) int64.
        target: (E,) int64, ascending.
        start: (N + 1,) where each target's edges begin.
        turned: (E,) the number of each edge's opposite edge: edge (j, i) of edge (i, j).
    """

    source: Tensor
    target: Tensor
    start: Tensor
    turned: Tensor

    def each_head(self, work: Callable[[int], None], h: Tensor) -> None:
        """Do `work` for every head of h (heads, N, size): on all threads, each head on one."""
        self._short  # noqa: B018  made before two heads ask for it at once
        if len(self.source) * h.shape[0] * h.shape[2] < MIN_DIVIDED:
            for k in range(len(h)):
                work(k)
        else:
            on_threads(work, range(len(h)))

    def exponentials(self, score: Tensor) -> Tensor:
        """(E,) exp(score - a shift that a target's edges share).

        No overflow, and no target whose edges are all zero.
        """
        low, high = score.aminmax()
        if high - low > SAME_SHIFT:
            highest = torch.segment_reduce(score, "max", offsets=self.start, axis=0)  # (N,)
            high = highest.index_select(0, self.target)
        return (score - high).exp_()

    def sums(self, weight: Tensor, h: Tensor) -> Tensor:
        """(N, size) sum over each target's edges of weight (E,) times h (N, size) at the source."""
        return F.embedding_bag(
            self.source,
            h,
            self.start,
            mode="sum",
            per_sample_weights=weight,
            include_last_offset=True,
        )

    def totals(self, values: Tensor) -> Tensor:
        """(N,) sum over each target's edges of values (E,)."""
        return self.matrix(values) @ values.new_ones(len(self.start) - 1)

    def products(self, target: Tensor, source: Tensor) -> Tensor:
        """(E,) inner products of `target` and `source` (N, size) at the two ends of every edge."""
        empty = self.matrix(target.new_zeros(len(self.source)))
        return torch.sparse.sampled_addmm(empty, target, source.t(), beta=0.0).values()

    def matrix(self, values: Tensor) -> Tensor:
        """(N, N) CSR with `values` on the edges. Its transpose is matrix(values[turned])."""
        start, source = self._short
        n = len(start) - 1
        with quiet():
            return torch.sparse_csr_tensor(start, source, values, (n, n), check_invariants=False)

    @cached_property
    def _short(self) -> tuple[Tensor, Tensor]:
        return self.start.int(), self.source.int()

    def blocks(self, size: int) -> list[tuple[slice, slice]]:
        """Targets and their edges, in parts whose (edges, size) tensor has at most BLOCK numbers.

        A part has one target at least.
        """
        start = self.start.cpu().numpy()
        found, first = [], 0
        while first < len(start) - 1:
            full = int(np.searchsorted(start, start[first] + BLOCK // size, side="right")) - 1
            last = max(full, first + 1)
            found.append((slice(first, last), slice(int(start[first]), int(start[last]))))
            first = last
        return found

    def both_ends(self, source: Tensor, target: Tensor, targets: slice, edges: slice) -> Tensor:
        """(edges in it, size) source_j + target_i of the edges in a block; both are (N, size)."""
        place = self.target[edges] - targets.start
        here = target[targets].index_select(0, place)
        return source.index_select(0, self.source[edges]).add_(here)


def neighborhoods(graph: Graph, device: torch.device) -> Neighborhoods:
    """The graph's edges and self-loops for attention, built once for a graph and a device."""

    def build() -> Neighborhoods:
        loops = sp.eye_array(graph.num_nodes, dtype=np.float32, format="csr")
        pattern = sp.csr_array(graph.adjacency + loops)
        pattern.sort_indices()
        numbers = (np.arange(pattern.nnz), pattern.indices, pattern.indptr)
        numbered = sp.csr_array(numbers, shape=pattern.shape)
        turned = sp.csr_array(numbered.T)
        turned.sort_indices()
        target = np.repeat(np.arange(graph.num_nodes), np.diff(pattern.indptr))
        parts = (pattern.indices, target, pattern.indptr, turned.data)
        return Neighborhoods(
            *(torch.from_numpy(part.astype(np.int64)).to(device) for part in parts)
        )

    return once(graph, ("neighbourhoods", device), build)
