"""How the methods of this room begin and end: labelled nodes in a subgraph, and a grown model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nodenova.data.labels import LabelledNewTask
from nodenova.graph import Graph
from nodenova.model.model import Model
from nodenova.nn.encoder import Encoder
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.memory import Memory
from nodenova.nn.receptive_field import nodes_around
from nodenova.nn.training import History


@dataclass(frozen=True, eq=False)
class TrainingSubgraph:
    """Labelled nodes in the part of the graph where they have the z of the whole graph.

    Attributes:
        graph: That part.
        new: Where the new nodes are in it.
        y: Their classes as the joint head numbers them.
        old: Where the old nodes are in it.
        y_old: Their classes, likewise.
    """

    graph: Graph
    new: Tensor
    y: Tensor
    old: Tensor
    y_old: Tensor


def training_subgraph(
    model: Model, given: LabelledNewTask, keep: np.ndarray | None = None
) -> TrainingSubgraph:
    """The new nodes and, of the old ones, those at the places `keep` (none unless given)."""
    assert given.y is not None  # the entrance hands over what a method needs
    old, y_old = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if keep is not None:
        assert given.old_ids is not None
        assert given.old_y is not None
        old, y_old = given.old_ids[keep], given.old_y[keep]
    new = len(given.ids)
    wanted = np.concatenate([given.ids, old])
    graph, at = nodes_around(given.graph, wanted, model.frozen_encoder())
    parts = (at[:new], len(model.classes) + given.y, at[new:], y_old)
    return TrainingSubgraph(graph, *(torch.from_numpy(part).to(model.device) for part in parts))


def grow_model(
    model: Model, subgraph: TrainingSubgraph, g: Encoder, h_a: UnitLinearHead, history: History
) -> Model:
    """What such a method returns: a model with its encoder and joint head.

    New classes are remembered by their labelled nodes; old classes stay remembered as they were.
    """
    n_old = len(model.classes)
    num_new = h_a.num_classes - n_old
    new = Memory.remember(g, subgraph.graph, subgraph.new, subgraph.y - n_old, num_new)
    return model.grown(encoder=g, head=h_a, memory=model.memory.append(new), history=history)
