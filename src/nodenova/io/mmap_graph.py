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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodenova import __version__
from nodenova.data.labels import LabelledGraph
from nodenova.errors import GraphError, StorageError
from nodenova.files import read_json, to_json, umask, write_atomically
from nodenova.graph import Features, Graph
from nodenova.io.recipe import TableEncoder

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
        names = ("x", "adjacency", "node_ids", "feature_names", "folder", "edge_weight", "vectors")
        return MappedGraph(**{name: parts.get(name, self.__dict__[name]) for name in names})

    def empty(self, size: int, dtype: type[np.generic]) -> np.ndarray:
        """(size,) array on disk, for values derived from the graph."""
        if not size:
            return np.empty(0, dtype=dtype)
        folder: Path = self.__dict__["folder"]
        place = folder if os.access(folder, os.W_OK) else None
        with tempfile.TemporaryFile(dir=place, prefix=".derived-") as file:
            return np.asarray(np.memmap(file, dtype=dtype, mode="w+", shape=(size,)))


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
    found = path.is_dir() and any((path / name).exists() for name in (INDEX, f"{LINKS[0]}.npy"))
    return found and not any(path.glob("nodes.*"))


def check_target(folder: Path, overwrite: bool) -> None:
    """Raise if `folder` cannot be written; only a graph folder can be overwritten."""
    if not folder.exists():
        return
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / INDEX).is_file()):
        raise StorageError(f"{folder}: exists and is not a graph folder; choose another folder")
    if any(folder.iterdir()):
        _read_index(folder)  # raises if it is not a graph folder
        if not overwrite:
            raise StorageError(
                f"{folder}: there is a graph already; give --overwrite or another folder"
            )


@contextmanager
def new_folder(folder: Path, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary folder that replaces `folder` at the end, or is removed on an error.

    Scratch files go to its subfolder `scratch`, which is removed.
    """
    check_target(folder, overwrite)
    folder = Path(os.path.abspath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        os.chmod(temporary, 0o777 & ~umask())
        (temporary / "scratch").mkdir()
        yield temporary
        shutil.rmtree(temporary / "scratch")
        if folder.exists():
            earlier = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            os.replace(folder, earlier / "earlier")
            os.replace(temporary, folder)
            shutil.rmtree(earlier)
        else:
            os.replace(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


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
    document = _read_index(folder)
    try:
        arrays = {
            name: _open_array(folder, name, form) for name, form in document["arrays"].items()
        }
        names = read_json(folder / NAMES)
        n, d = int(document["nodes"]), int(document["features"])
        indptr, indices = (arrays[part] for part in LINKS)
        ones = np.broadcast_to(np.float32(1), len(indices))
        links = csr_over(ones, indices, indptr, (n, n))
        ends = [(indptr, indices)]
        x: Features
        if "x" in arrays:
            x = arrays["x"]
        else:
            x_data, x_indices, x_indptr = (arrays[part] for part in reversed(CSR))
            x = csr_over(x_data, x_indices, x_indptr, (n, d))
            ends.append((x_indptr, x_indices))
        lengths = {x.shape[0], len(indptr) - 1, len(arrays["node_ids"])}
        weight, vectors = (arrays.get(name) for name in OPTIONAL)
        if vectors is not None:
            lengths.add(len(vectors))
        if weight is not None:
            ends.append((indptr, weight))
        if lengths != {n} or any(p[0] or p[-1] != len(i) for p, i in ends):
            raise GraphError(f"{folder}: damaged, its arrays do not fit together")
        words = None if names["feature_names"] is None else tuple(names["feature_names"])
        graph = MappedGraph(x, links, arrays["node_ids"], words, folder, weight, vectors)
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
    try:
        document = read_json(folder / INDEX)
    except StorageError as error:
        raise GraphError(str(error)) from None
    if document.get("format") != FORMAT:
        raise GraphError(f"{folder}: {INDEX} was not written by `nodenova prepare`")
    if document.get("version") not in range(1, VERSION + 1):
        raise GraphError(
            f"{folder}: written by nodenova {document.get('nodenova')} in format version "
            f"{document.get('version')}; this nodenova reads versions up to {VERSION}"
        )
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
    try:
        if path.stat().st_size <= HEADER:
            return np.load(path, allow_pickle=False)
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise GraphError(f"{path}: not a readable array ({error})") from None
