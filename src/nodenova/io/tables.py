"""Tables as users bring them: CSV, TSV and JSON, gzipped or not, Parquet files and data frames.

CSV and TSV files, gzipped or not: the delimiter found, every row with its line.

Python's own csv module reads text: it is as fast as is needed (a million rows in a second or two),
it never guesses a type, and it knows the line of every row, so that an error can name it.

Tables as JSON, gzipped or not: a record a line (.jsonl, .ndjson) or an array of them (.json).

A record is an object; its keys are columns, and a key that it lacks is an empty cell.
"""

from __future__ import annotations

import csv
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, TypeVar

from nodenova.errors import GraphError
from nodenova.io.frames import (
    Frame,
    TypedColumn,
    check_single_values,
    clean_header,
    is_frame,
    make_column,
    open_frame,
    open_parquet,
    to_text,
)
from nodenova.io.text_files import check_file, file_ending, text_file
from nodenova.progress import Progress, no_progress

Row: TypeAlias = "tuple[int, list[str]]"
T = TypeVar("T")

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe"}
SNIFFED_LINES = 50
LONGEST_CELL = 2**31 - 1
REPORT_EVERY = 20_000  # rows between two calls of a progress function


def open_csv(
    path: Path, source: str, delimiter: str | None, encoding: str | None, progress: Progress
) -> tuple[list[str], Iterator[Row], list[str]]:
    """Open a file of cells with delimiters between them.

    Args:
        path: The file.
        source: What messages call it.
        delimiter: A character, or its name; found by default.
        encoding: Found by default.
        progress: Function `progress(phase, share)`, called as reading advances.

    Returns:
        Names of the columns, every row with its line, and what was repaired, to which more may be
        added while rows are read.

    Raises:
        GraphError: The file or a line of it cannot be read; here or while rows are read.
    """
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
    cells = next(rows)[1]
    if cells[0].lstrip().startswith(("{", "[{")):
        raise GraphError(f"{source}: this looks like JSON; name it .json, or .jsonl for JSON lines")
    return clean_header(cells, source, notes), rows, notes


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
) -> Iterator[Row]:
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


Record: TypeAlias = "dict[str, Any]"

LINES = (".jsonl", ".ndjson")
ENDINGS = (*LINES, ".json")
SNIFFED_RECORDS = 100  # whose keys are the columns of a table that is read record by record
RECORDS_PER_REPORT = 20_000  # records between two calls of a progress function
IS_TABLE = 'a table is an array of records, [{"id": "a", ...}, ...], or a record a line'


@dataclass(frozen=True, eq=False)
class Records:
    """A table of records.

    Attributes:
        source: What messages call it.
        read: Each record's number and the record, from the first on whenever it is called.
        unit: What the number counts.
        notes: What was repaired.
    """

    source: str
    read: Callable[[], Iterator[tuple[int, Record]]]
    unit: str
    notes: list[str] = field(default_factory=list)

    def first_keys(self) -> list[str]:
        """Keys of the first records, in the order in which they come."""
        keys: dict[str, None] = {}
        for _, record in islice(self.read(), SNIFFED_RECORDS):
            keys.update(dict.fromkeys(record))
        return list(keys)

    def columns(self) -> tuple[list[int], dict[str, list[object]]]:
        """(N,) numbers of the records, and (N,) values of each key, None where it is lacking."""
        numbers: list[int] = []
        columns: dict[str, list[object]] = {}
        for before, (number, record) in enumerate(self.read()):
            numbers.append(number)
            for key, value in record.items():
                column = columns.setdefault(key, [])
                column.extend([None] * (before - len(column)))
                column.append(value)
        for column in columns.values():
            column.extend([None] * (len(numbers) - len(column)))
        return numbers, columns


def is_json(path: Path) -> bool:
    """Whether a file is of JSON by its name."""
    return file_ending(path) in ENDINGS


def open_json(path: Path, source: str, encoding: str | None, progress: Progress) -> Records:
    """Records of a file.

    Args:
        path: The file.
        source: What messages call it.
        encoding: Found by default.
        progress: Function `progress(phase, share)`, called as reading advances.

    Raises:
        GraphError: It is empty, or no table of records; here or while records are read.
    """
    notes: list[str] = []
    if file_ending(path) in LINES:
        found = _lines(path, source, encoding, notes, progress)
    else:
        found = _array(path, source, encoding, notes, progress)
    if next(found.read(), None) is None:
        raise GraphError(f"{source}: empty, there is not even a record")
    notes[:] = list(dict.fromkeys(notes))  # the file was opened more than once
    return found


