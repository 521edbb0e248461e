"""z of a few nodes, exactly, without a pass over all of them.

A view is P X W V, P a power of S. For all nodes the columns of X W V are smoothed, 128 of them for
each view. For a few nodes their rows of P are enough, and S is symmetric: the rows of S, S^2, ...
S^8 are made by eight products of S with one column for each node, the same for all views, on the
nodes within eight steps. It differs from the full pass by rounding alone. Only averages of counts
are made for all nodes, once for a graph: see `_counts`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from nodenova.encoders.prism.degree import averaged_counts
from nodenova.encoders.prism.encoder import WEIGHTS, WORD_VIEWS, PrismEncoder
from nodenova.encoders.prism.svd import AVERAGED, DEPTHS
from nodenova.graph import Graph
from nodenova.nn.distributed import read_rows
from nodenova.nn.sparse import BagMatrix, inverse_root, loop_weight, smooth_operator, weighted_links

BLOCK = 32  # nodes whose rows of P are held at a time
MAX_SHARE = 0.5  # of all nodes within reach, beyond which all of them are taken


class Reach(NamedTuple):
    """The nodes that have a say in z of some nodes, and how they speak to each other.

    Attributes:
        nodes: (b,) their numbers, ascending; None for all nodes of the graph.
        smooth: (b, b) S among them; rows of the outermost are not whole, and not asked for.
        places: (n,) where the nodes asked for are among them.
    """

    nodes: np.ndarray | None
    smooth: BagMatrix
    places: np.ndarray


@torch.no_grad()
def few_rows(encoder: PrismEncoder, graph: Graph, ids: np.ndarray) -> Tensor:
    """(n, views * rank) z of the nodes `ids`.

    Args:
        encoder: Whose views.
        graph: With the features that it knows, in one place.
        ids: (n,) numbers of nodes.
    """
    z = [_block(encoder, graph, ids[at : at + BLOCK]) for at in range(0, len(ids), BLOCK)]
    return torch.cat(z) if z else torch.zeros(0, encoder.spec.hidden, device=encoder.basis.device)


def reach_of(graph: Graph, ids: np.ndarray, steps: int, device: torch.device) -> Reach:
    """All nodes within so many steps of `ids`, and S among them.

    Args:
        graph: Any.
        ids: (n,) numbers of nodes.
        steps: How many.
        device: Where S is to be.
    """
    links = graph.adjacency
    near = np.zeros(graph.num_nodes, dtype=bool)
    near[ids] = True
    edge = np.unique(ids)
    inner = edge
    for _ in range(steps):
        found = links.indices[_ranges(links.indptr, edge)]
        edge = np.unique(found[~near[found]])
        if not len(edge):
            inner = np.flatnonzero(near)
            break
        inner = np.flatnonzero(near)
        near[edge] = True
        if np.count_nonzero(near) > MAX_SHARE * graph.num_nodes:
            return Reach(None, smooth_operator(graph, device), ids)
    nodes = np.flatnonzero(near)
    number = np.full(graph.num_nodes, -1, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    # All neighbors of an inner node are near; those of the outermost ones speak to nobody here.
    places = _ranges(links.indptr, inner)
    row = np.repeat(number[inner], np.diff(links.indptr)[inner])
    column = number[links.indices[places]]
    root, loops = _scales(graph)
    weight = root[nodes][row] * root[nodes][column] * weighted_links(graph).data[places]
    own = root[nodes] ** 2 * loops[nodes]
    size = (len(nodes),) * 2
    half = sp.coo_array((weight, (column, row)), shape=size) + sp.diags_array(own)
    return Reach(nodes, BagMatrix.of(sp.csr_array(half), device), number[ids])


def _ranges(indptr: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Places of the entries of some rows of a CSR matrix, row by row."""
    length = indptr[rows + 1] - indptr[rows]
    before = np.cumsum(length) - length
    return np.arange(length.sum()) + np.repeat(indptr[rows] - before, length)


def _scales(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """(N,) D^-1/2, and what the link of a node to itself weighs."""

    def build() -> tuple[np.ndarray, np.ndarray]:
        return inverse_root(graph), loop_weight(graph).astype(np.float32)

    return graph.cached("scales of S", build)


def _block(encoder: PrismEncoder, graph: Graph, ids: np.ndarray) -> Tensor:
    device = encoder.basis.device
    reach = reach_of(graph, ids, max(DEPTHS), device)
    size = reach.smooth.csr.shape[0]
    column = torch.zeros(size, len(ids), device=device)
    column[torch.from_numpy(reach.places), torch.arange(len(ids))] = 1.0
    said: list[Tensor] = []  # S^k e of each node, k from 0 to 8
    for _ in range(max(DEPTHS)):
        said.append(column)
        column = reach.smooth @ column
    said.append(column)
    averaged = encoder.spec.averaged
    depths = [
        sum(said[: depth + 1], torch.zeros_like(column)) / (depth + 1)
        if averaged and depth == AVERAGED
        else said[depth]
        for depth in DEPTHS
    ]
    heard = _words(encoder, graph, reach, depths)
    views = [
        heard[number] @ basis - shift
        for number, (basis, shift) in enumerate(
            zip(encoder.basis, encoder.shift[:WORD_VIEWS], strict=True)
        )
    ]
    if encoder.spec.counted:
        views.append(_counts(encoder, graph, ids))
    if encoder.spec.vector_size:
        beside = encoder.vectors.rows(graph, reach.nodes, depths)
        shifts = encoder.shift[-len(beside) :]
        views += [view - shift for view, shift in zip(beside, shifts, strict=True)]
    return torch.cat(views, dim=1)


def _words(encoder: PrismEncoder, graph: Graph, reach: Reach, depths: list[Tensor]) -> list[Tensor]:
    """(n, d) P X W of the nodes asked for, for each view of words."""
    x = graph.x if reach.nodes is None else graph.x[reach.nodes]
    rows = [depth.cpu().numpy() for depth in depths]
    weights = encoder.word_weight.cpu().numpy()
    heard = []
    for p in rows:
        for kind, weight in zip(WEIGHTS, weights, strict=True):
            if isinstance(x, np.ndarray):
                mean = graph.cached("mean of x", lambda: graph.x.mean(axis=0))
                words = p.T @ x - p.sum(axis=0)[:, None] * mean
            else:
                length = np.maximum(np.diff(x.indptr), 1) ** -0.5
                by = p * length[:, None] if kind == "common" else p
                words = (_having(graph, x, reach).T @ by).T
            heard.append(torch.from_numpy((words * weight).astype(np.float32)))
    return [part.to(encoder.basis.device) for part in heard]


def _having(graph: Graph, x: sp.csr_array, reach: Reach) -> sp.csr_array:
    """(b, d) who has which word: ones."""

    def build() -> sp.csr_array:
        return sp.csr_array((np.ones(x.nnz, np.float32), x.indices, x.indptr), shape=x.shape)

    return graph.cached("who has which word", build) if reach.nodes is None else build()


def _counts(encoder: PrismEncoder, graph: Graph, ids: np.ndarray) -> Tensor:
    """(n, rank) the view of counts.

    Far averages hardly differ from node to node, and what they differ by is what counts: it would
    be lost in the rounding of sums over all nodes. Two columns of all nodes are smoothed instead,
    as the full pass does, once for a graph.
    """
    device = encoder.basis.device
    key = ("averaged counts", device)
    number = graph.cached(key, lambda: averaged_counts(graph, device))
    bumps = encoder.counts.bumps(read_rows(number, torch.from_numpy(ids)))
    return bumps @ encoder.count_basis - encoder.shift[WORD_VIEWS]
