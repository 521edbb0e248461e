"""Rows of a table of edges: where both ends, weight and type are, and which edges are kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from nodenova.errors import GraphError
from nodenova.io.edge_options import EdgeColumns, EdgeOptions
from nodenova.io.edge_types import MAX_TYPES
from nodenova.io.foreign import is_edge_list, open_edge_list
from nodenova.io.frames import is_frame
from nodenova.io.names import SOURCE_NAMES, TARGET_NAMES, guess_ends, pick
from nodenova.io.nodes import LONGEST_ID, id_of
from nodenova.io.tables import ReadingOptions, Rows, clipped, is_missing, open_rows

FIRST_EDGES = 100  # that say which column of nodes holds the ids, where its name does not


class Chosen(NamedTuple):
    """Where in a row of a table an edge is.

    Attributes:
        places: Of the columns source, target and, if any, weight and type.
        has_header: Else the header is an edge, too.
        weighted: Whether there is a weight.
        typed: Whether there is a type.
    """

    places: list[int]
    has_header: bool
    weighted: bool = False
    typed: bool = False


class Kept(NamedTuple):
    """An edge of a table that weighs enough.

    Attributes:
        line: Where it is.
        pair: Ids of both ends.
        weight: 1 where there is none.
        type: Empty where there is none.
    """

    line: int
    pair: tuple[str, str]
    weight: float
    type: str


def open_edges(edges: Any, reading: ReadingOptions) -> Rows:
    """Rows of a table of edges, or of an edge list."""
    if is_edge_list(edges):
        return open_edge_list(edges, reading["encoding"])
    return open_rows(edges, source="edges" if is_frame(edges) else "", **reading)


def first_ids(edges: Any, columns: EdgeColumns, reading: ReadingOptions) -> list[str]:
    """Ids that the first edges name; none where that cannot be told."""
    if edges is None or isinstance(edges, Rows):
        return []
    try:
        rows = open_edges(edges, reading)
        ends = end_columns(rows, columns, {}, []).places[:2]
        return [id_of(a) for _, cells in islice(rows.read(ends), FIRST_EDGES) for a in cells]
    except GraphError:  # said when edges are read
        return []


def end_columns(
    rows: Rows,
    columns: EdgeColumns,
    place: dict[str, int],
    notes: list[str],
) -> Chosen:
    """Where in a row of a table an edge is."""
    header = rows.header
    if len(header) < 2:
        raise GraphError(
            f"{rows.source}: a table of edges needs two columns, it has one: {clipped(header[0])}"
        )
    beside = ((columns.weight, "weight_column"), (columns.type, "edge_type_column"))
    is_edge = header[0] in place and header[1] in place
    is_edge = is_edge or (not place and all(map(str.isdecimal, header[:2])))
    if is_edge and not rows.is_numbered and columns[:2] == (None, None):
        notes.append(f"{rows.source}: there is no header, the first line is an edge")
        more = [pick(rows, name, (), option, notes) for name, option in beside]
        places = [header.index(name) for name in more if name is not None]
        return Chosen([0, 1, *places], False, *(name is not None for name in more))
    pair = guess_ends(header) if columns[:2] == (None, None) else None
    if pair is None:
        source = pick(rows, columns[0], SOURCE_NAMES, "source_column", notes)
        target = pick(rows, columns[1], TARGET_NAMES, "target_column", notes, besides=[source])
    else:
        source, target = pair
        for name, option in ((source, "source_column"), (target, "target_column")):
            notes.append(f"{rows.source}: column {name!r} is taken as {option}")
    more = [pick(rows, name, (), option, notes) for name, option in beside]
    if source is None or target is None:
        free = [name for name in header if name not in (source, target, *more)]
        chosen = (source or free.pop(0), target or free.pop(0))
        source, target = chosen
        notes.append(
            f"{rows.source}: columns {source!r} and {target!r} are taken as the two ends of an edge"
        )
    if source == target:
        raise GraphError(f"{rows.source}: column {source!r} cannot be both ends of an edge")
    left = [name for name in header if name not in (source, target, *more)]
    if left:
        notes.append(f"{rows.source}: columns of edges are not used: {', '.join(left)}")
    places = [header.index(name) for name in (source, target, *more) if name is not None]
    return Chosen(places, True, *(name is not None for name in more))


def kept_edges(
    rows: Rows, chosen: Chosen, options: EdgeOptions, counts: dict[str, Any]
) -> Iterator[Kept]:
    """Every edge that weighs enough.

    Raises:
        GraphError: An edge lacks an end or its type, or a weight is no number, or below zero.
    """
    least, is_typed, is_weighted = options.min_weight, chosen.typed, chosen.weighted
    places = chosen.places
    first = [] if chosen.has_header else [(1, [rows.header[place] for place in places])]
    for line, (a, b, *more) in chain(first, rows.read(places)):
        counts["rows"] += 1
        pair = (id_of(a), id_of(b))
        if not pair[0] or not pair[1]:
            raise GraphError(f"{rows.source}: {rows.unit} {line}: an edge with only one end")
        heavy = 1.0
        if is_weighted:
            heavy = _weight(more[0], rows, line, options)
            if heavy <= 0 or (least is not None and heavy < least):
                counts["light"] += 1
                continue
        kind = more[-1].strip() if is_typed else ""
        if is_typed and is_missing(kind):
            said = f"an edge without a type in column {options.columns.type!r}"
            raise GraphError(f"{rows.source}: {rows.unit} {line}: {said}")
        yield Kept(line, pair, heavy, kind)


def _weight(cell: str, rows: Rows, line: int, options: EdgeOptions) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = np.nan
    if is_missing(cell) or not np.isfinite(value):
        said = f"the weight of an edge must be a number, it is {clipped(cell)}"
        raise GraphError(f"{rows.source}: {rows.unit} {line}: {said}")
    if value < 0 and options.min_weight is None and options.counts_weights:
        said = f"the weight of an edge cannot be below zero, it is {clipped(cell)}"
        hint = "min_weight (--min-weight) drops such edges"
        raise GraphError(f"{rows.source}: {rows.unit} {line}: {said}; {hint}")
    return value


def check_length(node: str, rows: Rows, line: int) -> None:
    """Refuse what is too long for an id.

    Raises:
        GraphError: It is.
    """
    if len(node) > LONGEST_ID:
        said = f"an id of {len(node):,} characters; is this a table of edges?"
        raise GraphError(f"{rows.source}: {rows.unit} {line}: {said}")


def check_types(types: Collection[str], rows: Rows, options: EdgeOptions) -> None:
    """Refuse what is too many to be types of edges.

    Raises:
        GraphError: It is.
    """
    if len(types) > MAX_TYPES:
        said = (
            f"more than {MAX_TYPES} different types of edges; is this really the type of an edge?"
        )
        raise GraphError(f"{rows.source}: column {options.columns.type!r} has {said}")
