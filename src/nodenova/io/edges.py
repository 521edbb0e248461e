"""A table of edges, read row by row.

Pairs of ids become pairs of numbers at once, so that a long table costs little.

What a user says of edges: which columns they are in, which count, and how much.

Edges of several types as the weighted edges of one graph.

Each type is normalized on its own, and they are added: with a_t the weights of a type, of mean 1,
d_t what the edges of a node of that type weigh together, and D the sum of d_t over types,

    w_ij = sum_t share_t a_t,ij sqrt(D_i D_j / (d_t,i d_t,j)),

so that D^-1/2 w D^-1/2 is the sum of the D_t^-1/2 A_t D_t^-1/2 of the types. At every node the
types that it has count alike, however many edges they have there; a single type stays as it is.

Rows of a table of edges: where both ends, weight and type are, and which edges are kept.

What is said of edges that were left out, repaired, or there more than once.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, Unpack

import numpy as np

from nodenova.data.labels import UNKNOWN
from nodenova.errors import GraphError
from nodenova.graph import undirected
from nodenova.io.column_guessing import (
    SOURCE_NAMES,
    TARGET_NAMES,
    drop_point_zero,
    guess_ends,
    pick_column,
    plain_texts,
)
from nodenova.io.frames import is_frame, is_missing, quote
from nodenova.io.networkx_scipy import is_edge_list, open_edge_list
from nodenova.io.nodes import LONGEST_ID, Nodes, id_of
from nodenova.io.table_options import TableOptions, parse_edge_types
from nodenova.io.tables import ReadingOptions, Rows, Table, open_rows

MAX_TYPES = 100  # more different values are no types of edges


class EdgeType(NamedTuple):
    """The edges of one type.

    Attributes:
        name: Of the type.
        ends: (2, E) numbers of nodes.
        weight: (E,) of each, or None where they count alike.
    """

    name: str
    ends: np.ndarray
    weight: np.ndarray | None = None


def by_type(
    names: Sequence[str], number: np.ndarray, ends: np.ndarray, weight: np.ndarray | None
) -> list[EdgeType]:
    """The edges of a table, type by type.

    Args:
        names: Of the types.
        number: (E,) of which type each edge is.
        ends: (2, E) numbers of nodes.
        weight: (E,) of each, or None.
    """
    masks = [number == t for t in range(len(names))]
    return [
        EdgeType(name, ends[:, mask], None if weight is None else weight[mask])
        for name, mask in zip(names, masks, strict=True)
    ]


def combined(
    types: Sequence[EdgeType],
    n: int,
    shares: Mapping[str, float] | None,
    source: str,
    notes: list[str],
) -> tuple[np.ndarray, np.ndarray | None]:
    """Edges of several types as those of one graph.

    Args:
        types: All that there are.
        n: How many nodes there are.
        shares: What each type weighs; types that are not named are left out. None: all alike.
        source: What messages call the table of edges.
        notes: Gets a sentence on what was done.

    Returns:
        (2, E) both directions of every edge, maybe of several types, and (E,) weights; None where
        there is one type, and all its edges count alike.

    Raises:
        GraphError: There is no such type.

    Examples:
        >>> cites = EdgeType("cites", np.array([[0, 0, 0], [1, 2, 3]]))
        >>> same = EdgeType("same author", np.array([[0], [1]]))
        >>> ends, weight = combined([cites, same], 4, None, "edges", [])
        >>> weight.reshape(2, -1).round(2).tolist()  # cites 0-1, 0-2, 0-3, 1-0; 2-0, 3-0; same
        [[1.63, 1.15, 1.15, 1.63], [1.15, 1.15, 2.83, 2.83]]
    """
    known = [kind.name for kind in types]
    for name in shares or ():
        if name not in known:
            raise GraphError(f"{source}: no edge is of type {name!r}; types: {', '.join(known)}")
    chosen = [kind for kind in types if shares is None or kind.name in shares]
    parts = []
    for kind in chosen:
        ends, weight = undirected(kind.ends, n, kind.weight)
        a = np.ones(ends.shape[1]) if weight is None else weight / weight.mean(dtype=np.float64)
        parts.append((ends, a, np.bincount(ends[0], weights=a, minlength=n)))
    total = np.sum([d for _, _, d in parts], axis=0)
    weights = []
    for kind, (ends, a, d) in zip(chosen, parts, strict=True):
        i, j = ends
        share = 1.0 if shares is None else shares[kind.name]
        weights.append(share * (a * np.sqrt(total[i] * total[j] / (d[i] * d[j]))))
    counts = [f"{k.name} {e.shape[1] // 2:,}" for k, (e, _, _) in zip(chosen, parts, strict=True)]
    said = f"{source}: types of edges are {', '.join(counts)}"
    if len(chosen) > 1:
        said += "; at every node those that it has count alike, however many edges they have there"
        if shares is not None and len({*shares.values()}) > 1:
            said += ", times " + ", ".join(f"{name} {share:g}" for name, share in shares.items())
    notes.append(said)
    left = [name for name in known if shares is not None and name not in shares]
    if left:
        notes.append(f"{source}: types of edges that were not chosen: {', '.join(left)}")
    if len(chosen) == 1 and chosen[0].weight is None:
        return parts[0][0], None
    return np.concatenate([ends for ends, _, _ in parts], axis=1), np.concatenate(weights)


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


def first_ids(edges: Any, options: TableOptions, reading: ReadingOptions) -> list[str]:
    """Ids that the first edges name; none where that cannot be told."""
    if edges is None or isinstance(edges, Rows):
        return []
    try:
        rows = open_edges(edges, reading)
        ends = end_columns(rows, options, {}, []).places[:2]
        return [id_of(a) for _, cells in islice(rows.read(ends), FIRST_EDGES) for a in cells]
    except GraphError:  # said when edges are read
        return []


def end_columns(
    rows: Rows,
    options: TableOptions,
    place: dict[str, int],
    notes: list[str],
) -> Chosen:
    """Where in a row of a table an edge is."""
    header = rows.header
    if len(header) < 2:
        raise GraphError(
            f"{rows.source}: a table of edges needs two columns, it has one: {quote(header[0])}"
        )
    ends = (options.source_column, options.target_column)
    beside = [(getattr(options, name), name) for name in ("weight_column", "edge_type_column")]
    is_edge = header[0] in place and header[1] in place
    is_edge = is_edge or (not place and all(map(str.isdecimal, header[:2])))
    if is_edge and not rows.is_numbered and ends == (None, None):
        notes.append(f"{rows.source}: there is no header, the first line is an edge")
        more = [pick_column(rows, name, (), option, notes) for name, option in beside]
        places = [header.index(name) for name in more if name is not None]
        return Chosen([0, 1, *places], False, *(name is not None for name in more))
    pair = guess_ends(header) if ends == (None, None) else None
    if pair is None:
        source = pick_column(rows, ends[0], SOURCE_NAMES, "source_column", notes)
        target = pick_column(rows, ends[1], TARGET_NAMES, "target_column", notes, excluded=[source])
    else:
        source, target = pair
        for name, option in ((source, "source_column"), (target, "target_column")):
            notes.append(f"{rows.source}: column {name!r} is taken as {option}")
    more = [pick_column(rows, name, (), option, notes) for name, option in beside]
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
    rows: Rows, chosen: Chosen, options: TableOptions, counts: dict[str, Any]
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
            said = f"an edge without a type in column {options.edge_type_column!r}"
            raise GraphError(f"{rows.source}: {rows.unit} {line}: {said}")
        yield Kept(line, pair, heavy, kind)


def _weight(cell: str, rows: Rows, line: int, options: TableOptions) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = np.nan
    if is_missing(cell) or not np.isfinite(value):
        said = f"the weight of an edge must be a number, it is {quote(cell)}"
        raise GraphError(f"{rows.source}: {rows.unit} {line}: {said}")
    if value < 0 and options.min_weight is None and options.counts_weights:
        said = f"the weight of an edge cannot be below zero, it is {quote(cell)}"
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


def check_types(types: Collection[str], rows: Rows, options: TableOptions) -> None:
    """Refuse what is too many to be types of edges.

    Raises:
        GraphError: It is.
    """
    if len(types) > MAX_TYPES:
        said = (
            f"more than {MAX_TYPES} different types of edges; is this really the type of an edge?"
        )
        raise GraphError(f"{rows.source}: column {options.edge_type_column!r} has {said}")


def no_counts() -> dict[str, Any]:
    """What is counted of edges, for `say`: nothing so far."""
    keys = ("rows", "unknown", "light", "repaired", "line", "loops", "again", "both_ways")
    return {**dict.fromkeys(keys, 0), "first": ()}


def say(
    rows: Rows,
    nodes: Nodes | None,
    counts: dict[str, Any],
    options: TableOptions,
    notes: list[str],
) -> None:
    """Note what was left out or repaired.

    Raises:
        GraphError: Edges name nodes that are not there, and are not to be dropped.
    """
    source = rows.source
    if counts["unknown"]:
        known = nodes.table.source if nodes is not None else ""
        first = " -> ".join(map(quote, counts["first"]))
        said = f"{source}: {counts['unknown']:,} edges name nodes that {known} does not have"
        if not options.drop_unknown_edges:
            drop = "give drop_unknown_edges (--drop-unknown-edges) to leave them out"
            hint = _other_ids(nodes, counts["first"]) or drop
            raise GraphError(f"{said}, first: {first} ({rows.unit} {counts['line']}); {hint}")
        notes.append(f"{said}; dropped, first: {first}")
    if counts["repaired"]:
        notes.append(f"{source}: {counts['repaired']:,} ids like '12.0' are read as '12'")
    least = options.min_weight
    if counts["light"]:
        limit = "no positive weight"
        if least is not None:
            limit += f", or one below {least:g},"
        notes.append(f"{source}: {counts['light']:,} edges with {limit} were dropped")
    if options.counts_weights:
        notes.append(f"{source}: weights of edges count: heavier neighbors are heard more")
    elif options.weight_column is not None:
        notes.append(f"{source}: weights decide which edges are kept; the kept ones count alike")
    if counts["loops"]:
        notes.append(f"{source}: {counts['loops']:,} self-loops were dropped")
    if counts["again"]:
        kept = "their weights are added" if options.counts_weights else "each is kept once"
        notes.append(f"{source}: {counts['again']:,} edges are there more than once; {kept}")
    if counts["both_ways"]:
        said = "edges have no direction here"
        if options.counts_weights:
            said += ", weights are added unless all edges weigh the same both ways"
        notes.append(
            f"{source}: {counts['both_ways']:,} edges are there in both directions; {said}"
        )


def _other_ids(nodes: Nodes | None, ends: Sequence[str]) -> str:
    """A hint where another column than that of the ids has both ends of an edge."""
    for name, cells in () if nodes is None else nodes.table.columns.items():
        if {*ends} <= {*plain_texts(cells)}:
            return f"column {name!r} has these ids: give it as id_column (--id-column)"
    return ""


def count_repeated(ends: np.ndarray, counts: dict[str, Any]) -> None:
    """Count self-loops, edges that are there again, and those that are there both ways."""
    a, b = ends
    loops = a == b
    low = np.minimum(a, b)[~loops]
    high = np.maximum(a, b)[~loops]
    n = int(ends.max(initial=0)) + 1
    distinct = len(np.unique(low * n + high))
    directed = len(np.unique(a[~loops] * n + b[~loops]))
    counts |= {"loops": int(loops.sum()), "again": len(low) - directed}
    counts["both_ways"] = directed - distinct


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
    options: TableOptions,
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
    chosen = end_columns(rows, options, place, notes)
    found, types, numbers, counts = _edges(rows, chosen, place, nodes, options)
    source = rows.source
    notes += rows.notes
    if not types:
        count_repeated(found.ends, counts)
    say(rows, nodes, counts, options, notes)
    if nodes is None:
        nodes = named_nodes(source, list(place), notes)
    if types:
        layers, shares = by_type(types, numbers, *found), parse_edge_types(options.edge_types)
        found = Edges(*combined(layers, len(nodes.ids), shares, source, notes))
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
    options: TableOptions,
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
    number = place.get(drop_point_zero(node), place.get(node + ".0", -1))
    counts["repaired"] += number >= 0
    return number
