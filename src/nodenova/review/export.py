"""A graph with its discovered classes, in the forms that other tools read."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
import torch

from nodenova.errors import SettingError, StorageError
from nodenova.files import write_atomically
from nodenova.graph import Graph
from nodenova.model.model import Model
from nodenova.nn.passes import shared_passes
from nodenova.review.predictions import Predictions, table_content
from nodenova.review.user_labels import UserLabels

# What classes are called, where that is not what the model calls them.
Names: TypeAlias = "Sequence[str] | None"
Labels: TypeAlias = "UserLabels | None"
Marks: TypeAlias = "np.ndarray | None"  # (N,) which nodes fit none of the classes, if it was asked


def to_networkx(
    model: Model,
    graph: Graph,
    path: Path,
    names: Names = None,
    labels: Labels = None,
    fits_none: Marks = None,
) -> None:
    """GraphML for NetworkX and others.

    Nodes by their ids with class, name, kind, probability, label and agrees; each edge once.
    """
    try:
        import networkx as nx
    except ImportError:
        raise SettingError(
            "--to networkx needs NetworkX: pip install 'nodenova[networkx]'"
        ) from None
    columns = _columns(model, graph, names, labels, fits_none)
    made = nx.Graph()
    for node, *values in zip(*columns.values(), strict=True):
        made.add_node(node, **dict(zip(list(columns)[1:], values, strict=True)))
    source, target = (graph.node_ids[end].tolist() for end in _once(graph))
    made.add_edges_from(zip(source, target, strict=True))
    content = io.BytesIO()
    nx.write_graphml(made, content)
    write_atomically(_file(path), content.getvalue())


def to_pyg(
    model: Model,
    graph: Graph,
    path: Path,
    names: Names = None,
    labels: Labels = None,
    fits_none: Marks = None,
) -> None:
    """A dict of tensors for `Data.from_dict(torch.load(path, weights_only=True))`.

    Its keys are x, edge_index, pred, prob and z; with labels also label, the id of the class that
    the label of a node stands for (-1 for none), and with `fits_none` that. Where labels are kept,
    pred says the same.
    """
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
    if labels is not None:
        parts["label"] = torch.from_numpy(ids[labels.said_rows(model, p)])
    if fits_none is not None:
        parts["fits_none"] = torch.from_numpy(fits_none)
    content = io.BytesIO()
    torch.save(parts, content)
    write_atomically(_file(path), content.getvalue())


def to_csv(
    model: Model,
    graph: Graph,
    path: Path,
    names: Names = None,
    labels: Labels = None,
    fits_none: Marks = None,
) -> None:
    """A folder with nodes.csv and edges.csv.

    nodes.csv has node, class, name, kind, probability, label and agrees, edges.csv each edge once.
    """
    if path.exists() and not path.is_dir():
        raise StorageError(f"{path} is a file, and --to csv writes a folder")
    columns = _columns(model, graph, names, labels, fits_none)
    source, target = (graph.node_ids[end].tolist() for end in _once(graph))
    write_atomically(path / "nodes.csv", table_content(columns, path / "nodes.csv"))
    write_atomically(
        path / "edges.csv", table_content({"source": source, "target": target}, path / "edges.csv")
    )


def to_embeddings(
    model: Model,
    graph: Graph,
    path: Path,
    names: Names = None,
    labels: Labels = None,
    fits_none: Marks = None,
) -> None:
    """What the encoder says of every node.

    An npz with node_ids and z, or a table with a column a dimension.
    """
    z = model.embed(graph)
    if path.suffix.lower() == ".npz":
        content = io.BytesIO()
        np.savez_compressed(content, node_ids=graph.node_ids, z=z)
        write_atomically(_file(path), content.getvalue())
        return
    columns: dict[str, list[object]] = {"node": graph.node_ids.tolist()}
    columns |= {f"z{i}": z[:, i].tolist() for i in range(z.shape[1])}
    write_atomically(_file(path), table_content(columns, path))


EXPORTS: dict[str, Callable[..., None]] = {
    "networkx": to_networkx,
    "pyg": to_pyg,
    "csv": to_csv,
    "embeddings": to_embeddings,
}


def _columns(
    model: Model, graph: Graph, names: Names, labels: Labels, fits_none: Marks
) -> dict[str, list[object]]:
    found = Predictions.of(model, graph, names=names, labels=labels, fits_none=fits_none)
    columns = found.columns()
    del columns["unsure"]  # here no probability is asked for
    return columns


def _once(graph: Graph) -> np.ndarray:
    """(2, E) every undirected edge once."""
    return graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]


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
