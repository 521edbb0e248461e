"""Atomic file writes, strict JSON, and tables as CSV or Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

from nodenova.errors import SettingError, StorageError


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: temporary file, fsync, rename, fsync of the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.chmod(temporary, 0o666 & ~umask())  # readable like any other file the user writes
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be opened, and a rename is durable
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def umask() -> int:
    """Return the permission bits that new files of this process lack."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def to_json(value: object) -> bytes:
    """Return a value as strict JSON; nan and infinity become null.

    Examples:
        >>> to_json([1.5, float("nan")])
        b'[\\n 1.5,\\n null\\n]\\n'
    """

    def strict(part: object) -> object:
        if isinstance(part, dict):
            return {key: strict(inner) for key, inner in part.items()}
        if isinstance(part, list | tuple):
            return [strict(inner) for inner in part]
        return None if isinstance(part, float) and not math.isfinite(part) else part

    return (json.dumps(strict(value), indent=1, allow_nan=False) + "\n").encode()


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that `to_json` wrote; raise a StorageError if the file is damaged."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StorageError(f"{path}: damaged, not readable as JSON ({error})") from error
    if not isinstance(document, dict):
        raise StorageError(f"{path}: damaged, not what was saved")
    return document


def table_content(columns: dict[str, list[object]], path: Path) -> bytes:
    """Return a table as bytes: Parquet if `path` ends with .parquet or .pq, else CSV.

    Examples:
        >>> table_content({"node": ["a", "b"], "class": [0, 1]}, Path("nodes.csv")).split()
        [b'node,class', b'a,0', b'b,1']
    """
    if path.suffix.lower() in (".parquet", ".pq"):
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise SettingError(
                f"{path}: Parquet needs pyarrow: pip install 'nodenova[parquet]'"
            ) from None
        content = io.BytesIO()
        pq.write_table(pa.table(columns), content)
        return content.getvalue()
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()
