"""A graph with its classes, or its embeddings, written in the forms that other tools read."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

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
from nodenova.review.node_text import SEPARATOR, texts_of
from nodenova.review.page_data import MAX_NODES, MAX_SAMPLED, sample_nodes
from nodenova.runs.hub import disclosures
from nodenova.runs.new_graph import PredictInput
from nodenova.runs.onnx_head import head_as_onnx
from nodenova.runs.predictions import class_columns, predictions_of

PARQUET = (".parquet", ".pq")
TABLES = (".csv", ".tsv", *PARQUET, *JSON_LINES)
BLOCK = 1000  # nodes whose texts are made at a time
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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


def to_atlas(
    what: PredictInput, path: Path, fits_none: np.ndarray | None = None, safe_csv: bool = False
) -> list[str]:
    """Write a table for Embedding Atlas: the nodes with their places on the map, class and text."""
    if path.suffix.lower() not in (*PARQUET, ".csv"):
        raise SettingError(f"{path}: --to atlas writes .parquet or .csv, by its name")
    columns, notes = _map_columns(what, fits_none)
    write_atomically(_file(path), table_content(columns, path, safe_csv))
    return notes


def to_datamapplot(
    what: PredictInput, path: Path, fits_none: np.ndarray | None = None
) -> list[str]:
    """Write an npz with what `datamapplot.create_plot` takes: data_map, labels and hover_text.

    Nodes that fit no class are "Unlabelled", as DataMapPlot calls noise.
    """
    columns, notes = _map_columns(what, fits_none)
    none = columns.get("fits_none", ["no"] * len(columns["x"]))
    labels = [
        "Unlabelled" if one == "yes" else str(name)
        for one, name in zip(none, columns["name"], strict=True)
    ]
    content = io.BytesIO()
    np.savez_compressed(
        content,
        data_map=np.array([columns["x"], columns["y"]], dtype=np.float32).T,
        labels=np.array(labels, dtype=str),
        hover_text=np.array(columns["text"], dtype=str),
        node_ids=np.array([str(node) for node in columns["node"]], dtype=str),
        probability=np.array(columns["probability"], dtype=np.float32),
    )
    write_atomically(_file(path), content.getvalue())
    return notes


def to_gephi(what: PredictInput, path: Path, fits_none: np.ndarray | None = None) -> list[str]:
    """Write GEXF: nodes with the columns of predictions.csv and their places on the map."""
    columns, edges = _node_columns(what, fits_none), _edge_columns(what.graph.as_given())
    places, notes = _places(what)
    kinds = {"class": "integer", "probability": "double"}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3">',
        '<graph defaultedgetype="undirected"><attributes class="node">',
    ]
    names = list(columns)[1:]
    for name in names:
        kind = kinds.get(name, "string")
        lines.append(f'<attribute id="{name}" title="{name}" type="{kind}"/>')
    lines.append("</attributes><nodes>")
    rows = zip(*columns.values(), what.graph.in_given_order(places).tolist(), strict=True)
    for node, *cells, (x, y) in rows:
        if not _is_xml(str(node)):
            raise SettingError(f"--to gephi: GEXF cannot hold the id {str(node)!r}")
        values = "".join(
            f'<attvalue for="{name}" value={_xml(cell)}/>'
            for name, cell in zip(names, cells, strict=True)
        )
        at = "" if x != x else f'<viz:position x="{1000 * x:.2f}" y="{1000 * y:.2f}" z="0.0"/>'
        key = _xml(node)
        lines.append(f"<node id={key} label={key}><attvalues>{values}</attvalues>{at}</node>")
    lines.append("</nodes><edges>")
    for number, (source, target, *weight) in enumerate(zip(*edges.values(), strict=True)):
        heavy = f' weight="{weight[0]:.9g}"' if weight else ""
        ends = f"source={_xml(source)} target={_xml(target)}"
        lines.append(f'<edge id="{number}" {ends}{heavy}/>')
    lines.append("</edges></graph></gexf>\n")
    write_atomically(_file(path), "\n".join(lines).encode())
    return notes


def _is_xml(text: str) -> bool:
    """Whether XML can hold a text: it has no control characters but tab and ends of line."""
    return NO_XML.search(text) is None


def _xml(value: object) -> str:
    """A value as a quoted attribute of XML."""
    return quoteattr(NO_XML.sub("\ufffd", str(value)))


def _places(what: PredictInput) -> tuple[np.ndarray, list[str]]:
    """(N, 2) places of the nodes on the map, in the order of the graph, and notes.

    The layout of a large graph has a sample of the nodes; the others are NaN.
    """
    graph, run = what.graph, what.run
    is_own = run is not None and run.graph is graph
    z = run.embeddings if run is not None and is_own else what.model.embed(graph)
    chosen, notes = np.arange(len(z)), []
    if len(z) > MAX_NODES:
        p = run.outputs[1] if run is not None and is_own else what.model.predict_proba(graph)
        row, num_classes = p.argmax(axis=1), p.shape[1]
        chosen = sample_nodes(row, num_classes, MAX_SAMPLED, np.zeros(0, dtype=np.int64))
        notes = [f"the map has {len(chosen):,} of {len(z):,} nodes, each class by its share"]
    xy = np.full((len(z), 2), np.nan)
    xy[chosen] = what.layout(z if len(chosen) == len(z) else z[chosen])
    return xy, notes


def _map_columns(
    what: PredictInput, fits_none: np.ndarray | None
) -> tuple[dict[str, list[object]], list[str]]:
    """Columns x, y, those of predictions.csv, and text, of the nodes on the map; and notes."""
    graph, run = what.graph, what.run
    places, notes = _places(what)
    xy = graph.in_given_order(places)
    rows = np.flatnonzero(~np.isnan(xy[:, 0]))
    given = np.arange(len(xy)) if graph.given_order is None else graph.given_order
    shown = run.node_texts if run is not None and run.graph is graph else {}
    texts = []
    for start in range(0, len(rows), BLOCK):  # a few at a time are not shortened
        of_nodes = texts_of(graph, shown, given[rows[start : start + BLOCK]])
        cells = zip(*of_nodes.values(), strict=True) if of_nodes else ()
        texts += [SEPARATOR.join(filter(None, each)) for each in cells]
    nodes = _node_columns(what, fits_none)
    columns: dict[str, list[object]] = {
        "x": xy[rows, 0].tolist(),
        "y": xy[rows, 1].tolist(),
        **{name: [cells[row] for row in rows.tolist()] for name, cells in nodes.items()},
    }
    columns["text"] = list(texts) if texts else [str(node) for node in columns["node"]]
    return columns, [*notes, "the file holds ids and texts of nodes"]


EXPORTS: dict[str, Callable[..., list[str] | None]] = {
    "networkx": to_networkx,
    "pyg": to_pyg,
    "csv": to_csv,
    "embeddings": to_embeddings,
    "atlas": to_atlas,
    "datamapplot": to_datamapplot,
    "gephi": to_gephi,
}
CSV_EXPORTS = ("csv", "embeddings", "atlas")  # of these
OF_MODEL = ("onnx", "model")  # forms without a graph
FORMS = ("table", *EXPORTS, *OF_MODEL)


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
    if to in OF_MODEL:
        return export_model(what.model, path, to, what.names, what.shifts)
    if to == "table":
        if table is None:
            raise SettingError("--to table needs your table of nodes: give --table FILE")
        found = what.predict(fits_none=fits_none)
        return export_table(found, table, path, settled=settled, safe_csv=safe_csv)
    more = {"safe_csv": safe_csv} if to in CSV_EXPORTS else {}
    return EXPORTS[to](what, path, fits_none, **more) or []


def export_model(
    model: Model,
    path: Path,
    to: str = "model",
    names: Sequence[str] | None = None,
    shifts: Sequence[float | None] = (),
) -> list[str]:
    """Write the model alone, as a folder or as ONNX; return notes on what it discloses."""
    if to == "onnx":
        names = model.class_names if names is None else names
        write_atomically(_file(path), head_as_onnx(model, names, shifts))
        return [
            "the input is the embedding of a node, as --to embeddings writes it",
            "the file holds no graph, no node id and no label of a node",
        ]
    save_model(model, path)
    return disclosures(model)


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
