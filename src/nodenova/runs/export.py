"""A graph with its classes, or its embeddings, written in the forms that other tools read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
import torch

from nodenova.errors import SettingError, StorageError
from nodenova.files.atomic import write_atomically
from nodenova.files.content import guard_formula, table_content
from nodenova.files.folders import change_folder
from nodenova.graph import Graph
from nodenova.io.frames import TypedColumn, ValueColumn, is_nested, to_text
from nodenova.io.tables import JSON_LINES, Table, is_json, open_json, read_table
from nodenova.model.model import Model
from nodenova.model.saving import save_model
from nodenova.nn.encode_cache import shared_passes
from nodenova.progress import no_progress
from nodenova.runs.new_graph import PredictInput
from nodenova.runs.predictions import class_columns, predictions_of

PARQUET = (".parquet", ".pq")
TABLES = (".csv", ".tsv", *PARQUET, *JSON_LINES)


def _node_columns(what: PredictInput, fits_none: np.ndarray | None) -> dict[str, list[object]]:
    """Columns of predictions.csv, without `unsure`: an export has no limit of confidence."""
    columns = what.predict(fits_none=fits_none).columns()
    del columns["unsure"]
    return columns


def _edge_columns(graph: Graph) -> dict[str, list[object]]:
    """Every undirected edge once: source, target and, if edges have them, weight."""
    once = graph.edge_index[0] < graph.edge_index[1]
    ends = (graph.node_ids[end].tolist() for end in graph.edge_index[:, once])
    columns = dict(zip(("source", "target"), ends, strict=True))
    if graph.edge_weight is not None:
        columns["weight"] = graph.edge_weight[once].tolist()
    return columns


def to_networkx(what: PredictInput, path: Path, fits_none: np.ndarray | None = None) -> None:
    """Write GraphML: nodes with the columns of predictions.csv, each edge once."""
    try:
        import networkx as nx
    except ImportError:
        raise SettingError(
            "--to networkx needs NetworkX: pip install 'nodenova[networkx]'"
        ) from None
    columns, edges = _node_columns(what, fits_none), _edge_columns(what.graph.as_given())
    graph = nx.Graph()
    for node, *values in zip(*columns.values(), strict=True):
        graph.add_node(node, **dict(zip(list(columns)[1:], values, strict=True)))
    for source, target, *weight in zip(*edges.values(), strict=True):
        graph.add_edge(source, target, **dict(zip(["weight"], weight, strict=False)))
    content = io.BytesIO()
    nx.write_graphml(graph, content)
    write_atomically(_file(path), content.getvalue())


def to_pyg(what: PredictInput, path: Path, fits_none: np.ndarray | None = None) -> None:
    """Write a dict of tensors for `Data.from_dict(torch.load(path, weights_only=True))`.

    Keys are x, edge_index, pred, prob and z; edge_weight, label (id of a class, -1 for none) and
    fits_none where there are any.
    """
    model, graph, labels = what.model, what.graph, what.labels
    given = graph.as_given()
    x = torch.from_numpy(given.x) if isinstance(given.x, np.ndarray) else _sparse(given)
    ids = np.array([*(c.id for c in model.classes), -1])
    with shared_passes():
        p = model.predict_proba(graph)
        row = p.argmax(axis=1) if labels is None else labels.rows(model, p)
        of_nodes = {"pred": ids[row], "prob": p, "z": model.embed(graph)}
    if labels is not None:
        of_nodes["label"] = ids[labels.label_rows(model, p)]
    if fits_none is not None:
        of_nodes["fits_none"] = fits_none
    parts = {"x": x, "edge_index": torch.from_numpy(given.edge_index)}
    if given.edge_weight is not None:
        parts["edge_weight"] = torch.from_numpy(given.edge_weight)
    parts |= {
        name: torch.from_numpy(graph.in_given_order(values)) for name, values in of_nodes.items()
    }
    content = io.BytesIO()
    torch.save(parts, content)
    write_atomically(_file(path), content.getvalue())


def to_csv(
    what: PredictInput, path: Path, fits_none: np.ndarray | None = None, safe_csv: bool = False
) -> None:
    """Write a folder with nodes.csv and edges.csv."""
    if path.exists() and not path.is_dir():
        raise StorageError(f"{path} is a file, and --to csv writes a folder")
    tables = {
        "nodes.csv": _node_columns(what, fits_none),
        "edges.csv": _edge_columns(what.graph.as_given()),
    }
    with change_folder(path) as change:
        for name, columns in tables.items():
            write_atomically(change.new / name, table_content(columns, path / name, safe_csv))


def to_embeddings(
    what: PredictInput, path: Path, fits_none: np.ndarray | None = None, safe_csv: bool = False
) -> None:
    """Write the embedding of every node: an npz with node_ids and z, or a table with z0, z1, …"""
    graph = what.graph
    z = graph.in_given_order(what.model.embed(graph))
    node_ids = graph.in_given_order(graph.node_ids)
    if path.suffix.lower() == ".npz":
        content = io.BytesIO()
        np.savez_compressed(content, node_ids=node_ids, z=z)
        write_atomically(_file(path), content.getvalue())
        return
    columns: dict[str, list[object]] = {"node": node_ids.tolist()}
    columns |= {f"z{i}": z[:, i].tolist() for i in range(z.shape[1])}
    write_atomically(_file(path), table_content(columns, path, safe_csv))


EXPORTS: dict[str, Callable[..., None]] = {
    "networkx": to_networkx,
    "pyg": to_pyg,
    "csv": to_csv,
    "embeddings": to_embeddings,
}
CSV_EXPORTS = ("csv", "embeddings")  # of these
FORMS = ("table", *EXPORTS, "model")


def export_input(
    what: PredictInput,
    to: str,
    path: Path,
    fits_none: np.ndarray | None = None,
    table: str | PathLike[str] | None = None,
    settled: float = 0.0,
    safe_csv: bool = False,
) -> list[str]:
    """Write a graph in one of `FORMS`, or the model; return notes on what was assumed."""
    if to not in FORMS:
        raise SettingError(f"--to is one of {', '.join(FORMS)}, not {to!r}")
    if to == "model":
        return export_model(what.model, path)
    if to == "table":
        if table is None:
            raise SettingError("--to table needs your table of nodes: give --table FILE")
        found = what.predict(fits_none=fits_none)
        return export_table(found, table, path, settled=settled, safe_csv=safe_csv)
    EXPORTS[to](what, path, fits_none, **({"safe_csv": safe_csv} if to in CSV_EXPORTS else {}))
    return []


def export_model(model: Model, path: Path) -> list[str]:
    """Write the model folder alone; return notes on what it discloses."""
    save_model(model, path)
    notes = ["the model holds no graph, no node id and no label of a node"]
    if model.recipe is not None:
        notes.append("it holds words and category values of your columns, rare ones too")
    elif model.fit_signature is not None and model.fit_signature.feature_names is not None:
        notes.append("it holds the names of the features")
    return notes


def export_table(
    found: Any,
    table: str | PathLike[str],
    path: Path,
    *,
    id_column: str | None = None,
    settled: float = 0.0,
    safe_csv: bool = False,
) -> list[str]:
    """Write a user's table of nodes with the classes beside it, as `with_classes`; return notes."""
    ending = path.suffix.lower()
    if ending not in TABLES:
        raise SettingError(f"{path}: a table is written as {', '.join(TABLES)}, by its name")
    content = read_table(table)
    replaced, added, notes = class_columns(content, predictions_of(found), id_column, settled)
    own = _typed_columns(content, Path(table))
    columns = {name: values for name, values in own.items() if name not in replaced}
    write_atomically(_file(path), file_content(columns | added, path, safe_csv))
    return notes


