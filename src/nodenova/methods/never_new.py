"""The floor: a model that never predicts a new class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from nodenova.graph import NewTask
from nodenova.model.model import Model, linear_head
from nodenova.nn.class_memory import Memory
from nodenova.nn.encoder import restrict_to_receptive_field
from nodenova.nn.heads import grow


@dataclass(frozen=True)
class NeverNew:
    """The floor: new classes have rows in the joint head, but no probability.

    A method that beats it on New has found something.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> model = nova.discover(nova.fit(old, "gcn", epochs=20), new, nova.NeverNew())
        >>> model
        Model(gcn, 4 classes, 2 of them discovered)
        >>> nova.grade(model, exam).scores()["new"]
        0.0
    """

    batches: ClassVar[bool] = True  # works with a model fitted on batches of nodes
    prefers: ClassVar[str] = "gcn"

    def discover(self, model: Model, task: NewTask) -> Model:
        g, h_a = model.encoder(), grow(linear_head(model, "never_new"), task.number)
        task = restrict_to_receptive_field(task, g)
        ids = torch.from_numpy(task.ids).to(model.device)
        with torch.no_grad():
            h_a.linear.weight[model.num_columns :] = 0.0
            h_a.linear.bias[model.num_columns :] = -1e4
        new = Memory.remember(g, task.graph, ids, torch.zeros_like(ids), task.number)
        return model.grown(encoder=g, head=h_a, memory=model.memory.append(new))
