"""Embeddings of some test nodes, kept for a figure, and their layout, kept beside them."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from contextlib import suppress
from importlib import resources
from pathlib import Path

import numpy as np
import scipy
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from nodenova.bench.run import Outcome
from nodenova.errors import StorageError
from nodenova.files import write_atomically
from nodenova.graph import Graph
from nodenova.report.tsne import differ, positions

MAP_NODES = 2000
FEATURE_DIRECTIONS = 50
# What NumPy raises for a file that is none of npz, or cut off, or changed.
UNREADABLE = (ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error)


def write_map(outcome: Outcome, path: Path) -> None:
    """`map_content` as a file."""
    write_atomically(path, map_content(outcome))


def map_content(outcome: Outcome) -> bytes:
    """At most 2,000 test nodes as npz: embeddings z, true classes y, predicted, node_ids, the seed.

    `features` is what the graph itself says of them, to hold z against.
    """
    exam, model = outcome.exam, outcome.model
    chosen = np.random.default_rng(0).permutation(len(exam.ids))[:MAP_NODES]
    ids = exam.ids[np.sort(chosen)]
    content = io.BytesIO()
    np.savez_compressed(
        content,
        z=model.embed(exam.graph)[ids],
        features=_features(exam.graph, ids),
        y=exam.y[np.sort(chosen)],
        predicted=model.predict(exam.graph)[ids],
        node_ids=exam.graph.node_ids[ids],
        seed=np.array(model.stages[-1].seed),
    )
    return content.getvalue()


def _features(graph: Graph, ids: np.ndarray) -> np.ndarray:
    """(n, 50) the features of some nodes, rows to unit length, on their main directions."""
    rows = normalize(graph.x[ids])
    size = min(FEATURE_DIRECTIONS, min(rows.shape) - 1)
    if size < 1:
        return np.zeros((len(ids), 1), dtype=np.float32)
    return TruncatedSVD(size, random_state=0).fit_transform(rows).astype(np.float32)


def read_map(path: Path) -> dict[str, np.ndarray]:
    """What `write_map` wrote.

    Raises:
        StorageError: The file is damaged.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = dict(arrays)
    except UNREADABLE as error:
        raise StorageError(f"{path}: damaged, not readable as npz ({error})") from error
    for name in ("z", "y"):
        if name not in found:
            raise StorageError(f"{path}: damaged, a map without {name}")
    return found


def layout_of(path: Path, z: np.ndarray, name: str) -> np.ndarray | None:
    """(n, 2) places of the nodes of a map, None where there is nothing to lay out.

    t-SNE takes seconds, and every page shows every map: places are kept beside the map's file, as
    long as that, the layout's code and what it computes with stay the same.

    Args:
        path: The map's file.
        z: (n, d) one of its arrays.
        name: Which.
    """
    z = z.astype(np.float64)
    if not differ(z):
        return None
    beside = path.with_suffix(".layout.npz")
    key = _layout_key(path)
    kept = _read_layouts(beside, key)
    if name not in kept:
        kept[name] = positions(z)
        content = io.BytesIO()
        np.savez(content, key=np.array(key), **kept)  # type: ignore[arg-type]
        with suppress(OSError):  # a folder that can only be read: the next page lays it out again
            write_atomically(beside, content.getvalue())
    return kept[name]


def _layout_key(path: Path) -> str:
    """A hash of all that decides a layout."""
    digest = hashlib.sha256(path.read_bytes())
    digest.update(resources.files("nodenova.report").joinpath("tsne.py").read_bytes())
    digest.update(f"numpy {np.__version__}, scipy {scipy.__version__}".encode())
    return digest.hexdigest()


def _read_layouts(path: Path, key: str) -> dict[str, np.ndarray]:
    """Layouts by the array they are of; none if they are not there, damaged, or of another key."""
    with suppress(KeyError, *UNREADABLE), path.open("rb") as file, np.load(file) as kept:
        if str(kept["key"]) == key:
            return {name: kept[name] for name in kept.files if name != "key"}
    return {}
