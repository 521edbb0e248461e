"""A GNN that learns from Prism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.closed_form import found
from nodenova.encoders import Encoder, EncoderSpec
from nodenova.heads import CosineHead
from nodenova.model import Model
from nodenova.prototypes import Prototypes
from nodenova.settings import check_settings
from nodenova.task import NewTask
from nodenova.training import minimise


@dataclass(frozen=True)
class Taught:
    """The paper's encoders with Prism's knowledge: a GNN trained on what Prism says of every visible node.

        L = - mean over nodes of sum_c p_c log softmax_c(h(g(.)))        p: Prism's probabilities, old and new classes

    SWORD's pseudo-labels come from the few new nodes and are learnt by heart; these come from the whole graph, which
    holds old nodes too, so nothing need be replayed or distilled. It is meant to start from a model fitted with `prism` and
    returns one with a trained encoder and joint head, for whoever needs a GNN.
    """

    prefers: ClassVar[str] = "prism"

    student: str = "gcn"  # gcn, gat or sage
    hidden: int = 64
    layers: int = 2
    epochs: int = 100
    lr: float = 0.01
    weight_decay: float = 5e-4

    def __post_init__(self) -> None:
        EncoderSpec(self.student, hidden=self.hidden, layers=self.layers)
        check_settings(self, counts=("epochs",), not_negative=("lr", "weight_decay"))

    def discover(self, model: Model, task: NewTask) -> Model:
        views, n = model.frozen_encoder(), model.num_columns + task.num_new
        with torch.no_grad():
            z = views(task.graph)
            _, teacher = found(views.spec, model.prototypes, z, torch.from_numpy(task.ids).to(z.device), task.num_new)
            p = teacher(z).softmax(dim=1)  # (N, n)
        spec = EncoderSpec(self.student, task.graph.num_features, self.hidden, self.layers)
        g, h = Encoder(spec).to(model.device), CosineHead(self.hidden, n, temperature=1.0).to(model.device)

        def terms(epoch: int) -> dict[str, Tensor]:
            return {"teacher": F.cross_entropy(h(g(task.graph)), p)}

        history = minimise(terms, [g, h], epochs=self.epochs, lr=self.lr, weight_decay=self.weight_decay)
        everybody = torch.arange(task.graph.num_nodes, device=model.device)
        prototypes = Prototypes.remember(g, task.graph, everybody, p.argmax(dim=1), n)
        return model.grown(encoder=g, head=h, prototypes=prototypes, history=history)
