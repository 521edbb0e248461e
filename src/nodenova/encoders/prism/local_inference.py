"""z of a few nodes without a pass over all of them.

A view is P X W V, P a power of S. For all nodes, the 128 columns of X W V per view are smoothed.
For a few nodes, their rows of P suffice: S is symmetric, so the rows of S, S^2, ... S^8 come from
eight products of S with one column per node, on the nodes within eight steps, for all views. The
result differs from the full pass by rounding only.
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

BLOCK = 32  # nodes whose rows of P are in memory at a time
MAX_SHARE = 0.5  # share of all nodes in the receptive field from which on all are used


class ReceptiveField(NamedTuple):
    """Receptive field of the queried nodes and its adjacency."""

    nodes: np.ndarray | None  # (b,) its nodes, ascending; None for all nodes of the graph
    # (b, b) S among them; rows of the outermost nodes are incomplete and not needed
    smooth: BagMatrix
    places: np.ndarray  # (n,) positions of the queried nodes


@torch.no_grad()
def encode_few(encoder: PrismEncoder, graph: Graph, ids: np.ndarray) -> Tensor:
    """(n, views * rank) z of the nodes `ids` (n,)."""
    z = [_block(encoder, graph, ids[at : at + BLOCK]) for at in range(0, len(ids), BLOCK)]
    return torch.cat(z) if z else torch.zeros(0, encoder.spec.hidden, device=encoder.basis.device)


def receptive_field(
    graph: Graph, ids: np.ndarray, steps: int, device: torch.device
) -> ReceptiveField:
    """All nodes within `steps` steps of the nodes `ids` (n,), and S among them."""
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
            return ReceptiveField(None, smooth_operator(graph, device), ids)
    nodes = np.flatnonzero(near)
    number = np.full(graph.num_nodes, -1, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    # All neighbors of an inner node are in the field; those of the outermost nodes are not needed.
    places = _ranges(links.indptr, inner)
    row = np.repeat(number[inner], np.diff(links.indptr)[inner])
    column = number[links.indices[places]]
    root, loops = _scales(graph)
    weight = root[nodes][row] * root[nodes][column] * weighted_links(graph).data[places]
    own = root[nodes] ** 2 * loops[nodes]
    size = (len(nodes),) * 2
    half = sp.coo_array((weight, (column, row)), shape=size) + sp.diags_array(own)
    return ReceptiveField(nodes, BagMatrix.of(sp.csr_array(half), device), number[ids])


def _ranges(indptr: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Positions of the entries of some rows of a CSR matrix, row by row."""
    length = indptr[rows + 1] - indptr[rows]
    before = np.cumsum(length) - length
    return np.arange(length.sum()) + np.repeat(indptr[rows] - before, length)


def _scales(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """(N,) D^-1/2 and weights of self-loops."""

    def build() -> tuple[np.ndarray, np.ndarray]:
        return inverse_root(graph), loop_weight(graph).astype(np.float32)

    return graph.cached("scales of S", build)


def _block(encoder: PrismEncoder, graph: Graph, ids: np.ndarray) -> Tensor:
    device = encoder.basis.device
    field = receptive_field(graph, ids, max(DEPTHS), device)
    size = field.smooth.csr.shape[0]
    column = torch.zeros(size, len(ids), device=device)
    column[torch.from_numpy(field.places), torch.arange(len(ids))] = 1.0
    powers: list[Tensor] = []  # S^k e of each node, k = 0..8
    for _ in range(max(DEPTHS)):
        powers.append(column)
        column = field.smooth @ column
    powers.append(column)
    averaged = encoder.spec.averaged
    depths = [
        sum(powers[: depth + 1], torch.zeros_like(column)) / (depth + 1)
        if averaged and depth == AVERAGED
        else powers[depth]
        for depth in DEPTHS
    ]
    words = _words(encoder, graph, field, depths)
    views = [
        words[number] @ basis - shift
        for number, (basis, shift) in enumerate(
            zip(encoder.basis, encoder.shift[:WORD_VIEWS], strict=True)
        )
    ]
    if encoder.spec.counted:
        views.append(_counts(encoder, graph, ids))
    if encoder.spec.vector_size:
        beside = encoder.vectors.rows(graph, field.nodes, depths)
        shifts = encoder.shift[-len(beside) :]
        views += [view - shift for view, shift in zip(beside, shifts, strict=True)]
    return torch.cat(views, dim=1)


def _words(
    encoder: PrismEncoder, graph: Graph, field: ReceptiveField, depths: list[Tensor]
) -> list[Tensor]:
    """(n, d) P X W of the queried nodes, for each view of words."""
    x = graph.x if field.nodes is None else graph.x[field.nodes]
    rows = [depth.cpu().numpy() for depth in depths]
    weights = encoder.word_weight.cpu().numpy()
    products = []
    for p in rows:
        for kind, weight in zip(WEIGHTS, weights, strict=True):
            if isinstance(x, np.ndarray):
                mean = graph.cached("mean of x", lambda: graph.x.mean(axis=0))
                words = p.T @ x - p.sum(axis=0)[:, None] * mean
            else:
                length = np.maximum(np.diff(x.indptr), 1) ** -0.5
                by = p * length[:, None] if kind == "common" else p
                words = (_indicators(graph, x, field).T @ by).T
            products.append(torch.from_numpy((words * weight).astype(np.float32)))
    return [part.to(encoder.basis.device) for part in products]


def _indicators(graph: Graph, x: sp.csr_array, field: ReceptiveField) -> sp.csr_array:
    """(b, d) 0/1 matrix of words."""

    def build() -> sp.csr_array:
        return sp.csr_array((np.ones(x.nnz, np.float32), x.indices, x.indptr), shape=x.shape)

    return graph.cached("who has which word", build) if field.nodes is None else build()


def _counts(encoder: PrismEncoder, graph: Graph, ids: np.ndarray) -> Tensor:
    """(n, rank) the view of counts."""
    # Far averages hardly differ between nodes, and the difference would be lost in rounding. So two
    # columns of all nodes are smoothed, as in the full pass, once per graph.
    device = encoder.basis.device
    key = ("averaged counts", device)
    number = graph.cached(key, lambda: averaged_counts(graph, device))
    bumps = encoder.counts.bumps(read_rows(number, torch.from_numpy(ids)))
    return bumps @ encoder.count_basis - encoder.shift[WORD_VIEWS]
