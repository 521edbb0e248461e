"""PyTorch Geometric's HeteroData as a labelled graph: nodes of one type, linked in several ways.

PyTorch Geometric's Data objects as labelled graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import UNKNOWN, LabelledGraph
from nodenova.errors import GraphError
from nodenova.graph import Graph
from nodenova.io.edges import EdgeType, combined

if TYPE_CHECKING:
    from torch_geometric.data import Data


def from_pyg(
    data: Data, *, class_names: Sequence[str] | None = None, split: int = 0, name: str = "PyG data"
) -> LabelledGraph:
    """Make a labelled graph from PyTorch Geometric's `Data`.

    Where nodes are set apart for stopping (Wiki-CS has a `stopping_mask`), those stop phase 1 and
    `val_mask` is not used.

    Args:
        data: With `x`, `edge_index` and, optionally, `edge_weight` (E,), `y` (N,), -1 where the
            class is unknown, and `train_mask`, `val_mask` and `test_mask`. A `HeteroData` is for
            `load_graph`, which says what becomes of its edges.
        class_names: By number; "0", "1", ... by default.
        split: Which one to take where masks have a column for each of several published splits.
        name: What messages and results call the graph.

    Returns:
        The graph, its classes and its published split, if it has one.

    Raises:
        GraphError: `x` or `edge_index` is missing, two of them do not fit together, or there is no
            such split.

    Examples:
        >>> import nodenova as nova
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> edge_index = torch.tensor([[0, 1], [1, 2]])
        >>> data = Data(x=torch.eye(3), edge_index=edge_index, y=torch.tensor([0, 1, -1]))
        >>> nova.from_pyg(data, class_names=["cell", "gene"]).y.tolist()
        [0, 1, -1]
    """
    if hasattr(data, "node_types"):
        raise GraphError(f"{name}: a HeteroData has several types of nodes; load_graph reads it")
    if data.x is None or data.edge_index is None:
        raise GraphError(f"{name}: a Data object needs x and edge_index")
    weight = data.get("edge_weight")
    weight = None if weight is None else weight.numpy()
    graph = Graph.of(data.x.numpy(), data.edge_index.numpy(), source=name, edge_weight=weight)
    return _with_labels(data, graph, class_names, split, name)


def _with_labels(
    data: Any, graph: Graph, class_names: Sequence[str] | None, split: int, name: str
) -> LabelledGraph:
    """A graph with the classes and masks of its nodes.

    Args:
        data: That has them: a `Data`, or what a `HeteroData` has of one type of nodes.
        graph: Of these nodes.
        class_names: As of `from_pyg`.
        split: As of `from_pyg`.
        name: What messages and results call the graph.

    Raises:
        GraphError: There is no such split.
    """
    given = data.get("y")
    y = np.full(graph.num_nodes, UNKNOWN) if given is None else given.numpy().reshape(-1)
    count = int(y.max()) + 1
    names = tuple(str(c) for c in range(count)) if class_names is None else tuple(class_names)

    def mask(key: str) -> np.ndarray | None:
        value = data.get(key)
        if value is None:
            return None
        values = value.numpy()
        if values.ndim == 1:
            return values.astype(bool)
        if not 0 <= split < values.shape[1]:
            raise GraphError(
                f"{name}: split {split} is not there, splits are 0..{values.shape[1] - 1}"
            )
        return values[:, split].astype(bool)

    stopping = mask("stopping_mask")
    val = mask("val_mask") if stopping is None else stopping
    return LabelledGraph(
        graph, y, names, train=mask("train_mask"), val=val, test=mask("test_mask"), name=name
    )


MAX_SHARED = 500  # nodes that one of another type may link: more say little, and link everything


def is_hetero(source: Any) -> bool:
    """Whether this is a HeteroData, without importing PyTorch Geometric."""
    return hasattr(source, "node_types") and hasattr(source, "edge_types")


def from_hetero(
    data: Any,
    node_type: str | None = None,
    shares: Mapping[str, float] | None = None,
    name: str = "PyG data",
) -> tuple[LabelledGraph, list[str]]:
    """Make a labelled graph of the nodes of one type.

    Edges between these nodes stay edges. A node of another type that links to several of them links
    these to each other, each two with the weight 1 / (nodes that it links to); so every node of the
    other type counts alike. `edge_types.combined` makes one graph of all types of edges.

    Args:
        data: With `x` and, optionally, `y` and masks of the nodes of one type.
        node_type: Which; the one that has `y` unless given.
        shares: What each type of edges weighs, by name; None for all alike.
        name: What messages and results call the graph.

    Returns:
        The graph with its classes, and what was done to edges.

    Raises:
        GraphError: There is no such type of nodes or edges, or it has no features.

    Examples:
        >>> import torch
        >>> from torch_geometric.data import HeteroData
        >>> data = HeteroData()
        >>> data["paper"].x, data["paper"].y = torch.eye(3), torch.tensor([0, 1, -1])
        >>> data["author"].num_nodes = 1
        >>> data["author", "writes", "paper"].edge_index = torch.tensor([[0, 0], [0, 2]])
        >>> labelled, notes = from_hetero(data)
        >>> labelled.graph.edge_index.tolist(), len(notes)
        ([[0, 2], [2, 0]], 2)
    """
    target = _target(data, node_type, name)
    store = data[target]
    if store.get("x") is None:
        raise GraphError(f"{name}: nodes of type {target!r} need x")
    x = store["x"].numpy()
    notes: list[str] = []
    types = list(_links(data, target, len(x), name, notes))
    if not types:
        raise GraphError(f"{name}: no type of edges has an end of type {target!r}")
    ends, weight = combined(types, len(x), shares, name, notes)
    graph = Graph.of(x, ends, source=name, edge_weight=weight)
    return _with_labels(store, graph, None, 0, name), notes


def _target(data: Any, node_type: str | None, name: str) -> str:
    known = ", ".join(map(str, data.node_types))
    if node_type is not None:
        if node_type not in data.node_types:
            raise GraphError(f"{name}: no nodes are of type {node_type!r}; types: {known}")
        return node_type
    labelled = [kind for kind in data.node_types if data[kind].get("y") is not None]
    if len(labelled) != 1:
        raise GraphError(
            f"{name}: {len(labelled)} types of nodes have y; give node_type, one of: {known}"
        )
    return labelled[0]


def _links(data: Any, target: str, n: int, name: str, notes: list[str]) -> Iterator[EdgeType]:
    """What links nodes of a type, type of edges by type of edges."""
    beyond = []
    seen: dict[tuple[str, str], list[tuple[str, np.ndarray]]] = {}
    relations = [relation for _, relation, _ in data.edge_types]
    for triple in data.edge_types:
        source, relation, end = triple
        called = relation if relations.count(relation) == 1 else " ".join(triple)
        if target not in (source, end):
            beyond.append(" ".join(triple))
            continue
        ends = data[triple]["edge_index"].numpy().astype(np.int64)
        weight = data[triple].get("edge_weight")
        weight = None if weight is None else weight.numpy().astype(np.float64)
        keys = np.sort(ends[0] << 32 | ends[1])
        back = np.sort(ends[1] << 32 | ends[0])
        twin = [who for who, those in seen.get((end, source), ()) if np.array_equal(those, back)]
        if twin:
            notes.append(f"{name}: edges {called!r} are edges {twin[0]!r} reversed; used once")
            continue
        seen.setdefault((source, end), []).append((called, keys))
        if source == end:
            yield EdgeType(called, ends, weight)
            continue
        other = source if end == target else end
        ours = ends if source == target else ends[::-1]
        yield _shared(called, ours, weight, n, (other, target), name, notes)
    if beyond:
        notes.append(
            f"{name}: edges without an end of type {target!r} are not used: {', '.join(beyond)}"
        )


def _shared(
    called: str,
    ends: np.ndarray,
    weight: np.ndarray | None,
    n: int,
    kinds: tuple[str, str],
    name: str,
    notes: list[str],
) -> EdgeType:
    """Links between nodes that share a node of another type."""
    other, target = kinds
    values = np.ones(ends.shape[1]) if weight is None else weight
    links = sp.csc_array((values, (ends[0], ends[1])), shape=(n, int(ends[1].max(initial=0)) + 1))
    linked = np.diff(links.indptr)
    if weight is None:
        links.data[:] = 1.0  # there twice, and counted once
    total = np.asarray(links.sum(axis=0)).ravel()
    usable = (linked > 1) & (linked <= MAX_SHARED)
    scale = np.divide(1.0, total, out=np.zeros(len(total)), where=usable)
    pairs = sp.coo_array(sp.triu(links @ sp.diags_array(scale) @ links.T, k=1))
    said = f"edges {called!r} link nodes of type {target!r} that share one of type {other!r}"
    notes.append(f"{name}: {said}, each two by 1 / (nodes that it links to)")
    hubs = int((linked > MAX_SHARED).sum())
    if hubs:
        notes.append(
            f"{name}: edges {called!r}: {hubs:,} nodes of type {other!r} link more than "
            f"{MAX_SHARED} nodes each and are left out"
        )
    kept = pairs.data > 0
    return EdgeType(called, np.stack(pairs.coords)[:, kept].astype(np.int64), pairs.data[kept])
