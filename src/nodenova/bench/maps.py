"""Embeddings of some test nodes, kept for a figure."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from nodenova.bench.run import Outcome
from nodenova.errors import StorageError
from nodenova.files import write_atomically
from nodenova.graph import Graph

MAP_NODES = 2000
FEATURE_DIRECTIONS = 50


def write_map(outcome: Outcome, path: Path) -> None:
    """Embeddings z, true classes y, predicted classes, node_ids and the seed of at most 2,000 test nodes, as npz.

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
    write_atomically(path, content.getvalue())


def _features(graph: Graph, ids: np.ndarray) -> np.ndarray:
    """(n, 50) the features of some nodes, rows to unit length, on their main directions."""
    rows = normalize(graph.x[ids])
    size = min(FEATURE_DIRECTIONS, min(rows.shape) - 1)
    if size < 1:
        return np.zeros((len(ids), 1), dtype=np.float32)
    return TruncatedSVD(size, random_state=0).fit_transform(rows).astype(np.float32)


def read_map(path: Path) -> dict[str, np.ndarray]:
    """What `write_map` wrote."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise StorageError(f"{path}: damaged, not readable as npz ({error})") from error
