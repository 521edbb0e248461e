"""Weights of edges on disk, added as `graph.parts.undirected` adds them in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nodenova.io.prepared import BESIDE, ArrayFile


class WeightFile:
    """The weights of edges in a graph folder, written as their sorted directions come.

    Args:
        made: The folder.
    """

    def __init__(self, made: Path) -> None:
        self._path = made / f"{BESIDE[0]}.npy"
        self._file = ArrayFile(self._path, np.float32)
        self._keys, self._weight = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._is_symmetric = True

    def add(self, keys: np.ndarray, weight: np.ndarray) -> None:
        """Append rows of edges.

        Args:
            keys: (rows,) ascending: twice the number of a direction, plus one where the row had
                been the other way round.
            weight: (rows,) of each, those of a key in the order of the table.
        """
        keys = np.concatenate([self._keys, keys])
        weight = np.concatenate([self._weight, weight])
        # Of the last direction more may come.
        whole = np.searchsorted(keys, keys[-1] // 2 * 2) if len(keys) else 0
        self._sum(keys[:whole], weight[:whole])
        self._keys, self._weight = keys[whole:], weight[whole:]

    def _sum(self, keys: np.ndarray, weight: np.ndarray) -> None:
        one_way, place = np.unique(keys, return_inverse=True)
        given = np.bincount(place, weights=weight, minlength=len(one_way))
        both, place = np.unique(one_way // 2, return_inverse=True)
        total = np.bincount(place, weights=given, minlength=len(both))
        is_even = len(one_way) == 2 * len(both) and bool((total[place] == 2 * given).all())
        self._is_symmetric = self._is_symmetric and is_even
        self._file.add(total)

    def close(self) -> None:
        """Finish the file: a symmetric matrix gave every edge twice."""
        self._sum(self._keys, self._weight)
        self._file.close()
        if self._is_symmetric and self._file.length:
            weight = np.load(self._path, mmap_mode="r+")
            weight *= 0.5
            weight.flush()
