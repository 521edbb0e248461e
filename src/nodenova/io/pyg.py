"""PyTorch Geometric's Data objects as labelled graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nodenova.data.labels import UNKNOWN, LabelledGraph
from nodenova.errors import GraphError
from nodenova.graph import Graph

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
    return labelled_as(data, graph, class_names, split, name)


def labelled_as(
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
