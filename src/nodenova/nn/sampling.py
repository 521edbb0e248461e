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
from nodenova.nn.seeding import release_freed_memory, sample
from nodenova.nn.sparse import row_blocks

Places: TypeAlias = "Tensor | slice"
RELEASED_AFTER = 10  # batches: their sizes differ, so freed memory is used again only in part


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
    """Batches of the nodes of some pools.

    Each is the whole graph if the encoder has no batch size, or one that all nodes fit in.

    Args:
        g: Encoder that is trained; its spec decides the size of a batch.
        graph: Graph of the nodes.
        *pools: (n,) numbers of nodes, or slice(None) for all.
    """

    def __init__(self, g: Encoder, graph: Graph, *pools: Places) -> None:
        self.graph, self.pools = graph, pools
        self.size = batch_size(g) if batch_size(g) < graph.num_nodes else 0
        self.hops, self.most = g.spec.receptive_field or 0, getattr(g.spec, "neighbors", 0)
        self.drawn = 0

    def draw(self) -> Batch:
        """At most `size` nodes of each pool, with neighbors drawn by PyTorch's generator.

        Nothing is drawn for the whole graph.
        """
        if not self.size:
            return Batch(self.graph, tuple(Drawn(slice(None), pool, pool) for pool in self.pools))
        self.drawn += 1
        if self.drawn % RELEASED_AFTER == 0:
            release_freed_memory()
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


def check_batches(batch: object, method: object, name: str) -> None:
    """Raise if a method trains on the whole graph, and `fit` has or had this setting."""
    if batch and not getattr(method, "batches", False):
        raise SettingError(
            f"{name} trains on the whole graph, not with batch={batch}: fit without batch, or use "
            "sword"
        )


def neighborhood(graph: Graph, ids: np.ndarray, hops: int, most: int | None) -> SampledGraph:
    """The nodes `ids` (n,), ascending, and those drawn within `hops` hops, at most `most` per node.

    Neighbors of a node are drawn once, without replacement; None draws all.
    """
    links = graph.adjacency
    # Edges are sorted by node and neighbor, and a place is one of them.
    place = np.sort(_draw_edges(graph, ids, hops, most))
    target = np.searchsorted(links.indptr, place, side="right") - 1
    neighbor = links.indices[place].astype(np.int64)
    nodes = np.union1d(ids, neighbor)
    degree = links.indptr[target + 1] - links.indptr[target]
    weight = (degree / np.minimum(degree, most or degree)).astype(np.float32)
    if graph.edge_weight is not None:
        weight *= graph.edge_weight[place]
    return SampledGraph(
        graph.x[nodes],
        np.searchsorted(nodes, np.stack([target, neighbor])),
        nodes,
        graph.feature_names,
        weight,
        None if graph.vectors is None else graph.vectors[nodes],
        whole=graph,
        nodes=nodes,
    )


def _draw_edges(graph: Graph, ids: np.ndarray, hops: int, most: int | None) -> np.ndarray:
    """(e,) places among the graph's edges of those drawn hop by hop from the nodes `ids` (n,)."""
    if most is not None and hops and not graph.is_mapped and with_pyg_lib():
        return _draw_by_pyg(graph, ids, hops, most)
    nodes, frontier, places = ids, ids, [np.empty(0, dtype=np.int64)]
    for _ in range(hops):
        places.append(draw_neighbors(graph, frontier, most))
        frontier = np.setdiff1d(graph.adjacency.indices[places[-1]], nodes)
        nodes = np.union1d(nodes, frontier)
    return np.concatenate(places)


def with_pyg_lib() -> bool:
    """Whether PyTorch Geometric's compiled sampler is installed and can be loaded."""
    import torch_geometric.typing  # here, as it takes seconds, which Prism saves

    return bool(torch_geometric.typing.WITH_PYG_LIB)


def _draw_by_pyg(graph: Graph, ids: np.ndarray, hops: int, most: int) -> np.ndarray:
    """The same by PyTorch Geometric's compiled sampler, on PyTorch's generator, too."""
    from torch_geometric.data import Data
    from torch_geometric.sampler import NeighborSampler, NodeSamplerInput

    def build() -> NeighborSampler:
        # From source to target, sorted by target: both directions of an edge are there.
        edges = torch.from_numpy(np.ascontiguousarray(graph.edge_index[::-1]))
        data = Data(edge_index=edges, num_nodes=graph.num_nodes)
        return NeighborSampler(data, [most] * hops, is_sorted=True)

    sampler = graph.cached(("sampler", hops, most), build)
    drawn = sampler.sample_from_nodes(NodeSamplerInput(None, torch.from_numpy(ids)))
    return drawn.edge.numpy()


def draw_neighbors(graph: Graph, ids: np.ndarray, most: int | None) -> np.ndarray:
    """(e,) places among the graph's edges of at most `most` neighbors of each of `ids` (n,).

    They are drawn without replacement.
    """
    links = graph.adjacency
    start = links.indptr[ids].astype(np.int64)
    degree = links.indptr[ids + 1] - start
    few = degree <= (most or degree.max(initial=0))
    count = degree[few]
    first = np.cumsum(count) - count
    every = np.arange(count.sum()) + np.repeat(start[few] - first, count)
    drawn = start[~few, None] + _subsets(degree[~few], most or 0)
    return np.concatenate([every, drawn.ravel()])


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
