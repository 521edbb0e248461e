"""Tables that users bring: CSV, TSV and JSON files, gzipped or not, Parquet files, data frames.

Text is read by Python's csv module: it never guesses a type, and it knows the line of each row, so
that errors can name it. JSON is one record per line (.jsonl, .ndjson) or an array of records
(.json); the keys of a record are columns, and a missing key is an empty cell.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack

from nodenova.display import plural
from nodenova.errors import GraphError, first_line
from nodenova.files.documents import MAX_DEPTH, parse_cells
from nodenova.io.frames import (
    Frame,
    TypedColumn,
    check_single_values,
    clean_header,
    is_frame,
    make_column,
    open_frame,
    open_parquet,
    quote,
    to_text,
)
from nodenova.io.text_files import READ_ERRORS, check_file, file_ending, text_file
from nodenova.progress import Progress, no_progress

Row: TypeAlias = "tuple[int, list[str]]"
Record: TypeAlias = "dict[str, Any]"
T = TypeVar("T")

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe"}
JSON_LINES = (".jsonl", ".ndjson")
JSON_ENDINGS = (*JSON_LINES, ".json")
SNIFFED_LINES = 50
SNIFFED_RECORDS = 100  # whose keys are the columns of a table that is read record by record
MAX_CELL = 2**31 - 1  # characters
MAX_SPREAD = 100  # cells of a table of records for each value that it holds
ROWS_PER_REPORT = 20_000  # rows between two calls of a progress function
MAX_PADDED = 1 << 24  # cells that short rows and records lack, beyond the bytes of the file
JSON_SHAPE = 'a table is an array of records, [{"id": "a", ...}, ...], or one record per line'


class ReadingOptions(TypedDict, total=False):
    """How a file is read, as `open_rows` and `read_table` take it."""

    delimiter: str | None
    encoding: str | None
    progress: Progress


@dataclass(frozen=True, eq=False)
class Rows:
    """A table that is read once, row by row."""

    source: str  # the table's name in messages
    header: list[str]  # names of its columns
    # column positions to each row's number and its cells there, as text
    read: Callable[[Sequence[int]], Iterator[Row]]
    notes: list[str] = field(default_factory=list)  # repairs; more may be added while rows are read
    unit: str = "line"  # what the row number counts: lines of a text file, rows of a typed table
    is_numbered: bool = False  # whether columns are called 0, 1, ... because they have no names


@dataclass(frozen=True, eq=False)
class Table:
    """A whole table: cells by column."""

    source: str  # the table's name in messages
    columns: Mapping[str, Sequence[str]]  # each reads as text; a `TypedColumn` has numbers too
    lines: Sequence[int]  # (N,) numbers of the rows
    notes: list[str] = field(default_factory=list)  # repairs
    unit: str = "line"  # what the row number counts

    def __len__(self) -> int:
        return len(self.lines)


def open_rows(table: Any, *, source: str = "", **reading: Unpack[ReadingOptions]) -> Rows:
    """Open a file (by its ending) or a data frame to read it row by row."""
    content = _open(table, source, **reading)
    if isinstance(content, Frame):
        shape = (content.source, content.header, content.rows, content.notes)
        return Rows(*shape, "row", content.is_numbered)
    return _json_rows(content) if isinstance(content, Records) else content


def read_table(table: Any, *, source: str = "", **reading: Unpack[ReadingOptions]) -> Table:
    """Read a whole file (by its ending) or data frame; typed columns keep their types."""
    content = _open(table, source, **reading)
    if isinstance(content, Records):
        return _json_table(content)
    if isinstance(content, Rows):
        return _read_all(content)
    named = zip(content.header, content.read_columns(), strict=True)
    columns = {name: TypedColumn(series, content.source, name) for name, series in named}
    lines = range(1, len(columns[content.header[0]]) + 1)
    return Table(content.source, columns, lines, content.notes, unit="row")


def _open(
    table: Any,
    source: str,
    delimiter: str | None = None,
    encoding: str | None = None,
    progress: Progress = no_progress,
) -> Frame | Records | Rows:
    if is_frame(table):
        return open_frame(table, source or "table", progress)
    if not isinstance(table, (str, PathLike)):
        hint = "; collect it first" if hasattr(table, "collect") else ""
        raise GraphError(
            f"{source or 'table'}: a table is a path or a data frame (pandas, polars, Arrow), "
            f"not {type(table).__name__}{hint}"
        )
    path = Path(table)
    source = source or path.name
    check_file(path)
    if file_ending(path) in (".parquet", ".pq"):
        return open_parquet(path, source, progress)
    if is_json(path):
        return open_json(path, source, encoding, progress)
    return _open_csv(path, source, delimiter, encoding, progress)


def _read_all(rows: Rows) -> Table:
    """Read all rows into a table."""
    columns: list[list[str]] = [[] for _ in rows.header]
    lines: list[int] = []
    for line, cells in rows.read(range(len(rows.header))):
        lines.append(line)
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
    named = dict(zip(rows.header, columns, strict=True))
    return Table(rows.source, named, lines, rows.notes, rows.unit)


def cell_reader(rows: Iterator[Row]) -> Callable[[Sequence[int]], Iterator[Row]]:
    """Make a `Rows.read` of rows that come with all their cells."""
    return lambda places: ((line, [cells[place] for place in places]) for line, cells in rows)


def _open_csv(
    path: Path, source: str, delimiter: str | None, encoding: str | None, progress: Progress
) -> Rows:
    """Open a delimited text file; delimiter and encoding are detected unless given."""
    notes: list[str] = []
    if delimiter is not None and len(delimiter) != 1:
        signs = {name: sign for sign, name in DELIMITERS.items()} | {"\\t": "\t"}
        if delimiter not in signs:
            raise GraphError(
                f"{source}: a delimiter is one character (or comma, tab, semicolon, pipe), "
                f"not {delimiter!r}"
            )
        delimiter = signs[delimiter]
    if delimiter is not None and delimiter in '"\r\n':
        raise GraphError(f"{source}: {delimiter!r} cannot be a delimiter")
    with text_file(path, encoding, notes) as (text, _):
        start = list(islice(text, SNIFFED_LINES))
    if not any(line.strip() for line in start):
        raise GraphError(f"{source}: empty, there is not even a header")
    sign = delimiter or _sniff_delimiter(start, path)
    if delimiter is None and sign != ("\t" if ".tsv" in path.suffixes else ","):
        notes.append(f"{source}: columns are separated by {DELIMITERS[sign]}s")
    rows = _csv_rows(path, source, sign, encoding, notes, progress)
    cells = next(rows, (0, [""]))[1]
    if not any(map(str.strip, cells)):
        raise GraphError(f"{source}: empty, there is not even a header")
    if cells[0].lstrip().startswith(("{", "[{")):
        raise GraphError(f"{source}: this looks like JSON; name it .json, or .jsonl for JSON lines")
    return Rows(source, clean_header(cells, source, notes), cell_reader(rows), notes)


def _sniff_delimiter(lines: Sequence[str], path: Path) -> str:
    """Find the delimiter that splits most lines into as many columns as the header."""
    if ".tsv" in path.suffixes and "\t" in lines[0]:
        return "\t"

    def quality(sign: str) -> tuple[int, int]:
        try:
            rows = _any_length(lambda: list(csv.reader(lines, delimiter=sign)))
        except csv.Error:  # raised again, with its line, when the rows are read
            return 0, 0
        counts = [len(cells) for cells in rows if cells]
        alike = sum(count == counts[0] for count in counts) / len(counts) if counts[0] > 1 else 0
        # Shares in steps of a fifth: a line cut off within a quoted cell must not decide.
        return round(5 * alike), counts[0]

    return max(DELIMITERS, key=quality)


def _any_length(read: Callable[[], T]) -> T:
    """Call `read` without the csv module's limit on the length of a cell."""
    before = csv.field_size_limit(MAX_CELL)
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
) -> Iterator[Row]:
    """Yield the header, then each row; blank lines are skipped."""
    width, short, number, missing = 0, 0, 0, 0
    most = MAX_PADDED + path.stat().st_size
    with text_file(path, encoding, []) as (text, share):
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        while True:
            line = reader.line_num + 1
            try:
                cells = _any_length(reader.__next__)
            except StopIteration:
                break
            except csv.Error as error:
                is_open = "end of data" in str(error)
                what = "a quote is opened and never closed" if is_open else str(error)
                raise GraphError(f"{source}: line {line}: {what}") from None
            except READ_ERRORS as error:
                raise _unreadable(error, source, line, encoding) from None
            if not cells or (len(cells) == 1 and not cells[0].strip() and width != 1):
                continue
            if not width:
                width = len(cells)
            elif len(cells) > width:
                if any(cell.strip() for cell in cells[width:]):
                    raise GraphError(
                        f"{source}: line {line} has {len(cells)} cells, the header has {width}; "
                        "put cells that contain the delimiter in quotes"
                    )
                del cells[width:]
            elif len(cells) < width:
                short += 1
                missing += width - len(cells)
                if missing > most:
                    raise _too_sparse(source, "rows are much shorter than the header")
                cells += [""] * (width - len(cells))
            yield line, cells
            number += 1
            if number % ROWS_PER_REPORT == 0:
                progress(f"reading {source}", share())
    if short:
        rows = plural(short, "row is", "rows are")
        notes.append(f"{source}: {rows} shorter than the header; missing cells are read as empty")


