"""Attention over the edges of a graph: scores, softmax and weighted sum.

No message of full size is made for every edge.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from nodenova.nn.neighborhoods import Neighborhoods


def attend(edges: Neighborhoods, score: Tensor, h: Tensor) -> Tensor:
    """Sum over each target's edges of softmax(score) times h at the source.

    Args:
        edges: Which.
        score: (heads, E).
        h: (heads, N, size).

    Returns:
        (heads, N, size), a node's heads side by side in memory.
    """
    return _Attend.apply(edges, score, h)  # type: ignore[no-untyped-call]


def attend_v1(
    edges: Neighborhoods, h: Tensor, source: Tensor, target: Tensor, slope: float
) -> Tensor:
    """`attend` by LeakyReLU(source . h_j + target . h_i) of j -> i (Velickovic et al. 2018).

    Args:
        edges: Which.
        h: (heads, N, size).
        source: (heads, size).
        target: (heads, size).
        slope: Of LeakyReLU below zero.

    Returns:
        As `attend`.
    """
    return _AttendV1.apply(edges, h, source, target, slope)  # type: ignore[no-untyped-call]


def score_v2(
    edges: Neighborhoods, source: Tensor, target: Tensor, att: Tensor, slope: float
) -> Tensor:
    """att . LeakyReLU(source_j + target_i) of every edge j -> i (Brody et al. 2022).

    Args:
        edges: Which.
        source: (heads, N, size).
        target: (heads, N, size).
        att: (heads, size).
        slope: Of LeakyReLU below zero.

    Returns:
        (heads, E).
    """
    return _ScoreV2.apply(edges, source, target, att, slope)  # type: ignore[no-untyped-call]


def _weigh(edges: Neighborhoods, score: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """(E,) a = softmax(score) over each target's edges, and (N, size) sum_j a_ij h_j. One head."""
    a = edges.exponentials(score)
    a.div_(edges.totals(a).index_select(0, edges.target))
    return a, edges.sums(a, h)


def _weigh_back(edges: Neighborhoods, a: Tensor, h: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of `_weigh` for score (E,) and h (N, size), given that of its sums:

    d score_ij = a_ij (grad_i . h_j - sum_j a_ij grad_i . h_j)
    d h_j      = sum_i a_ij grad_i
    """
    d_score = edges.products(grad, h).mul_(a)
    shared = edges.totals(d_score).index_select(0, edges.target)
    return d_score.addcmul_(a, shared, value=-1), edges.sums(a.index_select(0, edges.turned), grad)


def _side_by_side(h: Tensor) -> Tensor:
    """An empty (heads, N, size) like h, each node's heads side by side in memory.

    What comes before and after attention is a product with all heads of a node.
    """
    heads, n, size = h.shape
    return h.new_empty(n, heads, size).transpose(0, 1)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, edges: Neighborhoods, score: Tensor, h: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        a, out = torch.empty_like(score), _side_by_side(h)

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
        d_score, d_h = torch.empty_like(a), _side_by_side(h)

        def head(k: int) -> None:
            d_score[k], d_h[k] = _weigh_back(edges, a[k], h[k].contiguous(), grad[k].contiguous())

        edges.each_head(head, h)
        return None, d_score, d_h


class _AttendV1(torch.autograd.Function):
    """Scores too are made within a head, while its (N, size) is in the processor's cache."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, edges: Neighborhoods, h: Tensor, source: Tensor, target: Tensor, slope: float
    ) -> Tensor:
        a = h.new_empty(len(h), len(edges.source))
        rising = torch.empty_like(a, dtype=torch.bool)
        out = _side_by_side(h)

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
        d_h, d_source, d_target = (
            _side_by_side(h),
            torch.empty_like(source),
            torch.empty_like(target),
        )

        def head(k: int) -> None:
            mine = h[k].contiguous()
            d, d_mine = _weigh_back(edges, a[k], mine, grad[k].contiguous())
            d = torch.where(rising[k], d, ctx.slope * d)
            for end, d_end, at in (
                (target[k], d_target[k], edges.totals(d)),
                (source[k], d_source[k], edges.totals(d.index_select(0, edges.turned))),
            ):
                torch.mv(mine.t(), at, out=d_end)
                d_mine.addr_(at, end)
            d_h[k] = d_mine

        edges.each_head(head, h)
        return None, d_h, d_source, d_target, None


class _ScoreV2(torch.autograd.Function):
    """Block by block, so that no tensor of E x size is made; backward computes the blocks again."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, edges: Neighborhoods, source: Tensor, target: Tensor, att: Tensor, slope: float
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
            # What arrives at the sources is what would arrive at the targets if every edge were
            # turned.
            turned = grad[k].index_select(0, edges.turned)
            pull_source[k] = _pull(edges, target[k], source[k], turned, ctx.slope)

        edges.each_head(head, source)
        # LeakyReLU(t) = t LeakyReLU'(t), and t is a sum over the two ends, so att's gradient needs
        # no third round.
        d_att = (pull_source * source + pull_target * target).sum(1)
        return None, pull_source * att[:, None], pull_target * att[:, None], d_att, None


def _pull(edges: Neighborhoods, source: Tensor, target: Tensor, d: Tensor, slope: float) -> Tensor:
    """(N, size) sum over each target's edges of d (E,) times LeakyReLU'(source_j + target_i)."""
    pull = torch.empty_like(target)
    for targets, mine in edges.blocks(target.shape[1]):
        rising = edges.both_ends(source, target, targets, mine).gt_(0).mul_(1 - slope).add_(slope)
        place = torch.arange(len(rising), device=d.device)
        start = edges.start[targets] - mine.start
        weight = d[mine]
        pull[targets] = F.embedding_bag(place, rising, start, mode="sum", per_sample_weights=weight)
    return pull
