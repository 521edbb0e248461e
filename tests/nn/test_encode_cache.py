"""One pass of an encoder, shared within a block and nowhere else."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import nodenova as nova
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.graph import Graph
from nodenova.nn.encode_cache import encode, encode_rows, last_pass, shared_passes


class Counting(nn.Module):
    """z = x w; `passes` of all copies are counted together."""

    passes = 0

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 3))

    def forward(self, graph: Graph) -> Tensor:
        Counting.passes += 1
        return torch.from_numpy(graph.x) @ self.w


@pytest.fixture
def g() -> Counting:
    Counting.passes = 0
    return Counting().eval()


@pytest.fixture
def graph() -> Graph:
    return Graph.of(np.arange(8.0).reshape(4, 2) + 1, np.empty((2, 0), dtype=int))


def test_outside_a_block_nothing_is_kept(g: Counting, graph: Graph) -> None:
    assert torch.equal(encode(g, graph), encode(g, graph))
    with shared_passes():
        pass
    encode(g, graph)
    assert Counting.passes == 3
    assert not encode(g, graph).requires_grad


def test_within_a_block_an_encoder_and_its_copies_run_once(g: Counting, graph: Graph) -> None:
    with shared_passes():
        z = encode(g, graph)
        assert encode(copy.deepcopy(g), graph) is z
    assert Counting.passes == 1


def test_other_weights_and_other_graphs_are_other_passes(g: Counting, graph: Graph) -> None:
    with shared_passes():
        z = encode(g, graph)
        with torch.no_grad():
            g.w.mul_(2)
        assert torch.equal(encode(g, graph), 2 * z)
        same = Graph(graph.x, graph.edge_index, graph.node_ids)
        assert torch.equal(encode(g, same), 2 * z)
        assert Counting.passes == 3
        encode(g, graph)  # only the last is kept
    assert Counting.passes == 4


def test_an_encoder_that_is_being_trained_is_never_shared(g: Counting, graph: Graph) -> None:
    with shared_passes():
        encode(g.train(), graph)
        encode(g, graph)
    assert Counting.passes == 2


def test_rows_are_those_of_a_whole_pass_and_come_from_it_where_there_is_one() -> None:
    graph = nova.synthetic(nodes=120, classes=3, words=60).graph
    g = PrismEncoder.fit(graph, torch.device("cpu")).eval()
    ids, z = torch.tensor([7, 3]), g(graph)
    some, every_third = encode_rows(g, graph, ids, slice(None, None, 3))
    assert torch.equal(some, z[ids])
    assert torch.equal(every_third, z[::3])
    with shared_passes():
        kept = encode(g, graph)
        assert encode_rows(g, graph, slice(None))[0].data_ptr() == kept.data_ptr()


def test_passes_are_kept_for_small_graphs_where_more_than_one_is_wanted(
    g: Counting, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shared_passes(), shared_passes(graph):  # the block around it is the one
        encode(g, graph)
        encode(g, graph)
    assert Counting.passes == 1
    with shared_passes(graph):
        encode(g, graph)
        encode(g, graph)
    assert Counting.passes == 2
    with shared_passes(graph, wanted=False):
        assert last_pass(g, graph) is None
    monkeypatch.setattr("nodenova.nn.encode_cache.MAX_KEPT", 3)
    with shared_passes(graph):
        assert last_pass(g, graph) is None
