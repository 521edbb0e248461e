"""The floor: a model that never predicts a new class."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from nodenova.heads import grow
from nodenova.model import Model
from nodenova.prototypes import Prototypes
from nodenova.task import NewTask


@dataclass(frozen=True)
class NeverNew:
    """Gives new classes a place in the joint head but no probability. Whatever beats it on New has found something."""

    def discover(self, model: Model, task: NewTask) -> Model:
        h_a = grow(model.head(), task.num_new)
        with torch.no_grad():
            h_a.linear.weight[len(model.classes) :] = 0.0
            h_a.linear.bias[len(model.classes) :] = -1e4
            z_u = model.frozen_encoder()(task.graph)[torch.from_numpy(task.ids).to(model.device)]
        new = Prototypes.of(z_u, torch.zeros(len(z_u), device=model.device), task.num_new)
        return model.grown(encoder=model.encoder(), head=h_a, new_prototypes=new)
