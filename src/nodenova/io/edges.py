"""Read a table of edges row by row, and combine edges of several types into one weighted graph.

Pairs of ids become pairs of numbers at once, so that a long table needs little memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from nodenova.data.labels import UNKNOWN
from nodenova.display import plural
from nodenova.errors import GraphError
from nodenova.graph import canonical_order, invert, make_undirected
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
from nodenova.io.nodes import LONGEST_ID, Nodes
from nodenova.io.table_options import TableOptions, parse_edge_types
from nodenova.io.tables import ReadingOptions, Rows, Table, open_rows

MAX_TYPES = 100  # a column with more values does not hold edge types
FIRST_EDGES = 100  # their ends decide between columns that could hold the node ids


class EdgeType(NamedTuple):
    """Edges of one type: (2, E) numbers of nodes and (E,) weights, or None for equal weights."""

    name: str
    ends: np.ndarray
    weight: np.ndarray | None = None

    def renumber(self, number: np.ndarray) -> EdgeType:
        """The same edges by other numbers of the nodes, sorted."""
        ends = number[self.ends]
        if self.weight is None:
            return self._replace(ends=ends)
        ends, weight = sort_weights(ends, self.weight)
        return self._replace(ends=ends, weight=weight)


def combine_types(
    types: Sequence[EdgeType],
    n: int,
    shares: Mapping[str, float] | None,
    source: str,
    notes: list[str],
) -> tuple[np.ndarray, np.ndarray | None]:
    """Combine edge types into the (2, E) edges and (E,) weights of one graph of `n` nodes.

    Each type is normalized on its own. With a_t the weights of a type, scaled to mean 1, d_t,i the
    sum of a_t over the edges of node i, and D the sum of d_t over types,

        w_ij = sum_t share_t a_t,ij sqrt(D_i D_j / (d_t,i d_t,j)),

    so that D^-1/2 w D^-1/2 is the sum of the D_t^-1/2 A_t D_t^-1/2. All types of a node thus carry
    equal total weight. A single unweighted type stays as it is (weights None). Types that `shares`
    does not name are left out.
    """
    names = [kind.name for kind in types]
    if shares is None:
        shares = dict.fromkeys(names, 1.0)
    for name in shares:
        if name not in names:
            raise GraphError(f"{source}: no edge is of type {name!r}; types: {', '.join(names)}")
    chosen = [kind for kind in types if kind.name in shares]
    parts = []
    for kind in chosen:
        ends, weight = make_undirected(kind.ends, n, kind.weight)
        a = np.ones(ends.shape[1])
        if weight is not None and weight.size:
            a = weight / weight.mean(dtype=np.float64)
        parts.append((ends, a, np.bincount(ends[0], weights=a, minlength=n)))
    total = np.sum([d for _, _, d in parts], axis=0)
    weights = []
    for kind, (ends, a, d) in zip(chosen, parts, strict=True):
        i, j = ends
        weights.append(shares[kind.name] * (a * np.sqrt(total[i] * total[j] / (d[i] * d[j]))))
    counts = [f"{k.name} {e.shape[1] // 2:,}" for k, (e, _, _) in zip(chosen, parts, strict=True)]
    note = f"{source}: edge types are {', '.join(counts)}"
    if len(chosen) > 1:
        note += "; at each node, all edge types carry equal total weight"
        if len({*shares.values()}) > 1:
            note += ", times " + ", ".join(f"{name} {share:g}" for name, share in shares.items())
    notes.append(note)
    if others := [name for name in names if name not in shares]:
        notes.append(f"{source}: edge types not used: {', '.join(others)}")
    if len(chosen) == 1 and chosen[0].weight is None:
        return parts[0][0], None
    return np.concatenate([ends for ends, _, _ in parts], axis=1), np.concatenate(weights)


class EdgeLayout(NamedTuple):
    """Places of source, target and, if any, weight and type in a row of a table."""

    places: list[int]
    is_weighted: bool
    is_typed: bool
    has_header: bool = True  # else the first line is an edge


def open_edges(edges: Any, reading: ReadingOptions) -> Rows:
    """Open a table of edges or an edge list."""
    if is_edge_list(edges):
        return open_edge_list(edges, reading["encoding"])
    return open_rows(edges, source="edges" if is_frame(edges) else "", **reading)


def first_ids(edges: Any, options: TableOptions, reading: ReadingOptions) -> list[str]:
    """Ids that the first edges name; none where the table cannot be read yet."""
    if edges is None or isinstance(edges, Rows):
        return []
    try:
        rows = open_edges(edges, reading)
        ends = find_layout(rows, options, (), []).places[:2]
        return [cell.strip() for _, cells in islice(rows.read(ends), FIRST_EDGES) for cell in cells]
    except GraphError:  # raised again when the edges are read
        return []


def find_layout(
    rows: Rows, options: TableOptions, ids: Collection[str], notes: list[str]
) -> EdgeLayout:
    """Find the columns of a table of edges, by options or by name; `ids` is empty if unknown."""
    source, header = rows.source, rows.header
    if len(header) < 2:
        raise GraphError(
            f"{source}: a table of edges needs two columns, it has one: {quote(header[0])}"
        )
    a, b = options.source_column, options.target_column
    is_guessed = a is None and b is None
    is_edge = header[0] in ids and header[1] in ids
    is_edge = is_edge or (not ids and all(map(str.isdecimal, header[:2])))
    has_header = not (is_edge and not rows.is_numbered and is_guessed)
    if not has_header:
        notes.append(f"{source}: there is no header, the first line is an edge")
    elif is_guessed and (pair := guess_ends(header)) is not None:
        a, b = pair
        for name, option in ((a, "source_column"), (b, "target_column")):
            notes.append(f"{source}: column {name!r} is taken as {option}")
    else:
        a = pick_column(rows, a, SOURCE_NAMES, "source_column", notes)
        b = pick_column(rows, b, TARGET_NAMES, "target_column", notes, excluded=[a])
    weight = pick_column(rows, options.weight_column, (), "weight_column", notes)
    kind = pick_column(rows, options.edge_type_column, (), "edge_type_column", notes)
    more = [header.index(name) for name in (weight, kind) if name is not None]
    layout = EdgeLayout([0, 1, *more], weight is not None, kind is not None, has_header)
    if not has_header:
        return layout
    if a is None or b is None:
        free = [name for name in header if name not in (a, b, weight, kind)]
        if len(free) < (a is None) + (b is None):
            used = ", ".join(repr(name) for name in (a, b, weight, kind) if name is not None)
            raise GraphError(
                f"{source}: no columns are left for the two ends of an edge beside {used}; "
                "name them in source_column and target_column"
            )
        a = a or free.pop(0)
        b = b or free.pop(0)
        notes.append(f"{source}: columns {a!r} and {b!r} are taken as the two ends of an edge")
    if a == b:
        raise GraphError(f"{source}: column {a!r} cannot be both ends of an edge")
    if unused := [name for name in header if name not in (a, b, weight, kind)]:
        notes.append(f"{source}: columns of edges are not used: {', '.join(unused)}")
    return layout._replace(places=[header.index(a), header.index(b), *more])


@dataclass
class EdgeCounts:
    """Numbers of edges that were dropped, repaired or repeated."""

    unknown: int = 0  # edges to unknown nodes
    first: tuple[str, ...] = ()  # both ends of the first of them
    line: int = 0  # and its line
    light: int = 0  # edges without a positive weight, or below min_weight
    repaired: int = 0  # ids like '12.0'
    loops: int = 0
    again: int = 0
    both_ways: int = 0

    def count_repeated(self, ends: np.ndarray) -> None:
        """Count self-loops, repeated edges and edges in both directions among (2, E) ends."""
        a, b = ends
        loops = a == b
        low = np.minimum(a, b)[~loops]
        high = np.maximum(a, b)[~loops]
        n = int(ends.max(initial=0)) + 1
        distinct = len(np.unique(low * n + high))
        directed = len(np.unique(a[~loops] * n + b[~loops]))
        self.loops, self.again = int(loops.sum()), len(low) - directed
        self.both_ways = directed - distinct

    def append_notes(
        self, rows: Rows, nodes: Nodes | None, options: TableOptions, notes: list[str]
    ) -> None:
        """Note what was dropped or repaired; raise if unknown nodes are not to be dropped."""
        source, weighted = rows.source, options.counts_weights
        if self.unknown:
            assert nodes is not None  # without a table of nodes, edges name no unknown ones
            what = plural(self.unknown, "edge names", "edges name")
            text = f"{source}: {what} nodes that {nodes.table.source} does not have"
            first = " -> ".join(map(quote, self.first))
            if not options.drop_unknown_edges:
                drop = "give drop_unknown_edges (--drop-unknown-edges) to drop them"
                hint = _id_column_hint(nodes, self.first) or drop
                raise GraphError(f"{text}, first: {first} ({rows.unit} {self.line}); {hint}")
            notes.append(f"{text}; dropped, first: {first}")
        if self.repaired:
            notes.append(f"{source}: {plural(self.repaired, 'id')} like '12.0' read as '12'")
        if self.light:
            limit = "without a positive weight"
            if options.min_weight is not None:
                limit += f", or with one below {options.min_weight:g},"
            dropped = "was dropped" if self.light == 1 else "were dropped"
            notes.append(f"{source}: {plural(self.light, 'edge')} {limit} {dropped}")
        if weighted:
            notes.append(f"{source}: edges are weighted; heavier edges have more influence")
        elif options.weight_column is not None:
            notes.append(f"{source}: weights only decide which edges are dropped")
        if self.loops:
            what = plural(self.loops, "self-loop was", "self-loops were")
            notes.append(f"{source}: {what} dropped")
        if self.again:
            what = plural(self.again, "edge repeats", "edges repeat")
            result = "their weights are added" if weighted else "each is kept once"
            notes.append(f"{source}: {what} an earlier one; {result}")
        if self.both_ways:
            what = plural(self.both_ways, "edge occurs", "edges occur")
            result = "edges have no direction here"
            if weighted:
                result += ", weights are added unless all edges weigh the same both ways"
            notes.append(f"{source}: {what} in both directions; {result}")


def _id_column_hint(nodes: Nodes, ends: Sequence[str]) -> str:
    """A hint where a column other than the id column has both ends of an edge."""
    for name, cells in nodes.table.columns.items():
        if {*ends} <= {*plain_texts(cells)}:
            return f"column {name!r} has these ids: give it as id_column (--id-column)"
    return ""


def read_rows(
    rows: Rows, layout: EdgeLayout, options: TableOptions, counts: EdgeCounts, adds_nodes: bool
) -> Iterator[tuple[int, tuple[str, str], float, str]]:
    """Yield line, ids of both ends, weight (or 1) and type (or "") of each edge heavy enough.

    With `adds_nodes`, edges name the nodes, and a cell that is too long for an id is an error.
    """
    least, places = options.min_weight, layout.places
    first = [] if layout.has_header else [(1, [rows.header[place] for place in places])]
    for line, (a, b, *more) in chain(first, rows.read(places)):
        pair = (a.strip(), b.strip())
        if not pair[0] or not pair[1]:
            raise GraphError(f"{rows.source}: {rows.unit} {line}: an edge with only one end")
        weight = 1.0
        if layout.is_weighted:
            weight = _parse_weight(more[0], rows, line, options)
            if weight <= 0 or (least is not None and weight < least):
                counts.light += 1
                continue
        kind = more[-1].strip() if layout.is_typed else ""
        if layout.is_typed and is_missing(kind):
            raise GraphError(
                f"{rows.source}: {rows.unit} {line}: an edge without a type in column "
                f"{options.edge_type_column!r}"
            )
        for node in pair if adds_nodes else ():
            if len(node) > LONGEST_ID:
                raise GraphError(
                    f"{rows.source}: {rows.unit} {line}: an id of {len(node):,} characters; "
                    "is this a table of edges?"
                )
        yield line, pair, weight, kind


def _parse_weight(cell: str, rows: Rows, line: int, options: TableOptions) -> float:
    where = f"{rows.source}: {rows.unit} {line}: the weight of an edge"
    try:
        value = float(cell)
    except ValueError:
        value = np.nan
    if is_missing(cell) or not np.isfinite(value):
        raise GraphError(f"{where} must be a number, it is {quote(cell)}")
    if value < 0 and options.min_weight is None and options.counts_weights:
        hint = "min_weight (--min-weight) drops such edges"
        raise GraphError(f"{where} cannot be below zero, it is {quote(cell)}; {hint}")
    return value


def read_edges(
    edges: Any,
    nodes: Nodes | None,
    options: TableOptions,
    notes: list[str],
    reading: ReadingOptions,
) -> tuple[np.ndarray, np.ndarray | None, Nodes]:
    """Read (2, E) ends and (E,) weights; without `nodes`, the nodes are those that edges name."""
    if edges is None:
        assert nodes is not None
        notes.append(no_edges_note(nodes))
        return np.zeros((2, 0), dtype=np.int64), None, nodes
    rows = edges if isinstance(edges, Rows) else open_edges(edges, reading)
    number = {} if nodes is None else {node: place for place, node in enumerate(nodes.ids)}
    layout = find_layout(rows, options, number, notes)
    counts = EdgeCounts()
    ends, weight, types = _read_table(rows, layout, number, nodes is None, options, counts)
    notes += rows.notes
    if not types:
        counts.count_repeated(ends)
    counts.append_notes(rows, nodes, options, notes)
    if nodes is None:
        nodes = named_nodes(rows.source, list(number), notes)
    if not types:
        if weight is not None and counts.again:
            ends, weight = sort_weights(ends, weight)
        return ends, weight, nodes
    # Weights are added up in canonical order, so that the order of rows does not change them.
    order = canonical_order(nodes.ids)
    rank = invert(order)
    canonical = [kind.renumber(rank) for kind in sorted(types, key=lambda kind: kind.name)]
    shares = parse_edge_types(options.edge_types)
    ends, weight = combine_types(canonical, len(nodes.ids), shares, rows.source, notes)
    return order[ends], weight, nodes


def sort_weights(ends: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort rows of a table of edges, so that weights of one edge are added in one order."""
    order = np.lexsort((weight, ends[1], ends[0]))
    return ends[:, order], weight[order]


