"""A table of edges, read row by row.

Pairs of ids become pairs of numbers at once, so that a long table costs little.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, Unpack

import numpy as np

from nodenova.data.labels import UNKNOWN
from nodenova.errors import GraphError
from nodenova.io.edge_notes import count_repeated, no_counts, say
from nodenova.io.foreign import is_edge_list, open_edge_list
from nodenova.io.frames import is_frame
from nodenova.io.names import SOURCE_NAMES, TARGET_NAMES, guess_ends, pick, without_point
from nodenova.io.nodes import LONGEST_ID, Nodes, id_of
from nodenova.io.tables import ReadingOptions, Rows, Table, clipped, is_missing, open_rows

FIRST_EDGES = 100  # that say which column of nodes holds the ids, where its name does not


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
    rows = edges if isinstance(edges, Rows) else open_edges(edges, reading)
    place: dict[str, int] = {}
    if nodes is not None:
        place = {node: number for number, node in enumerate(nodes.ids)}
    chosen, has_header = end_columns(rows, columns, place, notes)
    ends, counts = _ends(rows, chosen, has_header, place, nodes, min_weight)
    source = rows.source
    notes += rows.notes
    count_repeated(ends, counts)
    say(rows, nodes, counts, len(chosen) == 3, min_weight, drop_unknown, notes)
    if nodes is None:
        nodes = named_nodes(source, list(place), notes)
    return ends, nodes


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


def open_edges(edges: Any, reading: ReadingOptions) -> Rows:
    """Rows of a table of edges, or of an edge list."""
    if is_edge_list(edges):
        return open_edge_list(edges, reading["encoding"])
    return open_rows(edges, source="edges" if is_frame(edges) else "", **reading)


def first_ids(
    edges: Any, columns: tuple[str | None, str | None, str | None], reading: ReadingOptions
) -> list[str]:
    """Ids that the first edges name; none where that cannot be told."""
    if edges is None or isinstance(edges, Rows):
        return []
    try:
        rows = open_edges(edges, reading)
        chosen, _ = end_columns(rows, columns, {}, [])
        return [id_of(a) for _, cells in islice(rows.read(chosen[:2]), FIRST_EDGES) for a in cells]
    except GraphError:  # said when edges are read
        return []


def end_columns(
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
    pair = guess_ends(header) if columns[:2] == (None, None) else None
    if pair is None:
        source = pick(rows, columns[0], SOURCE_NAMES, "source_column", notes)
        target = pick(rows, columns[1], TARGET_NAMES, "target_column", notes, besides=[source])
    else:
        source, target = pair
        for name, option in ((source, "source_column"), (target, "target_column")):
            notes.append(f"{rows.source}: column {name!r} is taken as {option}")
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
    counts = no_counts()
    for line, pair in kept_edges(rows, columns, has_header, least, counts):
        ends = [_number(node, place, nodes is None, rows, line, counts) for node in pair]
        if -1 in ends:
            if not counts["unknown"]:
                counts["first"] = pair
                counts["line"] = line
            counts["unknown"] += 1
            continue
        found.extend(ends)
    return np.array(found, dtype=np.int64).reshape(-1, 2).T, counts


def kept_edges(
    rows: Rows, columns: list[int], has_header: bool, least: float | None, counts: dict[str, Any]
) -> Iterator[tuple[int, tuple[str, str]]]:
    """The line and the two ids of every edge that weighs enough.

    Raises:
        GraphError: An edge lacks an end, or a weight is no number.
    """
    first = [] if has_header else [(1, [rows.header[column] for column in columns])]
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
        yield line, pair


def check_length(node: str, rows: Rows, line: int) -> None:
    """Refuse what is too long for an id.

    Raises:
        GraphError: It is.
    """
    if len(node) > LONGEST_ID:
        said = f"an id of {len(node):,} characters; is this a table of edges?"
        raise GraphError(f"{rows.source}: {rows.unit} {line}: {said}")


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


def _weight(cell: str, rows: Rows, line: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = np.nan
    if is_missing(cell) or not np.isfinite(value):
        said = f"the weight of an edge must be a number, it is {clipped(cell)}"
        raise GraphError(f"{rows.source}: {rows.unit} {line}: {said}")
    return value
