"""Graph folders: graphs whose arrays stay on disk, written by `nodenova prepare`.

Every array is a .npy file that is mapped into memory and read as it is used; edges and sparse
features are CSR. names.json has names, notes and the recipe. graph.json lists the arrays and is
written last.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodenova import __version__
from nodenova.data.labels import LabelledGraph
from nodenova.errors import GraphError, StorageError, brief
from nodenova.files.arrays import are_finite, blocks, check_csr, open_npy
from nodenova.files.atomic import write_atomically
from nodenova.files.content import to_json
from nodenova.files.documents import (
    check,
    check_encodable,
    list_of,
    map_of,
    nullable,
    plain,
    read_json,
    record,
    text,
    whole,
)
from nodenova.files.folders import FolderState, change_folder, is_empty, lock_folder, recover
from nodenova.graph import Features, Graph, check_order
from nodenova.io.recipe import TableEncoder
from nodenova.settings import check_path

MAX_INT32 = 2**31 - 1


class MappedGraph(Graph):
    """A `Graph` over memory-mapped arrays, with the same values.

    `adjacency` is the (N, N) symmetric CSR of ones, and `edge_weight` has its order. `edge_index`
    is computed at every access. Arrays that encoders derive go to unnamed files in `folder`, or to
    the temporary folder of the system if `folder` is read-only.
    """

    is_mapped = True

    def __init__(
        self,
        x: Features,
        adjacency: sp.csr_array,
        node_ids: np.ndarray,
        feature_names: tuple[str, ...] | None,
        folder: Path,
        edge_weight: np.ndarray | None = None,
        vectors: np.ndarray | None = None,
        given_order: np.ndarray | None = None,
    ) -> None:
        # A frozen dataclass sets no attributes; the adjacency takes the place of the computed one.
        self.__dict__.update(
            x=x,
            node_ids=node_ids,
            feature_names=feature_names,
            folder=folder,
            edge_weight=edge_weight,
            vectors=vectors,
            adjacency=adjacency,
            given_order=given_order,
        )

    @property
    def edge_index(self) -> np.ndarray:
        """(2, E) int64, 16 bytes per edge, computed at every access."""
        links = self.adjacency
        edges = np.empty((2, links.nnz), dtype=np.int64)
        edges[0] = np.repeat(np.arange(self.num_nodes), np.diff(links.indptr))
        edges[1] = links.indices
        return edges

    @property
    def num_edges(self) -> int:
        """Number of directed edges, E."""
        return int(self.adjacency.nnz)

    def _with(self, **parts: Any) -> Graph:
        names = ("x", "adjacency", "node_ids", "feature_names", "folder", "edge_weight", "vectors",
                 "given_order")  # fmt: skip
        return MappedGraph(**{name: parts.get(name, self.__dict__[name]) for name in names})

    def canonical(self) -> Graph:
        """The graph itself: its folder decides the order."""
        return self

    def as_given(self) -> Graph:
        """The graph in the order of the user's table; its arrays are reordered where they are
        used."""
        return self if self.given_order is None else GivenGraph(self)

    def renumber(self, order: np.ndarray) -> Graph:
        """The same graph in memory, with its nodes in another order."""
        parts = (self.x, self.edge_index, self.node_ids, self.feature_names)
        return Graph(*parts, self.edge_weight, self.vectors).renumber(order)

    def empty(self, size: int, dtype: type[np.generic]) -> np.ndarray:
        """(size,) array on disk, for values derived from the graph."""
        if not size:
            return np.empty(0, dtype=dtype)
        folder: Path = self.__dict__["folder"]
        place = folder if os.access(folder, os.W_OK) else None
        with tempfile.TemporaryFile(dir=place, prefix=".derived-") as file:
            return np.asarray(np.memmap(file, dtype=dtype, mode="w+", shape=(size,)))


class GivenGraph(MappedGraph):
    """A graph folder whose nodes appear in the order of the user's table.

    `canonical` returns the graph on disk, which everything is computed on. Features and edges are
    reordered in memory when they are first used.
    """

    def __init__(self, graph: MappedGraph) -> None:
        order = graph.given_order
        assert order is not None
        self.__dict__.update(
            stored=graph,
            node_ids=graph.node_ids[order],
            feature_names=graph.feature_names,
            folder=graph.__dict__["folder"],
        )

    def canonical(self) -> Graph:
        """The graph as it is on disk."""
        stored: MappedGraph = self.__dict__["stored"]
        return stored

    def as_given(self) -> Graph:
        """The graph itself."""
        return self

    @cached_property
    def _given(self) -> Graph:
        order = self.canonical().given_order
        assert order is not None
        return self.canonical().renumber(order)

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return self.canonical().num_nodes

    @property
    def num_features(self) -> int:
        """Number of features d."""
        return self.canonical().num_features

    @property
    def num_edges(self) -> int:
        """Number of directed edges, E."""
        return self.canonical().num_edges

    @property
    def x(self) -> Features:
        """(N, d) features, in memory."""
        return self._given.x

    @property
    def edge_index(self) -> np.ndarray:
        """(2, E) edges, in memory."""
        return self._given.edge_index

    @property
    def adjacency(self) -> sp.csr_array:
        """(N, N) symmetric CSR of ones, in memory."""
        return self._given.adjacency

    @property
    def edge_weight(self) -> np.ndarray | None:
        """(E,) weights of the edges, in memory."""
        return None if self.canonical().edge_weight is None else self._given.edge_weight

    @property
    def vectors(self) -> np.ndarray | None:
        """(N, k) vectors of the texts, in memory."""
        return None if self.canonical().vectors is None else self._given.vectors

    def _with(self, **parts: Any) -> Graph:
        return replace(self._given, **parts)


def csr_over(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sp.csr_array:
    """A CSR array over these arrays as they are: nothing is copied, read or checked.

    SciPy's constructor would read all indices to choose their type. Rows must be sorted and have
    no entry twice. Row starts are copied where they fit the type of the indices.

    Examples:
        >>> ones = np.broadcast_to(np.float32(1), 2)
        >>> links = csr_over(ones, np.array([1, 0], np.int32), np.array([0, 1, 2]), (2, 2))
        >>> links.toarray().tolist(), links.indptr.dtype.name
        ([[0.0, 1.0], [1.0, 0.0]], 'int32')
    """
    matrix = sp.csr_array(shape, dtype=data.dtype)
    fits = indices.dtype == np.int32 and len(indices) <= MAX_INT32
    matrix.data, matrix.indices = data, indices
    matrix.indptr = indptr.astype(np.int32) if fits else indptr
    matrix.has_canonical_format = True
    return matrix


FORMAT = "nodenova graph folder"
VERSION = 2  # has edge weights and text vectors; a graph without them is written as version 1
INDEX = "graph.json"
NAMES = "names.json"
LINKS = ("links_indptr", "links_indices")
CSR = ("x_indptr", "x_indices", "x_data")
MASKS = ("train", "val", "test")
OPTIONAL = ("edge_weight", "vectors")  # arrays in the order of links and of nodes
GRAPH = record(
    {
        "name": text,
        "source": text,
        "nodes": whole(0, MAX_INT32),
        "features": whole(0, MAX_INT32),
        "arrays": map_of(record({"type": text, "shape": list_of(whole(0)), "bytes": whole(0)})),
    }
)
NAMES_FORM = record(
    {
        "feature_names": nullable(list_of(text)),
        "class_names": list_of(text),
        "notes": list_of(text),
        "recipe": nullable(map_of(plain)),
    }
)
GIVEN = "given_order"  # row of the table by row: number of its node; none if they are the same
HEADER = 128  # bytes before the values of an array
MAX_NODES = MAX_INT32  # node numbers have 32 bits


class ArrayFile:
    """A growing .npy file: its header is written last, when its length is known.

    `width` is the number of columns of a two-dimensional array.
    """

    def __init__(self, path: Path, dtype: Any, width: int | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self.width = width
        self.length = 0
        self._file = path.open("wb")
        self._file.write(b"\0" * HEADER)

    def add(self, rows: np.ndarray) -> None:
        """Append rows."""
        self.length += len(rows)
        self._file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)

    def close(self) -> None:
        """Write the header, and flush everything to disk."""
        if self._file.closed:
            return
        shape = (self.length,) if self.width is None else (self.length, self.width)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        text = repr(header).encode()
        magic = b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little")
        self._file.seek(0)
        self._file.write(magic + text + b" " * (HEADER - 11 - len(text)) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def is_graph_folder(path: Path) -> bool:
    """Whether this is a graph folder, maybe half written, and not a folder of tables."""
    check_path(path, "graph")
    if path.is_dir():
        recover(path)
    found = path.is_dir() and any((path / name).exists() for name in (INDEX, f"{LINKS[0]}.npy"))
    return found and not any(path.glob("nodes.*"))


def check_target(folder: Path, overwrite: bool) -> None:
    """Raise if `folder` cannot be written; only a graph folder can be overwritten."""
    if not folder.exists():
        return
    if folder.is_dir():
        recover(folder)
    if not folder.is_dir() or (not is_empty(folder) and not (folder / INDEX).is_file()):
        raise StorageError(f"{folder}: exists and is not a graph folder; choose another folder")
    if not is_empty(folder):
        _read_index(folder)  # raises if it is not a graph folder
        if not overwrite:
            raise StorageError(
                f"{folder}: there is a graph already; give --overwrite or another folder"
            )


@contextmanager
def new_folder(folder: Path, overwrite: bool) -> Iterator[Path]:
    """Yield a folder whose files become those of the graph folder at the end, unless one raises.

    Scratch files go to its subfolder `scratch`, which is removed.
    """
    check_target(folder, overwrite)  # before anything is made
    with lock_folder(folder) as folder:
        check_target(folder, overwrite)
        with change_folder(folder, fresh=is_empty(folder)) as change:
            (change.new / "scratch").mkdir()
            yield change.new
            shutil.rmtree(change.new / "scratch")
            change.remove("*.npy", INDEX, NAMES)


def write_index(
    folder: Path,
    *,
    name: str,
    source: str,
    num_features: int,
    feature_names: Sequence[str] | None,
    class_names: Sequence[str],
    notes: Sequence[str] = (),
    recipe: TableEncoder | None = None,
) -> None:
    """Write names.json and, last, graph.json; the arrays are written already."""
    for what, some in (("the feature", feature_names or ()), ("the class", class_names)):
        check_encodable(some, what, GraphError)
    names = {
        "feature_names": feature_names,
        "class_names": class_names,
        "notes": notes,
        "recipe": None if recipe is None else recipe.as_json(),
    }
    write_atomically(folder / NAMES, to_json(names))
    arrays = {}
    for path in sorted(folder.glob("*.npy")):
        array = _map(path)
        arrays[path.stem] = {
            "type": array.dtype.str,
            "shape": list(array.shape),
            "bytes": path.stat().st_size,
        }
    document = {
        "format": FORMAT,
        "version": VERSION if any(name in arrays for name in OPTIONAL) else 1,
        "nodenova": __version__,
        "name": name,
        "source": source,
        "nodes": len(_map(folder / f"{LINKS[0]}.npy")) - 1,
        "features": num_features,
        "arrays": arrays,
    }
    write_atomically(folder / INDEX, to_json(document))


@dataclass(frozen=True, eq=False)
class FolderContents:
    """Contents of a graph folder beside its labelled graph."""

    new: np.ndarray | None = None  # (N,) mask of new nodes, if they were named
    notes: Sequence[str] = ()
    recipe: TableEncoder | None = None
    source: str = ""  # name of the table of nodes in messages


def read_graph_folder(folder: Path) -> tuple[LabelledGraph, FolderContents]:
    """Open a graph folder; its arrays stay on disk."""
    with FolderState(folder, INDEX).reading():
        return _read(folder)


def _read(folder: Path) -> tuple[LabelledGraph, FolderContents]:
    document = _read_index(folder)
    try:
        arrays = {
            name: _open_array(folder, name, form) for name, form in document["arrays"].items()
        }
        names = read_json(folder / NAMES, NAMES_FORM)
        n, d = int(document["nodes"]), int(document["features"])
        _check_arrays(arrays, n, d, folder)
        indptr, indices = (arrays[part] for part in LINKS)
        ones = np.broadcast_to(np.float32(1), len(indices))
        links = csr_over(ones, indices, indptr, (n, n))
        x: Features
        if "x" in arrays:
            x = arrays["x"]
        else:
            x_data, x_indices, x_indptr = (arrays[part] for part in reversed(CSR))
            x = csr_over(x_data, x_indices, x_indptr, (n, d))
        weight, vectors = (arrays.get(name) for name in OPTIONAL)
        words = None if names["feature_names"] is None else tuple(names["feature_names"])
        if words is not None and len(words) != d:
            raise GraphError(f"{folder}: damaged, {len(words):,} names for {d:,} features")
        given = arrays.get(GIVEN)
        if given is not None:
            given = check_order(given, n, str(folder))
        graph = MappedGraph(x, links, arrays["node_ids"], words, folder, weight, vectors, given)
        masks = {mask: arrays.get(mask) for mask in MASKS}
        class_names = tuple(names["class_names"])
        labelled = LabelledGraph(graph, arrays["y"], class_names, **masks, name=document["name"])
        recipe = None if names["recipe"] is None else TableEncoder.from_json(names["recipe"])
        contents = FolderContents(arrays.get("new"), names["notes"], recipe, document["source"])
    except (KeyError, TypeError, IndexError, AttributeError, StorageError) as error:
        raise GraphError(
            f"{folder}: damaged, {INDEX} and its files do not agree ({error})"
        ) from None
    return labelled, contents


def _read_index(folder: Path) -> dict[str, Any]:
    if not (folder / INDEX).is_file():
        raise GraphError(f"{folder}: half written, {INDEX} is missing; prepare the graph again")
    document: dict[str, Any] = read_json(folder / INDEX, error=GraphError)
    if document.get("format") != FORMAT:
        raise GraphError(f"{folder}: {INDEX} was not written by `nodenova prepare`")
    if document.get("version") not in range(1, VERSION + 1):
        raise GraphError(
            f"{folder}: written by nodenova {brief(document.get('nodenova'))} in format version "
            f"{brief(document.get('version'))}; this nodenova reads versions up to {VERSION}"
        )
    check(document, GRAPH, str(folder / INDEX), GraphError)
    return document


def _open_array(folder: Path, name: str, form: Mapping[str, Any]) -> np.ndarray:
    path = folder / f"{name}.npy"
    if Path(name).name != name or not path.is_file():
        raise GraphError(f"{folder}: {name}.npy is missing; prepare the graph again")
    size = path.stat().st_size
    if size != form["bytes"]:
        raise GraphError(
            f"{folder}: {name}.npy has {size:,} of {form['bytes']:,} bytes; prepare the graph again"
        )
    array = _map(path)
    if [array.dtype.str, list(array.shape)] != [form["type"], form["shape"]]:
        raise GraphError(f"{folder}: {name}.npy is not the array that {INDEX} describes")
    return array


def _map(path: Path) -> np.ndarray:
    """Map the array of a file read-only, so that it may be larger than memory."""
    return open_npy(path, in_memory=False)


def _check_arrays(arrays: Mapping[str, np.ndarray], n: int, d: int, folder: Path) -> None:
    """Raise unless types, lengths and values of all arrays fit a graph of n nodes, d features.

    Every array is read once, block by block: libraries walk through it without checks later.
    """
    is_sparse = "x" not in arrays
    links = len(arrays["links_indices"])
    shapes: dict[str, tuple[str, tuple[int | None, ...]]] = {
        "links_indptr": ("i", (n + 1,)),
        "links_indices": ("i", (None,)),
        "node_ids": ("biufUSMm", (n,)),
        "y": ("i", (n,)),
        GIVEN: ("i", (n,)),
        "edge_weight": ("f", (links,)),
        "vectors": ("f", (n, None)),
        **({"x_data": ("f", (None,))} if is_sparse else {"x": ("f", (n, d))}),
        **dict.fromkeys(CSR[:2] if is_sparse else (), ("i", (None,))),
        **dict.fromkeys((*MASKS, "new"), ("b", (n,))),
    }
    for name, array in arrays.items():
        kinds, shape = shapes.get(name, ("", ()))
        fits = len(shape) == array.ndim
        fits = fits and all(a in (None, b) for a, b in zip(shape, array.shape, strict=True))
        fits = fits and array.dtype != np.float16  # which SciPy does not know
        if array.dtype.kind not in kinds or not fits or not array.dtype.isnative:
            raise GraphError(
                f"{folder}: damaged, its arrays do not fit together: {name}.npy is {array.dtype} "
                f"of shape {array.shape}, and there are {n:,} nodes and {d:,} features"
            )
        if array.dtype.kind == "f" and not are_finite(array):
            raise GraphError(f"{folder}: damaged, {name}.npy has numbers that are not finite")
    indptr, indices = (arrays[part] for part in LINKS)
    check_csr(indices, indices, indptr, (n, n), f"{folder}: damaged, links", is_sorted=True)
    if is_sparse:
        x_indptr, x_indices, x_data = (arrays[part] for part in CSR)
        where = f"{folder}: damaged, x"
        check_csr(x_data, x_indices, x_indptr, (n, d), where, is_sorted=True)
    weight = arrays.get("edge_weight")
    if weight is not None and not all((block > 0).all() for block in blocks(weight)):
        raise GraphError(f"{folder}: damaged, edge_weight.npy has a weight that is not positive")
