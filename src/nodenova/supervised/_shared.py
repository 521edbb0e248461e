"""How the methods of this room begin and end: labelled nodes in a subgraph, and a grown model.

How methods begin and end that are given old nodes with their labels, and new ones without.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from nodenova.data.labels import LabelledNewTask
from nodenova.graph import Graph, NewTask
from nodenova.model.model import Model
from nodenova.nn.class_memory import Memory, ReplayStatistics
from nodenova.nn.encoder import Encoder, receptive_subgraph
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.training import History


@dataclass(frozen=True, eq=False)
class OldAndNew:
    """Old and new nodes in the part of the graph where they have the z of the whole graph.

    Attributes:
        task: The new nodes in that part; there is no field for a label of theirs.
        new: (n,) where the new nodes are in it.
        old: (m,) where the old nodes are in it.
        y_old: (m,) classes of the old ones.
    """

    task: NewTask
    new: Tensor
    old: Tensor
    y_old: Tensor


def old_and_new(model: Model, given: LabelledNewTask) -> OldAndNew:
    """All nodes that the entrance handed over."""
    assert given.old_ids is not None  # the entrance hands over what a method needs
    assert given.old_y is not None
    n = len(given.ids)
    wanted = np.concatenate([given.ids, given.old_ids])
    graph, at = receptive_subgraph(given.graph, wanted, model.frozen_encoder())
    parts = (torch.from_numpy(part).to(model.device) for part in (at[:n], at[n:], given.old_y))
    return OldAndNew(NewTask(graph, at[:n], given.num_new), *parts)


def remembered_anew(model: Model, g: Encoder, nodes: OldAndNew) -> Model:
    """The same model with its classes remembered by their nodes as `g` sees them now.

    A class without nodes stays as it was.
    """
    before = model.memory
    now = Memory.remember(g, nodes.task.graph, nodes.old, nodes.y_old, len(before))
    every = torch.arange(len(before), device=model.device)[:, None]  # (C, 1)
    here = torch.isin(every, nodes.y_old)
    replay = ReplayStatistics(
        torch.where(here, now.replay.mean, before.replay.mean),
        torch.where(here, now.replay.var, before.replay.var),
    )
    classes = replace(
        before.classes,
        center=torch.where(here, now.classes.center, before.classes.center),
        factor=now.classes.factor,
        diag=now.classes.diag,
        dof=now.classes.dof,
    )
    return replace(model, _memory=Memory(replay, classes))


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
    graph, at = receptive_subgraph(given.graph, wanted, model.frozen_encoder())
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
