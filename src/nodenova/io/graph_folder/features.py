"""Features of a graph folder: a recipe fitted in passes over a table on disk, rows in chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodenova.graph import EntryCheck, invert
from nodenova.io.columns import Column, infer_column
from nodenova.io.graph_folder.edges import StoredIds
from nodenova.io.graph_folder.store import Store
from nodenova.io.graph_folder.tables import StreamedTable
from nodenova.io.mmap_graph import CSR, LINKS, ArrayFile
from nodenova.io.recipe import (
    TableEncoder,
    feature_columns,
    is_cut,
    most_linked,
    sort_columns,
)
from nodenova.io.stream_columns import StreamColumn
from nodenova.io.table_options import TableOptions
from nodenova.io.tables import Table
from nodenova.io.words import (
    COMMON,
    join_texts,
    min_nodes,
    note_words,
    sum_weights,
    word_analyzer,
)
from nodenova.progress import Progress


def choose_words(
    pieces: Callable[[], Iterator[Sequence[str]]],
    nodes: int,
    most: int,
    source: str,
    notes: list[str],
    store: Store,
    progress: Progress,
) -> tuple[str, ...]:
    """Words that become features, those of highest TF-IDF, as `words.select_words` chooses them.

    Words are counted on disk. `pieces` yields the texts of the nodes in batches; they are read a
    second time, to weigh the words, where more than `most` words could have a feature.
    """
    analyse, tally, done = word_analyzer(), store.tally(), 0
    for texts in pieces():
        tally.add(word for text in texts for word in set(analyse(text)))
        done += len(texts)
        progress("choosing words", done / nodes)
    if not len(tally):
        notes.append(f"{source}: the text columns hold no words")
        return ()
    table, least = tally.table(), min_nodes(nodes)
    counted = (
        f"SELECT count(*), count(*) FILTER (n < {least}), count(*) FILTER (n > ?) FROM {table}"
    )
    total, rare, common = store.rows(counted, [COMMON * nodes])[0]
    fit = f"SELECT value FROM {table} WHERE n >= {least} AND n <= ? ORDER BY value"
    words = [word for (word,) in store.rows(fit, [COMMON * nodes])]
    chosen = np.arange(len(words))
    if len(words) > most:
        weight = tfidf_totals(pieces, words, nodes, table, store, progress)
        chosen = np.sort(np.argsort(-weight, kind="stable")[:most])
    note_words(len(chosen), total, rare, common, len(words) - len(chosen), nodes, source, notes)
    return tuple(words[place] for place in chosen)


def tfidf_totals(
    pieces: Callable[[], Iterator[Sequence[str]]],
    words: Sequence[str],
    nodes: int,
    table: str,
    store: Store,
    progress: Progress,
) -> np.ndarray:
    """(words,) sum of the TF-IDF of each word over all texts, as `sum_weights` rounds it."""
    from sklearn.feature_extraction.text import TfidfTransformer

    analyse, done = word_analyzer(), 0
    place = {word: number for number, word in enumerate(words)}
    total = np.zeros(len(words))
    store.run("CREATE TABLE batch (value VARCHAR, number BIGINT)")
    for texts in pieces():
        counted = [Counter(analyse(text)) for text in texts]
        own = sorted({word for counts in counted for word in counts})
        done += len(texts)
        progress("weighing words", done / nodes)
        if not own:
            continue
        store.add("batch", {"value": own, "number": np.arange(len(own))})
        found = store.rows(f"SELECT number, n FROM batch JOIN {table} USING (value)")
        store.run("DELETE FROM batch")
        _, n = np.array(sorted(found)).T
        column = {word: c for c, word in enumerate(own)}
        data, indices, indptr = [], [], [0]
        for counts in counted:
            entries = sorted(counts)  # rows are summed by word
            indices += [column[word] for word in entries]
            data += [counts[word] for word in entries]
            indptr.append(len(indices))
        parts = (np.array(data, dtype=np.float32), np.array(indices, dtype=np.int32), indptr)
        x = sp.csr_array(parts, shape=(len(texts), len(own)))
        weigh = TfidfTransformer(sublinear_tf=True)
        weigh.idf_ = _idf(n, nodes)
        x = weigh.transform(x)
        target = np.array([place.get(word, -1) for word in own])[x.indices]
        total += sum_weights(target[target >= 0], x.data[target >= 0], len(words))
    store.run("DROP TABLE batch")
    return total


def _idf(n: np.ndarray, nodes: int) -> np.ndarray:
    """(words,) IDF with the order of operations, hence the rounding, of scikit-learn."""
    df = n.astype(np.float32)
    df += 1.0
    idf = np.full_like(df, fill_value=nodes + 1)
    idf /= df
    np.log(idf, out=idf)
    idf += 1.0
    return idf


NUMERIC = ("number", "count")
NEIGHBOR_ROWS = 100_000  # rows of features that are computed or moved at a time


class FeatureFile:
    """Features of a graph folder, (N, width), appended by rows; dense or CSR."""

    def __init__(self, folder: Path, width: int, dense: bool, source: str) -> None:
        self._source, self._check = source, EntryCheck()
        self._dense = ArrayFile(folder / "x.npy", np.float32, width) if dense else None
        types = (np.int64, np.int32, np.float32)
        self._parts = [] if dense else [
            ArrayFile(folder / f"{part}.npy", dtype) for part, dtype in zip(CSR, types, strict=True)
        ]  # fmt: skip
        if self._parts:
            self._parts[0].add(np.zeros(1, dtype=np.int64))

    def add(self, x: sp.csr_array | np.ndarray) -> None:
        """Append rows."""
        rows: Any
        with np.errstate(over="ignore"):
            rows = (
                sp.csr_array(x, dtype=np.float32) if sp.issparse(x) else np.asarray(x, np.float32)
            )
        self._check.add(rows)
        if self._dense is not None:
            self._dense.add(rows)
        else:
            rows.sum_duplicates()
            rows.eliminate_zeros()
            rows.sort_indices()
            indptr, indices, data = self._parts
            indptr.add(rows.indptr[1:].astype(np.int64) + indices.length)
            indices.add(rows.indices)
            data.add(rows.data)

    def close(self) -> None:
        """Finish the files; raise if a value is not finite or too large."""
        for file in [*self._parts, *([] if self._dense is None else [self._dense])]:
            file.close()
        self._check.finish(self._source)


def fit_recipe(
    nodes: StreamedTable,
    ids: Sequence[str],
    options: TableOptions,
    not_features: Sequence[str],
    notes: list[str],
    store: Store,
    progress: Progress,
) -> TableEncoder | None:
    """Fit a recipe as `TableEncoder.fit` does; None where no column can be a feature."""
    source, chosen = nodes.table.source, options.features is not None
    columns = feature_columns(nodes.table, options, not_features)
    text_columns = options.text_columns
    table = _mark_lists(nodes, ids, [*columns, *text_columns])
    inferred: list[tuple[str, Column | str | None]] = []
    for done, name in enumerate(columns, start=1):
        inferred.append((name, infer_column(table, name, chosen, notes)))
        progress("judging columns", done / len(columns))
    texts, used = sort_columns(text_columns, inferred)
    words: tuple[str, ...] = ()
    if texts:

        def pieces() -> Iterator[Sequence[str]]:
            return (join_texts(chunk, texts) for chunk in nodes.chunks(texts, ids, {}))

        words = choose_words(
            pieces, len(nodes.table), options.max_words, source, notes, store, progress
        )
    if not used and not words:
        return None
    entries = width = 0
    if used:
        names, parsed = [column.name for column in used], parse_numbers(nodes, used)
        width = sum(len(column.feature_names(False)) for column in used)
        for chunk in nodes.chunks(names, ids, parsed):
            blocks = (c.block(chunk.columns[c.name], False, source)[0] for c in used)
            entries += sum(block.nnz for block in blocks)
            progress("counting features", chunk.lines[-1] / len(nodes.table))
    cut = is_cut(nodes.table, used, entries, width, len(words), notes)
    return TableEncoder(used, texts, words, cut=cut)


def parse_numbers(nodes: StreamedTable, columns: Sequence[Column]) -> dict[str, np.ndarray]:
    """Numbers of text columns, parsed once: commas are interpreted over the whole column."""
    cells = {c.name: nodes.table.columns[c.name] for c in columns if c.kind in NUMERIC}
    return {
        name: column.numbers[0]
        for name, column in cells.items()
        if isinstance(column, StreamColumn) and column.values is None
    }


def write_features(
    nodes: StreamedTable,
    ids: Sequence[str],
    recipe: TableEncoder,
    folder: Path,
    given_order: np.ndarray | None,
    progress: Progress,
) -> None:
    """Write the features of a table into a graph folder, chunk by chunk, in canonical order.

    `given_order` (N,) has the number of the node of each row; None if rows are in that order.
    """
    source = nodes.table.source
    place = folder if given_order is None else folder / "scratch"
    file = FeatureFile(place, len(recipe.feature_names), not recipe.cut, source)
    no_edges = np.zeros((2, 0), dtype=np.int64)
    parsed = parse_numbers(nodes, recipe.columns)
    for chunk in nodes.chunks(recipe.column_names, ids, parsed):
        file.add(recipe.transform(chunk, no_edges, ())[0])
        progress("writing features", chunk.lines[-1] / len(nodes.table))
    file.close()
    if given_order is not None:
        _reorder_features(place, folder, invert(given_order))


def _reorder_features(scratch: Path, folder: Path, order: np.ndarray) -> None:
    """Write the rows `order` of the features in `scratch` into `folder`, in bounded memory."""
    if (path := scratch / "x.npy").exists():
        x = np.load(path, mmap_mode="r")
        file = ArrayFile(folder / "x.npy", np.float32, x.shape[1])
        for start in range(0, len(order), NEIGHBOR_ROWS):
            file.add(x[order[start : start + NEIGHBOR_ROWS]])
        file.close()
        return
    indptr, *parts = (np.load(scratch / f"{part}.npy", mmap_mode="r") for part in CSR)
    length = np.diff(indptr)[order]
    starts = ArrayFile(folder / f"{CSR[0]}.npy", np.int64)
    starts.add(np.concatenate([[0], np.cumsum(length)]))
    starts.close()
    files = [
        ArrayFile(folder / f"{name}.npy", part.dtype)
        for name, part in zip(CSR[1:], parts, strict=True)
    ]
    for start in range(0, len(order), NEIGHBOR_ROWS):
        rows, size = order[start : start + NEIGHBOR_ROWS], length[start : start + NEIGHBOR_ROWS]
        before = np.cumsum(size) - size
        places = np.repeat(indptr[rows] - before, size) + np.arange(size.sum())
        for file, part in zip(files, parts, strict=True):
            file.add(part[places])
    for file in files:
        file.close()


def write_neighbors(
    store: Store, ids: Sequence[str], source: str, folder: Path, notes: list[str]
) -> TableEncoder:
    """Write features of structure: which of the nodes with most edges a node is linked to.

    The table `ends` of the store has the edges of the file; `folder` has the CSR of the graph.
    """
    n, ids = len(ids), StoredIds(store, len(ids), "number")
    degree = np.zeros(n, dtype=np.int64)
    both = "SELECT x AS e FROM ends UNION ALL SELECT y FROM ends"
    for batch in store.batches(f"SELECT e, count(*) AS n FROM ({both}) GROUP BY e"):
        degree[batch["e"]] = batch["n"]
    top = most_linked(degree, source, notes)
    column = np.full(n, -1, dtype=np.int32)
    column[top] = np.arange(len(top))
    indptr, indices = (np.load(folder / f"{part}.npy", mmap_mode="r") for part in LINKS)
    file = FeatureFile(folder, len(top), False, source)
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


def _mark_lists(nodes: StreamedTable, ids: Sequence[str], names: Sequence[str]) -> Table:
    """Mark columns of lists, as `mark_list_columns` does."""
    table, columns = nodes.table, dict(nodes.table.columns)
    for name in names:
        if (kind := nodes.kind(name)) is not None:
            columns[name] = kind(columns[name], ids, table.source, name)
    return replace(table, columns=columns)
