"""How weights of edges count in smoothing.

S = D^-1/2 (A + L) D^-1/2, A the weights of edges, L what a node's link to itself weighs: what its
edges weigh on average. So a node keeps the share 1 / (neighbors + 1) of itself that it has without
weights, and weights decide among its neighbors alone; weights ten times as large change nothing.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nodenova.graph import Graph


def loop_weight(graph: Graph) -> np.ndarray:
    """(N,) what the link of a node to itself weighs; 1 where it has no other, or without weights.

    Examples:
        >>> path = Graph.of([[1], [2], [3], [4]], [[0, 1], [1, 2]], edge_weight=[2.0, 6.0])
        >>> loop_weight(path).tolist()
        [2.0, 4.0, 6.0, 1.0]
    """
    ones = np.ones(graph.num_nodes)
    if graph.edge_weight is None:
        return ones
    neighbors = np.diff(graph.adjacency.indptr)
    return np.divide(_total(graph), neighbors, out=ones, where=neighbors > 0)


def degree(graph: Graph) -> np.ndarray:
    """(N,) D: what the links of a node weigh, that to itself among them.

    Examples:
        >>> degree(Graph.of([[1], [2], [3]], [[0, 1], [1, 2]])).tolist()
        [2.0, 3.0, 2.0]
    """
    if graph.edge_weight is None:
        return np.diff(graph.adjacency.indptr) + 1.0
    return _total(graph) + loop_weight(graph)


def inverse_root(graph: Graph) -> np.ndarray:
    """(N,) D^-1/2, float32."""
    if graph.edge_weight is not None:
        return (1.0 / np.sqrt(degree(graph))).astype(np.float32)
    size = np.diff(graph.adjacency.indptr) + 1
    return (1.0 / np.sqrt(size.astype(np.float32))).astype(np.float32)


def weigh(graph: Graph, data: np.ndarray, start: int, end: int, is_other: np.ndarray) -> None:
    """Multiply the entries of rows of D^-1/2 D^-1/2 by what the links weigh, in place.

    Args:
        graph: Whose edges; without weights nothing is done.
        data: (entries,) of the rows.
        start: The first row.
        end: The last row, exclusive.
        is_other: (entries,) which of them are no links of a node to itself.
    """
    if graph.edge_weight is not None:
        indptr = graph.adjacency.indptr
        data[is_other] *= graph.edge_weight[indptr[start] : indptr[end]]
        data[~is_other] *= loop_weight(graph)[start:end].astype(np.float32)


def weighted_links(graph: Graph) -> sp.csr_array:
    """(N, N) symmetric CSR of weights; of ones where all edges count alike."""
    links = graph.adjacency
    if graph.edge_weight is None:
        return links
    parts = (np.asarray(graph.edge_weight), links.indices, links.indptr)
    return sp.csr_array(parts, shape=links.shape)


def _total(graph: Graph) -> np.ndarray:
    """(N,) what the edges of each node weigh together, added up once in double precision."""
    known = graph.cache.get("total weight")
    if isinstance(known, np.ndarray):
        return known
    assert graph.edge_weight is not None
    indptr = graph.adjacency.indptr
    linked = np.flatnonzero(np.diff(indptr))
    total = np.zeros(graph.num_nodes)
    if len(linked):
        total[linked] = np.add.reduceat(graph.edge_weight, indptr[linked], dtype=np.float64)
    graph.cache["total weight"] = total
    return total
