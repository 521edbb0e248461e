"""A graph with its discovered classes, in the forms that other tools read."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from nodenova.errors import SettingError, StorageError
from nodenova.files import table_content, write_atomically
from nodenova.graph import Graph
from nodenova.model.model import Model
from nodenova.nn.encode_cache import shared_passes
from nodenova.review.user_labels import UserLabels
from nodenova.runs.predictions import Predictions


@dataclass(frozen=True, eq=False)
class Exported:
    """What is exported.

    Attributes:
        model: Whose classes.
        graph: Whose nodes and edges.
        names: What classes are called, where that is not what the model calls them.
        labels: The user's own.
        fits_none: (N,) which nodes fit none of the classes, if it was asked.
    """

    model: Model
    graph: Graph
    names: Sequence[str] | None = None
    labels: UserLabels | None = None
    fits_none: np.ndarray | None = None

    def columns(self) -> dict[str, list[object]]:
        """What is said of every node, by column."""
        found = Predictions.of(
            self.model, self.graph, names=self.names, labels=self.labels, fits_none=self.fits_none
        )
        columns = found.columns()
        del columns["unsure"]  # here no probability is asked for
        return columns

    def edges(self) -> dict[str, list[object]]:
        """Every undirected edge once: source, target and, where edges have them, weight."""
        once = self.graph.edge_index[0] < self.graph.edge_index[1]
        ends = (self.graph.node_ids[end].tolist() for end in self.graph.edge_index[:, once])
        columns = dict(zip(("source", "target"), ends, strict=True))
        if self.graph.edge_weight is not None:
            columns["weight"] = self.graph.edge_weight[once].tolist()
        return columns


def to_networkx(what: Exported, path: Path) -> None:
    """GraphML for NetworkX and others.

    Nodes by their ids with class, name, kind, probability, label and agrees; each edge once, with
    its weight if it has one.
    """
    try:
        import networkx as nx
    except ImportError:
        raise SettingError(
            "--to networkx needs NetworkX: pip install 'nodenova[networkx]'"
        ) from None
    columns, edges = what.columns(), what.edges()
    made = nx.Graph()
    for node, *values in zip(*columns.values(), strict=True):
        made.add_node(node, **dict(zip(list(columns)[1:], values, strict=True)))
    for source, target, *weight in zip(*edges.values(), strict=True):
        made.add_edge(source, target, **dict(zip(["weight"], weight, strict=False)))
    content = io.BytesIO()
    nx.write_graphml(made, content)
    write_atomically(_file(path), content.getvalue())


def to_pyg(what: Exported, path: Path) -> None:
    """A dict of tensors for `Data.from_dict(torch.load(path, weights_only=True))`.

    Its keys are x, edge_index, pred, prob and z, where edges have weights edge_weight; with labels
    also label, the id of the class that the label of a node stands for (-1 for none), and with
    `fits_none` that. Where labels are kept, pred says the same.
    """
    model, graph, labels = what.model, what.graph, what.labels
    x = torch.from_numpy(graph.x) if isinstance(graph.x, np.ndarray) else _sparse(graph)
    ids = np.array([*(c.id for c in model.classes), -1])
    with shared_passes():
        p = model.predict_proba(graph)
        row = p.argmax(axis=1) if labels is None else labels.rows(model, p)
        parts = {
            "x": x,
            "edge_index": torch.from_numpy(graph.edge_index),
            "pred": torch.from_numpy(ids[row]),
            "prob": torch.from_numpy(p),
            "z": torch.from_numpy(model.embed(graph)),
        }
    if graph.edge_weight is not None:
        parts["edge_weight"] = torch.from_numpy(graph.edge_weight)
    if labels is not None:
        parts["label"] = torch.from_numpy(ids[labels.label_rows(model, p)])
    if what.fits_none is not None:
        parts["fits_none"] = torch.from_numpy(what.fits_none)
    content = io.BytesIO()
    torch.save(parts, content)
    write_atomically(_file(path), content.getvalue())


def to_csv(what: Exported, path: Path) -> None:
    """A folder with nodes.csv and edges.csv.

    nodes.csv has node, class, name, kind, probability, label and agrees, edges.csv each edge once,
    with its weight if it has one.
    """
    if path.exists() and not path.is_dir():
        raise StorageError(f"{path} is a file, and --to csv writes a folder")
    for name, columns in (("nodes.csv", what.columns()), ("edges.csv", what.edges())):
        write_atomically(path / name, table_content(columns, path / name))


def to_embeddings(what: Exported, path: Path) -> None:
    """What the encoder says of every node.

    An npz with node_ids and z, or a table with a column a dimension.
    """
    graph = what.graph
    z = what.model.embed(graph)
    if path.suffix.lower() == ".npz":
        content = io.BytesIO()
        np.savez_compressed(content, node_ids=graph.node_ids, z=z)
        write_atomically(_file(path), content.getvalue())
        return
    columns: dict[str, list[object]] = {"node": graph.node_ids.tolist()}
    columns |= {f"z{i}": z[:, i].tolist() for i in range(z.shape[1])}
    write_atomically(_file(path), table_content(columns, path))


EXPORTS: dict[str, Callable[[Exported, Path], None]] = {
    "networkx": to_networkx,
    "pyg": to_pyg,
    "csv": to_csv,
    "embeddings": to_embeddings,
}


def _sparse(graph: Graph) -> torch.Tensor:
    coo = sp.coo_array(graph.x)
    places = torch.from_numpy(np.stack(coo.coords).astype(np.int64))
    return torch.sparse_coo_tensor(
        places, torch.from_numpy(coo.data), coo.shape, check_invariants=True
    )


def _file(path: Path) -> Path:
    if path.is_dir():
        raise StorageError(f"{path} is a folder, and --out must name a file")
    return path
