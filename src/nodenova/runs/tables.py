"""A user's own table of nodes with what a model says of each beside it; readable again as a graph.

What comes in goes out: a data frame as one of the same library, a file as a file of any form.

Tables as files: CSV, TSV, Parquet or JSON lines, by their names.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np

from nodenova.errors import GraphError, SettingError, StorageError
from nodenova.files import write_atomically
from nodenova.graph import Graph
from nodenova.io.column_guessing import ID_NAMES, guess_id, pick_column
from nodenova.io.frames import TypedColumn, ValueColumn, is_frame, is_nested, to_text
from nodenova.io.nodes import EXPORT_COLUMNS, PREFIX, find_export_columns
from nodenova.io.tables import JSON_LINES, Table, is_json, open_json, read_table
from nodenova.model.model import Model
from nodenova.progress import no_progress
from nodenova.review.user_labels import UserLabels
from nodenova.runs.predictions import Predictions

PARQUET = (".parquet", ".pq")
ENDINGS = (".csv", ".tsv", *PARQUET, *JSON_LINES)


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
    if ending in JSON_LINES:
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
    if is_nested(value):
        return [_plain(part) for part in value]
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    return to_text(value) or None


def _cell(value: Any) -> str:
    """A value as CSV has it; several as JSON."""
    return json.dumps(_plain(value), ensure_ascii=False) if is_nested(value) else to_text(value)


KINDS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}


def predictions_of(found: Any) -> Predictions:
    """Predictions of a fitted `NodeDiscoverer`, of a `SavedRun` or `DiscoveryRun`, or as they are.

    Raises:
        SettingError: It is something else.
    """
    found = getattr(found, "run_", getattr(found, "run", found))
    found = getattr(found, "predictions", found)
    if not isinstance(found, Predictions):
        raise SettingError(
            "classes come from a fitted NodeDiscoverer, an opened run or Predictions, "
            f"not from {type(found).__name__}"
        )
    return found


def prediction_frame(found: Any, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
    """A data frame of what a model says, a row a node, with the columns of predictions.csv.

    Args:
        found: A fitted `NodeDiscoverer`, a `DiscoveryRun` or `Predictions`.
        backend: Whose data frame.

    Raises:
        SettingError: The backend is none of these, or not installed.

    Examples:
        >>> import nodenova as nova
        >>> data = nova.synthetic(nodes=60, classes=3, words=40)
        >>> y = [c if c < 2 else -1 for c in data.y.tolist()]
        >>> found = nova.NodeDiscoverer(num_new=1).fit(data.graph, y)
        >>> list(nova.prediction_frame(found).columns[:5])
        ['node', 'class', 'name', 'kind', 'probability']
    """
    if backend not in KINDS:
        known = ", ".join(KINDS)
        raise SettingError(f"prediction_frame() knows the backends {known}, not {backend!r}")
    try:
        return nw.from_dict(predictions_of(found).columns(), backend=backend).to_native()
    except ImportError:
        made = f"{backend} {KINDS[backend]}"
        how = f"pip install {backend}"
        raise SettingError(
            f"prediction_frame() makes a {made} and needs {backend}: {how}"
        ) from None


def with_classes(
    table: Any, found: Any, *, id_column: str | None = None, settled: float = 0.0
) -> Any:
    """A table of nodes with class, name, kind and probability beside it.

    `load_graph` reads what comes back: class is the label then, and none of the four is a feature.

    Args:
        table: A data frame of pandas, polars or Arrow whose rows are nodes that were predicted.
        found: A fitted `NodeDiscoverer`, a `DiscoveryRun` or `Predictions`.
        id_column: By a usual name, else the one that has the ids of the nodes, unless given.
        settled: Nodes whose class is less probable and that the user did not label have none, so
            that they are unlabelled when the table is read again.

    Returns:
        A data frame of the same library. Where the table has one of these columns already, the four
        are called nodenova_class, …; those of an earlier call are replaced.

    Raises:
        SettingError: The table is no data frame.
        GraphError: A row is of no node that was predicted.

    Examples:
        >>> import nodenova as nova
        >>> import pandas as pd
        >>> data = nova.synthetic(nodes=60, classes=3, words=40)
        >>> nodes = pd.DataFrame({"id": range(60), "size": [i % 7 for i in range(60)]})
        >>> y = [c if c < 2 else -1 for c in data.y.tolist()]
        >>> found = nova.NodeDiscoverer(num_new=1).fit(data.graph, y)
        >>> list(nova.with_classes(nodes, found).columns)
        ['id', 'size', 'class', 'name', 'kind', 'probability']
    """
    if not is_frame(table):
        raise SettingError(
            f"a table is a data frame (pandas, polars, Arrow), not {type(table).__name__}"
        )
    before, added, _ = _beside(
        read_table(table, source="table"), predictions_of(found), id_column, settled
    )
    frame = nw.from_native(table, eager_only=True)
    names = dict(zip(read_names(frame), frame.columns, strict=True))
    frame = frame.drop([names[name] for name in before])
    series = [
        nw.new_series(name, values, backend=frame.implementation) for name, values in added.items()
    ]
    return frame.with_columns(*series).to_native()


def read_names(frame: nw.DataFrame[Any]) -> list[str]:
    """Names of the columns as tables have them: without spaces around them."""
    return [str(name).strip() for name in frame.columns]


def export_table(
    found: Any,
    table: str | PathLike[str],
    path: Path,
    *,
    id_column: str | None = None,
    settled: float = 0.0,
) -> list[str]:
    """Write a user's table of nodes with the classes beside it.

    Args:
        found: As in `with_classes`.
        table: The file that the nodes came from.
        path: Where to: .csv, .tsv, .parquet, .pq, .jsonl or .ndjson, whatever the table is.
        id_column: As in `with_classes`.
        settled: As in `with_classes`.

    Returns:
        What was assumed, a sentence each.

    Raises:
        SettingError: The name has none of these endings, or something is not installed.
        GraphError: The table cannot be read, or a row is of no node that was predicted.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise SettingError(f"{path}: a table is written as {', '.join(ENDINGS)}, by its name")
    if path.is_dir():
        raise StorageError(f"{path} is a folder, and --out must name a file")
    content = read_table(table)
    before, added, notes = _beside(content, predictions_of(found), id_column, settled)
    columns: dict[str, Any] = {
        name: values for name, values in _values(content, Path(table)).items() if name not in before
    }
    columns |= added
    write_atomically(path, file_content(columns, path))
    return notes


