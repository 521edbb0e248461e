"""Tables as users bring them: text files (CSV, TSV, gzipped or not), Parquet files and data frames.

Python's own csv module reads text: it is as fast as is needed (a million rows in a second or two),
it never guesses a type, and it knows the line of every row, so that an error can name it.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, TypeVar

from nodenova.errors import GraphError
from nodenova.io.frames import Cells, Frame, header_of, is_frame, open_frame, open_parquet
from nodenova.io.text_files import check_file, text_file

Progress: TypeAlias = (
    "Callable[[str, float], None]"  # what is being done, and which share of it is done
)
T = TypeVar("T")


class ReadingOptions(TypedDict, total=False):
    """How a file is read, as `open_rows` and `read_table` take it."""

    delimiter: str | None
    encoding: str | None
    progress: Progress


DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe"}
SNIFFED_LINES = 50
LONGEST_CELL = 2**31 - 1
REPORT_EVERY = 20_000  # rows between two calls of a progress function
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
    is_parquet = path.suffix.lower() in (".parquet", ".pq")
    return open_parquet(path, source or path.name, progress) if is_parquet else None


def _delimited(
    path: Path, source: str, delimiter: str | None, encoding: str | None, progress: Progress
) -> Rows:
    notes: list[str] = []
    if delimiter is not None and len(delimiter) != 1:
        named = {name: sign for sign, name in DELIMITERS.items()} | {"\\t": "\t"}
        if delimiter not in named:
            raise GraphError(
                f"{source}: a delimiter is one character (or comma, tab, semicolon, pipe), "
                f"not {delimiter!r}"
            )
        delimiter = named[delimiter]
    with text_file(path, encoding, notes) as (text, _):
        try:
            start = list(islice(text, SNIFFED_LINES))
        except UnicodeError as error:
            raise GraphError(f"{source}: cannot be decoded as {encoding} ({error})") from None
    if not any(line.strip() for line in start):
        raise GraphError(f"{source}: empty, there is not even a header")
    sign = delimiter or sniff(start, path)
    if delimiter is None and sign != ("\t" if ".tsv" in path.suffixes else ","):
        notes.append(f"{source}: columns are separated by {DELIMITERS[sign]}s")
    rows = _csv_rows(path, source, sign, encoding, notes, progress)
    header = header_of(next(rows)[1], source, notes)
    return Rows(source, header, reading(rows), notes)


def sniff(lines: Sequence[str], path: Path | None = None) -> str:
    """The delimiter that cuts the header into most columns, and most lines into as many."""
    if path is not None and ".tsv" in path.suffixes and "\t" in lines[0]:
        return "\t"

    def quality(sign: str) -> tuple[int, int]:
        rows = _any_length(lambda: list(csv.reader(lines, delimiter=sign)))
        counts = [len(cells) for cells in rows if cells]
        alike = sum(count == counts[0] for count in counts) / len(counts) if counts[0] > 1 else 0
        return round(5 * alike), counts[0]

    # A line cut off in the middle of a quoted cell must not decide: shares in steps of a fifth.
    return max(DELIMITERS, key=quality)


def _any_length(read: Callable[[], T]) -> T:
    """What `read` returns, with Python's limit on the length of a cell lifted meanwhile."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        return read()
    finally:
        csv.field_size_limit(before)


def _csv_rows(
    path: Path,
    source: str,
    delimiter: str,
    encoding: str | None,
    notes: list[str],
    progress: Progress,
) -> Iterator[tuple[int, list[str]]]:
    """The header first, then every row; blank lines are left out."""
    width, short, number = 0, 0, 0
    with text_file(path, encoding, []) as (text, share):
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        while True:
            line = reader.line_num + 1
            try:
                cells = _any_length(reader.__next__)
            except StopIteration:
                break
            except csv.Error as error:
                what = (
                    "a quote is opened and never closed"
                    if "end of data" in str(error)
                    else str(error)
                )
                raise GraphError(f"{source}: line {line}: {what}") from None
            except UnicodeError as error:
                raise GraphError(
                    f"{source}: line {line}: cannot be decoded as {encoding} ({error})"
                ) from None
            except (OSError, EOFError, zlib.error) as error:
                raise GraphError(
                    f"{source}: damaged or cut off after line {line - 1} ({error})"
                ) from None
            if not cells or (len(cells) == 1 and not cells[0].strip() and width != 1):
                continue
            if not width:
                width = len(cells)
            elif len(cells) > width:
                if any(cell.strip() for cell in cells[width:]):
                    raise GraphError(
                        f"{source}: line {line} has {len(cells)} cells, the header has {width}; "
                        "a cell that holds the delimiter must stand in quotes"
                    )
                del cells[width:]
            elif len(cells) < width:
                short += 1
                cells += [""] * (width - len(cells))
            yield line, cells
            number += 1
            if number % REPORT_EVERY == 0:
                progress(f"reading {source}", share())
    if short:
        said = "rows are shorter than the header; the cells they lack count as empty"
        notes.append(f"{source}: {short:,} {said}")