def _too_sparse(source: str, what: str) -> GraphError:
    return GraphError(f"{source}: {what}: its cells would need far more memory than the file")


def _unreadable(error: Exception, source: str, line: int, encoding: str | None) -> GraphError:
    """Make the error for a text file that cannot be read at a line."""
    if isinstance(error, UnicodeError):
        what = f"cannot be decoded as {encoding or 'text'} ({first_line(error)})"
        return GraphError(f"{source}: line {line}: {what}")
    return GraphError(f"{source}: damaged or cut off after line {line - 1} ({first_line(error)})")


@dataclass(frozen=True, eq=False)
class Records:
    """A table of JSON records."""

    source: str  # the table's name in messages
    read: Callable[[], Iterator[tuple[int, Record]]]  # numbers and records, from the first on
    unit: str  # what the number counts
    notes: list[str] = field(default_factory=list)  # repairs

    def columns(self) -> tuple[list[int], dict[str, list[object]]]:
        """Return (N,) numbers of the records and (N,) values of each key, None where missing."""
        numbers: list[int] = []
        columns: dict[str, list[object]] = {}
        cells = 0
        for before, (number, record) in enumerate(self.read()):
            numbers.append(number)
            cells += len(record)
            if len(columns) * before > MAX_PADDED + MAX_SPREAD * cells:
                raise _too_sparse(self.source, "records have few keys in common")
            for key, value in record.items():
                column = columns.setdefault(key, [])
                column.extend([None] * (before - len(column)))
                column.append(value)
        for column in columns.values():
            column.extend([None] * (len(numbers) - len(column)))
        return numbers, columns


