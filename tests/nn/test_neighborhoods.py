"""Sums, products and blocks of edges against loops over edges."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn import attention as module
from nodenova.nn.attention import EdgeSegments, edge_segments
from tests.nn.small_edges import CPU, edges, graph, pairs, random

__all__ = ["edges", "graph"]  # fixtures

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
