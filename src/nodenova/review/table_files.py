"""Tables as files: CSV, TSV, Parquet or JSON lines, by their names."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from nodenova.errors import SettingError
from nodenova.io.frames import is_several, text_of
from nodenova.io.json_files import LINES

PARQUET = (".parquet", ".pq")
ENDINGS = (".csv", ".tsv", *PARQUET, *LINES)


def file_content(columns: Mapping[str, Any], path: Path) -> bytes:
    """A table as a file of the form that its name says.

    Args:
        columns: By name, lists or series. Cells that hold several values are JSON in CSV.
        path: Of the file, which is not written here.

    Raises:
        SettingError: Parquet is asked for and pyarrow is not installed.

    Examples:
        >>> file_content({"id": ["a", "b"], "v": [[0.5, 1], None]}, Path("nodes.jsonl"))
        b'{"id": "a", "v": [0.5, 1]}\\n{"id": "b", "v": null}\\n'
    """
    ending = path.suffix.lower()
    if ending in PARQUET:
        return _parquet(columns, path)
    lists = {
        name: values.to_list() if isinstance(values, nw.Series) else list(values)
        for name, values in columns.items()
    }
    rows = zip(*lists.values(), strict=True)
    if ending in LINES:
        lines = (dict(zip(lists, map(_plain, row), strict=True)) for row in rows)
        made = [json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines]
        return "".join(made).encode()
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t" if ending == ".tsv" else ",", lineterminator="\n")
    writer.writerow(lists)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _parquet(columns: Mapping[str, Any], path: Path) -> bytes:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise SettingError(
            f"{path}: Parquet needs pyarrow: pip install 'nodenova[parquet]'"
        ) from None
    arrays = {}
    for name, values in columns.items():
        if isinstance(values, nw.Series):
            arrays[name] = values.to_arrow()
            continue
        try:
            arrays[name] = pa.array(values)
        except pa.ArrowException:  # values of several types, as JSON may have them
            arrays[name] = pa.array([None if value is None else _cell(value) for value in values])
    content = io.BytesIO()
    pq.write_table(pa.table(arrays), content)
    return content.getvalue()


def _plain(value: Any) -> object:
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if is_several(value):
        return [_plain(part) for part in value]
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    return text_of(value) or None


def _cell(value: Any) -> str:
    """A value as CSV has it; several as JSON."""
    return json.dumps(_plain(value), ensure_ascii=False) if is_several(value) else text_of(value)
