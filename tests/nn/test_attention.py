"""Attention over edge segments: values and gradients are those of plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn import attention as module
from nodenova.nn.attention import EdgeSegments, attend, attend_v1, edge_segments, score_v2
from nodenova.nn.seeding import fixed_threads

CPU = torch.device("cpu")


@pytest.fixture
def graph(make_graph) -> Graph:
    """The last node is isolated: its only edge is the one to itself."""
    return make_graph(nodes=14, features=8, edges=20)


@pytest.fixture
def edges(graph: Graph) -> EdgeSegments:
    return edge_segments(graph, CPU)


def random(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(*shape, generator=generator, dtype=torch.float64)).requires_grad_()


def pairs(edges: EdgeSegments) -> list[tuple[int, int]]:
    """(source, target) of every edge."""
    return list(zip(edges.source.tolist(), edges.target.tolist(), strict=True))


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


SIZE = 3


def test_neighbourhoods_are_the_edges_and_one_self_loop_a_node(
    graph: Graph, edges: EdgeSegments
) -> None:
    expected = {(int(a), int(b)) for a, b in graph.edge_index.T} | {
        (i, i) for i in range(graph.num_nodes)
    }
    assert set(pairs(edges)) == expected
    assert len(pairs(edges)) == len(expected)
    assert edges.target.tolist() == sorted(edges.target.tolist())
    for i in range(graph.num_nodes):
        assert (edges.target[edges.start[i] : edges.start[i + 1]] == i).all()
    for e, (a, b) in enumerate(pairs(edges)):
        assert pairs(edges)[int(edges.opposite[e])] == (b, a)


def test_neighbourhoods_of_a_graph_without_edges_are_its_nodes() -> None:
    graph = Graph.of(np.ones((3, 2)), np.empty((2, 0)))
    assert pairs(edge_segments(graph, CPU)) == [(0, 0), (1, 1), (2, 2)]


def test_neighbourhoods_are_built_once_a_graph(graph: Graph, edges: EdgeSegments) -> None:
    assert edge_segments(graph, CPU) is edges


@pytest.mark.parametrize("block", [1, 4, 9, 30, 10_000])
def test_blocks_are_all_edges_once_and_no_larger_than_asked_for(
    edges: EdgeSegments, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_SIZE", block)
    found = edges.blocks(2)
    assert [i for targets, _ in found for i in range(targets.start, targets.stop)] == list(
        range(len(edges.start) - 1)
    )
    assert [e for _, mine in found for e in range(mine.start, mine.stop)] == list(
        range(len(edges.source))
    )
    for targets, mine in found:
        assert set(edges.target[mine].tolist()) == set(range(targets.start, targets.stop))
        assert 2 * (mine.stop - mine.start) <= block or targets.stop - targets.start == 1


def test_exponentials_are_the_exponentials_up_to_a_factor_that_a_target_has(
    edges: EdgeSegments,
) -> None:
    for scale in (1.0, 200.0):
        score = random(len(edges.source), scale=scale).detach()
        found = edges.exponentials(score)
        assert torch.isfinite(found).all()
        for i in range(len(edges.start) - 1):
            mine = slice(int(edges.start[i]), int(edges.start[i + 1]))
            assert float(found[mine].max()) > math.exp(-module.SAME_SHIFT - 1e-9)
            assert torch.allclose(
                found[mine] / found[mine].max(), (score[mine] - score[mine].max()).exp()
            )


def test_exponentials_leave_the_scores_alone(edges: EdgeSegments) -> None:
    score = random(len(edges.source)).detach()
    kept = score.clone()
    edges.exponentials(score)
    assert torch.equal(score, kept)


def looped(edges: EdgeSegments, values: Callable[[int, int, int], Tensor]) -> Tensor:
    """sum over each target's edges of values(edge, source, target)."""
    rows = [torch.zeros_like(values(0, *pairs(edges)[0])) for _ in range(len(edges.start) - 1)]
    for e, (j, i) in enumerate(pairs(edges)):
        rows[i] = rows[i] + values(e, j, i)
    return torch.stack(rows)


def test_sums_totals_and_products_are_the_loops(graph: Graph, edges: EdgeSegments) -> None:
    weight = random(len(edges.source)).detach()
    h, other = (random(graph.num_nodes, SIZE, seed=seed).detach() for seed in (1, 2))
    assert torch.allclose(edges.sums(weight, h), looped(edges, lambda e, j, i: weight[e] * h[j]))
    assert torch.allclose(edges.totals(weight), looped(edges, lambda e, j, i: weight[e]))
    expected = torch.stack(
        [sum(other[i, d] * h[j, d] for d in range(SIZE)) for j, i in pairs(edges)]
    )
    assert torch.allclose(edges.products(other, h), expected)


def test_the_matrix_of_turned_values_is_the_transpose(edges: EdgeSegments) -> None:
    values = random(len(edges.source)).detach()
    whole = edges.matrix(values).to_dense()
    for e, (j, i) in enumerate(pairs(edges)):
        assert whole[i, j] == values[e]
    assert torch.equal(edges.matrix(values[edges.opposite]).to_dense(), whole.t())
