"""Files with embeddings of some test nodes for a figure, and with their places on the map."""

from __future__ import annotations

import hashlib
import io
from contextlib import suppress
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from nodenova.bench.run import Outcome
from nodenova.errors import StorageError
from nodenova.files.arrays import PLAIN, are_finite, read_npz
from nodenova.files.atomic import write_atomically
from nodenova.graph import Graph
from nodenova.report.tsne import differ, positions

MAP_NODES = 2000
FEATURE_DIRECTIONS = 50
LAYOUT_VERSION = 1  # raise it when `report.tsne` places nodes differently
LAID_OUT = ("z", "features")  # arrays that get places on a map
MAP_ARRAYS = (*LAID_OUT, "y", "predicted", "node_ids", "seed")


def write_map(outcome: Outcome, path: Path) -> None:
    """Write `map_content` to a file."""
    write_atomically(path, map_content(outcome))


def map_content(outcome: Outcome) -> bytes:
    """Return at most 2,000 test nodes as npz: z, features, y, predicted, node_ids and seed."""
    exam, model = outcome.exam, outcome.model
    sample = np.random.default_rng(0).permutation(len(exam.ids))[:MAP_NODES]
    ids = exam.ids[np.sort(sample)]
    content = io.BytesIO()
    np.savez_compressed(
        content,
        z=model.embed(exam.graph)[ids],
        features=_features(exam.graph, ids),
        y=exam.y[np.sort(sample)],
        predicted=model.predict(exam.graph)[ids],
        node_ids=exam.graph.node_ids[ids],
        seed=np.array(model.stages[-1].seed),
    )
    return content.getvalue()


def _features(graph: Graph, ids: np.ndarray) -> np.ndarray:
    """(n, 50) features of some nodes, rows at unit length, on their main directions."""
    rows = normalize(graph.x[ids])
    size = min(FEATURE_DIRECTIONS, min(rows.shape) - 1)
    if size < 1:
        return np.zeros((len(ids), 1), dtype=np.float32)
    return TruncatedSVD(size, random_state=0).fit_transform(rows).astype(np.float32)


def read_map(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of a map file."""
    found = read_npz(path, MAP_ARRAYS, error=StorageError)
    for name in ("z", "y"):
        if name not in found:
            raise StorageError(f"{path}: damaged, the array {name} is missing")
    n = found["y"].size
    forms = {"y": ("iu", 1), "predicted": ("iu", 1), "node_ids": (PLAIN, 1)}
    forms |= {"z": ("f", 2), "features": ("f", 2)}
    for name, (kinds, ndim) in forms.items():
        array = found.get(name)
        if array is None:
            continue
        if array.dtype.kind not in kinds or array.ndim != ndim or len(array) != n:
            what = f"{name} is {array.dtype} of shape {array.shape} for {n} nodes"
            raise StorageError(f"{path}: damaged, {what}")
        if kinds == "f" and not are_finite(array):
            raise StorageError(f"{path}: damaged, {name} has numbers that are not finite")
    return found


def layout_of(path: Path, z: np.ndarray, name: str) -> np.ndarray | None:
    """(n, 2) places of the nodes of a map by its array `name`, z; None if all nodes are alike.

    t-SNE takes seconds and differs in the last digits between machines, so places are stored beside
    the map as long as the map and `LAYOUT_VERSION` stay the same.
    """
    z = z.astype(np.float64)
    if not differ(z):
        return None
    beside = path.with_suffix(".layout.npz")
    key = _layout_key(path)
    layouts = _read_layouts(beside, key)
    if name not in layouts:
        layouts[name] = positions(z)
        content = io.BytesIO()
        np.savez_compressed(content, key=np.array(key), **layouts)  # type: ignore[arg-type]
        with suppress(OSError):  # a read-only folder: the next page computes it again
            write_atomically(beside, content.getvalue(), follow=False)
    return layouts[name]


def _layout_key(path: Path) -> str:
    """Hash of the map and of the version of the layout."""
    return hashlib.sha256(path.read_bytes() + f"layout {LAYOUT_VERSION}".encode()).hexdigest()


def _read_layouts(path: Path, key: str) -> dict[str, np.ndarray]:
    """Return layouts by array; {} if the file is missing, damaged, or has another key."""
    with suppress(StorageError):
        stored = read_npz(path, ("key", *LAID_OUT), error=StorageError)
        if "key" in stored and str(stored.pop("key")) == key:
            shapes = [array.ndim == 2 and array.shape[1] == 2 for array in stored.values()]
            if all(shapes) and all(map(are_finite, stored.values())):
                return stored
    return {}
