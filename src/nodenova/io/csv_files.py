"""CSV and TSV files, gzipped or not: the delimiter found, every row with its line.

Python's own csv module reads text: it is as fast as is needed (a million rows in a second or two),
it never guesses a type, and it knows the line of every row, so that an error can name it.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias, TypeVar

from nodenova.errors import GraphError
from nodenova.io.frames import header_of
from nodenova.io.text_files import text_file

Progress: TypeAlias = "Callable[[str, float], None]"
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
        progress: Called with what is being done and which share of it is done.

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
    return header_of(cells, source, notes), rows, notes


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
