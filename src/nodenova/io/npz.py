"""Graphs as npz files: nodenova's own form, and the raw files of PyTorch Geometric's datasets.

PyTorch Geometric's own reader of `Amazon`, `Coauthor` and `CitationFull` makes the features dense:
1.2 GB on Coauthor Physics. Here they stay sparse; the content is the same.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import UNKNOWN, LabelledGraph, number_classes
from nodenova.errors import DatasetError, GraphError, first_line
from nodenova.files.arrays import NUMBERS, check_csr, enough_memory, read_npz
from nodenova.graph import Graph, check_order

CSR_PARTS = ("x_data", "x_indices", "x_indptr", "x_shape")
OPTIONAL = ("train_mask", "val_mask", "test_mask", "node_ids", "feature_names", "class_names")
GRAPH_PARTS = ("edge_weight", "vectors", "given_order")
KNOWN = ("x", *CSR_PARTS, "edge_index", "y", *OPTIONAL, *GRAPH_PARTS)
RAW_PARTS = ("data", "indices", "indptr", "shape")
RAW = (*(f"{matrix}_{part}" for matrix in ("attr", "adj") for part in RAW_PARTS), "labels")
HETEROPHILOUS = ("node_features", "node_labels", "edges")
RAW_ERRORS = (OSError, KeyError, ValueError, TypeError, IndexError)
MAX_UNUSED_CLASSES = 100_000  # of class_names, beyond the number of nodes
MAX_WHOLE = 2**53  # whole numbers below it are exact as floating point


def load_graph(path: str | PathLike[str]) -> LabelledGraph:
    """Read a graph, named after its file, from an npz file.

    Its arrays are `x` (N, d) or its CSR parts `x_data`, `x_indices`, `x_indptr`, `x_shape`;
    `edge_index` (2, E); and optionally `y` (N,), -1 = unknown, and those in `OPTIONAL` and
    `GRAPH_PARTS`. Pickled objects are refused.
    """
    path = Path(path)
    source = path.name
    arrays = read_npz(path, KNOWN, source=source)
    with enough_memory(source):
        return _make_graph(arrays, source)


def _make_graph(arrays: Mapping[str, np.ndarray], source: str) -> LabelledGraph:
    """Check the arrays of an npz file and make a labelled graph of them."""
    if "edge_index" not in arrays:
        raise GraphError(
            f"{source}: edge_index is missing; it has {', '.join(sorted(arrays)) or 'no arrays'}"
        )
    for key in ("feature_names", "class_names"):
        if key in arrays and arrays[key].ndim != 1:
            raise GraphError(
                f"{source}: {key} must be a list of names, it has {arrays[key].ndim} dimensions"
            )
    x = _features(arrays, source)
    names = arrays.get("feature_names")
    if names is not None and len(names) != x.shape[1]:
        raise GraphError(
            f"{source}: feature_names has {len(names):,} names for {x.shape[1]:,} features"
        )
    graph = Graph.of(
        x,
        arrays["edge_index"],
        node_ids=arrays.get("node_ids"),
        feature_names=None if names is None else list(map(str, names.tolist())),
        source=source,
        edge_weight=arrays.get("edge_weight"),
        vectors=arrays.get("vectors"),
    )
    n = graph.num_nodes
    y = _whole_numbers(arrays.get("y", np.full(n, UNKNOWN)))
    class_names = arrays.get("class_names")
    if class_names is None:
        given = number_classes(y, n, source)
    elif len(class_names) > n + MAX_UNUSED_CLASSES:
        raise GraphError(f"{source}: class_names has {len(class_names):,} names for {n:,} nodes")
    else:
        given = tuple(map(str, class_names))
    if "given_order" in arrays:
        order = check_order(arrays["given_order"], graph.num_nodes, source)
        graph = replace(graph, given_order=order)
    train, val, test = (_mask(arrays, f"{part}_mask") for part in ("train", "val", "test"))
    return LabelledGraph(graph, y, given, train, val, test, source)


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


def _features(arrays: Mapping[str, np.ndarray], source: str) -> np.ndarray | sp.csr_array:
    """x, dense or from its CSR parts, which are checked before SciPy gets them."""
    if "x" in arrays:
        x = arrays["x"]
        if x.dtype.kind not in NUMBERS:
            raise GraphError(f"{source}: x is not a table of numbers, it holds {x.dtype}")
        if x.ndim != 2:
            raise GraphError(
                f"{source}: x must have two dimensions (nodes, features), it has {x.ndim}"
            )
        return x
    missing = [part for part in CSR_PARTS if part not in arrays]
    if missing:
        raise GraphError(f"{source}: x is missing, and so are the CSR parts {', '.join(missing)}")
    data, indices, indptr, shape = (arrays[part] for part in CSR_PARTS)
    return _csr(data, indices, indptr, shape, source, "x_")


def _csr(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    shape: np.ndarray,
    source: str,
    prefix: str,
) -> sp.csr_array:
    """A CSR matrix of the arrays of a file, whose names begin with `prefix`."""
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise GraphError(
            f"{source}: {prefix}shape must hold two numbers, "
            f"it has shape {shape.shape} and holds {shape.dtype}"
        )
    size = (int(shape[0]), int(shape[1]))
    names = ", ".join(prefix + part for part in RAW_PARTS[:3])
    where = f"{source}: {names} and {prefix}shape do not fit together"
    check_csr(data, indices, indptr, size, where)
    return sp.csr_array((data, indices, indptr), shape=size)


def _whole_numbers(y: np.ndarray) -> np.ndarray:
    """Class numbers such as 1.0 as integers; everything else as it is."""
    is_float = y.dtype.kind == "f"
    if is_float and (np.abs(y.astype(np.float64)) < MAX_WHOLE).all() and (y == np.rint(y)).all():
        return y.astype(np.int64)
    return y


def _mask(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray | None:
    mask = arrays.get(name)
    if mask is not None and mask.dtype.kind in "iu" and np.isin(mask, (0, 1)).all():
        return mask.astype(bool)
    return mask


def read_raw_npz(path: Path, name: str, num_classes: int) -> LabelledGraph:
    """Read a graph without a published split from CSR parts of features and adjacency.

    The file has `attr_data`, `attr_indices`, `attr_indptr`, `attr_shape` (features), the same four
    parts of `adj` (adjacency) and `labels`. Features become 0 or 1, edges go both ways, and
    self-loops are dropped.
    """
    try:
        arrays = read_npz(path, RAW, source=path.name)
        if missing := [part for part in RAW if part not in arrays]:
            raise GraphError(f"{missing[0]} is missing")
        x, adjacency = _raw_matrix(arrays, "attr"), _raw_matrix(arrays, "adj").tocoo()
        y = _whole_numbers(arrays["labels"].reshape(-1))
        if y.dtype.kind not in "biu":
            raise GraphError(f"labels must be whole numbers, they are {y.dtype}")
        y = y.astype(np.int64)
        x.data = (x.data > 0).astype(np.float32)
        graph = Graph.of(x, np.stack(adjacency.coords), dense=False, source=name)
        if len(y) and int(y.max()) >= num_classes:
            raise GraphError(f"labels hold {int(y.max())}, but there are {num_classes} classes")
        return LabelledGraph(graph, y, tuple(map(str, range(num_classes))), name=name)
    except (*RAW_ERRORS, MemoryError) as error:
        what = f"the raw file {path} cannot be read ({first_line(error)})"
        raise DatasetError(f"{name}: {what}") from error


def read_heterophilous_npz(path: Path, name: str) -> LabelledGraph:
    """Read a graph as Platonov et al. publish it: features, labels, and each pair of nodes once."""
    try:
        arrays = read_npz(path, HETEROPHILOUS, source=path.name)
        if missing := [part for part in HETEROPHILOUS if part not in arrays]:
            raise GraphError(f"{missing[0]} is missing")
        graph = Graph.of(arrays["node_features"], arrays["edges"].T, source=name)
        y = _whole_numbers(arrays["node_labels"])
        return LabelledGraph(graph, y, number_classes(y, graph.num_nodes, name), name=name)
    except (*RAW_ERRORS, MemoryError) as error:
        what = f"the raw file {path} cannot be read ({first_line(error)})"
        raise DatasetError(f"{name}: {what}") from error


def _raw_matrix(arrays: Mapping[str, np.ndarray], name: str) -> sp.csr_array:
    data, indices, indptr, shape = (arrays[f"{name}_{part}"] for part in RAW_PARTS)
    matrix = _csr(data, indices, indptr, shape, "arrays", f"{name}_")
    matrix.sum_duplicates()
    return matrix
