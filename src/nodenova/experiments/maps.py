"""Embeddings of some test nodes, kept for a figure."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

from nodenova.errors import StorageError
from nodenova.experiments.run import Outcome
from nodenova.storage import write_atomically

MAP_NODES = 2000


def write_map(outcome: Outcome, path: Path) -> None:
    """Embeddings z, true classes y, predicted classes, node_ids and the seed of at most 2,000 test nodes, as npz."""
    exam, model = outcome.exam, outcome.model
    chosen = np.random.default_rng(0).permutation(len(exam.ids))[:MAP_NODES]
    ids = exam.ids[np.sort(chosen)]
    content = io.BytesIO()
    np.savez_compressed(
        content,
        z=model.embed(exam.graph)[ids],
        y=exam.y[np.sort(chosen)],
        predicted=model.predict(exam.graph)[ids],
        node_ids=exam.graph.node_ids[ids],
        seed=np.array(model.stages[-1].seed),
    )
    write_atomically(path, content.getvalue())


def read_map(path: Path) -> dict[str, np.ndarray]:
    """What `write_map` wrote."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise StorageError(f"{path}: damaged, not readable as npz ({error})") from error
