"""Batches of nodes with drawn neighbors, on which trained encoders learn.

A step of training takes z of some nodes only. With L layers it depends on the nodes within L hops;
of the neighbors of each, at most a given number is drawn, so that a step costs the same on a graph
of any size. A sum over neighbors is scaled by their number over the drawn ones, and degrees are
those of the whole graph: where all neighbors are drawn, z is that of the whole graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nodenova.errors import SettingError
from nodenova.graph import Graph, SampledGraph
from nodenova.nn.encoder import Encoder
from nodenova.nn.seeding import sample
from nodenova.nn.sparse import row_blocks

Places: TypeAlias = "Tensor | slice"


@dataclass(frozen=True, eq=False)
class Drawn:
    """Nodes of a batch that come from one pool."""

    at: Places  # their places in the pool
    ids: Places  # their numbers in the whole graph
    rows: Places  # their rows of z


class Batch(NamedTuple):
    """What one step of training sees: a graph to encode, and the nodes of each pool on it."""

    graph: Graph
    parts: tuple[Drawn, ...]


class Batches:
    """Batches of the nodes of some pools; each is the whole graph if the encoder has no batch size.

    Args:
        g: Encoder that is trained; its spec decides the size of a batch.
        graph: Graph of the nodes.
        *pools: (n,) numbers of nodes, or slice(None) for all.
    """

    def __init__(self, g: Encoder, graph: Graph, *pools: Places) -> None:
        self.graph, self.pools = graph, pools
        self.size = batch_size(g)
        self.hops, self.most = g.spec.receptive_field or 0, getattr(g.spec, "neighbors", 0)

    def draw(self) -> Batch:
        """At most `size` nodes of each pool, with neighbors drawn by PyTorch's generator.

        Nothing is drawn for the whole graph.
        """
        if not self.size:
            return Batch(self.graph, tuple(Drawn(slice(None), pool, pool) for pool in self.pools))
        every = torch.arange(self.graph.num_nodes)
        chosen, cpu = [], torch.device("cpu")
        for pool in self.pools:
            numbers = every[pool] if isinstance(pool, slice) else pool.cpu()
            at = sample(len(numbers), self.size, cpu)
            chosen.append((at, numbers[at]))
        ids = np.unique(torch.cat([numbers for _, numbers in chosen]).numpy())
        part = neighborhood(self.graph, ids, self.hops, self.most)
        devices = [cpu if isinstance(pool, slice) else pool.device for pool in self.pools]
        parts = []
        for (at, numbers), device in zip(chosen, devices, strict=True):
            rows = torch.from_numpy(np.searchsorted(part.nodes, numbers.numpy()))
            parts.append(Drawn(at.to(device), numbers.to(device), rows.to(device)))
        return Batch(part, tuple(parts))


def batch_size(g: Encoder) -> int:
    """Number of nodes of a batch that an encoder is trained on; 0 for the whole graph."""
    return int(getattr(g.spec, "batch", 0))


def check_batches(g: Encoder, method: object, name: str) -> None:
    """Raise if a method trains on the whole graph, and the encoder is to be run on batches."""
    if batch_size(g) and not getattr(method, "batches", False):
        raise SettingError(
            f"{name} trains on the whole graph, and this model was fitted with batch="
            f"{batch_size(g)}: fit it without batch, or use sword"
        )


def neighborhood(graph: Graph, ids: np.ndarray, hops: int, most: int | None) -> SampledGraph:
    """The nodes `ids` (n,), ascending, and those drawn within `hops` hops, at most `most` per node.

    Neighbors of a node are drawn once, without replacement; None draws all.
    """
    nodes, frontier = ids, ids
    targets, places, factors = [], [], []
    for _ in range(hops):
        if not len(frontier):
            break
        target, place, factor = draw_neighbors(graph, frontier, most)
        targets.append(target)
        places.append(place)
        factors.append(factor)
        frontier = np.setdiff1d(graph.adjacency.indices[place], nodes)
        nodes = np.union1d(nodes, frontier)
    place = np.concatenate(places) if places else np.empty(0, dtype=np.int64)
    order = np.argsort(place)  # edges are sorted by node and neighbor, and a place is one of them
    place = place[order]
    factor = np.concatenate(factors)[order] if places else np.empty(0, dtype=np.float32)
    target = np.concatenate(targets)[order] if places else place
    ends = np.stack([target, graph.adjacency.indices[place]])
    weight = factor if graph.edge_weight is None else factor * graph.edge_weight[place]
    return SampledGraph(
        graph.x[nodes],
        np.searchsorted(nodes, ends),
        nodes,
        graph.feature_names,
        weight,
        None if graph.vectors is None else graph.vectors[nodes],
        whole=graph,
        nodes=nodes,
    )


def draw_neighbors(
    graph: Graph, ids: np.ndarray, most: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw at most `most` neighbors of each of the nodes `ids` (n,), without replacement.

    Returns:
        (e,) node of each drawn edge, (e,) its place among the graph's edges, and (e,) the number of
        neighbors of the node per drawn one.
    """
    links = graph.adjacency
    start = links.indptr[ids].astype(np.int64)
    degree = links.indptr[ids + 1] - start
    few = degree <= (most or degree.max(initial=0))
    count = degree[few]
    first = np.cumsum(count) - count
    every = np.arange(count.sum()) + np.repeat(start[few] - first, count)
    drawn = start[~few, None] + _subsets(degree[~few], most or 0)
    node = np.concatenate([np.repeat(ids[few], count), np.repeat(ids[~few], drawn.shape[1])])
    factor = np.ones(len(node), dtype=np.float32)
    factor[len(every) :] = np.repeat(degree[~few] / max(drawn.shape[1], 1), drawn.shape[1])
    return node, np.concatenate([every, drawn.ravel()]), factor


def _subsets(sizes: np.ndarray, count: int) -> np.ndarray:
    """(n, count) for each of the sizes (n,) a random subset of 0..size-1, each equally likely."""
    # Floyd's algorithm: `count` draws, whatever the size. The j-th is of 0..top, and is replaced by
    # top, which is not among the earlier ones, if it is.
    chosen = np.empty((len(sizes), count), dtype=np.int64)
    uniform = torch.rand(len(sizes), count, dtype=torch.float64).numpy()
    for j in range(count):
        top = sizes - count + j
        number = np.minimum((uniform[:, j] * (top + 1)).astype(np.int64), top)
        is_in = (chosen[:, :j] == number[:, None]).any(axis=1)
        chosen[:, j] = np.where(is_in, top, number)
    return chosen


def blocks_of_nodes(
    graph: Graph, size: int, most: int
) -> Iterator[tuple[np.ndarray, SampledGraph]]:
    """All nodes in blocks of at most `size`: their numbers, and they with all their neighbors.

    A block has at most `size` times `most` edges, or one node.
    """
    for start, end in row_blocks(graph.adjacency.indptr, size * most):
        for first in range(start, end, size):
            ids = np.arange(first, min(first + size, end))
            yield ids, neighborhood(graph, ids, 1, None)
