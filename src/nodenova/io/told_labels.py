"""What an estimator is given: a graph in any form, and labels beside it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from nodenova.data.labels import UNKNOWN, LabelledGraph, UserGraph
from nodenova.graph import Graph
from nodenova.io.foreign import is_networkx
from nodenova.io.hetero import is_hetero
from nodenova.io.load import load_graph


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


def with_labels(loaded: UserGraph, y: np.ndarray, names: Sequence[str]) -> UserGraph:
    """The graph with other labels than its own. New nodes that were named stay new.

    Args:
        loaded: What `load_graph` gave.
        y: (N,) numbers of classes, -1 where nobody has said.
        names: Of the classes.

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
    said = "the labels are those of y, and not those that the graph brings"
    more = (said,) if (loaded.y != UNKNOWN).any() else ()
    return replace(marked, notes=(*loaded.notes, *more, *marked.notes), recipe=loaded.recipe)
