"""Nodes and edges that came, added to the graph of a run: only they need be given."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import UNKNOWN, UserGraph
from nodenova.errors import GraphError, SettingError
from nodenova.graph import Graph
from nodenova.io.load import load_graph
from nodenova.io.table_encoder import TableEncoder


def with_added(
    graph: Graph, nodes: Any, edges: Any, recipe: TableEncoder | None, **reading: Any
) -> tuple[UserGraph, np.ndarray]:
    """The graph with further nodes and edges. A node that it has already is replaced.

    Args:
        graph: That of a run.
        nodes: A table of the nodes that came, as in `load_graph`.
        edges: A table of their edges, to each other and to nodes of the graph; None for none.
        recipe: By which a table becomes the features of the graph.
        **reading: Options of `load_graph`.

    Returns:
        The graph, with the labels that the table brings and notes on what was repaired, and (n,)
        the numbers of the nodes of the table in it.

    Raises:
        SettingError: The features of the graph were not made from a table's columns.
        GraphError: An edge names a node that neither has; or a file cannot be used.
    """
    if recipe is None or recipe.neighbors:
        raise SettingError(
            "nodes can be added where features were made from columns of a table; "
            "give the whole graph"
        )
    of_edges = ("source_column", "target_column", "weight_column", "min_weight", "weights",
                "edge_type_column", "edge_types", "drop_unknown_edges")  # fmt: skip
    shared = {key: reading[key] for key in ("delimiter", "encoding") if key in reading}
    about_edges = {key: reading[key] for key in of_edges if key in reading} | shared
    about_nodes = {key: value for key, value in reading.items() if key not in of_edges}
    came = load_graph(nodes=nodes, recipe=recipe, **about_nodes)
    notes = [note for note in came.notes if "no edges were given" not in note]
    place = {str(name): number for number, name in enumerate(graph.node_ids.tolist())}
    row = np.arange(graph.num_nodes + came.graph.num_nodes)
    numbers = []
    for number, name in enumerate(map(str, came.graph.node_ids.tolist()), graph.num_nodes):
        if name in place:
            row[place[name]] = number
        else:
            place[name] = len(place)
            row[place[name]] = number
        numbers.append(place[name])
    row = row[: len(place)]
    ends, weight = graph.edge_index, graph.edge_weight
    if edges is not None:
        drop = bool(about_edges.pop("drop_unknown_edges", False))
        linked = load_graph(edges=edges, **about_edges)
        notes += [note for note in linked.notes if "no column" not in note]
        more, more_weight = _renumbered(linked.graph, place, linked.name, drop)
        ends = np.concatenate([ends, more], axis=1)
        if weight is not None:
            alike = np.ones(more.shape[1], dtype=np.float32)
            weight = np.concatenate([weight, alike if more_weight is None else more_weight])
    dense = isinstance(graph.x, np.ndarray)
    parts = [graph.x, came.graph.x]
    stacked: Any = np.concatenate(parts) if dense else sp.csr_array(sp.vstack(parts, "csr"))
    vectors = graph.vectors
    if vectors is not None:
        if came.graph.vectors is None:
            raise GraphError(f"{came.name}: the graph has vectors of texts: give text_vectors")
        vectors = np.concatenate([vectors, came.graph.vectors])[row]
    whole = Graph.of(
        stacked[row],
        ends,
        node_ids=list(place),
        feature_names=graph.feature_names,
        dense=dense,
        source=came.name,
        edge_weight=weight,
        vectors=vectors,
    )
    y = np.full(whole.num_nodes, UNKNOWN)
    y[numbers] = came.y
    joined = UserGraph(whole, y, came.class_names, name=came.name, notes=tuple(notes))
    return joined, np.array(numbers, dtype=np.int64)


def _renumbered(
    linked: Graph, place: dict[str, int], source: str, drop: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Edges by the numbers of the nodes that they name, and their weights."""
    number = np.array([place.get(str(name), -1) for name in linked.node_ids.tolist()])
    ends = number[linked.edge_index]
    known = (ends >= 0).all(axis=0)
    if not drop and not known.all():
        name = str(linked.node_ids[int(np.flatnonzero(number < 0)[0])])
        raise GraphError(
            f"{source}: node {name!r} is neither among the nodes given nor in the run; "
            "drop_unknown_edges (--drop-unknown-edges) leaves such edges out"
        )
    weight = None if linked.edge_weight is None else linked.edge_weight[known]
    return ends[:, known], weight