def is_json(path: Path) -> bool:
    """Whether a file is JSON by its name."""
    return file_ending(path) in JSON_ENDINGS


def open_json(path: Path, source: str, encoding: str | None, progress: Progress) -> Records:
    """Open a JSON file as a table of records."""
    notes: list[str] = []
    open_records = _open_lines if file_ending(path) in JSON_LINES else _open_array
    records = open_records(path, source, encoding, notes, progress)
    if next(records.read(), None) is None:
        raise GraphError(f"{source}: empty, there is not even a record")
    notes[:] = list(dict.fromkeys(notes))  # the file was opened more than once
    return records


def _open_lines(
    path: Path, source: str, encoding: str | None, notes: list[str], progress: Progress
) -> Records:
    def read() -> Iterator[tuple[int, Record]]:
        line = 0
        with text_file(path, encoding, [] if notes else notes) as (text, share):
            try:
                for line, content in enumerate(text, start=1):
                    if not content.strip():
                        continue
                    try:
                        value = parse_cells(content)
                    except ValueError as error:
                        where = f"{source}: line {line}"
                        raise GraphError(
                            f"{where}: not readable as JSON ({first_line(error)})"
                        ) from None
                    yield line, _check_record(value, source, line, "line")
                    if line % ROWS_PER_REPORT == 0:
                        progress(f"reading {source}", share())
            except READ_ERRORS as error:
                raise _unreadable(error, source, line + 1, encoding) from None

    return Records(source, read, "line", notes)


