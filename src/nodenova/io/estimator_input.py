"""Input of an estimator: a graph in any form, and labels beside it."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from nodenova.data.labels import UNKNOWN, LabelledGraph, UserGraph
from nodenova.display import plural
from nodenova.errors import GraphError
from nodenova.graph import Graph
from nodenova.io.load import load_graph
from nodenova.io.networkx_scipy import is_networkx
from nodenova.io.pyg import is_hetero

MAX_SENTENCE = 300  # characters of a message of another library


def to_source(estimator: Any, source: Any, *, reset: bool, labels: bool) -> Any:
    """Return what `load_graph` takes: an (N, d) array of features becomes a graph without edges.

    The array is checked against the number of features of `estimator`, or sets it with `reset`.
    Without `labels`, labels of a PyG Data are dropped, as their form may be no label here. Arrays
    beside a graph, such as y, follow its own order, also if the graph is in canonical order.
    """
    if isinstance(source, (str, PathLike, tuple)):
        return source
    if isinstance(source, Graph):
        return source.with_order_given()
    if isinstance(source, LabelledGraph):
        return replace(source, graph=source.graph.with_order_given())
    if is_networkx(source) or is_hetero(source):
        return source
    if hasattr(source, "edge_index"):
        if not labels:
            source = copy.copy(source)
            source.y = None
        return source
    try:
        x = validate_data(estimator, source, reset=reset, accept_sparse="csr", dtype=np.float64)
    except ValueError as error:  # its message has many lines, some with the array itself
        text = re.sub(r"array=.*?\.?\n(?=[A-Z])", "", str(error), flags=re.DOTALL)
        raise GraphError(" ".join(text.split())[:MAX_SENTENCE]) from None
    return x, np.empty((2, 0), dtype=np.int64)


def add_labels(loaded: UserGraph, labels: Mapping[str, str], source: str) -> UserGraph:
    """Add labels, by node id, to those of a graph; they replace labels that a node has."""
    number = {str(node): i for i, node in enumerate(loaded.graph.node_ids.tolist())}
    if unknown := [node for node in labels if node not in number]:
        what = plural(len(unknown), "label is", "labels are")
        raise GraphError(
            f"{source}: {what} of nodes that the graph does not have, first: {unknown[0]!r}"
        )
    names = [*loaded.class_names, *sorted(set(labels.values()) - set(loaded.class_names))]
    y = loaded.y.copy()
    for node, label in labels.items():
        y[number[node]] = names.index(label)
    note = f"{source}: {plural(len(labels), 'label')}, which take precedence over the table"
    return replace_labels(loaded, y, names, note)


def replace_labels(
    loaded: UserGraph,
    y: np.ndarray,
    names: Sequence[str],
    note: str = "labels are taken from y, not from the graph",
) -> UserGraph:
    """Replace the labels of a graph by (N,) class numbers `y`; named new nodes stay new.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.Graph.of(np.eye(3), [[0, 1], [1, 2]])
        >>> loaded = nova.load_graph(graph, new_nodes=[0])
        >>> mine = replace_labels(loaded, np.array([0, 1, -1]), ("ash", "oak"))
        >>> mine.class_names, mine.y.tolist(), mine.new_named, mine.new_ids.tolist()
        (('oak', 'ash'), [1, 0, -1], True, [0])
    """
    has_new = loaded.new_named and len(loaded.new_ids) > 0
    new = loaded.graph.node_ids[loaded.new_ids].tolist() if has_new else None
    labelled = LabelledGraph(loaded.graph, y, tuple(names), name=loaded.name)
    graph = load_graph(labelled, new_nodes=new)
    notes = (note,) if (loaded.y != UNKNOWN).any() else ()
    return replace(graph, notes=(*loaded.notes, *notes, *graph.notes), recipe=loaded.recipe)
