"""Tables as users bring them: CSV, TSV and JSON, gzipped or not, Parquet files and data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from nodenova.errors import GraphError
from nodenova.io.csv_files import open_csv
from nodenova.io.frames import (
    Cells,
    Frame,
    header_of,
    is_frame,
    open_frame,
    open_parquet,
    refuse_several,
    text_of,
)
from nodenova.io.json_files import Records, is_json, open_json
from nodenova.io.text_files import check_file, ending_of
from nodenova.io.values import column_of

Progress: TypeAlias = (
    "Callable[[str, float], None]"  # what is being done, and which share of it is done
)


class ReadingOptions(TypedDict, total=False):
    """How a file is read, as `open_rows` and `read_table` take it."""

    delimiter: str | None
    encoding: str | None
    progress: Progress


MISSING = frozenset(
    {"", "na", "n/a", "nan", "null", "none", "<na>"}
)  # what spreadsheets write for an empty cell


def no_progress(stage: str, share: float) -> None:
    """Nobody watches."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A table that is read row by row: once, and never whole unless somebody wants it.

    Attributes:
        source: What messages call it.
        header: Names of its columns.
        read: Given places of columns, (number of a row, its cells there as text) for every row.
        notes: What was repaired; more may be added while rows are read.
        unit: What the number counts: lines of a text, rows of a table with types.
        is_numbered: Columns are called 0, 1, ... for want of names, so these cannot be an edge.
    """

    source: str
    header: list[str]
    read: Callable[[Sequence[int]], Iterator[tuple[int, list[str]]]]
    notes: list[str] = field(default_factory=list)
    unit: str = "line"
    is_numbered: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """A whole table: cells by column, and the line at which each row stands.

    Attributes:
        source: What messages call it.
        columns: Each reads as text; one with a type, `Cells`, has numbers too.
        lines: (N,) numbers of the rows.
        notes: What was repaired.
        unit: What those numbers count.
    """

    source: str
    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    notes: list[str] = field(default_factory=list)
    unit: str = "line"

    def __len__(self) -> int:
        return len(self.lines)


def open_rows(
    table: Any,
    *,
    source: str = "",
    delimiter: str | None = None,
    encoding: str | None = None,
    progress: Progress = no_progress,
) -> Rows:
    """Rows of a file (by its ending) or of a data frame."""
    frame = _frame(table, source, progress)
    if frame is None:
        path = Path(table)
        if is_json(path):
            return _json_rows(open_json(path, source or path.name, encoding, progress))
        return _delimited(path, source or path.name, delimiter, encoding, progress)
    return Rows(frame.source, frame.header, frame.rows, frame.notes, "row", frame.is_numbered)


def read_table(
    table: Any,
    *,
    source: str = "",
    delimiter: str | None = None,
    encoding: str | None = None,
    progress: Progress = no_progress,
) -> Table:
    """All rows of a file (by its ending) or of a data frame, with the types that they have."""
    frame = _frame(table, source, progress)
    if frame is None:
        path = Path(table)
        if is_json(path):
            return _json_table(open_json(path, source or path.name, encoding, progress))
        return whole(_delimited(path, source or path.name, delimiter, encoding, progress))
    named = zip(frame.header, frame.whole(), strict=True)
    columns = {name: Cells(series, frame.source, name) for name, series in named}
    lines = range(1, len(columns[frame.header[0]]) + 1)
    return Table(frame.source, columns, lines, frame.notes, unit="row")


def whole(rows: Rows) -> Table:
    """All rows of a table at once."""
    columns: list[list[str]] = [[] for _ in rows.header]
    lines: list[int] = []
    for line, cells in rows.read(range(len(rows.header))):
        lines.append(line)
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
    named = dict(zip(rows.header, columns, strict=True))
    return Table(rows.source, named, lines, rows.notes, rows.unit)


def reading(
    rows: Iterator[tuple[int, list[str]]],
) -> Callable[[Sequence[int]], Iterator[tuple[int, list[str]]]]:
    """What `Rows.read` does, for rows that come with all their cells."""
    return lambda places: ((line, [cells[place] for place in places]) for line, cells in rows)


def is_missing(cell: str) -> bool:
    """Whether a cell is empty, or says so as spreadsheets do."""
    return len(cell) <= 4 and cell.strip().lower() in MISSING


def clipped(text: str, most: int = 40) -> str:
    """A cell as messages quote it."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def _frame(table: Any, source: str, progress: Progress) -> Frame | None:
    """A table with types; None if this is a file of text."""
    if is_frame(table):
        return open_frame(table, source or "table", progress)
    if not isinstance(table, (str, PathLike)):
        hint = "; collect it first" if hasattr(table, "collect") else ""
        raise GraphError(
            f"{source or 'table'}: a table is a path or a data frame (pandas, polars, Arrow), "
            f"not {type(table).__name__}{hint}"
        )
    path = Path(table)
    check_file(path)
    is_parquet = ending_of(path) in (".parquet", ".pq")
    return open_parquet(path, source or path.name, progress) if is_parquet else None


def _json_rows(records: Records) -> Rows:
    keys = records.first_keys()
    header = header_of(keys, records.source, records.notes)

    def read(places: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
        wanted = [(keys[place], header[place]) for place in places]
        for number, record in records.read():
            for key, name in wanted:
                value, before = record.get(key), number - 1
                refuse_several([value], records.source, name, unit=records.unit, before=before)
            yield number, [text_of(record.get(key)) for key, _ in wanted]

    return Rows(records.source, header, read, records.notes, records.unit)


def _json_table(records: Records) -> Table:
    lines, columns = records.columns()
    source, unit = records.source, records.unit
    header = header_of(list(columns), source, records.notes)
    named = zip(header, columns.values(), strict=True)
    made = {name: column_of(values, source, name, unit) for name, values in named}
    return Table(source, made, lines, records.notes, unit)


def _delimited(
    path: Path, source: str, delimiter: str | None, encoding: str | None, progress: Progress
) -> Rows:
    header, rows, notes = open_csv(path, source, delimiter, encoding, progress)
    return Rows(source, header, reading(rows), notes)
