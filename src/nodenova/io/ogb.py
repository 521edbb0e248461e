"""ogbn-arxiv and ogbn-products from their raw files, as the Open Graph Benchmark publishes them.

ogbn_arxiv/raw/edge.csv.gz         a line "from,to" per edge
          /raw/node-feat.csv.gz    a line of numbers per node
          /raw/node-label.csv.gz   a line with its class
          /split/time/train.csv.gz, valid.csv.gz, test.csv.gz    a line with a node's number
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from nodenova.data.labels import LabelledGraph
from nodenova.errors import DatasetError, GraphError, first_line
from nodenova.graph import Graph
from nodenova.io.dataset_table import Dataset, raw_folders
from nodenova.io.text_files import check_file, text_file


def load_ogb(name: str, dataset: Dataset, root: Path) -> LabelledGraph:
    """Load a graph with its published split; a DatasetError names a file that is missing or bad.

    Directed edges become undirected, as for the published results.
    """
    folders = raw_folders(dataset, root)
    folder = next((each for each in folders if each.is_dir()), None)
    files = dataset.raw_files
    if folder is None:
        where = " or ".join(str(each) for each in folders)
        raise DatasetError(f"{name}: {where} is not there; it should hold {', '.join(files)}")
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise DatasetError(
            f"{name}: {', '.join(missing)} not in {folder}, which should hold {', '.join(files)}"
        )
    edge, feature, label, *split = (folder / file for file in files)
    try:
        x = _read(feature, np.float32)
        graph = Graph.of(x, _read(edge, np.int64, 2).T, dense=True, source=edge.name)
        y = _read(label, np.int64, 1)[:, 0]
        train, valid, test = (_mask(path, graph.num_nodes) for path in split)
        last = dataset.classes - 1
        if y.min() < 0 or y.max() > last:
            raise GraphError(f"{label.name}: holds classes {y.min()} to {y.max()}, not 0 to {last}")
        names = tuple(map(str, range(dataset.classes)))
        return LabelledGraph(graph, y, names, train, valid, test, name=name)
    except (GraphError, MemoryError) as error:
        what = f"the raw files in {folder} cannot be read ({first_line(error)})"
        raise DatasetError(f"{name}: {what}") from error


def _read(path: Path, kind: type[np.generic], columns: int | None = None) -> np.ndarray:
    """(lines, columns) numbers of a table without a header."""
    check_file(path)
    with text_file(path, "utf-8", []) as (text, _), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*input contained no data")
        try:
            table = np.loadtxt(text, dtype=kind, delimiter=",", ndmin=2, comments=None)
        except (ValueError, OverflowError, UserWarning) as error:
            raise GraphError(f"{path.name}: {first_line(error)}") from error
    if columns is not None and table.shape[1] != columns:
        raise GraphError(f"{path.name}: has {table.shape[1]} columns, not {columns}")
    return table


def _mask(path: Path, nodes: int) -> np.ndarray:
    """(N,) whether a node is in a file of numbers of nodes."""
    ids = _read(path, np.int64, 1)[:, 0]
    if ids.min() < 0 or ids.max() >= nodes:
        raise GraphError(
            f"{path.name}: names node {ids.min() if ids.min() < 0 else ids.max()}, nodes are 0 to "
            f"{nodes - 1}"
        )
    mask = np.zeros(nodes, dtype=bool)
    mask[ids] = True
    return mask
