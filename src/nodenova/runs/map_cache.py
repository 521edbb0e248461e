"""Places of nodes on the map, kept in the folder of a run: the map is laid out once."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np

from nodenova.files import write_atomically
from nodenova.progress import Progress, no_progress
from nodenova.report.tsne import positions

NAME = "map.npz"
UNREADABLE = (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error)


class KeptMap:
    """Lays embeddings out, or gives the places that these embeddings got before.

    Decisions leave embeddings as they are: what a review changes needs no further layout.

    Args:
        folder: Of the run.
        progress: Function `progress(phase, done, total)`, called while the page is made.
    """

    def __init__(self, folder: Path, progress: Progress = no_progress) -> None:
        self._path = folder / NAME
        self._progress = progress

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """(n, 2) places of nodes with embeddings z (n, d)."""
        key = hashlib.sha256(f"{z.shape} {z.dtype}".encode())
        key.update(np.ascontiguousarray(z).data)
        digest = key.hexdigest()
        # A file that is damaged, or of other embeddings: laid out anew.
        with suppress(*UNREADABLE), self._path.open("rb") as file, np.load(file) as kept:
            if str(kept["key"]) == digest:
                return np.array(kept["xy"])
        xy = positions(z, self._progress)
        content = io.BytesIO()
        np.savez_compressed(content, key=np.array(digest), xy=xy)
        with suppress(OSError):  # a folder that can only be read: the next page lays it out again
            write_atomically(self._path, content.getvalue())
        return xy
