"""Result rows on disk: one JSON object per line, appended and never edited; no run twice."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from nodenova.bench.plan import key_of_row
from nodenova.bench.row import Row
from nodenova.errors import StorageError
from nodenova.files.atomic import BINARY, ENDING
from nodenova.files.content import to_json
from nodenova.files.documents import parse_json, read_lines
from nodenova.files.folders import lock_file


class RowFile:
    """An append-only JSONL file with at most one finished row per run.

    A line is written whole or not at all: a torn last line is cut off before the next row. The row
    of a failed run may be followed by another row of the same run.

    Attributes:
        path: Path of the file; a file whose name ends in .gz is read only.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> row = Row(key="a1", dataset="cora", method="sword", encoder="gcn", seed=0, num_old=3,
        ...           num_new=4, status="failed", error="out of memory")
        >>> with TemporaryDirectory() as folder:
        ...     file = RowFile(Path(folder) / "rows.jsonl")
        ...     with file.writing():
        ...         file.append(row)
        ...     file.read() == [row]
        True
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._finished: set[str] | None = None  # keys of finished runs, once they are known

    def read(self) -> list[Row]:
        """Return all rows, each with the key that its run has today; [] if there is no file.

        A last line without its end is a run in progress and is skipped. Where earlier versions
        wrote one run under two keys, the row under today's key counts, or else the later one.

        Raises:
            StorageError: If a line is damaged, is not a row, or repeats a finished run.
        """
        rows: list[Row] = []
        finished: dict[str, tuple[int, str]] = {}  # {key: (place in rows, stored key)}
        lines: dict[str, int] = {}  # {stored key of a finished run: line}
        repeated = set[int]()
        for number, row in self._stored():
            key = key_of_row(row)
            if row.key in lines:
                raise StorageError(
                    f"{self.path}: line {number} repeats the finished run of line {lines[row.key]} "
                    f"(key {row.key}); delete one of the two lines"
                )
            if row.is_done:
                lines[row.key] = number
                if key in finished:
                    place, stored = finished[key]
                    repeated.add(len(rows) if stored == key else place)
                if key not in finished or finished[key][1] != key:
                    finished[key] = (len(rows), row.key)
            rows.append(replace(row, key=key))
        return [row for place, row in enumerate(rows) if place not in repeated]

    def _stored(self) -> Iterator[tuple[int, Row]]:
        """Yield rows as they are stored, each with the number of its line."""
        if not self.path.is_file():
            return
        for number, line in enumerate(read_lines(self.path)[:-1], start=1):
            document = parse_json(line, f"{self.path}: line {number}")
            if not isinstance(document, dict) or not document.get("key"):
                raise StorageError(f"{self.path}: line {number} is not a result row, it has no key")
            try:
                yield number, Row.from_json(document)
            except StorageError as error:
                raise StorageError(f"{self.path}: line {number}: {error}") from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the file: within this block a second writer is refused.

        The lock ends with the process.

        Raises:
            StorageError: If another process is writing, or the file is damaged.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with lock_file(self.path.with_name(f".{self.path.name}.lock{ENDING}"), str(self.path)):
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | BINARY, 0o666)
            try:
                content = self.path.read_bytes()
                os.ftruncate(handle, content.rfind(b"\n") + 1)
                self._finished = self._finished_keys()
                yield
            finally:
                self._finished = None
                os.close(handle)

    def append(self, row: Row) -> None:
        """Add one row; it is on the disk when this returns.

        Raises:
            StorageError: If the file has a finished row of the same run.
        """
        finished = self._finished_keys() if self._finished is None else self._finished
        if row.key in finished:
            raise StorageError(
                f"{self.path}: the run {row.key} ({row.dataset}, {row.method} on {row.encoder}, "
                f"seed {row.seed}) is already there; nothing was written"
            )
        self._append_line(as_line(row))
        if row.is_done:
            finished.add(row.key)

    def _finished_keys(self) -> set[str]:
        return {row.key for row in self.read() if row.is_done}

    def _append_line(self, line: bytes) -> None:
        """Write a line; a full disk leaves no half line behind."""
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | BINARY, 0o666)
        try:
            before = os.fstat(handle).st_size
            try:
                rest = line
                while rest:
                    rest = rest[os.write(handle, rest) :]
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, before)
                raise
        finally:
            os.close(handle)


def as_line(row: Row) -> bytes:
    """Return a row as its line in a file."""
    return json.dumps(json.loads(to_json(row.to_json())), separators=(",", ":")).encode() + b"\n"
