"""A table of edges, read row by row.

Pairs of ids become pairs of numbers at once, so that a long table costs little.
"""

from __future__ import annotations

from array import array
from itertools import chain
from typing import Any, Unpack

import numpy as np

from nodenova.data.labels import UNKNOWN
from nodenova.errors import GraphError
from nodenova.io.columns import clipped
from nodenova.io.foreign import is_edge_list, open_edge_list
from nodenova.io.frames import is_frame
from nodenova.io.nodes import LONGEST_ID, Nodes, id_of, pick, without_point
from nodenova.io.tables import ReadingOptions, Rows, Table, is_missing, open_rows

SOURCE_NAMES = ("source", "src", "from", "u", "head", "citing", "node1")
TARGET_NAMES = ("target", "dst", "to", "v", "tail", "cited", "node2")


def read_edges(
    edges: Any,
    nodes: Nodes | None,
    columns: tuple[str | None, str | None, str | None],
    *,
    min_weight: float | None,
    drop_unknown: bool,
    notes: list[str],
    **reading: Unpack[ReadingOptions],
) -> tuple[np.ndarray, Nodes]:
    """Read a table of edges, or an edge list.

    Args:
        edges: A file, a data frame or rows; None when there are no edges.
        nodes: Those that edges may name; None when the nodes are those that edges name.
        columns: Names of source, target and weight, None where they are to be found.
        min_weight: Edges with a weight below it are left out.
        drop_unknown: Leave out edges to nodes that are not there, instead of refusing them.
        notes: Gets a sentence on every repair.
        **reading: How to read the file, as in `open_rows`.

    Returns:
        (2, E) numbers of nodes as the table names them, and the nodes: those given, or those that
        the edges name.

    Raises:
        GraphError: A column, a line or a node is wrong.
    """
    if edges is None:
        assert nodes is not None
        notes.append(f"{nodes.table.source}: no edges were given; every node stands alone")
        return np.zeros((2, 0), dtype=np.int64), nodes
    rows = edges if isinstance(edges, Rows) else _open(edges, reading)
    place: dict[str, int] = {}
    if nodes is not None:
        place = {node: number for number, node in enumerate(nodes.ids)}
    chosen, has_header = _columns(rows, columns, place, notes)
    ends, counts = _ends(rows, chosen, has_header, place, nodes, min_weight)
    source = rows.source
    notes += rows.notes
    if counts["unknown"]:
        known = nodes.table.source if nodes is not None else ""
        first = " -> ".join(map(clipped, counts["first"]))
        said = f"{source}: {counts['unknown']:,} edges name nodes that {known} does not have"
        if not drop_unknown:
            raise GraphError(f"{said}, first: {first} ({rows.unit} {counts['line']})")
        notes.append(f"{said}; dropped, first: {first}")
    _say(source, ends, counts, len(chosen) == 3, min_weight, notes)
    if nodes is None:
        if not place:
            raise GraphError(f"{source}: a header and no edges")
        n = len(place)
        table = Table(source, {}, list(range(1, n + 1)))
        nodes = Nodes(table, list(place), np.full(n, UNKNOWN), ())
        notes.append(
            f"{source}: an edge list; the {n:,} nodes are those that it names, and have no labels"
        )
    return ends, nodes


def _open(edges: Any, reading: ReadingOptions) -> Rows:
    if is_edge_list(edges):
        return open_edge_list(edges, reading["encoding"])
    return open_rows(edges, source="edges" if is_frame(edges) else "", **reading)


