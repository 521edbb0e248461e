"""A graph whose arrays stay on disk: they are mapped into memory, and read as they are used."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodenova.graph import Features, Graph

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
