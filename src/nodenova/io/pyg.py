"""PyTorch Geometric's Data and HeteroData as labelled graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import UNKNOWN, LabelledGraph, number_classes
from nodenova.display import plural
from nodenova.errors import GraphError, brief
from nodenova.graph import Graph, check_edge_weights, check_edges
from nodenova.io.edges import EdgeType, combine_types

if TYPE_CHECKING:
    from torch_geometric.data import Data

MAX_OTHER = 2**31  # numbers of nodes of other types
MAX_SHARED = 500  # a node of another type that links more nodes than this is left out


def from_pyg(
    data: Data, *, class_names: Sequence[str] | None = None, split: int = 0, name: str = "PyG data"
) -> LabelledGraph:
    """Make a labelled graph from PyTorch Geometric's `Data`.

    If the data has a `stopping_mask`, as Wiki-CS has, it takes the place of `val_mask`.

    Args:
        data: Graph with `x`, `edge_index` and, optionally, `edge_weight` (E,), `y` (N,), -1 where
            the class is unknown, and `train_mask`, `val_mask` and `test_mask`. Use `load_graph` for
            a `HeteroData`.
        class_names: Names of the classes; "0", "1", ... by default.
        split: Number of the split where masks have a column for each of several published splits.
        name: Name of the graph in messages and results.

    Returns:
        The graph, its classes and its published split, if it has one.

    Raises:
        GraphError: If `x` or `edge_index` is missing, arrays do not fit together, or there is no
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
    x, ends, weight = (_array(data, key, name) for key in ("x", "edge_index", "edge_weight"))
    if x is None or ends is None:
        raise GraphError(f"{name}: a Data object needs x and edge_index")
    graph = Graph.of(x, ends, source=name, edge_weight=weight)
    return _add_labels(data, graph, class_names, split, name)


def _array(store: Any, key: str, name: str) -> np.ndarray | None:
    """The tensor under a key of a `Data` or of one of its stores, as an array; None if missing."""
    if not callable(getattr(store, "get", None)):
        raise GraphError(f"{name}: not a Data object, but {brief(store)}")
    value = store.get(key)
    if value is None:
        return None
    try:
        array: np.ndarray = value.detach().cpu().numpy()
    except Exception:  # of any kind: not a tensor, a sparse one, one without values
        raise GraphError(
            f"{name}: {key} must be a dense tensor of numbers, it is {brief(value)}"
        ) from None
    return array


def is_hetero(source: Any) -> bool:
    """Whether this is a HeteroData, without importing PyTorch Geometric."""
    return hasattr(source, "node_types") and hasattr(source, "edge_types")


def from_hetero(
    data: Any,
    node_type: str | None = None,
    shares: Mapping[str, float] | None = None,
    name: str = "PyG data",
) -> tuple[LabelledGraph, list[str]]:
    """Make a labelled graph of the nodes of one type (by default the one with `y`), and notes.

    Edges between these nodes stay edges. A node of another type links each two of the nodes it
    links to, with the weight 1 / (nodes that it links to), so that all nodes of the other type
    count alike. `shares` are the weights of the types of edges; None weighs all alike.
    """
    target = _find_target(data, node_type, name)
    store = data[target]
    x = _array(store, "x", name)
    if x is None or x.ndim != 2 or not x.size:
        raise GraphError(f"{name}: nodes of type {target!r} need x (nodes, features)")
    notes: list[str] = []
    types = list(_edge_types(data, target, len(x), name, notes))
    if not types:
        raise GraphError(f"{name}: no type of edges has an end of type {target!r}")
    ends, weight = combine_types(types, len(x), shares, name, notes)
    graph = Graph.of(x, ends, source=name, edge_weight=weight)
    return _add_labels(store, graph, None, 0, name), notes


def _add_labels(
    data: Any, graph: Graph, class_names: Sequence[str] | None, split: int, name: str
) -> LabelledGraph:
    """Add the `y` and masks of a `Data`, or of one node type of a `HeteroData`, to its graph."""
    y = _array(data, "y", name)
    y = np.full(graph.num_nodes, UNKNOWN) if y is None else y.reshape(-1)
    names = number_classes(y, graph.num_nodes, name) if class_names is None else class_names

    def mask(key: str) -> np.ndarray | None:
        values = _array(data, key, name)
        if values is None:
            return None
        if values.ndim != 2:
            return values.astype(bool)
        if not 0 <= split < values.shape[1]:
            last = values.shape[1] - 1
            raise GraphError(f"{name}: split {split} is not there, splits are 0..{last}")
        return values[:, split].astype(bool)

    stopping = mask("stopping_mask")
    val = mask("val_mask") if stopping is None else stopping
    return LabelledGraph(graph, y, tuple(names), mask("train_mask"), val, mask("test_mask"), name)


