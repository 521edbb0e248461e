"""How methods begin and end that are given old nodes with their labels, and new ones without."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from nodenova.data.labels import GivenTask
from nodenova.encoders.gnn import Encoder
from nodenova.model.model import Model
from nodenova.nn.statistics import Prototypes
from nodenova.prism.encoder import Views
from nodenova.task import NewTask


@dataclass(frozen=True, eq=False)
class OldAndNew:
    """Old and new nodes, and the part of the graph in which an encoder gives them the z they have in the whole graph.

    task:     the new nodes in that part; there is no field for a label of theirs.
    new, old: (n,), (m,) where the nodes are in it;  y_old: (m,) classes of the old ones.
    """

    task: NewTask
    new: Tensor
    old: Tensor
    y_old: Tensor


def old_and_new(model: Model, given: GivenTask) -> OldAndNew:
    """All nodes that the door handed over."""
    assert given.old_ids is not None  # the door hands over what a method needs
    assert given.old_y is not None
    g, n = model.frozen_encoder(), len(given.ids)
    assert isinstance(g, Encoder)  # a trained head, which every method asks for first, stands on a trained encoder
    graph, at = given.graph.around(np.concatenate([given.ids, given.old_ids]), g.spec.layers + 1)
    parts = (torch.from_numpy(part).to(model.device) for part in (at[:n], at[n:], given.old_y))
    return OldAndNew(NewTask(graph, at[:n], given.num_new), *parts)


def remembered_anew(model: Model, g: Encoder | Views, nodes: OldAndNew) -> Model:
    """The same model with its classes remembered by their nodes as `g` sees them now; one without nodes stays as it was."""
    before = model.prototypes
    now = Prototypes.remember(g, nodes.task.graph, nodes.old, nodes.y_old, len(before.mean))
    here = torch.isin(torch.arange(len(before.mean), device=model.device), nodes.y_old)[:, None]  # (C, 1)
    rows = {name: torch.where(here, getattr(now, name), getattr(before, name)) for name in ("mean", "var", "centre")}
    return replace(model, _prototypes=replace(before, **rows, factor=now.factor, rest=now.rest, dof=now.dof))