def _columns(
    rows: Rows,
    columns: tuple[str | None, str | None, str | None],
    place: dict[str, int],
    notes: list[str],
) -> tuple[list[int], bool]:
    """Places of the columns source, target and, if any, weight; and whether there is a header."""
    header = rows.header
    if len(header) < 2:
        raise GraphError(
            f"{rows.source}: a table of edges needs two columns, it has one: {clipped(header[0])}"
        )
    is_edge = header[0] in place and header[1] in place
    is_edge = is_edge or (not place and all(map(str.isdecimal, header[:2])))
    if is_edge and not rows.is_numbered and columns[:2] == (None, None):
        notes.append(f"{rows.source}: there is no header, the first line is an edge")
        return [0, 1, *([] if columns[2] is None else [header.index(columns[2])])], False
    source = pick(rows, columns[0], SOURCE_NAMES, "source_column", notes)
    target = pick(rows, columns[1], TARGET_NAMES, "target_column", notes, besides=[source])
    weight = pick(rows, columns[2], (), "weight_column", notes)
    if source is None or target is None:
        free = [name for name in header if name not in (source, target, weight)]
        chosen = (source or free.pop(0), target or free.pop(0))
        source, target = chosen
        notes.append(
            f"{rows.source}: columns {source!r} and {target!r} are taken as the two ends of an edge"
        )
    if source == target:
        raise GraphError(f"{rows.source}: column {source!r} cannot be both ends of an edge")
    left = [name for name in header if name not in (source, target, weight)]
    if left:
        notes.append(f"{rows.source}: columns of edges are not used: {', '.join(left)}")
    return [header.index(name) for name in (source, target, weight) if name is not None], True


def _ends(
    rows: Rows,
    columns: list[int],
    has_header: bool,
    place: dict[str, int],
    nodes: Nodes | None,
    least: float | None,
) -> tuple[np.ndarray, dict[str, Any]]:
    found = array("q")
    first = [] if has_header else [(1, [rows.header[column] for column in columns])]
    counts: dict[str, Any] = dict.fromkeys(("rows", "unknown", "light", "repaired", "line"), 0)
    counts["first"] = ()
    for line, (a, b, *weight) in chain(first, rows.read(columns)):
        counts["rows"] += 1
        pair = (id_of(a), id_of(b))
        if not pair[0] or not pair[1]:
            raise GraphError(f"{rows.source}: {rows.unit} {line}: an edge with only one end")
        if weight:
            heavy = _weight(weight[0], rows, line)
            if heavy <= 0 or (least is not None and heavy < least):
                counts["light"] += 1
                continue
        ends = [_number(node, place, nodes is None, rows, line, counts) for node in pair]
        if -1 in ends:
            if not counts["unknown"]:
                counts["first"] = pair
                counts["line"] = line
            counts["unknown"] += 1
            continue
        found.extend(ends)
    return np.array(found, dtype=np.int64).reshape(-1, 2).T, counts


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
        if len(node) > LONGEST_ID:
            said = f"an id of {len(node):,} characters; is this a table of edges?"
            raise GraphError(f"{rows.source}: {rows.unit} {line}: {said}")
        place[node] = len(place)
        return len(place) - 1
    number = place.get(without_point(node), place.get(node + ".0", -1))
    counts["repaired"] += number >= 0
    return number


def _weight(cell: str, rows: Rows, line: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = np.nan
    if is_missing(cell) or not np.isfinite(value):
        said = f"the weight of an edge must be a number, it is {clipped(cell)}"
        raise GraphError(f"{rows.source}: {rows.unit} {line}: {said}")
    return value


def _say(
    source: str,
    ends: np.ndarray,
    counts: dict[str, Any],
    weighted: bool,
    least: float | None,
    notes: list[str],
) -> None:
    if counts["repaired"]:
        notes.append(f"{source}: {counts['repaired']:,} ids like '12.0' are read as '12'")
    if counts["light"]:
        limit = "no positive weight"
        if least is not None:
            limit += f", or one below {least:g},"
        notes.append(f"{source}: {counts['light']:,} edges with {limit} were dropped")
    if weighted:
        notes.append(f"{source}: weights decide which edges are kept; the kept ones count alike")
    a, b = ends
    loops = a == b
    if loops.any():
        notes.append(f"{source}: {loops.sum():,} self-loops were dropped")
    low = np.minimum(a, b)[~loops]
    high = np.maximum(a, b)[~loops]
    n = int(ends.max(initial=0)) + 1
    distinct = len(np.unique(low * n + high))
    directed = len(np.unique(a[~loops] * n + b[~loops]))
    if len(low) > directed:
        notes.append(
            f"{source}: {len(low) - directed:,} edges are there more than once; each is kept once"
        )
    if directed > distinct:
        notes.append(
            f"{source}: {directed - distinct:,} edges are there in both directions; "
            "edges have no direction here"
        )
