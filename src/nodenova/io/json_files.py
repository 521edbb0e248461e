"""Tables as JSON, gzipped or not: a record a line (.jsonl, .ndjson) or an array of them (.json).

A record is an object; its keys are columns, and a key that it lacks is an empty cell.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from nodenova.errors import GraphError
from nodenova.io.text_files import ending_of, text_file

Progress: TypeAlias = "Callable[[str, float], None]"
Record: TypeAlias = "dict[str, Any]"

LINES = (".jsonl", ".ndjson")
ENDINGS = (*LINES, ".json")
SNIFFED_RECORDS = 100  # whose keys are the columns of a table that is read record by record
REPORT_EVERY = 20_000  # records between two calls of a progress function
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
    return ending_of(path) in ENDINGS


def open_json(path: Path, source: str, encoding: str | None, progress: Progress) -> Records:
    """Records of a file.

    Args:
        path: The file.
        source: What messages call it.
        encoding: Found by default.
        progress: Called with what is being done and which share of it is done.

    Raises:
        GraphError: It is empty, or no table of records; here or while records are read.
    """
    notes: list[str] = []
    if ending_of(path) in LINES:
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
                    if line % REPORT_EVERY == 0:
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
