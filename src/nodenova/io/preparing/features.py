"""Features of a table on disk: a recipe learned in passes, and rows written chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodenova.errors import GraphError
from nodenova.io.columns import Column
from nodenova.io.inference import infer_column
from nodenova.io.lists import Several
from nodenova.io.prepared import CSR, LINKS, ArrayFile
from nodenova.io.preparing.store import Store
from nodenova.io.preparing.tables import StreamedTable
from nodenova.io.preparing.words import choose_words
from nodenova.io.streamed import StreamedCells
from nodenova.io.table_encoder import TableEncoder, is_cut, most_linked
from nodenova.io.tables import Progress, Table
from nodenova.io.words import joined

NUMERIC = ("number", "count")
NEIGHBOR_ROWS = 100_000  # of features that are made of neighbors, at a time


class FeatureFile:
    """The features in a graph folder, written by rows.

    Args:
        made: The folder.
        width: d.
        dense: Whether they are kept as a dense table.
        source: What messages call the table of nodes.
    """

    def __init__(self, made: Path, width: int, dense: bool, source: str) -> None:
        self._source, self._rows, self._bad = source, 0, 0
        self._first = ""
        self._dense = ArrayFile(made / "x.npy", np.float32, width) if dense else None
        types = (np.int64, np.int32, np.float32)
        self._parts = [] if dense else [
            ArrayFile(made / f"{part}.npy", dtype) for part, dtype in zip(CSR, types, strict=True)
        ]  # fmt: skip
        if self._parts:
            self._parts[0].add(np.zeros(1, dtype=np.int64))

    def add(self, x: sp.csr_array | np.ndarray) -> None:
        """Append rows."""
        made: Any
        with np.errstate(over="ignore"):
            made = (
                sp.csr_array(x, dtype=np.float32) if sp.issparse(x) else np.asarray(x, np.float32)
            )
        self._check(made)
        if self._dense is not None:
            self._dense.add(made)
        else:
            made.sum_duplicates()
            made.eliminate_zeros()
            made.sort_indices()
            indptr, indices, data = self._parts
            indptr.add(made.indptr[1:].astype(np.int64) + indices.length)
            indices.add(made.indices)
            data.add(made.data)
        self._rows += made.shape[0]

    def _check(self, rows: sp.csr_array | np.ndarray) -> None:
        values = rows.data if sp.issparse(rows) else rows
        if np.isfinite(values).all():
            return
        coo = sp.coo_array(rows)
        bad = np.flatnonzero(~np.isfinite(coo.data))
        if not self._bad:
            row, column, value = coo.coords[0][bad[0]], coo.coords[1][bad[0]], coo.data[bad[0]]
            self._first = f"node {self._rows + row}, feature {column} is {value}"
        self._bad += len(bad)

    def close(self) -> None:
        """Finish the files.

        Raises:
            GraphError: There were numbers that are not finite.
        """
        for file in [*self._parts, *([] if self._dense is None else [self._dense])]:
            file.close()
        if self._bad:
            said = f"x has {self._bad} entries that are not finite numbers, first: {self._first}"
            raise GraphError(f"{self._source}: {said}")


def fit_recipe(
    nodes: StreamedTable,
    ids: Sequence[str],
    *,
    columns: Sequence[str] | None,
    text_columns: Sequence[str],
    not_features: Sequence[str],
    max_words: int,
    notes: list[str],
    store: Store,
    progress: Progress,
) -> TableEncoder | None:
    """Learn how to read a table, as `TableEncoder.fit` does; None where no column says anything.

    Args:
        nodes: The table.
        ids: (N,) of the nodes.
        columns: The chosen columns; None for all that say something of a node.
        text_columns: Columns whose words become features.
        not_features: Columns that are something else, as ids and labels are.
        max_words: The most words that become features.
        notes: Gets a sentence on what was assumed or left out.
        store: Where values and words are counted.
        progress: Called with what is being done and which share of it is done.
    """
    source, chosen = nodes.table.source, columns is not None
    if columns is None:
        columns = [c for c in nodes.table.columns if c not in {*not_features, *text_columns}]
    table = _content(nodes, ids, [*columns, *text_columns])
    inferred: list[tuple[str, Column | str | None]] = []
    for done, name in enumerate(columns, start=1):
        inferred.append((name, infer_column(table, name, chosen, notes)))
        progress("judging columns", done / len(columns))
    texts = (*text_columns, *(name for name, how in inferred if how == "text"))
    used = tuple(how for _, how in inferred if isinstance(how, Column))
    words: tuple[str, ...] = ()
    if texts:

        def pieces() -> Iterator[Sequence[str]]:
            return (joined(chunk, texts) for chunk in nodes.chunks(texts, ids, {}))

        words = choose_words(pieces, len(nodes.table), max_words, source, notes, store, progress)
    if not used and not words:
        return None
    entries = width = 0
    if used:
        names, parsed = [column.name for column in used], parsed_numbers(nodes, used)
        width = sum(len(column.feature_names(False)) for column in used)
        for chunk in nodes.chunks(names, ids, parsed):
            blocks = (c.block(chunk.columns[c.name], False, source)[0] for c in used)
            entries += sum(block.nnz for block in blocks)
            progress("counting features", chunk.lines[-1] / len(nodes.table))
    cut = is_cut(nodes.table, used, entries, width, len(words), notes)
    return TableEncoder(used, texts, words, cut=cut)


def parsed_numbers(nodes: StreamedTable, columns: Sequence[Column]) -> dict[str, np.ndarray]:
    """The numbers of columns of text, read once: commas are judged over the whole column."""
    cells = {c.name: nodes.table.columns[c.name] for c in columns if c.kind in NUMERIC}
    return {
        name: column.numbers[0]
        for name, column in cells.items()
        if isinstance(column, StreamedCells) and column.values is None
    }


def write_features(
    nodes: StreamedTable,
    ids: Sequence[str],
    recipe: TableEncoder,
    made: Path,
    progress: Progress,
) -> None:
    """Write what a recipe makes of a table into a graph folder, chunk by chunk."""
    source = nodes.table.source
    file = FeatureFile(made, len(recipe.feature_names), not recipe.cut, source)
    none = np.zeros((2, 0), dtype=np.int64)
    parsed = parsed_numbers(nodes, recipe.columns)
    for chunk in nodes.chunks(list(dict.fromkeys(recipe.column_names)), ids, parsed):
        file.add(recipe.transform(chunk, none, ())[0])
        progress("writing features", chunk.lines[-1] / len(nodes.table))
    file.close()


def write_neighbors(
    store: Store, ids: Sequence[str], source: str, made: Path, notes: list[str]
) -> TableEncoder:
    """Write features that say to which of the nodes with most edges a node is linked.

    Args:
        store: Its table `ends` has the edges as they were given.
        ids: (N,) of the nodes.
        source: What messages call the table of nodes.
        made: The graph folder, where the edges are already.
        notes: Gets a sentence.
    """
    n = len(ids)
    degree = np.zeros(n, dtype=np.int64)
    both = "SELECT x AS e FROM ends UNION ALL SELECT y FROM ends"
    for batch in store.batches(f"SELECT e, count(*) AS n FROM ({both}) GROUP BY e"):
        degree[batch["e"]] = batch["n"]
    top = most_linked(degree, source, notes)
    column = np.full(n, -1, dtype=np.int32)
    column[top] = np.arange(len(top))
    indptr, indices = (np.load(made / f"{part}.npy", mmap_mode="r") for part in LINKS)
    file = FeatureFile(made, len(top), False, source)
    for start in range(0, n, NEIGHBOR_ROWS):
        end = min(start + NEIGHBOR_ROWS, n)
        rows = indptr[start : end + 1] - indptr[start]
        linked = np.asarray(indices[indptr[start] : indptr[end]])
        row = np.concatenate(
            [np.repeat(np.arange(end - start), np.diff(rows)), np.arange(end - start)]
        )
        place = column[np.concatenate([linked, np.arange(start, end)])]
        entries = (
            np.ones(len(row), dtype=np.float32)[place >= 0],
            (row[place >= 0], place[place >= 0]),
        )
        file.add(sp.csr_array(entries, shape=(end - start, len(top))))
    file.close()
    return TableEncoder(neighbors=tuple(str(ids[node]) for node in top.tolist()))


def _content(nodes: StreamedTable, ids: Sequence[str], names: Sequence[str]) -> Table:
    """The table with columns of lists as such, as `lists.with_lists` has it."""
    table, columns = nodes.table, dict(nodes.table.columns)
    for name in names:
        kind: type[Several] | None = nodes.kind(name)
        if kind is not None:
            columns[name] = kind(columns[name], ids, table.source, name)
    return Table(table.source, columns, table.lines, table.notes, table.unit)
