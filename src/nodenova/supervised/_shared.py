"""How supervised methods begin and end: labelled nodes in a subgraph, and a grown model."""

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
    """Labelled old nodes and unlabelled new ones, in the part of the graph that decides their z."""

    task: NewTask  # the new nodes in that part; it has no field for their labels
    new: Tensor  # (n,) places of the new nodes in it
    old: Tensor  # (m,) places of the old nodes in it
    y_old: Tensor  # (m,) classes of the old nodes


def gather_nodes(model: Model, task: LabelledNewTask) -> OldAndNew:
    """Return all nodes of a task in their receptive field."""
    assert task.old_ids is not None  # the entrance passes on what a method needs
    assert task.old_y is not None
    n = len(task.ids)
    ids = np.concatenate([task.ids, task.old_ids])
    graph, at = receptive_subgraph(task.graph, ids, model.frozen_encoder())
    parts = (torch.from_numpy(part).to(model.device) for part in (at[:n], at[n:], task.old_y))
    return OldAndNew(NewTask(graph, at[:n], task.num_new), *parts)


def refresh_memory(model: Model, g: Encoder, nodes: OldAndNew) -> Model:
    """Return the model with the statistics of its classes recomputed by encoder `g`.

    A class without nodes keeps its statistics.
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
    """Labelled nodes in the part of the graph that decides their z; classes by joint head row."""

    graph: Graph
    new: Tensor  # places of the new nodes
    y: Tensor  # their classes
    old: Tensor  # places of the old nodes
    y_old: Tensor  # their classes


def training_subgraph(
    model: Model, task: LabelledNewTask, keep: np.ndarray | None = None
) -> TrainingSubgraph:
    """Return the new nodes and the old ones at the places `keep` (none by default)."""
    assert task.y is not None  # the entrance passes on what a method needs
    old, y_old = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if keep is not None:
        assert task.old_ids is not None
        assert task.old_y is not None
        old, y_old = task.old_ids[keep], task.old_y[keep]
    new = len(task.ids)
    ids = np.concatenate([task.ids, old])
    graph, at = receptive_subgraph(task.graph, ids, model.frozen_encoder())
    parts = (at[:new], len(model.classes) + task.y, at[new:], y_old)
    return TrainingSubgraph(graph, *(torch.from_numpy(part).to(model.device) for part in parts))


def grow_model(
    model: Model, subgraph: TrainingSubgraph, g: Encoder, h_a: UnitLinearHead, history: History
) -> Model:
    """Return the grown model; statistics of new classes come from their labelled nodes."""
    n_old = len(model.classes)
    num_new = h_a.num_classes - n_old
    new = Memory.remember(g, subgraph.graph, subgraph.new, subgraph.y - n_old, num_new)
    return model.grown(encoder=g, head=h_a, memory=model.memory.append(new), history=history)
