"""A GNN that learns from Prism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.encoders.gnn import GNN, GNNSpec
from nodenova.model.model import Model
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.memory import Memory
from nodenova.nn.training import minimize
from nodenova.prism.classifier import fit_joint_classifier
from nodenova.settings import check_settings, setting
from nodenova.task import NewTask


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
    epochs: int = setting(100, at_least=1)
    lr: float = setting(0.01, at_least=0)
    weight_decay: float = setting(5e-4, at_least=0)

    def __post_init__(self) -> None:
        GNNSpec(self.student, hidden=self.hidden, layers=self.layers)
        check_settings(self)

    def discover(self, model: Model, task: NewTask) -> Model:
        views, n = model.frozen_encoder(), model.num_columns + task.num_new
        with torch.no_grad():
            z = views(task.graph)
            ids = torch.from_numpy(task.ids).to(z.device)
            _, teacher = fit_joint_classifier(views.spec.multirank, model.memory, z, ids, task.num_new, lda=model.lda)
            p = teacher(z).softmax(dim=1)  # (N, n)
        spec = GNNSpec(self.student, task.graph.num_features, self.hidden, self.layers)
        g, h = GNN(spec).to(model.device), UnitLinearHead.on_sphere(self.hidden, n, temperature=1.0).to(model.device)

        def terms(epoch: int) -> dict[str, Tensor]:
            return {"teacher": F.cross_entropy(h(g(task.graph)), p)}

        history = minimize(terms, [g, h], epochs=self.epochs, lr=self.lr, weight_decay=self.weight_decay)
        everybody = torch.arange(task.graph.num_nodes, device=model.device)
        memory = Memory.remember(g, task.graph, everybody, p.argmax(dim=1), n)
        return model.grown(encoder=g, head=h, memory=memory, history=history)