def _lines(
    path: Path, source: str, encoding: str | None, notes: list[str], progress: Progress
) -> Records:
    def read() -> Iterator[tuple[int, Record]]:
        line = 0
        with text_file(path, encoding, [] if notes else notes) as (text, share):
            try:
                for line, content in enumerate(text, start=1):
                    if not content.strip():
                        continue
                    yield line, _record(_parsed(content, f"{source}: line {line}"), source, line)
                    if line % RECORDS_PER_REPORT == 0:
                        progress(f"reading {source}", share())
            except UnicodeError as error:
                said = f"cannot be decoded as {encoding} ({error})"
                raise GraphError(f"{source}: line {line + 1}: {said}") from None
            except (OSError, EOFError, zlib.error) as error:
                said = f"damaged or cut off after line {line} ({error})"
                raise GraphError(f"{source}: {said}") from None

    return Records(source, read, "line", notes)


def _array(
    path: Path, source: str, encoding: str | None, notes: list[str], progress: Progress
) -> Records:
    with text_file(path, encoding, notes) as (text, _):
        try:
            content = text.read()
        except UnicodeError as error:
            raise GraphError(f"{source}: cannot be decoded as {encoding} ({error})") from None
    if not content.strip():
        raise GraphError(f"{source}: empty, there is not even a record")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        first = content.lstrip().split("\n", 1)[0].rstrip()
        if first.startswith("{") and first.endswith("}"):
            notes.append(f"{source}: a record a line, although its name does not say so")
            return _lines(path, source, encoding, notes, progress)
        raise GraphError(f"{source}: not readable as JSON ({error})") from None
    if isinstance(document, dict):
        keys = f"first: {_short(next(iter(document)))}" if document else "none"
        said = f"one object with {len(document):,} keys ({keys})"
        raise GraphError(f"{source}: {said}; {IS_TABLE}")
    if not isinstance(document, list):
        raise GraphError(f"{source}: {_kind(document)}; {IS_TABLE}")

    def read() -> Iterator[tuple[int, Record]]:
        for number, value in enumerate(document, start=1):
            yield number, _record(value, source, number, "record")

    return Records(source, read, "record", notes)


def _parsed(content: str, where: str) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise GraphError(f"{where}: not readable as JSON ({error})") from None


def _record(value: object, source: str, number: int, unit: str = "line") -> Record:
    if isinstance(value, dict):
        return value
    said = f'a record is an object, {{"id": "a", ...}}, this is {_kind(value)}'
    hint = "; name an array of records .json" if unit == "line" and isinstance(value, list) else ""
    raise GraphError(f"{source}: {unit} {number}: {said}{hint}")


def _kind(value: object) -> str:
    names = {list: "an array", str: "a text", dict: "an object", bool: "a truth value"}
    return "nothing" if value is None else names.get(type(value), "a number")


def _short(key: str, most: int = 40) -> str:
    return repr(key if len(key) <= most else key[: most - 3] + "...")


class ReadingOptions(TypedDict, total=False):
    """How a file is read, as `open_rows` and `read_table` take it."""

    delimiter: str | None
    encoding: str | None
    progress: Progress


MISSING = frozenset(
    {"", "na", "n/a", "nan", "null", "none", "<na>"}
)  # what spreadsheets write for an empty cell


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
        columns: Each reads as text; one with a type, `TypedColumn`, has numbers too.
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
    columns = {name: TypedColumn(series, frame.source, name) for name, series in named}
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


def quote(text: str, most: int = 40) -> str:
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
    is_parquet = file_ending(path) in (".parquet", ".pq")
    return open_parquet(path, source or path.name, progress) if is_parquet else None


def _json_rows(records: Records) -> Rows:
    keys = records.first_keys()
    header = clean_header(keys, records.source, records.notes)

    def read(places: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
        wanted = [(keys[place], header[place]) for place in places]
        for number, record in records.read():
            for key, name in wanted:
                value, before = record.get(key), number - 1
                check_single_values([value], records.source, name, unit=records.unit, before=before)
            yield number, [to_text(record.get(key)) for key, _ in wanted]

    return Rows(records.source, header, read, records.notes, records.unit)


def _json_table(records: Records) -> Table:
    lines, columns = records.columns()
    source, unit = records.source, records.unit
    header = clean_header(list(columns), source, records.notes)
    named = zip(header, columns.values(), strict=True)
    made = {name: make_column(values, source, name, unit) for name, values in named}
    return Table(source, made, lines, records.notes, unit)


def _delimited(
    path: Path, source: str, delimiter: str | None, encoding: str | None, progress: Progress
) -> Rows:
    header, rows, notes = open_csv(path, source, delimiter, encoding, progress)
    return Rows(source, header, reading(rows), notes)
