"""A graph folder: a graph as arrays that are mapped into memory, made by `nodenova prepare`.

graph.json says what there is and is written last; names.json has names, notes and the recipe; every
array is a .npy file of its own. Edges and sparse features are CSR.

A graph whose arrays stay on disk: they are mapped into memory, and read as they are used.
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
    """A graph over mapped arrays.

    It has the numbers that a `Graph` has, and is used as one. Its edges are kept as CSR;
    `edge_index` is made anew, in memory, whenever somebody asks for it. What encoders derive from
    it goes to files without a name beside its own, which are gone when nobody uses them.

    Args:
        x: As of a `Graph`; may be mapped.
        adjacency: (N, N) symmetric CSR of ones; its indices may be mapped.
        node_ids: As of a `Graph`; may be mapped.
        feature_names: As of a `Graph`.
        folder: Where derived arrays go; the system's folder for temporary files if it cannot be
            written to.
        edge_weight: As of a `Graph`, in the order of the adjacency; may be mapped.
        vectors: As of a `Graph`; may be mapped.
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
        given = {"x": x, "node_ids": node_ids, "feature_names": feature_names, "folder": folder}
        given |= {"edge_weight": edge_weight, "vectors": vectors}
        # A frozen dataclass sets no attributes; the adjacency takes the place of the computed one.
        self.__dict__.update(given, adjacency=adjacency)

    @property
    def edge_index(self) -> np.ndarray:
        """(2, E) int64, as of a `Graph`: 16 bytes an edge, made anew at every call."""
        links = self.adjacency
        edges = np.empty((2, links.nnz), dtype=np.int64)
        edges[0] = np.repeat(np.arange(self.num_nodes), np.diff(links.indptr))
        edges[1] = links.indices
        return edges

    @property
    def num_edges(self) -> int:
        """E."""
        return int(self.adjacency.nnz)

    def _with(self, **parts: Any) -> Graph:
        names = ("x", "adjacency", "node_ids", "feature_names", "folder", "edge_weight", "vectors")
        return MappedGraph(**{name: parts.get(name, self.__dict__[name]) for name in names})

    def empty(self, size: int, dtype: type[np.generic]) -> np.ndarray:
        """(size,) an array on disk for what is derived from the graph."""
        if not size:
            return np.empty(0, dtype=dtype)
        folder: Path = self.__dict__["folder"]
        place = folder if os.access(folder, os.W_OK) else None
        with tempfile.TemporaryFile(dir=place, prefix=".derived-") as file:
            return np.asarray(np.memmap(file, dtype=dtype, mode="w+", shape=(size,)))


def csr_over(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sp.csr_array:
    """A CSR array over these arrays as they are: nothing is copied, looked through or checked.

    SciPy's own constructor reads all indices to choose a type for them. Here rows must be sorted,
    without an entry twice. Row starts are copied where they fit the type of the indices.

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
VERSION = 2  # knows of weights of edges and vectors of texts; a graph without them is written as 1
INDEX = "graph.json"
NAMES = "names.json"
LINKS = ("links_indptr", "links_indices")
CSR = ("x_indptr", "x_indices", "x_data")
MASKS = ("train", "val", "test")
BESIDE = ("edge_weight", "vectors")  # of a graph, in the order of its links and nodes
HEADER = 128  # bytes before the numbers of an array
MAX_NODES = 2**31 - 1  # numbers of nodes have 32 bits


class ArrayFile:
    """A .npy file that grows: its header is written last, when its length is known.

    Args:
        path: Of the file.
        dtype: Of the numbers or texts.
        width: Columns of a table; None for a list.

    Examples:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = ArrayFile(Path(folder) / "a.npy", np.int32)
        ...     file.add(np.arange(2)), file.add(np.arange(3)), file.close()
        ...     np.load(Path(folder) / "a.npy").tolist()
        (None, None, None)
        [0, 1, 0, 1, 2]
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
        """Write the header, and what is still in memory, to disk."""
        if self._file.closed:
            return
        shape = (self.length,) if self.width is None else (self.length, self.width)
        said = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        text = repr(said).encode()
        magic = b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little")
        self._file.seek(0)
        self._file.write(magic + text + b" " * (HEADER - 11 - len(text)) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def is_prepared(path: Path) -> bool:
    """Whether this is a graph folder, or what is left of one, and no folder of tables."""
    found = path.is_dir() and any((path / name).exists() for name in (INDEX, f"{LINKS[0]}.npy"))
    return found and not any(path.glob("nodes.*"))


def check_target(folder: Path, overwrite: bool) -> None:
    """Refuse to write a graph folder where something is.

    Raises:
        StorageError: There is something; with `overwrite`, something other than a graph folder.
    """
    if not folder.exists():
        return
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / INDEX).is_file()):
        raise StorageError(f"{folder}: there is something else, which is not overwritten")
    if any(folder.iterdir()):
        _index(folder)  # of ours
        if not overwrite:
            raise StorageError(f"{folder}: there is a graph already; give --overwrite, or another")


