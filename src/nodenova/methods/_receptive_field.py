"""What a method for few new nodes needs of a large graph."""

from __future__ import annotations

from nodenova.encoders.gnn import Encoder
from nodenova.prism.encoder import Views
from nodenova.task import NewTask


def within_reach(task: NewTask, g: Encoder | Views) -> NewTask:
    """The same task on the part of its graph that z of the new nodes depends on; z at `ids` is that of the whole graph.

    A method that trains on nothing but z of the new nodes (and what surrounds them) takes this task instead of its own.
    """
    assert isinstance(g, Encoder)  # a trained head stands on a trained encoder
    graph, ids = task.graph.around(task.ids, g.spec.layers + 1)
    return NewTask(graph, ids, task.num_new)
