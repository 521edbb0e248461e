"""Tables of nodes on disk: a Parquet file, or a CSV file that is converted to one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from nodenova.io.frames import Frame, Series, TypedColumn, open_parquet
from nodenova.io.graph_folder.store import Store
from nodenova.io.list_columns import ListColumn, list_column_type
from nodenova.io.stream_columns import StreamColumn
from nodenova.io.tables import ReadingOptions, Table, open_rows
from nodenova.io.text_files import file_ending
from nodenova.progress import no_progress

STREAMED = (".csv", ".tsv", ".txt", ".parquet", ".pq")
STAGED_ROWS = 20_000  # rows of a CSV file that are held at a time


class StreamedTable:
    """A table of nodes on disk: `table` is what `read_table` gives, with `StreamColumn`s."""

    def __init__(self, path: Path, store: Store, reading: ReadingOptions) -> None:
        import pyarrow.parquet as pq

        lines: Any  # (N,) whole numbers
        if file_ending(path) in (".parquet", ".pq"):
            self._frame = open_parquet(path, path.name, no_progress)
            header, notes, source, unit = self._frame.header, self._frame.notes, path.name, "row"
            size = pq.ParquetFile(path).metadata.num_rows
            lines = range(1, size + 1)
        else:
            rows = open_rows(path, **reading)
            staged = store.folder / "nodes.parquet"
            lines = _stage(rows.header, rows.read(range(len(rows.header))), staged, store.folder)
            header, notes, source, unit = rows.header, rows.notes, rows.source, rows.unit
            path, size = staged, len(lines)
            self._frame = open_parquet(staged, source, no_progress)
        empty = nw.from_native(pq.ParquetFile(path).schema_arrow.empty_table(), eager_only=True)
        columns = {
            name: StreamColumn(
                series, source, name, size, _reader(self._frame, place), store.room, store.tally
            )
            for place, (name, series) in enumerate(zip(header, empty.iter_columns(), strict=True))
        }
        self.plain: Collection[str | None] = ()  # columns without lists, such as ids
        self._kinds: dict[str, type[ListColumn] | None] = {}
        self._place = {name: place for place, name in enumerate(header)}
        self.table = Table(source, columns, lines, notes, unit)

    def chunks(
        self, names: Sequence[str], ids: Sequence[str], numbers: Mapping[str, np.ndarray]
    ) -> Iterator[Table]:
        """Yield some columns as tables in memory, chunk by chunk, with lists marked.

        `numbers` has those of text columns, by name.
        """
        names = list(dict.fromkeys(names))
        kinds = {name: self.kind(name) for name in names}
        places, start = [self._place[name] for name in names], 0
        for piece in self._frame.pieces(places) if names else ():
            source, end = self.table.source, start + len(piece[0])
            columns: dict[str, Sequence[str]] = {}
            for name, series in zip(names, piece, strict=True):
                if name in numbers:
                    series = _series(numbers[name][start:end])
                columns[name] = cells = TypedColumn(series, source, name)
                kind = kinds[name]
                if kind is not None:
                    columns[name] = kind(cells, _Shifted(ids, start), source, name)
            yield Table(source, columns, range(start, end), unit=self.table.unit)
            start = end

    def kind(self, name: str) -> type[ListColumn] | None:
        """Type of a column whose cells hold lists; None for other columns."""
        if name in self.plain:
            return None
        if name not in self._kinds:
            self._kinds[name] = list_column_type(self.table.columns[name])
        return self._kinds[name]


class _Shifted(Sequence[str]):
    """Ids from row `start` on."""

    def __init__(self, ids: Sequence[str], start: int) -> None:
        self._ids, self._start = ids, start

    def __len__(self) -> int:
        return len(self._ids) - self._start

    def __getitem__(self, place: Any) -> Any:
        return self._ids[self._start + place]


def _series(values: np.ndarray) -> Series:
    import pyarrow as pa

    return nw.from_native(pa.chunked_array([pa.array(values)]), series_only=True)


def _reader(frame: Frame, place: int) -> Callable[[], Iterator[Series]]:
    return lambda: (piece[0] for piece in frame.pieces([place]))


def _stage(
    header: Sequence[str], rows: Iterator[tuple[int, list[str]]], path: Path, folder: Path
) -> np.ndarray:
    """Write rows of text to a Parquet file; return the line of each row, as an array on disk."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [str(place) for place in range(len(header))]  # those of the header may be anything
    schema = pa.schema([(name, pa.large_string()) for name in names])
    size = 0
    with (folder / "lines").open("wb") as line_file, pq.ParquetWriter(path, schema) as writer:
        while batch := list(islice(rows, STAGED_ROWS)):
            lines, cells = zip(*batch, strict=True)
            np.array(lines, dtype=np.int64).tofile(line_file)
            columns = zip(*cells, strict=True)
            arrays = [pa.array(column, pa.large_string()) for column in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            size += len(lines)
    if not size:
        return np.zeros(0, dtype=np.int64)
    return np.asarray(np.memmap(folder / "lines", dtype=np.int64, mode="r", shape=(size,)))
