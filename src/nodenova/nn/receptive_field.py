"""What a method for few nodes needs of a large graph."""

from __future__ import annotations

import numpy as np

from nodenova.graph import Graph
from nodenova.nn.encoder import Encoder
from nodenova.task import NewTask


def nodes_around(graph: Graph, ids: np.ndarray, g: Encoder) -> tuple[Graph, np.ndarray]:
    """The k-hop subgraph that z of the nodes `ids` depends on, and where they are in it.

    Args:
        graph: The whole graph.
        ids: (n,) numbers of nodes, ascending.
        g: The encoder; the whole graph if its receptive field is.

    Returns:
        The subgraph and the (n,) numbers of `ids` in it.
    """
    field = g.spec.receptive_field
    # One step more than the field: every node that speaks has all its neighbors, hence its true
    # degree.
    return (graph, ids) if field is None else graph.k_hop_subgraph(ids, field + 1)


def in_receptive_field(task: NewTask, g: Encoder) -> NewTask:
    """The same task on the part of its graph that z of the new nodes depends on.

    z at `ids` is that of the whole graph. A method that trains on nothing but z of the new nodes
    (and what surrounds them) takes this task instead of its own.

    Args:
        task: The task as it was given.
        g: The encoder.
    """
    graph, ids = nodes_around(task.graph, task.ids, g)
    return NewTask(graph, ids, task.number)
