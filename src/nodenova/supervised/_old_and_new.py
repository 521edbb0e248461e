"""How methods begin and end that are given old nodes with their labels, and new ones without."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from nodenova.data.labels import LabelledNewTask
from nodenova.model.model import Model
from nodenova.nn.encoder import Encoder
from nodenova.nn.memory import Memory, ReplayStatistics
from nodenova.nn.receptive_field import nodes_around
from nodenova.task import NewTask


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
    graph, at = nodes_around(given.graph, wanted, model.frozen_encoder())
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