def _find_target(data: Any, node_type: str | None, name: str) -> str:
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


def _edge_types(data: Any, target: str, n: int, name: str, notes: list[str]) -> Iterator[EdgeType]:
    """Yield the links between nodes of the target type, one type of edges at a time."""
    unused = []
    seen: dict[tuple[str, str], list[tuple[str, np.ndarray]]] = {}
    relations = [relation for _, relation, _ in data.edge_types]
    for triple in data.edge_types:
        source, relation, end = triple
        title = relation if relations.count(relation) == 1 else " ".join(triple)
        if target not in (source, end):
            unused.append(" ".join(triple))
            continue
        where = f"{name}: edges {title!r}"
        sizes = [n if kind == target else None for kind in (source, end)]
        ends, weight = _relation(data[triple], where, sizes)
        keys = np.sort(ends[0] << 32 | ends[1])
        back = np.sort(ends[1] << 32 | ends[0])
        twins = [twin for twin, other in seen.get((end, source), ()) if np.array_equal(other, back)]
        if twins:
            notes.append(f"{name}: edges {title!r} are edges {twins[0]!r} reversed; used once")
            continue
        seen.setdefault((source, end), []).append((title, keys))
        if source == end:
            yield EdgeType(title, ends, weight)
            continue
        other_type = source if end == target else end
        ends = ends if source == target else ends[::-1]
        where = f"{name}: edges {title!r}"
        notes.append(
            f"{where} link nodes of type {target!r} that share one of type {other_type!r}, "
            "each two by 1 / (nodes that it links to)"
        )
        edge_type, hubs = _link_shared(title, ends, weight, n)
        if hubs:
            nodes = plural(
                hubs, f"node of type {other_type!r} links", f"nodes of type {other_type!r} link"
            )
            notes.append(f"{where}: {nodes} more than {MAX_SHARED} nodes each; left out")
        yield edge_type
    if unused:
        notes.append(
            f"{name}: edges without an end of type {target!r} are not used: {', '.join(unused)}"
        )


def _relation(
    store: Any, where: str, sizes: Sequence[int | None]
) -> tuple[np.ndarray, np.ndarray | None]:
    """(2, E) ends and (E,) weights of a type of edges; `sizes` of its two sides where known."""
    ends, weight = (_array(store, key, where) for key in ("edge_index", "edge_weight"))
    if ends is None:
        raise GraphError(f"{where} need edge_index")
    ends = check_edges(ends, MAX_OTHER, where)
    for side, size in zip(ends, sizes, strict=True):
        if size is not None and side.max(initial=0) >= size:
            raise GraphError(f"{where} name node {side.max()}, nodes are 0..{size - 1}")
    return ends, check_edge_weights(weight, ends, where)


def _link_shared(
    title: str, ends: np.ndarray, weight: np.ndarray | None, n: int
) -> tuple[EdgeType, int]:
    """Link nodes that share a node of another type; also return the number of hubs left out."""
    values = np.ones(ends.shape[1]) if weight is None else weight
    others, place = np.unique(ends[1], return_inverse=True)  # numbers may be far apart
    links = sp.csc_array((values, (ends[0], place)), shape=(n, max(1, len(others))))
    linked = np.diff(links.indptr)
    if weight is None:
        links.data[:] = 1.0  # a repeated link counts once
    total = np.asarray(links.sum(axis=0)).ravel()
    usable = (linked > 1) & (linked <= MAX_SHARED)
    scale = np.divide(1.0, total, out=np.zeros(len(total)), where=usable)
    pairs = sp.coo_array(sp.triu(links @ sp.diags_array(scale) @ links.T, k=1))
    positive = pairs.data > 0
    ends = np.stack(pairs.coords)[:, positive].astype(np.int64)
    return EdgeType(title, ends, pairs.data[positive]), int((linked > MAX_SHARED).sum())
