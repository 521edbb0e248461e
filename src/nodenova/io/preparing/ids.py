"""Ids of nodes on disk: checked as those in memory are, and written as an array of texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nodenova.io.nodes import check_id, id_of, say_spaced, twice_there
from nodenova.io.prepared import ArrayFile
from nodenova.io.preparing.edges import StoredIds
from nodenova.io.preparing.store import Store
from nodenova.io.streamed import StreamedCells
from nodenova.io.tables import Table


def store_ids(table: Table, column: str, notes: list[str], store: Store) -> StoredIds:
    """Put the ids of a table into the table `ids` of a store.

    Args:
        table: Of nodes, its columns `StreamedCells`.
        column: Of the ids.
        notes: Gets a sentence on every repair.
        store: Where to.

    Raises:
        GraphError: A cell is no id, or one that another row has.
    """
    store.run("CREATE TABLE ids (number INTEGER, id VARCHAR)")
    cells = table.columns[column]
    assert isinstance(cells, StreamedCells)
    spaced = done = 0
    for piece in cells.pieces():
        ids = [id_of(cell) for cell in piece]
        spaced += sum(a != b for a, b in zip(ids, piece, strict=True))
        for row, node in enumerate(ids, start=done):
            check_id(node, table, column, table.lines[row])
        numbers = np.arange(done, done + len(ids), dtype=np.int32)
        store.add("ids", {"number": numbers, "id": ids})
        done += len(ids)
    say_spaced(spaced, table, notes)
    twice = "SELECT id, count(*) AS n, min(number) AS first FROM ids GROUP BY id HAVING n > 1"
    for node, count, _ in store.rows(f"{twice} ORDER BY n DESC, first LIMIT 1"):
        rows = store.rows("SELECT number FROM ids WHERE id = ? ORDER BY number LIMIT 2", [node])
        raise twice_there(table, column, node, count, [table.lines[row] for (row,) in rows])
    return StoredIds(store, done)


def write_ids(store: Store, size: int, made: Path) -> None:
    """Write the ids of a store into a graph folder: texts of one width, that of the longest."""
    width = store.rows("SELECT max(length(id)) FROM ids")[0][0]
    file = ArrayFile(made / "node_ids.npy", f"<U{width}")
    for batch in StoredIds(store, size).batches():
        file.add(batch.astype(f"<U{width}"))
    file.close()
