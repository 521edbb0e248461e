"""Attention over the edges of a graph: scores, softmax and weighted sum.

No message of full size is stored per edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from nodenova.graph import Graph, SampledGraph
from nodenova.nn.seeding import MIN_DIVIDED, on_threads
from nodenova.nn.sparse import quiet_torch, weighted_bags
from nodenova.nn.threaded_matmul import without_autocast

BLOCK_SIZE = 2**17  # numbers in a block of attention v2: half a MiB
# Scores that differ by less need no shift of their own in a softmax: e^-16 is far from underflow.
SAME_SHIFT = 16.0


@dataclass(frozen=True, eq=False)
class EdgeSegments:
    """Edges and one self-loop per node, sorted by target: what attention runs over.

    Every edge has its opposite, in `turned`. Tensors are heads first, and one head is computed at a
    time: a vector of E numbers stays in the processor's cache.
    """

    source: Tensor  # (E,) int64
    target: Tensor  # (E,) int64, ascending
    start: Tensor  # (N + 1,) where each target's edges begin
    opposite: Tensor  # (E,) index of each edge of `turned`
    other: EdgeSegments | None = None  # the same edges turned, where they are not all in here

    @property
    def turned(self) -> EdgeSegments:
        """The edges from target to source, sorted by source; these themselves if undirected."""
        return self if self.other is None else self.other

    def each_head(self, work: Callable[[int], None], h: Tensor) -> None:
        """Call `work` for every head of h (heads, N, size), each head on one thread."""
        self._int32, self.turned._int32  # noqa: B018  built before two threads need it
        if len(self.source) * h.shape[0] * h.shape[2] < MIN_DIVIDED:
            for k in range(len(h)):
                work(k)
        else:
            on_threads(work, range(len(h)))

    def exponentials(self, score: Tensor) -> Tensor:
        """(E,) exp(score - shift), with one shift for all edges of a target.

        No overflow, and no target whose edges are all zero.
        """
        low, high = score.aminmax()
        if high - low > SAME_SHIFT:
            highest = torch.segment_reduce(score, "max", offsets=self.start, axis=0)  # (N,)
            high = highest.index_select(0, self.target)
        return (score - high).exp_()

    def sums(self, weight: Tensor, h: Tensor) -> Tensor:
        """(N, size) sum over each target's edges of weight (E,) times h (N, size) at the source."""
        return weighted_bags(self.source, self.start, weight, h)

    def totals(self, values: Tensor) -> Tensor:
        """(N,) sum over each target's edges of values (E,)."""
        return self.matrix(values) @ values.new_ones(len(self.start) - 1)

    def products(self, target: Tensor, source: Tensor) -> Tensor:
        """(E,) inner products of `target` and `source` (N, size) at the two ends of every edge."""
        empty = self.matrix(target.new_zeros(len(self.source)))
        return torch.sparse.sampled_addmm(empty, target, source.t(), beta=0.0).values()

    def matrix(self, values: Tensor) -> Tensor:
        """(N, N) CSR with `values` on the edges. Its transpose is matrix(values[opposite])."""
        start, source = self._int32
        n = len(start) - 1
        with quiet_torch():
            return torch.sparse_csr_tensor(start, source, values, (n, n), check_invariants=False)

    @cached_property
    def _int32(self) -> tuple[Tensor, Tensor]:
        return self.start.int(), self.source.int()

    def blocks(self, size: int) -> list[tuple[slice, slice]]:
        """Blocks of targets and their edges, (edges, size) at most BLOCK_SIZE numbers each."""
        start = self.start.cpu().numpy()
        found, first = [], 0
        while first < len(start) - 1:
            full = int(np.searchsorted(start, start[first] + BLOCK_SIZE // size, side="right")) - 1
            last = max(full, first + 1)
            found.append((slice(first, last), slice(int(start[first]), int(start[last]))))
            first = last
        return found

    def both_ends(self, source: Tensor, target: Tensor, targets: slice, edges: slice) -> Tensor:
        """(edges, size) source_j + target_i of the edges in a block; both are (N, size)."""
        place = self.target[edges] - targets.start
        here = target[targets].index_select(0, place)
        return source.index_select(0, self.source[edges]).add_(here)


def edge_segments(graph: Graph, device: torch.device) -> EdgeSegments:
    """The graph's edges and self-loops, built once per graph and device."""

    def build() -> EdgeSegments:
        loops = sp.eye_array(graph.num_nodes, dtype=np.float32, format="csr")
        pattern = sp.csr_array(graph.adjacency + loops)
        pattern.sort_indices()
        numbers = (np.arange(pattern.nnz), pattern.indices, pattern.indptr)
        numbered = sp.csr_array(numbers, shape=pattern.shape)
        opposite = sp.csr_array(numbered.T)
        opposite.sort_indices()
        other = None
        if isinstance(graph, SampledGraph):
            other = _segments(opposite, numbered.data[:0], device)
        return _segments(pattern, opposite.data, device, other)

    return graph.cached(("edge segments", device), build)


def _segments(
    pattern: sp.csr_array,
    opposite: np.ndarray,
    device: torch.device,
    other: EdgeSegments | None = None,
) -> EdgeSegments:
    """Segments of the edges (target, source) of a matrix."""
    target = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    numbers = (pattern.indices, target, pattern.indptr, opposite)
    first, second, start, turned = (
        torch.from_numpy(part.astype(np.int64)).to(device) for part in numbers
    )
    return EdgeSegments(first, second, start, turned, other)


def attend(edges: EdgeSegments, score: Tensor, h: Tensor) -> Tensor:
    """Sum over each target's edges of softmax(score) times h at the source.

    score (heads, E), h (heads, N, size) -> (heads, N, size), a node's heads adjacent in memory.
    """
    with without_autocast(h.device):
        return _Attend.apply(edges, score, h)  # type: ignore[no-untyped-call]


def attend_v1(
    edges: EdgeSegments, h: Tensor, source: Tensor, target: Tensor, slope: float
) -> Tensor:
    """`attend` with the score LeakyReLU(source . h_j + target . h_i) (Velickovic et al. 2018).

    h (heads, N, size), source and target (heads, size) -> (heads, N, size).
    """
    with without_autocast(h.device):
        return _AttendV1.apply(edges, h, source, target, slope)  # type: ignore[no-untyped-call]


def score_v2(
    edges: EdgeSegments, source: Tensor, target: Tensor, att: Tensor, slope: float
) -> Tensor:
    """att . LeakyReLU(source_j + target_i) of every edge j -> i (Brody et al. 2022).

    source and target (heads, N, size), att (heads, size) -> (heads, E).
    """
    with without_autocast(source.device):
        return _ScoreV2.apply(edges, source, target, att, slope)  # type: ignore[no-untyped-call]


def _weigh(edges: EdgeSegments, score: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """(E,) a = softmax(score) over each target's edges, and (N, size) sum_j a_ij h_j. One head."""
    a = edges.exponentials(score)
    a.div_(edges.totals(a).index_select(0, edges.target))
    return a, edges.sums(a, h)


def _weigh_back(edges: EdgeSegments, a: Tensor, h: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of `_weigh` for score (E,) and h (N, size), given that of its sums:

    d score_ij = a_ij (grad_i . h_j - sum_j a_ij grad_i . h_j)
    d h_j      = sum_i a_ij grad_i
    """
    d_score = edges.products(grad, h).mul_(a)
    shared = edges.totals(d_score).index_select(0, edges.target)
    d_h = edges.turned.sums(a.index_select(0, edges.opposite), grad)
    return d_score.addcmul_(a, shared, value=-1), d_h


def _empty_heads(h: Tensor) -> Tensor:
    """An empty (heads, N, size) like h, a node's heads adjacent in memory.

    The layers before and after attention multiply all heads of a node at once.
    """
    heads, n, size = h.shape
    return h.new_empty(n, heads, size).transpose(0, 1)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, edges: EdgeSegments, score: Tensor, h: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        a, out = torch.empty_like(score), _empty_heads(h)

        def head(k: int) -> None:
            a[k], out[k] = _weigh(edges, score[k], h[k].contiguous())

        edges.each_head(head, h)
        ctx.edges = edges
        ctx.save_for_backward(a, h)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[None, Tensor, Tensor]:  # type: ignore[no-untyped-def]
        a, h = ctx.saved_tensors
        edges = ctx.edges
        d_score, d_h = torch.empty_like(a), _empty_heads(h)

        def head(k: int) -> None:
            d_score[k], d_h[k] = _weigh_back(edges, a[k], h[k].contiguous(), grad[k].contiguous())

        edges.each_head(head, h)
        return None, d_score, d_h


class _AttendV1(torch.autograd.Function):
    """Also computes scores per head, while its (N, size) is in the processor's cache."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, edges: EdgeSegments, h: Tensor, source: Tensor, target: Tensor, slope: float
    ) -> Tensor:
        a = h.new_empty(len(h), len(edges.source))
        rising = torch.empty_like(a, dtype=torch.bool)
        out = _empty_heads(h)

        def head(k: int) -> None:
            mine = h[k].contiguous()
            score = (mine @ source[k]).index_select(0, edges.source)
            score.add_((mine @ target[k]).index_select(0, edges.target))
            torch.gt(score, 0, out=rising[k])
            a[k], out[k] = _weigh(edges, F.leaky_relu_(score, slope), mine)

        edges.each_head(head, h)
        ctx.edges, ctx.slope = edges, slope
        ctx.save_for_backward(a, rising, h, source, target)
        return out

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[no-untyped-def]
        ctx, grad: Tensor
    ) -> tuple[None, Tensor, Tensor, Tensor, None]:
        a, rising, h, source, target = ctx.saved_tensors
        edges = ctx.edges
        d_h = _empty_heads(h)
        d_source, d_target = torch.empty_like(source), torch.empty_like(target)

        def head(k: int) -> None:
            mine = h[k].contiguous()
            d, d_mine = _weigh_back(edges, a[k], mine, grad[k].contiguous())
            d = torch.where(rising[k], d, ctx.slope * d)
            for end, d_end, at in (
                (target[k], d_target[k], edges.totals(d)),
                (source[k], d_source[k], edges.turned.totals(d.index_select(0, edges.opposite))),
            ):
                torch.mv(mine.t(), at, out=d_end)
                d_mine.addr_(at, end)
            d_h[k] = d_mine

        edges.each_head(head, h)
        return None, d_h, d_source, d_target, None


class _ScoreV2(torch.autograd.Function):
    """Works in blocks, so that no (E, size) tensor exists; backward computes the blocks again."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, edges: EdgeSegments, source: Tensor, target: Tensor, att: Tensor, slope: float
    ) -> Tensor:
        score = source.new_empty(len(source), len(edges.source))
        blocks = edges.blocks(source.shape[2])

        def head(k: int) -> None:
            for targets, mine in blocks:
                ends = edges.both_ends(source[k], target[k], targets, mine)
                torch.mv(F.leaky_relu_(ends, slope), att[k], out=score[k, mine])

        edges.each_head(head, source)
        ctx.edges, ctx.slope = edges, slope
        ctx.save_for_backward(source, target, att)
        return score

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[no-untyped-def]
        ctx, grad: Tensor
    ) -> tuple[None, Tensor, Tensor, Tensor, None]:
        source, target, att = ctx.saved_tensors
        edges = ctx.edges
        pull_source, pull_target = torch.empty_like(source), torch.empty_like(target)

        def head(k: int) -> None:
            pull_target[k] = _pull(edges, source[k], target[k], grad[k], ctx.slope)
            # The gradient at the sources is that at the targets of the reversed edges.
            opposite = grad[k].index_select(0, edges.opposite)
            pull_source[k] = _pull(edges.turned, target[k], source[k], opposite, ctx.slope)

        edges.each_head(head, source)
        # LeakyReLU(t) = t LeakyReLU'(t), and t is a sum over the two ends, so att's gradient needs
        # no third round.
        d_att = (pull_source * source + pull_target * target).sum(1)
        return None, pull_source * att[:, None], pull_target * att[:, None], d_att, None


def _pull(edges: EdgeSegments, source: Tensor, target: Tensor, d: Tensor, slope: float) -> Tensor:
    """(N, size) sum over each target's edges of d (E,) times LeakyReLU'(source_j + target_i)."""
    pull = torch.empty_like(target)
    for targets, mine in edges.blocks(target.shape[1]):
        rising = edges.both_ends(source, target, targets, mine).gt_(0).mul_(1 - slope).add_(slope)
        place = torch.arange(len(rising), device=d.device)
        start = edges.start[targets] - mine.start
        weight = d[mine]
        pull[targets] = F.embedding_bag(place, rising, start, mode="sum", per_sample_weights=weight)
    return pull
