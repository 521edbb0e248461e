"""Attention over edges against loops over edges: values, gradients, large scores, small blocks."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn import attention as module
from nodenova.nn.attention import EdgeSegments, attend, attend_v1, score_v2
from nodenova.nn.seeding import fixed_threads
from tests.nn.small_edges import edges, graph, pairs, random

__all__ = ["edges", "graph"]  # fixtures

HEADS, SIZE, SLOPE = 2, 3, 0.2


def assert_twins(ours: Tensor, twin: Tensor, inputs: tuple[Tensor, ...]) -> None:
    """The same value, and the same gradient for every input."""
    assert torch.allclose(ours, twin, rtol=1e-9, atol=1e-12)
    upstream = torch.randn(ours.shape, generator=torch.Generator().manual_seed(7), dtype=ours.dtype)
    found, expected = (torch.autograd.grad(each, inputs, upstream) for each in (ours, twin))
    for one, other in zip(found, expected, strict=True):
        assert other.abs().max() > 0
        assert torch.allclose(one, other, rtol=1e-8, atol=1e-10)


# Loops that say what is meant.


def naive_attend(edges: EdgeSegments, score: Tensor, h: Tensor) -> Tensor:
    heads = []
    for k in range(len(h)):
        rows = []
        for i in range(h.shape[1]):
            mine = [e for e, (_, target) in enumerate(pairs(edges)) if target == i]
            highest = max(float(score[k, e].detach()) for e in mine)
            weight = [(score[k, e] - highest).exp() for e in mine]
            rows.append(
                sum(
                    w / sum(weight) * h[k, int(edges.source[e])]
                    for w, e in zip(weight, mine, strict=True)
                )
            )
        heads.append(torch.stack(rows))
    return torch.stack(heads)


def naive_leaky(t: Tensor) -> Tensor:
    return t if float(t.detach()) > 0 else SLOPE * t


def naive_score_v1(edges: EdgeSegments, source: Tensor, target: Tensor) -> Tensor:
    heads = range(len(source))
    return torch.stack(
        [
            torch.stack([naive_leaky(source[k, j] + target[k, i]) for j, i in pairs(edges)])
            for k in heads
        ]
    )


def naive_score_v2(edges: EdgeSegments, source: Tensor, target: Tensor, att: Tensor) -> Tensor:
    heads = []
    for k in range(len(att)):
        row = []
        for j, i in pairs(edges):
            row.append(
                sum(
                    att[k, d] * naive_leaky(source[k, j, d] + target[k, i, d])
                    for d in range(att.shape[1])
                )
            )
        heads.append(torch.stack(row))
    return torch.stack(heads)


@pytest.mark.parametrize("scale", [1.0, 30.0])  # within SAME_SHIFT of each other, and beyond
def test_attend_value_and_gradient_are_the_loops(
    graph: Graph, edges: EdgeSegments, scale: float
) -> None:
    score = random(HEADS, len(edges.source), scale=scale)
    h = random(HEADS, graph.num_nodes, SIZE, seed=1)
    low, high = score.detach().aminmax()
    assert (float(high - low) > module.SAME_SHIFT) == (scale > 1)
    assert_twins(attend(edges, score, h), naive_attend(edges, score, h), (score, h))


def test_attend_has_the_gradient_of_small_differences(graph: Graph, edges: EdgeSegments) -> None:
    inputs = (random(HEADS, len(edges.source)), random(HEADS, graph.num_nodes, SIZE, seed=1))
    assert torch.autograd.gradcheck(partial(attend, edges), inputs)


@pytest.mark.parametrize("shift", [1e3, -1e3, 1e6])
def test_a_shift_of_all_scores_changes_nothing(
    graph: Graph, edges: EdgeSegments, shift: float
) -> None:
    """e^1000 is infinite and e^-1000 is 0: neither may show."""
    score, h = random(HEADS, len(edges.source)), random(HEADS, graph.num_nodes, SIZE, seed=1)
    plain, moved = attend(edges, score, h), attend(edges, score + shift, h)
    assert torch.allclose(moved, plain, rtol=1e-6)
    (ours,), (theirs,) = (torch.autograd.grad(out.square().sum(), score) for out in (moved, plain))
    assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-8)


def test_a_shift_for_each_target_changes_nothing(graph: Graph, edges: EdgeSegments) -> None:
    """Scores of targets lie thousands apart: one shift for all would leave some without weight."""
    score, h = random(HEADS, len(edges.source)), random(HEADS, graph.num_nodes, SIZE, seed=1)
    shift = torch.linspace(-5e3, 5e3, graph.num_nodes, dtype=torch.float64)[edges.target]
    plain, moved = attend(edges, score, h), attend(edges, score + shift, h)
    assert torch.allclose(moved, plain, rtol=1e-6)
    (ours,), (theirs,) = (torch.autograd.grad(out.square().sum(), score) for out in (moved, plain))
    assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("size", [1e3, 1e30])
def test_scores_far_apart_at_one_target_give_all_the_weight_to_the_highest(
    edges: EdgeSegments, size: float
) -> None:
    # Everybody to itself.
    score = torch.where(edges.source == edges.target, size, -size).float()[None]
    h = torch.randn(1, len(edges.start) - 1, SIZE)
    assert torch.equal(attend(edges, score, h), h)


def test_a_target_with_one_edge_takes_what_is_at_its_other_end(
    graph: Graph, edges: EdgeSegments
) -> None:
    last = graph.num_nodes - 1
    assert int(edges.start[last + 1] - edges.start[last]) == 1
    score, h = random(HEADS, len(edges.source)), random(HEADS, graph.num_nodes, SIZE, seed=1)
    out = attend(edges, score, h)
    assert torch.allclose(out[:, last], h[:, last])
    (gradient,) = torch.autograd.grad(out[:, last].sum(), score)
    assert float(gradient[:, -1].abs().max()) < 1e-12  # its weight is 1, whatever its score


@pytest.mark.parametrize("scale", [1.0, 30.0])  # scores within SAME_SHIFT, and beyond
def test_attend_v1_value_and_gradient_are_the_loops(
    graph: Graph, edges: EdgeSegments, scale: float
) -> None:
    h = random(HEADS, graph.num_nodes, SIZE)
    ends = tuple(random(HEADS, SIZE, seed=seed, scale=scale) for seed in (1, 2))
    score = naive_score_v1(edges, *((h * end[:, None]).sum(2) for end in ends))
    assert 0 < int((score < 0).sum()) < score.numel()  # both sides of the kink
    ours = attend_v1(edges, h, *ends, SLOPE)
    assert_twins(ours, naive_attend(edges, score, h), (h, *ends))
    if scale == 1.0:
        inputs = (h, *ends)
        assert torch.autograd.gradcheck(lambda *args: attend_v1(edges, *args, SLOPE), inputs)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_head_a_thread_gives_the_same_bits(
    graph: Graph, edges: EdgeSegments, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MIN_DIVIDED", 0)
    h, other = (random(5, graph.num_nodes, SIZE, seed=seed) for seed in (0, 1))
    ends = tuple(random(5, SIZE, seed=seed) for seed in (2, 3))

    def run(threads: int) -> list[Tensor]:
        with fixed_threads(threads):
            if version == "v1":
                inputs: tuple[Tensor, ...] = (h, *ends)
                out = attend_v1(edges, *inputs, SLOPE)  # type: ignore[arg-type]
            else:
                inputs = (h, other, ends[0])
                out = attend(edges, score_v2(edges, *inputs, SLOPE), h)  # type: ignore[arg-type]
            return [out, *torch.autograd.grad(out.square().sum(), inputs)]

    assert all(map(torch.equal, run(1), run(3)))


def test_score_v2_value_and_gradient_are_the_loops(graph: Graph, edges: EdgeSegments) -> None:
    source, target = (random(HEADS, graph.num_nodes, SIZE, seed=seed) for seed in (0, 1))
    att = random(HEADS, SIZE, seed=2)
    ours = score_v2(edges, source, target, att, SLOPE)
    assert_twins(ours, naive_score_v2(edges, source, target, att), (source, target, att))
    assert torch.autograd.gradcheck(
        lambda s, t, a: score_v2(edges, s, t, a, SLOPE), (source, target, att)
    )


@pytest.mark.parametrize("block", [1, SIZE, 4 * SIZE, 10 * SIZE])
def test_score_v2_by_blocks_is_score_v2_at_once(
    graph: Graph, edges: EdgeSegments, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a block is smaller than the edges of one node, or than a single edge."""
    source, target = (random(HEADS, graph.num_nodes, SIZE, seed=seed) for seed in (0, 1))
    att = random(HEADS, SIZE, seed=2)
    assert len(edges.blocks(SIZE)) == 1
    whole = score_v2(edges, source, target, att, SLOPE)
    expected = torch.autograd.grad(whole.square().sum(), (source, target, att))
    monkeypatch.setattr(module, "BLOCK_SIZE", block)
    assert len(edges.blocks(SIZE)) > 1
    parts = score_v2(edges, source, target, att, SLOPE)
    assert torch.allclose(parts, whole)
    for one, other in zip(
        torch.autograd.grad(parts.square().sum(), (source, target, att)), expected, strict=True
    ):
        assert torch.allclose(one, other)
