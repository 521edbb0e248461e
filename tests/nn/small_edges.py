"""A small graph with an isolated node, its edges, and random numbers to send along them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn.attention import EdgeSegments, edge_segments

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