NO_EDGES = "no edges were given"


def no_edges_note(nodes: Nodes) -> str:
    """The note where a graph has no table of edges."""
    return f"{nodes.table.source}: {NO_EDGES}; no node has a neighbor"


def named_nodes(source: str, ids: Sequence[str], notes: list[str]) -> Nodes:
    """The nodes of a graph that has a table of edges only."""
    n = len(ids)
    if not n:
        raise GraphError(f"{source}: a header and no edges")
    notes.append(f"{source}: no table of nodes; the {n:,} nodes that edges name have no labels")
    return Nodes(Table(source, {}, range(1, n + 1)), ids, np.full(n, UNKNOWN), ())


def _read_table(
    rows: Rows,
    layout: EdgeLayout,
    number: dict[str, int],
    adds_nodes: bool,
    options: TableOptions,
    counts: EdgeCounts,
) -> tuple[np.ndarray, np.ndarray | None, list[EdgeType]]:
    """Read (2, E) ends, (E,) weights, and both by type if edges are typed.

    `number` has the number of each id, and with `adds_nodes` gets new ones.
    """
    ends, weights, type_numbers = array("q"), array("d"), array("q")
    types: dict[str, int] = {}

    def find(node: str) -> int:
        if adds_nodes:
            return number.setdefault(node, len(number))
        place = number.get(node, -1)
        if place < 0:
            place = number.get(drop_point_zero(node), number.get(node + ".0", -1))
            counts.repaired += place >= 0
        return place

    for line, pair, weight, kind in read_rows(rows, layout, options, counts, adds_nodes):
        pair_numbers = [find(node) for node in pair]
        if -1 in pair_numbers:
            if not counts.unknown:
                counts.first, counts.line = pair, line
            counts.unknown += 1
            continue
        ends.extend(pair_numbers)
        if options.counts_weights:
            weights.append(weight)
        if layout.is_typed:
            type_numbers.append(types.setdefault(kind, len(types)))
            if len(types) > MAX_TYPES:
                raise GraphError(
                    f"{rows.source}: column {options.edge_type_column!r} has more than {MAX_TYPES} "
                    "different values; is this really the type of an edge?"
                )
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    all_weights = np.array(weights) if options.counts_weights else None
    type_of, by_type = np.array(type_numbers), []
    for name, type_number in types.items():
        mask = type_of == type_number
        own_weights = None if all_weights is None else all_weights[mask]
        by_type.append(EdgeType(name, pairs[:, mask], own_weights))
    return pairs, all_weights, by_type
