"""A table of edges, read row by row.

Pairs of ids become pairs of numbers at once, so that a long table costs little.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from nodenova.data.labels import UNKNOWN
from nodenova.errors import GraphError
from nodenova.io.edge_notes import count_repeated, no_counts, say
from nodenova.io.edge_options import EdgeOptions
from nodenova.io.edge_rows import (
    Chosen,
    check_length,
    check_types,
    end_columns,
    kept_edges,
    open_edges,
)
from nodenova.io.edge_types import by_type, combined
from nodenova.io.names import without_point
from nodenova.io.nodes import Nodes
from nodenova.io.tables import ReadingOptions, Rows, Table


class Edges(NamedTuple):
    """The edges of a graph.

    Attributes:
        ends: (2, E) numbers of nodes as the table names them.
        weight: (E,) of each, or None where they count alike.
    """

    ends: np.ndarray
    weight: np.ndarray | None = None


def read_edges(
    edges: Any,
    nodes: Nodes | None,
    options: EdgeOptions,
    notes: list[str],
    **reading: Unpack[ReadingOptions],
) -> tuple[Edges, Nodes]:
    """Read a table of edges, or an edge list.

    Args:
        edges: A file, a data frame or rows; None when there are no edges.
        nodes: Those that edges may name; None when the nodes are those that edges name.
        options: What the user says of them.
        notes: Gets a sentence on every repair.
        **reading: How to read the file, as in `open_rows`.

    Returns:
        The edges, and the nodes: those given, or those that the edges name.

    Raises:
        GraphError: A column, a line or a node is wrong.
    """
    if edges is None:
        assert nodes is not None
        notes.append(f"{nodes.table.source}: no edges were given; every node stands alone")
        return Edges(np.zeros((2, 0), dtype=np.int64)), nodes
    rows = edges if isinstance(edges, Rows) else open_edges(edges, reading)
    place: dict[str, int] = {}
    if nodes is not None:
        place = {node: number for number, node in enumerate(nodes.ids)}
    chosen = end_columns(rows, options.columns, place, notes)
    found, types, numbers, counts = _edges(rows, chosen, place, nodes, options)
    source = rows.source
    notes += rows.notes
    if not types:
        count_repeated(found.ends, counts)
    say(rows, nodes, counts, options, notes)
    if nodes is None:
        nodes = named_nodes(source, list(place), notes)
    if types:
        layers = by_type(types, numbers, *found)
        found = Edges(*combined(layers, len(nodes.ids), options.shares, source, notes))
    return found, nodes


def named_nodes(source: str, ids: Sequence[str], notes: list[str]) -> Nodes:
    """The nodes of a graph of which there are only edges.

    Raises:
        GraphError: There are none.
    """
    n = len(ids)
    if not n:
        raise GraphError(f"{source}: a header and no edges")
    notes.append(
        f"{source}: an edge list; the {n:,} nodes are those that it names, and have no labels"
    )
    return Nodes(Table(source, {}, range(1, n + 1)), ids, np.full(n, UNKNOWN), ())


def _edges(
    rows: Rows,
    chosen: Chosen,
    place: dict[str, int],
    nodes: Nodes | None,
    options: EdgeOptions,
) -> tuple[Edges, list[str], np.ndarray, dict[str, Any]]:
    """The edges, names of types, (E,) the number of the type of each, and what was counted."""
    found, weights, of_type = array("q"), array("d"), array("q")
    types: dict[str, int] = {}
    counts = no_counts()
    for line, pair, weight, kind in kept_edges(rows, chosen, options, counts):
        ends = [_number(node, place, nodes is None, rows, line, counts) for node in pair]
        if -1 in ends:
            if not counts["unknown"]:
                counts["first"] = pair
                counts["line"] = line
            counts["unknown"] += 1
            continue
        found.extend(ends)
        if options.counts_weights:
            weights.append(weight)
        if chosen.typed:
            of_type.append(types.setdefault(kind, len(types)))
            check_types(types, rows, options)
    ends_of = np.array(found, dtype=np.int64).reshape(-1, 2).T
    weight_of = np.array(weights) if options.counts_weights else None
    return Edges(ends_of, weight_of), [*types], np.array(of_type, dtype=np.int64), counts


def _number(
    node: str,
    place: dict[str, int],
    grows: bool,
    rows: Rows,
    line: int,
    counts: dict[str, Any],
) -> int:
    number = place.get(node, -1)
    if number >= 0:
        return number
    if grows:
        check_length(node, rows, line)
        place[node] = len(place)
        return len(place) - 1
    number = place.get(without_point(node), place.get(node + ".0", -1))
    counts["repaired"] += number >= 0
    return number
