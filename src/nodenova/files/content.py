"""The content of files: opened to be read; values as strict JSON, tables as CSV or Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import stat
from pathlib import Path
from typing import IO

from nodenova.errors import NodenovaError, SettingError
from nodenova.files.atomic import BINARY

# Text that a spreadsheet may take for a formula begins with one of these; numbers do not count.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def open_file(path: Path, error: type[NodenovaError]) -> IO[bytes]:
    """Open a file to read it; folders, pipes and devices are refused, as some never end."""
    try:
        # Without O_NONBLOCK, a pipe that no process writes to would wait here.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | BINARY)
    except (OSError, ValueError) as found:  # a ValueError for a name with a NUL byte
        raise error(f"{path}: cannot be read ({getattr(found, 'strerror', found)})") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise error(f"{path}: cannot be read (it is a folder, a pipe or a device, not a file)")
    return os.fdopen(handle, "rb")


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


def guard_formula(cell: object) -> object:
    """Return a cell of a CSV file with an apostrophe before text that begins like a formula.

    Examples:
        >>> [guard_formula(cell) for cell in ("=1+1", "'=1", "-0.5", "-x", "a=b", -1)]
        ["'=1+1", "''=1", '-0.5', "'-x", 'a=b', -1]
    """
    if not isinstance(cell, str) or NUMBER.fullmatch(cell):
        return cell
    # Text that looks guarded is guarded again, so that `unguard_formula` is exact.
    return f"'{cell}" if cell.lstrip("'").startswith(FORMULA_STARTS) else cell


def unguard_formula(cell: str) -> str:
    """Return the text that `guard_formula` was given.

    Examples:
        >>> [unguard_formula(cell) for cell in ("'=1+1", "''=1", "'tis", "-0.5")]
        ['=1+1', "'=1", "'tis", '-0.5']
    """
    is_guarded = cell.startswith("'") and cell.lstrip("'").startswith(FORMULA_STARTS)
    return cell[1:] if is_guarded else cell


def table_content(columns: dict[str, list[object]], path: Path, safe_csv: bool = False) -> bytes:
    """Return a table as bytes: Parquet if `path` ends with .parquet or .pq, else CSV.

    With `safe_csv`, cells of CSV pass `guard_formula`.

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
    rows = [tuple(columns), *zip(*columns.values(), strict=True)]
    writer.writerows([map(guard_formula, row) for row in rows] if safe_csv else rows)
    return text.getvalue().encode()
