"""What an estimator is given: a graph in any form, and labels beside it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from nodenova.data.labels import UNKNOWN, LabelledGraph, UserGraph
from nodenova.errors import GraphError
from nodenova.graph import Graph
from nodenova.io.load import load_graph
from nodenova.io.networkx_scipy import is_networkx
from nodenova.io.pyg import is_hetero


def given_source(estimator: Any, source: Any, *, reset: bool, labels: bool) -> Any:
    """What `load_graph` takes: an array of features alone becomes a graph without edges.

    Args:
        estimator: Of scikit-learn's shape, whose number of features an array is checked against.
        source: A graph in any form, or an array (N, d).
        reset: Whether the array decides that number.
        labels: Whether labels of a PyG Data are wanted; their form may be no label here.
    """
    if isinstance(source, (str, PathLike, tuple, Graph, LabelledGraph)):
        return source
    if is_networkx(source) or is_hetero(source):
        return source
    if hasattr(source, "edge_index"):
        if not labels:
            source = copy.copy(source)
            source.y = None
        return source
    x = validate_data(estimator, source, reset=reset, accept_sparse="csr", dtype=np.float64)
    return x, np.empty((2, 0), dtype=np.int64)


def with_further_labels(loaded: UserGraph, labels: Mapping[str, str], source: str) -> UserGraph:
    """The graph with labels beside its own; where a node has both, they go before.

    Args:
        loaded: What `load_graph` gave.
        labels: Names of classes by the id of a node.
        source: Where they are from, for errors and notes.

    Raises:
        GraphError: A label is of a node that the graph does not have.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.Graph.of(np.eye(3), [[0, 1], [1, 2]])
        >>> told = {"0": "oak", "2": "ash"}
        >>> mine = with_further_labels(nova.load_graph(graph), told, "labels.csv")
        >>> [mine.class_names[c] if c >= 0 else None for c in mine.y.tolist()]
        ['oak', None, 'ash']
    """
    number = {str(node): i for i, node in enumerate(loaded.graph.node_ids.tolist())}
    strange = [node for node in labels if node not in number]
    if strange:
        raise GraphError(
            f"{source}: {len(strange):,} labels are of nodes that the graph does not have, "
            f"the first of {strange[0]!r}"
        )
    names = list(loaded.class_names)
    names += sorted(set(labels.values()) - set(names))
    y = loaded.y.copy()
    for node, label in labels.items():
        y[number[node]] = names.index(label)
    said = f"{source}: {len(labels):,} labels, which go before those of the table"
    return with_labels(loaded, y, names, said)


def with_labels(
    loaded: UserGraph,
    y: np.ndarray,
    names: Sequence[str],
    said: str = "the labels are those of y, and not those that the graph brings",
) -> UserGraph:
    """The graph with other labels than its own. New nodes that were named stay new.

    Args:
        loaded: What `load_graph` gave.
        y: (N,) numbers of classes, -1 where nobody has said.
        names: Of the classes.
        said: The note on it, where the graph has labels of its own.

    Returns:
        The graph. Classes that only new nodes have come last, as ever.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.Graph.of(np.eye(3), [[0, 1], [1, 2]])
        >>> loaded = nova.load_graph(graph, new_nodes=[0])
        >>> mine = with_labels(loaded, np.array([0, 1, -1]), ("ash", "oak"))
        >>> mine.class_names, mine.y.tolist(), mine.new_named, mine.new_ids.tolist()
        (('oak', 'ash'), [1, 0, -1], True, [0])
    """
    named = loaded.new_named and len(loaded.new_ids) > 0
    new = loaded.graph.node_ids[loaded.new_ids].tolist() if named else None
    told = LabelledGraph(loaded.graph, y, tuple(names), name=loaded.name)
    marked = load_graph(told, new_nodes=new)
    more = (said,) if (loaded.y != UNKNOWN).any() else ()
    return replace(marked, notes=(*loaded.notes, *more, *marked.notes), recipe=loaded.recipe)
