"""Ids and edges of a graph folder: numbered by joins and sorted in DuckDB, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.errors import GraphError
from nodenova.io.edges import (
    EdgeCounts,
    EdgeLayout,
    find_layout,
    named_nodes,
    no_edges_note,
    open_edges,
    read_rows,
)
from nodenova.io.graph_folder.store import BATCH, Store
from nodenova.io.mmap_graph import LINKS, MAX_NODES, OPTIONAL, ArrayFile
from nodenova.io.nodes import Nodes, check_id, duplicate_id_error, note_spaces
from nodenova.io.stream_columns import StreamColumn
from nodenova.io.table_options import TableOptions
from nodenova.io.tables import ReadingOptions, Rows, Table
from nodenova.progress import Progress


class WeightFile:
    """Edge weights of a graph folder, added up as `graph.undirected` does, in sorted order."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{OPTIONAL[0]}.npy"
        self._file = ArrayFile(self._path, np.float32)
        self._keys, self._weight = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._is_symmetric = True

    def add(self, keys: np.ndarray, weight: np.ndarray) -> None:
        """Append rows of edges.

        `keys` (rows,) ascend: twice the number of a direction, plus one where the row was turned
        around. Weights of one key ascend.
        """
        keys = np.concatenate([self._keys, keys])
        weight = np.concatenate([self._weight, weight])
        # The next rows may continue the last direction.
        whole = np.searchsorted(keys, keys[-1] // 2 * 2) if len(keys) else 0
        self._sum(keys[:whole], weight[:whole])
        self._keys, self._weight = keys[whole:], weight[whole:]

    def _sum(self, keys: np.ndarray, weight: np.ndarray) -> None:
        one_way, place = np.unique(keys, return_inverse=True)
        each = np.bincount(place, weights=weight, minlength=len(one_way))
        both, place = np.unique(one_way // 2, return_inverse=True)
        total = np.bincount(place, weights=each, minlength=len(both))
        is_even = len(one_way) == 2 * len(both) and bool((total[place] == 2 * each).all())
        self._is_symmetric = self._is_symmetric and is_even
        self._file.add(total)

    def close(self) -> None:
        """Finish the file; halve the weights of a symmetric matrix, which has every edge twice."""
        self._sum(self._keys, self._weight)
        self._file.close()
        if self._is_symmetric and self._file.length:
            weight = np.load(self._path, mmap_mode="r+")
            weight *= 0.5
            weight.flush()


# '12.0', as pandas writes a whole number in a column with gaps, means 12, and vice versa.
WITHOUT_POINT = r"CASE WHEN regexp_full_match(s, '\p{Nd}+\.0') THEN s[:-3] ELSE s END"


class StoredIds(Sequence[str]):
    """Ids of nodes in the table `ids` of a store, by the `row` of the user's table, or `number`."""

    def __init__(self, store: Store, size: int, place: str = "row") -> None:
        self._store, self._size, self._place = store, size, place

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: Any) -> Any:
        number = range(self._size)[place]
        return self._store.rows(f"SELECT id FROM ids WHERE {self._place} = ?", [number])[0][0]

    def __iter__(self) -> Iterator[str]:
        for batch in self.batches():
            yield from batch.tolist()

    def batches(self) -> Iterator[np.ndarray]:
        """Arrays of ids, one batch at a time."""
        for batch in self._store.batches(f"SELECT id FROM ids ORDER BY {self._place}"):
            yield batch["id"]


def write_edges(
    edges: Any,
    nodes: Nodes | None,
    options: TableOptions,
    notes: list[str],
    store: Store,
    folder: Path,
    reading: ReadingOptions,
) -> Nodes:
    """Write the edges of a file into a graph folder, as `read_edges` and `Graph.of` would.

    The store has the ids of `nodes`. Without `nodes`, they are those that edges name. Afterwards
    the store has a table `ends` of (x, y), the numbers of both ends of each edge.
    """
    progress = reading["progress"]
    if edges is None:
        assert nodes is not None
        notes.append(no_edges_note(nodes))
        store.run("CREATE TABLE ends (x INTEGER, y INTEGER)")
        _write_links(store, len(nodes.ids), folder, progress, EdgeCounts())
        return nodes
    rows = open_edges(edges, reading)
    known = []
    if nodes is not None:
        # An empty id stands for the others: `find_layout` only looks for those of the header.
        count = "SELECT count(*) FROM ids WHERE id = ?"
        known = ["", *(name for name in rows.header[:2] if store.rows(count, [name])[0][0])]
    layout = find_layout(rows, options, known, notes)
    counts = EdgeCounts()
    _stage(rows, layout, options, counts, nodes is None, store)
    notes += rows.notes
    progress("numbering nodes", 0.0)
    if nodes is None:
        _number_ids(store)
        ids = StoredIds(store, store.rows("SELECT count(*) FROM ids")[0][0])
    beside = ", line, w" if options.counts_weights else ""
    _join(store, counts, beside)
    size = len(ids) if nodes is None else len(nodes.ids)
    if size > MAX_NODES:
        raise GraphError(f"{rows.source}: {size:,} nodes; a graph folder holds {MAX_NODES:,}")
    if not counts.unknown or options.drop_unknown_edges:
        _write_links(store, size, folder, progress, counts, beside)
    counts.append_notes(rows, nodes, options, notes)
    return named_nodes(rows.source, ids, notes) if nodes is None else nodes


def _stage(
    rows: Rows,
    layout: EdgeLayout,
    options: TableOptions,
    counts: EdgeCounts,
    adds_nodes: bool,
    store: Store,
) -> None:
    """Copy the rows of a table of edges into the table `raw` of the store."""
    column = ", w DOUBLE" if options.counts_weights else ""
    store.run(f"CREATE TABLE raw (line BIGINT, a VARCHAR, b VARCHAR{column})")
    edges = read_rows(rows, layout, options, counts, adds_nodes)
    while batch := list(islice(edges, BATCH)):
        lines, pairs, weights, _ = zip(*batch, strict=True)
        sources, targets = zip(*pairs, strict=True)
        weight = {"w": weights} if options.counts_weights else {}
        store.add("raw", {"line": lines, "a": sources, "b": targets, **weight})


def _number_ids(store: Store) -> None:
    """Number the nodes that edges name; their rows are in order of appearance."""
    store.run("""
        CREATE TABLE rows AS
        SELECT (row_number() OVER (ORDER BY first) - 1)::INTEGER AS row, id FROM (
            SELECT id, min(place) AS first FROM (
                SELECT a AS id, 2 * rowid AS place FROM raw
                UNION ALL SELECT b, 2 * rowid + 1 FROM raw
            ) GROUP BY id
        )""")
    _sort_ids(store)


def _sort_ids(store: Store) -> None:
    """Make the table `ids` of row, id and canonical number, as `graph.canonical_order` sorts."""
    is_text = "NOT regexp_full_match(id, '[0-9]+')"
    digits = f"CASE WHEN {is_text} THEN '' ELSE ltrim(id, '0') END"
    order = f"{is_text}, length({digits}), {digits}, id"
    number = f"(row_number() OVER (ORDER BY {order}) - 1)::INTEGER"
    store.run(f"CREATE TABLE ids AS SELECT row, id, {number} AS number FROM rows")
    store.run("DROP TABLE rows")


def find_given_order(store: Store, size: int) -> np.ndarray | None:
    """(N,) canonical number of each row of the user's table; None if rows are in that order."""
    given = np.empty(size, dtype=np.int64)
    for batch in store.batches("SELECT row, number FROM ids"):
        given[batch["row"]] = batch["number"]
    return None if (given == np.arange(size)).all() else given


def _join(store: Store, counts: EdgeCounts, beside: str) -> None:
    """Make the table `ends` of the numbers of both ends; count unknown and repaired ids."""
    weight = beside.removeprefix(", line")
    store.run(f"""
        CREATE TABLE found AS
        SELECT line{weight}, s.number AS x, t.number AS y,
            CASE WHEN s.number IS NULL OR t.number IS NULL THEN a END AS a,
            CASE WHEN s.number IS NULL OR t.number IS NULL THEN b END AS b
        FROM raw LEFT JOIN ids s ON a = s.id LEFT JOIN ids t ON b = t.id""")
    store.run("DROP TABLE raw")
    store.run(f"CREATE TABLE ends AS SELECT x, y{beside} FROM found WHERE a IS NULL")
    store.run(f"""
        CREATE TABLE mended AS
        SELECT s, coalesce(p.number, q.number) AS number FROM (
            SELECT DISTINCT s FROM (
                SELECT a AS s FROM found WHERE a IS NOT NULL AND x IS NULL
                UNION ALL SELECT b FROM found WHERE a IS NOT NULL AND y IS NULL
            )
        ) LEFT JOIN ids p ON p.id = {WITHOUT_POINT} LEFT JOIN ids q ON q.id = s || '.0'
        WHERE p.number IS NOT NULL OR q.number IS NOT NULL""")
    store.run(f"""
        CREATE TABLE strange AS
        SELECT line{weight}, a, b, coalesce(x, s.number) AS x, coalesce(y, t.number) AS y,
            (x IS NULL AND s.number IS NOT NULL)::INTEGER
            + (y IS NULL AND t.number IS NOT NULL)::INTEGER AS repaired
        FROM found LEFT JOIN mended s ON a = s.s LEFT JOIN mended t ON b = t.s
        WHERE a IS NOT NULL""")
    store.run("DROP TABLE found")
    mended = "FROM strange WHERE x IS NOT NULL AND y IS NOT NULL"
    store.run(f"INSERT INTO ends SELECT x, y{beside} {mended}")
    unknown = "FROM strange WHERE x IS NULL OR y IS NULL"
    counts.repaired = store.rows("SELECT coalesce(sum(repaired), 0)::BIGINT FROM strange")[0][0]
    counts.unknown = store.rows(f"SELECT count(*) {unknown}")[0][0]
    if counts.unknown:
        first = store.rows(f"SELECT line, a, b {unknown} ORDER BY line LIMIT 1")[0]
        counts.line, counts.first = first[0], first[1:]


def _write_links(
    store: Store,
    n: int,
    folder: Path,
    progress: Progress,
    counts: EdgeCounts,
    beside: str = "",
) -> None:
    """Write the CSR of both directions; count loops, repeated edges and edges both ways."""
    counts.loops = store.rows("SELECT count(*) FROM ends WHERE x = y")[0][0]
    total = store.rows("SELECT count(*) FROM ends")[0][0] - counts.loops
    # One number per direction, so that one sort does it; odd where the edge is turned around.
    keys = f"""
        SELECT (x::BIGINT * {n} + y) * 2 AS k{beside} FROM ends WHERE x <> y
        UNION ALL SELECT (y::BIGINT * {n} + x) * 2 + 1{beside} FROM ends WHERE x <> y"""
    indices = ArrayFile(folder / f"{LINKS[1]}.npy", np.int32)
    degree = np.zeros(n, dtype=np.int64)
    last, read, directed = np.int64(-1), 0, 0
    progress("sorting edges", 0.0)
    weights = WeightFile(folder) if beside else None
    order = "k, w" if beside else "k"
    for batch in store.batches(f"SELECT * FROM ({keys}) ORDER BY {order}"):
        k = batch["k"]
        if weights is not None:
            weights.add(k, batch["w"])
        before = np.concatenate([[last], k[:-1]])
        last = k[-1]
        first = k // 2 != before // 2  # row of a direction; even if the table has it so
        directed += int((first & (k % 2 == 0)).sum())
        row, column = np.divmod(k[first] // 2, n)
        if len(row):
            degree[row[0] : row[-1] + 1] += np.bincount(row - row[0])
        indices.add(column)
        read += len(k)
        progress("sorting edges", read / max(2 * total, 1))
    indices.close()
    if weights is not None:
        weights.close()
    indptr = ArrayFile(folder / f"{LINKS[0]}.npy", np.int64)
    indptr.add(np.concatenate([[0], np.cumsum(degree)]))
    indptr.close()
    counts.again = total - directed
    counts.both_ways = directed - indices.length // 2


def store_ids(table: Table, column: str, notes: list[str], store: Store) -> StoredIds:
    """Check the ids of a streamed table and put them, numbered, into the table `ids` of a store."""
    store.run("CREATE TABLE rows (row INTEGER, id VARCHAR)")
    cells = table.columns[column]
    assert isinstance(cells, StreamColumn)
    spaced = done = 0
    for piece in cells.pieces():
        ids = [cell.strip() for cell in piece]
        spaced += sum(a != b for a, b in zip(ids, piece, strict=True))
        for row, node in enumerate(ids, start=done):
            check_id(node, table, column, table.lines[row])
        numbers = np.arange(done, done + len(ids), dtype=np.int32)
        store.add("rows", {"row": numbers, "id": ids})
        done += len(ids)
    note_spaces(spaced, table, notes)
    repeated = "SELECT id, count(*) AS n, min(row) AS first FROM rows GROUP BY id HAVING n > 1"
    for node, count, _ in store.rows(f"{repeated} ORDER BY n DESC, first LIMIT 1"):
        rows = store.rows("SELECT row FROM rows WHERE id = ? ORDER BY row LIMIT 2", [node])
        raise duplicate_id_error(table, column, node, count, [table.lines[row] for (row,) in rows])
    _sort_ids(store)
    return StoredIds(store, done)


def write_ids(store: Store, size: int, folder: Path) -> None:
    """Write the ids of a store into a graph folder, as texts of the width of the longest."""
    width = store.rows("SELECT max(length(id)) FROM ids")[0][0]
    file = ArrayFile(folder / "node_ids.npy", f"<U{width}")
    for batch in StoredIds(store, size, "number").batches():
        file.add(batch.astype(f"<U{width}"))
    file.close()
