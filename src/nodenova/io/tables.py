"""Tables as users bring them (CSV, TSV, Parquet, gzipped or not, pandas) as rows of text, with every line number kept.

Python's own csv module reads them: it is as fast as is needed (a million rows in a second or two), it never guesses a
type, and it knows the line of every row, so that an error can name it.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from nodenova.errors import GraphError
from nodenova.io.text_files import check_file, text_file

Progress: TypeAlias = "Callable[[str, float], None]"  # what is being done, and which share of it is done
T = TypeVar("T")

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe"}
SNIFFED_LINES = 50
LONGEST_CELL = 2**31 - 1
REPORT_EVERY = 20_000  # rows between two calls of a progress function
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "<na>"})  # what spreadsheets write for an empty cell


def no_progress(stage: str, share: float) -> None:
    """Nobody watches."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A table that is read row by row: once, and never whole unless somebody wants it.

    source: what messages call it.   header: names of its columns.
    rows:   (line number, cells), each with as many cells as the header.
    notes:  what was repaired; more may be added while rows are read.
    """

    source: str
    header: list[str]
    rows: Iterator[tuple[int, list[str]]]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Table:
    """A whole table: cells as text by column, and the line at which each row stands."""

    source: str
    columns: dict[str, list[str]]
    lines: list[int]
    notes: list[str] = field(default_factory=list)

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
    """Rows of a file (by its ending) or of a pandas DataFrame."""
    if isinstance(table, (str, PathLike)):
        path = Path(table)
        check_file(path)
        if path.suffix.lower() in (".parquet", ".pq"):
            return _parquet(path, source or path.name, progress)
        return _delimited(path, source or path.name, delimiter, encoding, progress)
    if hasattr(table, "columns") and hasattr(table, "itertuples"):
        return _frame(table, source or "table")
    raise GraphError(f"{source or 'table'}: a table is a path or a pandas DataFrame, not {type(table).__name__}")


def whole(rows: Rows) -> Table:
    """All rows of a table at once."""
    columns: list[list[str]] = [[] for _ in rows.header]
    lines: list[int] = []
    for line, cells in rows.rows:
        lines.append(line)
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
    return Table(rows.source, dict(zip(rows.header, columns, strict=True)), lines, rows.notes)


def is_missing(cell: str) -> bool:
    return len(cell) <= 4 and cell.strip().lower() in MISSING


def text_of(value: object) -> str:
    """A cell of a typed table as text; what pandas and Arrow use for nothing becomes an empty cell."""
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    return value if isinstance(value, str) else str(value)


def _delimited(path: Path, source: str, delimiter: str | None, encoding: str | None, progress: Progress) -> Rows:
    notes: list[str] = []
    if delimiter is not None and len(delimiter) != 1:
        named = {name: sign for sign, name in DELIMITERS.items()} | {"\\t": "\t"}
        if delimiter not in named:
            raise GraphError(f"{source}: a delimiter is one character (or comma, tab, semicolon, pipe), not {delimiter!r}")
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
    header = _header(next(rows)[1], source, notes)
    return Rows(source, header, rows, notes)


def sniff(lines: Sequence[str], path: Path | None = None) -> str:
    """The delimiter that cuts the header into most columns, and most lines into as many as the header."""
    if path is not None and ".tsv" in path.suffixes and "\t" in lines[0]:
        return "\t"

    def quality(sign: str) -> tuple[int, int]:
        counts = [len(cells) for cells in _any_length(lambda: list(csv.reader(lines, delimiter=sign))) if cells]
        alike = sum(count == counts[0] for count in counts) / len(counts) if counts[0] > 1 else 0
        return round(5 * alike), counts[0]

    # A line cut off in the middle of a quoted cell must not decide, hence shares in steps of a fifth.
    return max(DELIMITERS, key=quality)


def _any_length(read: Callable[[], T]) -> T:
    """What `read` returns, with Python's limit on the length of a cell lifted meanwhile."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        return read()
    finally:
        csv.field_size_limit(before)


def _csv_rows(
    path: Path, source: str, delimiter: str, encoding: str | None, notes: list[str], progress: Progress
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
                what = "a quote is opened and never closed" if "end of data" in str(error) else str(error)
                raise GraphError(f"{source}: line {line}: {what}") from None
            except UnicodeError as error:
                raise GraphError(f"{source}: line {line}: cannot be decoded as {encoding} ({error})") from None
            except (OSError, EOFError, zlib.error) as error:
                raise GraphError(f"{source}: damaged or cut off after line {line - 1} ({error})") from None
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
        notes.append(f"{source}: {short:,} rows are shorter than the header; the cells they lack count as empty")


def _header(cells: Sequence[str], source: str, notes: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise GraphError(f"{source}: the header names column {twice[0]!r} {names.count(twice[0])} times")
    if "" in names:
        notes.append(f"{source}: {names.count('')} columns without a name are called column-1, column-2, ... by place")
    return [name or f"column-{place}" for place, name in enumerate(names, start=1)]


def _parquet(path: Path, source: str, progress: Progress) -> Rows:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise GraphError(f"{source}: Parquet files need pyarrow; pip install 'nodenova[parquet]'") from None
    notes: list[str] = []
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise GraphError(f"{source}: not a readable Parquet file ({str(error).splitlines()[0]})") from None

    def rows() -> Iterator[tuple[int, list[str]]]:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=REPORT_EVERY):
                for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    number += 1
                    yield number, [text_of(cell) for cell in cells]
                progress(f"reading {source}", number / max(file.metadata.num_rows, 1))
        except (pa.ArrowException, OSError) as error:
            raise GraphError(f"{source}: damaged after row {number} ({str(error).splitlines()[0]})") from None

    return Rows(source, _header(file.schema_arrow.names, source, notes), rows(), notes)


def _frame(frame: Any, source: str) -> Rows:
    notes: list[str] = []
    header = _header([str(name) for name in frame.columns], source, notes)
    rows = ([text_of(cell) for cell in cells] for cells in frame.itertuples(index=False, name=None))
    return Rows(source, header, enumerate(rows, start=1), notes)
