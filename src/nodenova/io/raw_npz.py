"""Raw files of PyTorch Geometric's `Amazon`, `Coauthor` and `CitationFull`: one npz of CSR parts.

PyTorch Geometric's own reader makes the features dense: 1.2 GB on Coauthor Physics. Here they stay
sparse; what is read is the same.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import LabelledGraph
from nodenova.errors import DatasetError, GraphError
from nodenova.graph import Graph

PARTS = ("data", "indices", "indptr", "shape")


def read_raw_npz(path: Path, name: str, num_classes: int) -> LabelledGraph:
    """Read a graph without a published split from CSR parts of features and adjacency.

    Args:
        path: An npz file with `attr_data`, `attr_indices`, `attr_indptr`, `attr_shape` (features),
            the same four parts of `adj` (adjacency) and `labels`. Other arrays are not opened.
        name: What the graph is called, also in error messages.
        num_classes: How many classes it is known to have.

    Returns:
        The graph: a feature is there or not (1 or 0), edges go both ways, self-loops are dropped.

    Raises:
        DatasetError: The file is damaged or of another form.
    """
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            x, adjacency = _matrix(archive, "attr"), _matrix(archive, "adj").tocoo()
            y = np.asarray(archive["labels"]).reshape(-1).astype(np.int64)
        x.data = (x.data > 0).astype(np.float32)
        graph = Graph.of(x, np.stack(adjacency.coords), dense=False, source=name)
        if len(y) and int(y.max()) >= num_classes:
            raise GraphError(f"labels hold {int(y.max())}, but there are {num_classes} classes")
        return LabelledGraph(graph, y, tuple(map(str, range(num_classes))), name=name)
    except (
        OSError,
        EOFError,
        KeyError,
        ValueError,
        TypeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DatasetError(f"{name}: the raw file {path} cannot be read ({said})") from error


def _matrix(archive: np.lib.npyio.NpzFile, what: str) -> sp.csr_array:
    data, indices, indptr, shape = (archive[f"{what}_{part}"] for part in PARTS)
    matrix = sp.csr_array((data, indices, indptr), shape=(int(shape[0]), int(shape[1])))
    matrix.check_format(full_check=True)
    matrix.sum_duplicates()
    return matrix