@contextmanager
def new_folder(folder: Path, overwrite: bool) -> Iterator[Path]:
    """A temporary folder beside the target that takes its place at the end, or goes.

    Args:
        folder: The target.
        overwrite: Whether an earlier graph folder may be replaced.

    Yields:
        Where to write to. Scratch files go to its folder `scratch`, which is removed.

    Raises:
        StorageError: The target is something else.
    """
    check_target(folder, overwrite)
    folder = Path(os.path.abspath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        os.chmod(made, 0o777 & ~umask())
        (made / "scratch").mkdir()
        yield made
        shutil.rmtree(made / "scratch")
        if folder.exists():
            earlier = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            os.replace(folder, earlier / "earlier")
            os.replace(made, folder)
            shutil.rmtree(earlier)
        else:
            os.replace(made, folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def write_index(
    made: Path,
    *,
    name: str,
    source: str,
    num_features: int,
    feature_names: Sequence[str] | None,
    class_names: Sequence[str],
    notes: Sequence[str] = (),
    recipe: TableEncoder | None = None,
) -> None:
    """Write names.json and, last, graph.json; the arrays are there already.

    Args:
        made: The folder.
        name: What messages call the graph.
        source: What messages call the table that it came from.
        num_features: d.
        feature_names: d names, or None.
        class_names: C names.
        notes: What was repaired or assumed.
        recipe: How columns became features, if they were columns.
    """
    names = {
        "feature_names": feature_names,
        "class_names": class_names,
        "notes": notes,
        "recipe": None if recipe is None else recipe.as_json(),
    }
    write_atomically(made / NAMES, to_json(names))
    arrays = {}
    for path in sorted(made.glob("*.npy")):
        array = _mapped(path)
        shape = list(array.shape)
        arrays[path.stem] = {"type": array.dtype.str, "shape": shape, "bytes": path.stat().st_size}
    document = {
        "format": FORMAT,
        "version": VERSION if any(name in arrays for name in BESIDE) else 1,
        "nodenova": __version__,
        "name": name,
        "source": source,
        "nodes": len(_mapped(made / f"{LINKS[0]}.npy")) - 1,
        "features": num_features,
        "arrays": arrays,
    }
    write_atomically(made / INDEX, to_json(document))


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a graph folder has beside a labelled graph.

    Attributes:
        new: (N,) which nodes are new, or None where nothing says so.
        notes: What was repaired or assumed.
        recipe: How columns became features, if they were columns.
        source: What messages call the table that it came from.
    """

    new: np.ndarray | None = None
    notes: Sequence[str] = ()
    recipe: TableEncoder | None = None
    source: str = ""


def read_prepared(folder: Path) -> tuple[LabelledGraph, Prepared]:
    """Open a graph folder; its arrays stay on disk.

    Args:
        folder: Written by `nodenova prepare`.

    Returns:
        The graph, and what the folder has beside it.

    Raises:
        GraphError: It is half written, damaged, of a later version or something else.
    """
    document = _index(folder)
    try:
        arrays = {name: _checked(folder, name, said) for name, said in document["arrays"].items()}
        names = read_json(folder / NAMES)
        n, d = int(document["nodes"]), int(document["features"])
        indptr, indices = (arrays[part] for part in LINKS)
        ones = np.broadcast_to(np.float32(1), len(indices))
        links = csr_over(ones, indices, indptr, (n, n))
        x: Features
        if "x" in arrays:
            x = arrays["x"]
        else:
            x = csr_over(arrays["x_data"], arrays["x_indices"], arrays["x_indptr"], (n, d))
        lengths = {"x": x.shape[0], "links": len(indptr) - 1, "node_ids": len(arrays["node_ids"])}
        ends = [(indptr, indices)]
        ends += [] if "x" in arrays else [(arrays["x_indptr"], arrays["x_indices"])]
        weight, vectors = (arrays.get(name) for name in BESIDE)
        lengths |= {} if vectors is None else {"vectors": len(vectors)}
        ends += [] if weight is None else [(indptr, weight)]
        if {*lengths.values()} != {n} or any(p[0] or p[-1] != len(i) for p, i in ends):
            raise GraphError(f"{folder}: damaged, its arrays do not fit together")
        words = None if names["feature_names"] is None else tuple(names["feature_names"])
        graph = MappedGraph(x, links, arrays["node_ids"], words, folder, weight, vectors)
        masks = {mask: arrays.get(mask) for mask in MASKS}
        class_names = tuple(names["class_names"])
        labelled = LabelledGraph(graph, arrays["y"], class_names, **masks, name=document["name"])
        recipe = None if names["recipe"] is None else TableEncoder.from_json(names["recipe"])
        rest = Prepared(arrays.get("new"), names["notes"], recipe, document["source"])
    except (KeyError, TypeError, IndexError, AttributeError, StorageError) as error:
        raise GraphError(
            f"{folder}: damaged, {INDEX} and its files do not agree ({error})"
        ) from None
    return labelled, rest


def _index(folder: Path) -> dict[str, Any]:
    if not (folder / INDEX).is_file():
        raise GraphError(f"{folder}: half written, {INDEX} is not there; prepare the graph again")
    try:
        document = read_json(folder / INDEX)
    except StorageError as error:
        raise GraphError(str(error)) from None
    if document.get("format") != FORMAT:
        raise GraphError(f"{folder}: {INDEX} is not of a graph folder that nodenova prepared")
    if document.get("version") not in range(1, VERSION + 1):
        raise GraphError(
            f"{folder}: written by nodenova {document.get('nodenova')} in form "
            f"{document.get('version')}, this one reads up to form {VERSION}"
        )
    return document


def _checked(folder: Path, name: str, said: Mapping[str, Any]) -> np.ndarray:
    path = folder / f"{name}.npy"
    if Path(name).name != name or not path.is_file():
        raise GraphError(f"{folder}: {name}.npy is not there; prepare the graph again")
    found = path.stat().st_size
    if found != said["bytes"]:
        raise GraphError(f"{folder}: {name}.npy has {found:,} bytes of {said['bytes']:,}; cut off?")
    array = _mapped(path)
    if [array.dtype.str, list(array.shape)] != [said["type"], said["shape"]]:
        raise GraphError(f"{folder}: {name}.npy is not the array that {INDEX} describes")
    return array


def _mapped(path: Path) -> np.ndarray:
    """An array of a file, read as it is used: read-only, so that it may be larger than memory."""
    try:
        if path.stat().st_size <= HEADER:
            return np.load(path, allow_pickle=False)
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise GraphError(f"{path}: not a readable array ({error})") from None
