"""Result rows on disk: one JSON object a line, appended and never edited."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodenova.bench.row import Row
from nodenova.errors import StorageError
from nodenova.files import to_json

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

BINARY = getattr(os, "O_BINARY", 0)  # Windows would write another end of line


class RowFile:
    """An append-only JSONL file.

    A line is there whole or not at all: a torn last line is cut off when writing goes on.

    Attributes:
        path: Where it is; a name that ends in .gz is read only.

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

    def read(self) -> list[Row]:
        """All rows; none if there is no file.

        A last line without its end is a run that was under way, and is left out.

        Raises:
            StorageError: A line is damaged, or is no row.
        """
        if not self.path.is_file():
            return []
        content = self.path.read_bytes()
        try:
            lines = (gzip.decompress(content) if self.path.suffix == ".gz" else content).split(
                b"\n"
            )[:-1]
        except (OSError, EOFError) as error:
            raise StorageError(f"{self.path}: damaged, not readable as gzip ({error})") from error
        rows = []
        for number, line in enumerate(lines, start=1):
            try:
                document = json.loads(line)
            except ValueError as error:
                raise StorageError(
                    f"{self.path}: line {number} is damaged, not readable as JSON ({error})"
                ) from error
            if not isinstance(document, dict) or not document.get("key"):
                raise StorageError(f"{self.path}: line {number} is not a result row, it has no key")
            try:
                rows.append(Row.from_json(document))
            except StorageError as error:
                raise StorageError(f"{self.path}: line {number} is {error}") from error
        return rows

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Within this block nobody else writes: a second is refused.

        The lock goes with the process, however it ends. Where the system has no such lock (Windows)
        a file beside stands for it. A process that is killed leaves it behind.

        Raises:
            StorageError: Another process is writing, or the file is damaged.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | BINARY, 0o666)
        try:
            with _locked(handle, self.path):
                content = self.path.read_bytes()
                os.ftruncate(handle, content.rfind(b"\n") + 1)
                self.read()
                yield
        finally:
            os.close(handle)

    def append(self, row: Row) -> None:
        """Add one row; it is on the disk when this returns.

        A disk that fills up leaves no half line behind.
        """
        line = as_line(row)
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


@contextmanager
def _locked(handle: int, path: Path) -> Iterator[None]:
    busy = f"{path}: another bench is writing there; wait for it, or give another --out"
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StorageError(busy) from None
        yield  # closing the file ends it
        return
    lock = path.with_name(f"{path.name}.lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        raise StorageError(f"{busy}. If none is running, one was killed: delete {lock}") from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def as_line(row: Row) -> bytes:
    """A row as its line in a file."""
    return json.dumps(json.loads(to_json(row.to_json())), separators=(",", ":")).encode() + b"\n"
