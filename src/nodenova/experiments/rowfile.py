"""Result rows on disk: one JSON object a line, appended and never edited."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodenova.errors import StorageError
from nodenova.experiments.run import Row
from nodenova.storage import to_json


class RowFile:
    """An append-only JSONL file. A line is there whole or not at all: a torn last line is cut off when writing goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Row]:
        """All rows. A last line without its end is a run that was under way, and is left out; .gz is read as well."""
        if not self.path.is_file():
            return []
        content = self.path.read_bytes()
        try:
            lines = (gzip.decompress(content) if self.path.suffix == ".gz" else content).split(b"\n")[:-1]
        except (OSError, EOFError) as error:
            raise StorageError(f"{self.path}: damaged, not readable as gzip ({error})") from error
        rows = []
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise StorageError(f"{self.path}: line {number} is damaged, not readable as JSON ({error})") from error
            if not isinstance(row, dict) or "key" not in row:
                raise StorageError(f"{self.path}: line {number} is not a result row, it has no key")
            rows.append(row)
        return rows

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Within this block nobody else writes: a second is refused. The lock goes with the process, however it ends."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StorageError(
                    f"{self.path}: another bench is writing there; wait for it, or give another --out"
                ) from None
            content = self.path.read_bytes()
            os.ftruncate(handle, content.rfind(b"\n") + 1)
            self.read()
            yield
        finally:
            os.close(handle)

    def append(self, row: Row) -> None:
        """Add one row; it is on the disk when this returns. A disk that fills up leaves no half line behind."""
        line = json.dumps(json.loads(to_json(row)), separators=(",", ":")).encode() + b"\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
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