def _typed_columns(table: Table, path: Path) -> dict[str, Any]:
    """The columns of a table with values of their own types."""
    if is_json(path):
        columns = open_json(path, table.source, None, no_progress).columns()[1]
        return dict(zip(table.columns, columns.values(), strict=True))
    return {name: cells.series if isinstance(cells, TypedColumn) else cells.values
            if isinstance(cells, ValueColumn) else cells
            for name, cells in table.columns.items()}  # fmt: skip


def file_content(columns: Mapping[str, Any], path: Path, safe_csv: bool = False) -> bytes:
    """A table as the content of a file: CSV (nested cells are JSON), TSV, Parquet or JSON lines.

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
        records = (dict(zip(lists, map(_json_value, row), strict=True)) for row in rows)
        lines = [json.dumps(one, ensure_ascii=False, allow_nan=False) + "\n" for one in records]
        return "".join(lines).encode()
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t" if ending == ".tsv" else ",", lineterminator="\n")
    cells = [list(lists), *([_cell(value) for value in row] for row in rows)]
    writer.writerows([map(guard_formula, row) for row in cells] if safe_csv else cells)
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


def _json_value(value: Any) -> object:
    """A cell as a value of JSON."""
    if isinstance(value, dict):
        return {str(key): _json_value(part) for key, part in value.items()}
    if is_nested(value):
        return [_json_value(part) for part in value]
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    return to_text(value) or None


def _cell(value: Any) -> str:
    """A cell as text of CSV."""
    return (
        json.dumps(_json_value(value), ensure_ascii=False) if is_nested(value) else to_text(value)
    )


def _sparse(graph: Graph) -> torch.Tensor:
    coo = sp.coo_array(graph.x)
    places = torch.from_numpy(np.stack(coo.coords).astype(np.int64))
    return torch.sparse_coo_tensor(
        places, torch.from_numpy(coo.data), coo.shape, check_invariants=True
    )


def _file(path: Path) -> Path:
    if path.is_dir():
        raise StorageError(f"{path} is a folder, and --out must name a file")
    return path