def to_table(
    model: Model,
    graph: Graph,
    path: Path,
    names: Sequence[str] | None = None,
    labels: UserLabels | None = None,
    fits_none: np.ndarray | None = None,
    *,
    table: str | PathLike[str],
    settled: float = 0.0,
) -> list[str]:
    """`export_table` with what the other exports are given."""
    found = Predictions.of(model, graph, names=names, labels=labels, fits_none=fits_none)
    return export_table(found, table, path, settled=settled)


def _beside(
    table: Table, found: Predictions, id_column: str | None, settled: float
) -> tuple[tuple[str, ...], dict[str, list[object]], list[str]]:
    """Columns of an earlier call, those to add, and what was assumed."""
    if not 0 <= settled <= 1:
        raise SettingError(f"settled is a probability from 0 to 1, not {settled}")
    notes: list[str] = []
    earlier = find_export_columns(table)
    before = () if earlier is None else earlier.all
    nodes = [str(node) for node in found.node_ids.tolist()]
    column = pick_column(table, id_column, ID_NAMES, "id_column", notes)
    column = guess_id(table, before, nodes, notes) if column is None else column
    ids = [cell.strip() for cell in table.columns[column]]
    place = {node: row for row, node in enumerate(nodes)}
    strange = [node for node in ids if node not in place]
    if strange:
        raise GraphError(
            f"{table.source}: {len(strange):,} of {len(ids):,} rows are of no node of the run, "
            f"first: {strange[0]!r} in column {column!r}"
        )
    said = found.columns()
    rows = [place[node] for node in ids]
    sure = found.probability >= settled
    if settled and found.fits_none is not None:
        sure &= ~found.fits_none
    shown = [bool(said["label"][row] or sure[row]) for row in rows]
    own = [name for name in table.columns if name not in before]
    taken = [role for role in EXPORT_COLUMNS if role in own]
    prefix = PREFIX if taken else ""
    if taken:
        names = ", ".join(f"{PREFIX}{role}" for role in EXPORT_COLUMNS)
        notes.append(f"{table.source}: has a column {taken[0]!r} of its own; added: {names}")
    added: dict[str, list[object]] = {}
    for role in EXPORT_COLUMNS:
        cells = zip(rows, shown, strict=True)
        always = role == "probability"
        added[prefix + role] = [said[role][row] if on or always else None for row, on in cells]
    return before, added, notes


def _values(table: Table, path: Path) -> Mapping[str, Any]:
    """What the cells of each column hold, with the types that they have."""
    if is_json(path):
        columns = open_json(path, table.source, None, no_progress).columns()[1]
        return dict(zip(table.columns, columns.values(), strict=True))
    return {name: cells.series if isinstance(cells, TypedColumn) else cells.values
            if isinstance(cells, ValueColumn) else cells
            for name, cells in table.columns.items()}  # fmt: skip
