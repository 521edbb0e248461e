"""Graphs as npz files: nodenova's own form, and the raw files of PyTorch Geometric's datasets.

PyTorch Geometric's own reader of `Amazon`, `Coauthor` and `CitationFull` makes the features dense:
1.2 GB on Coauthor Physics. Here they stay sparse; the content is the same.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import UNKNOWN, LabelledGraph
from nodenova.errors import DatasetError, GraphError, first_line
from nodenova.graph import Graph

CSR_PARTS = ("x_data", "x_indices", "x_indptr", "x_shape")
OPTIONAL = ("train_mask", "val_mask", "test_mask", "node_ids", "feature_names", "class_names")
GRAPH_PARTS = ("edge_weight", "vectors")
KNOWN = ("x", *CSR_PARTS, "edge_index", "y", *OPTIONAL, *GRAPH_PARTS)
RAW_PARTS = ("data", "indices", "indptr", "shape")
RAW_ERRORS = (
    OSError, EOFError, KeyError, ValueError, TypeError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def load_graph(path: str | PathLike[str]) -> LabelledGraph:
    """Read a graph, named after its file, from an npz file.

    Its arrays are `x` (N, d) or its CSR parts `x_data`, `x_indices`, `x_indptr`, `x_shape`;
    `edge_index` (2, E); and optionally `y` (N,), -1 = unknown, and those in `OPTIONAL` and
    `GRAPH_PARTS`. Pickled objects are refused.
    """
    path = Path(path)
    arrays = _read(path)
    source = path.name
    if "edge_index" not in arrays:
        raise GraphError(
            f"{source}: edge_index is missing; it has {', '.join(sorted(arrays)) or 'no arrays'}"
        )
    for key in ("feature_names", "class_names"):
        if key in arrays and arrays[key].ndim != 1:
            raise GraphError(
                f"{source}: {key} must be a list of names, it has {arrays[key].ndim} dimensions"
            )
    names = arrays.get("feature_names")
    graph = Graph.of(
        _features(arrays, source),
        arrays["edge_index"],
        node_ids=arrays.get("node_ids"),
        feature_names=None if names is None else [str(name) for name in names],
        source=source,
        edge_weight=arrays.get("edge_weight"),
        vectors=arrays.get("vectors"),
    )
    y = arrays.get("y", np.full(graph.num_nodes, UNKNOWN))
    if np.issubdtype(y.dtype, np.floating) and np.isfinite(y).all() and (y == np.rint(y)).all():
        y = y.astype(np.int64)
    highest = int(y.max()) if y.size and np.issubdtype(y.dtype, np.integer) else -1
    class_names = arrays.get("class_names", np.arange(highest + 1))
    train, val, test = (_mask(arrays, f"{part}_mask") for part in ("train", "val", "test"))
    return LabelledGraph(graph, y, tuple(map(str, class_names)), train, val, test, source)


def graph_npz(graph: Graph) -> bytes:
    """Return the content of an npz file that `load_graph` reads: the graph, without labels."""
    x = graph.x
    arrays = {"edge_index": graph.edge_index, "node_ids": graph.node_ids}
    if isinstance(x, np.ndarray):
        arrays["x"] = x
    else:
        parts = (x.data, x.indices, x.indptr, np.array(x.shape))
        arrays |= dict(zip(CSR_PARTS, parts, strict=True))
    for name in GRAPH_PARTS:
        if getattr(graph, name) is not None:
            arrays[name] = getattr(graph, name)
    if graph.feature_names is not None:
        arrays["feature_names"] = np.array(graph.feature_names)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def _read(path: Path) -> Mapping[str, np.ndarray]:
    if not path.is_file():
        raise GraphError(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise GraphError(
                    f"{path.name}: a single array, not an npz archive with x, edge_index and y"
                )
            return {name: archive[name] for name in archive.files if name in KNOWN}
    # zipfile raises NotImplementedError for a compression that it does not know.
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as error:
        raise GraphError(f"{path.name}: not a readable npz file ({error})") from error
    except ValueError as error:
        if isinstance(error, GraphError):
            raise
        raise GraphError(
            f"{path.name}: holds Python objects or damaged arrays; only plain arrays are read"
        ) from error


def _features(arrays: Mapping[str, np.ndarray], source: str) -> object:
    if "x" in arrays:
        return arrays["x"]
    missing = [part for part in CSR_PARTS if part not in arrays]
    if missing:
        raise GraphError(f"{source}: x is missing, and so are the CSR parts {', '.join(missing)}")
    shape = arrays["x_shape"]
    if shape.shape != (2,):
        raise GraphError(f"{source}: x_shape must hold two numbers, it has shape {shape.shape}")
    try:
        parts = (arrays["x_data"], arrays["x_indices"], arrays["x_indptr"])
        matrix = sp.csr_array(parts, shape=(int(shape[0]), int(shape[1])))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise GraphError(
            f"{source}: x_data, x_indices, x_indptr and x_shape do not fit together ({error})"
        ) from error
    return matrix


def _mask(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray | None:
    mask = arrays.get(name)
    if mask is not None and np.issubdtype(mask.dtype, np.integer) and np.isin(mask, (0, 1)).all():
        return mask.astype(bool)
    return mask


def read_raw_npz(path: Path, name: str, num_classes: int) -> LabelledGraph:
    """Read a graph without a published split from CSR parts of features and adjacency.

    The file has `attr_data`, `attr_indices`, `attr_indptr`, `attr_shape` (features), the same four
    parts of `adj` (adjacency) and `labels`. Features become 0 or 1, edges go both ways, and
    self-loops are dropped.
    """
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            x, adjacency = _raw_matrix(archive, "attr"), _raw_matrix(archive, "adj").tocoo()
            y = np.asarray(archive["labels"]).reshape(-1).astype(np.int64)
        x.data = (x.data > 0).astype(np.float32)
        graph = Graph.of(x, np.stack(adjacency.coords), dense=False, source=name)
        if len(y) and int(y.max()) >= num_classes:
            raise GraphError(f"labels hold {int(y.max())}, but there are {num_classes} classes")
        return LabelledGraph(graph, y, tuple(map(str, range(num_classes))), name=name)
    except RAW_ERRORS as error:
        what = f"the raw file {path} cannot be read ({first_line(error)})"
        raise DatasetError(f"{name}: {what}") from error


def _raw_matrix(archive: np.lib.npyio.NpzFile, name: str) -> sp.csr_array:
    data, indices, indptr, shape = (archive[f"{name}_{part}"] for part in RAW_PARTS)
    matrix = sp.csr_array((data, indices, indptr), shape=(int(shape[0]), int(shape[1])))
    matrix.check_format(full_check=True)
    matrix.sum_duplicates()
    return matrix
