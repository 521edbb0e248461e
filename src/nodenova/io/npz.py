"""Raw files of PyTorch Geometric's `Amazon`, `Coauthor` and `CitationFull`: one npz of CSR parts.

PyTorch Geometric's own reader makes the features dense: 1.2 GB on Coauthor Physics. Here they stay
sparse; what is read is the same.

Graphs as one npz file: a form users bring in, and the one that ships with the package.
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
from nodenova.errors import DatasetError, GraphError
from nodenova.graph import Graph

CSR_PARTS = ("x_data", "x_indices", "x_indptr", "x_shape")
OPTIONAL = ("train_mask", "val_mask", "test_mask", "node_ids", "feature_names", "class_names")
BESIDE = ("edge_weight", "vectors")  # of a graph
KNOWN = ("x", *CSR_PARTS, "edge_index", "y", *OPTIONAL, *BESIDE)


def load_graph(path: str | PathLike[str]) -> LabelledGraph:
    """Read a graph from an npz file.

    Args:
        path: A file with the arrays `x` (N, d), or its CSR parts `x_data`, `x_indices`, `x_indptr`,
            `x_shape`; `edge_index` (2, E); `y` (N,) with -1 for unknown (all unknown when left
            out); optionally `train_mask`, `val_mask`, `test_mask`, `node_ids`, `feature_names`,
            `class_names`, `edge_weight` (E,) and `vectors` (N, k) of texts.

    Returns:
        The graph, called by the name of its file.

    Raises:
        GraphError: The file is damaged or holds pickled objects, an array is missing, or two arrays
            do not fit together.
    """
    path = Path(path)
    arrays = _read(path)
    source = path.name
    if "edge_index" not in arrays:
        raise GraphError(
            f"{source}: edge_index is missing; it has {', '.join(sorted(arrays)) or 'no arrays'}"
        )
    for listed in ("feature_names", "class_names"):
        if listed in arrays and arrays[listed].ndim != 1:
            raise GraphError(
                f"{source}: {listed} must be a list of names, "
                f"it has {arrays[listed].ndim} dimensions"
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
    return LabelledGraph(
        graph,
        y,
        tuple(str(name) for name in class_names),
        train=_mask(arrays, "train_mask"),
        val=_mask(arrays, "val_mask"),
        test=_mask(arrays, "test_mask"),
        name=source,
    )


def graph_npz(graph: Graph) -> bytes:
    """The content of an npz file that `load_graph` reads: the graph, with no label in it.

    Examples:
        >>> import nodenova as nova
        >>> content = graph_npz(nova.Graph.of([[1.0], [3.0]], [[0], [1]]))
        >>> sorted(np.load(io.BytesIO(content)))
        ['edge_index', 'node_ids', 'x']
    """
    x = graph.x
    arrays = {"edge_index": graph.edge_index, "node_ids": graph.node_ids}
    if isinstance(x, np.ndarray):
        arrays["x"] = x
    else:
        parts = (x.data, x.indices, x.indptr, np.array(x.shape))
        arrays |= dict(zip(CSR_PARTS, parts, strict=True))
    for name in BESIDE:
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
    # The last is what zipfile raises for a compression that it does not know.
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


PARTS = ("data", "indices", "indptr", "shape")


def read_raw_npz(path: Path, name: str, num_classes: int) -> LabelledGraph:
    """Read a graph without a published split from CSR parts of features and adjacency.

    Args:
        path: An npz file with `attr_data`, `attr_indices`, `attr_indptr`, `attr_shape` (features),
            the same four parts of `adj` (adjacency) and `labels`. Other arrays are not opened.
        name: What the graph is called, also in error messages.
        num_classes: How many classes it is known to have.

    Returns:
        The graph: a feature is there or not (1 or 0), edges go both ways, self-loops are dropped.

    Raises:
        DatasetError: The file is damaged or of another form.
    """
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            x, adjacency = _matrix(archive, "attr"), _matrix(archive, "adj").tocoo()
            y = np.asarray(archive["labels"]).reshape(-1).astype(np.int64)
        x.data = (x.data > 0).astype(np.float32)
        graph = Graph.of(x, np.stack(adjacency.coords), dense=False, source=name)
        if len(y) and int(y.max()) >= num_classes:
            raise GraphError(f"labels hold {int(y.max())}, but there are {num_classes} classes")
        return LabelledGraph(graph, y, tuple(map(str, range(num_classes))), name=name)
    except (
        OSError,
        EOFError,
        KeyError,
        ValueError,
        TypeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DatasetError(f"{name}: the raw file {path} cannot be read ({said})") from error


def _matrix(archive: np.lib.npyio.NpzFile, what: str) -> sp.csr_array:
    data, indices, indptr, shape = (archive[f"{what}_{part}"] for part in PARTS)
    matrix = sp.csr_array((data, indices, indptr), shape=(int(shape[0]), int(shape[1])))
    matrix.check_format(full_check=True)
    matrix.sum_duplicates()
    return matrix
