"""How the methods of this room begin and end: labelled nodes with no more of the graph than needed, and a grown model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nodenova.data.labels import GivenTask
from nodenova.graph import Graph
from nodenova.model.model import Model
from nodenova.nn.encoder import Encoder
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.memory import Memory
from nodenova.nn.receptive_field import nodes_around
from nodenova.nn.training import History


@dataclass(frozen=True, eq=False)
class Lesson:
    """Labelled nodes, and the part of the graph in which an encoder gives them the z they have in the whole graph.

    new, old: where the nodes are in `graph`;  y, y_old: their classes as the joint head numbers them.
    """

    graph: Graph
    new: Tensor
    y: Tensor
    old: Tensor
    y_old: Tensor


def lesson_of(model: Model, given: GivenTask, keep: np.ndarray | None = None) -> Lesson:
    """The new nodes and, of the old ones, those at the places `keep` (none unless given)."""
    assert given.y is not None  # the door hands over what a method needs
    old, y_old = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if keep is not None:
        assert given.old_ids is not None
        assert given.old_y is not None
        old, y_old = given.old_ids[keep], given.old_y[keep]
    g, new = model.frozen_encoder(), len(given.ids)
    graph, at = nodes_around(given.graph, np.concatenate([given.ids, old]), g)
    parts = (at[:new], len(model.classes) + given.y, at[new:], y_old)
    return Lesson(graph, *(torch.from_numpy(part).to(model.device) for part in parts))


def taught_model(model: Model, lesson: Lesson, g: Encoder, h_a: UnitLinearHead, history: History) -> Model:
    """What such a method returns: its encoder and joint head, and the new classes remembered by their labelled nodes.

    Old classes stay remembered as they were.
    """
    n_old = len(model.classes)
    new = Memory.remember(g, lesson.graph, lesson.new, lesson.y - n_old, h_a.num_classes - n_old)
    return model.grown(encoder=g, head=h_a, memory=model.memory.append(new), history=history)