def _open_array(
    path: Path, source: str, encoding: str | None, notes: list[str], progress: Progress
) -> Records:
    with text_file(path, encoding, notes) as (text, _):
        content = text.read()
    if not content.strip():
        raise GraphError(f"{source}: empty, there is not even a record")
    try:
        document = parse_cells(content, MAX_DEPTH + 1)
    except ValueError as error:
        first = content.lstrip().split("\n", 1)[0].rstrip()
        if first.startswith("{") and first.endswith("}"):
            notes.append(f"{source}: read as one record per line (JSON lines)")
            return _open_lines(path, source, encoding, notes, progress)
        raise GraphError(f"{source}: not readable as JSON ({first_line(error)})") from None
    if isinstance(document, dict):
        keys = f"first: {quote(next(iter(document)))}" if document else "none"
        what = f"one object with {len(document):,} keys ({keys})"
        raise GraphError(f"{source}: {what}; {JSON_SHAPE}")
    if not isinstance(document, list):
        raise GraphError(f"{source}: {_json_type(document)}; {JSON_SHAPE}")

    def read() -> Iterator[tuple[int, Record]]:
        for number, value in enumerate(document, start=1):
            yield number, _check_record(value, source, number, "record")

    return Records(source, read, "record", notes)


def _check_record(value: object, source: str, number: int, unit: str) -> Record:
    if isinstance(value, dict):
        return value
    what = f'a record is an object, {{"id": "a", ...}}, this is {_json_type(value)}'
    hint = "; name an array of records .json" if unit == "line" and isinstance(value, list) else ""
    raise GraphError(f"{source}: {unit} {number}: {what}{hint}")


def _json_type(value: object) -> str:
    names = {list: "an array", str: "a text", dict: "an object", bool: "a truth value"}
    return "nothing" if value is None else names.get(type(value), "a number")


def _json_rows(records: Records) -> Rows:
    first = islice(records.read(), SNIFFED_RECORDS)
    keys = list(dict.fromkeys(key for _, record in first for key in record))
    header = clean_header(keys, records.source, records.notes)

    def read(places: Sequence[int]) -> Iterator[Row]:
        wanted = [(keys[place], header[place]) for place in places]
        for number, record in records.read():
            for key, name in wanted:
                check_single_values(
                    [record.get(key)], records.source, name, unit=records.unit, before=number - 1
                )
            yield number, [to_text(record.get(key)) for key, _ in wanted]

    return Rows(records.source, header, read, records.notes, records.unit)


def _json_table(records: Records) -> Table:
    lines, columns = records.columns()
    source, unit = records.source, records.unit
    header = clean_header(list(columns), source, records.notes)
    named = zip(header, columns.values(), strict=True)
    texts = {name: make_column(values, source, name, unit) for name, values in named}
    return Table(source, texts, lines, records.notes, unit)
