"""Text of the nodes on the page: columns of their table, or the words they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from nodenova.errors import SettingError, StorageError
from nodenova.files.atomic import write_atomically
from nodenova.files.content import table_content
from nodenova.files.documents import read_columns
from nodenova.graph import Graph
from nodenova.io.column_guessing import ID_NAMES, guess_id, pick_column
from nodenova.io.tables import read_table
from nodenova.report.charts import short

NAME = "shown.csv"
MAX_LETTERS = 300  # of one cell
MAX_WORDS = 15  # of a node without columns to show
MAX_PAGE_LETTERS = 4_000_000  # of all nodes of a page; above it, cells are shortened
MIN_LETTERS = 40
SEPARATOR = " · "  # of the columns of a node in one text


def shown_columns(
    table: str | PathLike[str],
    columns: Sequence[str],
    node_ids: Sequence[object],
    *,
    id_column: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> dict[str, list[str]]:
    """(N,) texts by column of a node table, in the order of `node_ids`; "" for missing nodes."""
    content = read_table(table, delimiter=delimiter, encoding=encoding)
    for name in columns:
        if name not in content.columns:
            have = ", ".join(content.columns)
            raise SettingError(f"--show {name}: {content.source} has no such column, only {have}")
    ids = [str(node) for node in node_ids]
    column = pick_column(content, id_column, ID_NAMES, "id_column", [])
    column = guess_id(content, (), ids, []) if column is None else column
    row_of = {cell.strip(): row for row, cell in enumerate(content.columns[column])}
    rows = [row_of.get(node) for node in ids]
    texts = {name: [str(cell) for cell in content.columns[name]] for name in columns}
    return {
        name: ["" if row is None else short(cells[row], MAX_LETTERS) for row in rows]
        for name, cells in texts.items()
    }


def texts_of(
    graph: Graph, shown: Mapping[str, Sequence[str]], nodes: np.ndarray
) -> dict[str, list[str]]:
    """Texts of the nodes with these numbers by column; their words where no column is shown."""
    room = MAX_PAGE_LETTERS // max(len(nodes) * max(len(shown), 1), 1)
    letters = min(MAX_LETTERS, max(room, MIN_LETTERS))
    if shown:
        return {
            name: [short(cells[i], letters) for i in nodes.tolist()]
            for name, cells in shown.items()
        }
    names, x = graph.feature_names, graph.x
    if names is None or isinstance(x, np.ndarray):
        return {}
    rows = x[nodes]
    starts = zip(rows.indptr, rows.indptr[1:], strict=False)
    words = [[names[j] for j in rows.indices[a:b][:MAX_WORDS].tolist()] for a, b in starts]
    return {"words": [short(", ".join(some), letters) for some in words]}


def write_shown(
    folder: Path,
    node_ids: np.ndarray,
    shown: Mapping[str, Sequence[str]],
    safe_csv: bool = False,
) -> None:
    """Write the shown columns, if any, into a run folder."""
    if shown:
        columns: dict[str, list[object]] = {"": node_ids.tolist()}
        columns |= {name: list(cells) for name, cells in shown.items()}
        write_atomically(folder / NAME, table_content(columns, folder / NAME, safe_csv))


def read_shown(folder: Path, graph: Graph) -> dict[str, list[str]]:
    """Read the columns that `write_shown` wrote; they have a row for each node of the graph."""
    path = folder / NAME
    if not path.is_file():
        return {}
    columns = read_columns(path, {"": str})
    if len(columns[""]) != graph.num_nodes:
        what = f"it has {len(columns['']):,} rows, the graph has {graph.num_nodes:,} nodes"
        raise StorageError(f"{path}: damaged, {what}")
    return {name: cells for name, cells in columns.items() if name}
