"""A GNN distilled from Prism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.encoders.gnn import GNN, GNNSpec
from nodenova.encoders.prism.lda import fit_joint_classifier, strict_grouping
from nodenova.graph import NewTask
from nodenova.model.model import Model
from nodenova.nn.class_memory import Memory
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.training import minimize
from nodenova.settings import check_settings, setting


@dataclass(frozen=True)
class DistilledGNN:
    """Knowledge distillation: a GNN trained on what Prism says of every visible node.

    The paper's encoders with Prism's knowledge.

        L = - mean over nodes of sum_c p_c log softmax_c(h(g(.)))

    p are Prism's probabilities of old and new classes. SWORD's pseudo-labels come from the few new
    nodes and are learned by heart; these come from the whole graph, which holds old nodes too, so
    nothing need be replayed, and no old encoder held on to. It is meant to start from a model
    fitted with `prism` and returns one with a trained encoder and joint head, for whoever needs a
    GNN.

    Attributes:
        encoder: Of the GNN: gcn, gat or sage.
        hidden: Dimensions of its z.
        layers: How many it has.
        epochs: How many, of one step each, on all visible nodes.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Of Adam, as in phase 1.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> nova.discover(nova.fit(old, "prism"), new, nova.DistilledGNN(encoder="sage", epochs=5))
        Model(sage, 4 classes, 2 of them discovered)
    """

    prefers: ClassVar[str] = "prism"

    encoder: str = "gcn"
    hidden: int = 64
    layers: int = 2
    epochs: int = setting(100, at_least=1)
    lr: float = setting(0.01, at_least=0)
    weight_decay: float = setting(5e-4, at_least=0)

    def __post_init__(self) -> None:
        GNNSpec(self.encoder, hidden=self.hidden, layers=self.layers)
        check_settings(self)

    def discover(self, model: Model, task: NewTask) -> Model:
        views = model.frozen_encoder()
        n = model.num_columns + task.number
        with torch.no_grad():
            z = views(task.graph)
            ids = torch.from_numpy(task.ids).to(z.device)
            multirank, memory, lda = views.spec.multirank, model.memory, model.lda
            grouping = strict_grouping(multirank, memory.classes, z[ids], task.number, lda)
            teacher = fit_joint_classifier(multirank, memory, grouping, z, lda).head
            p = teacher(z).softmax(dim=1)  # (N, n)
        spec = GNNSpec(self.encoder, task.graph.num_features, self.hidden, self.layers)
        g = GNN(spec).to(model.device)
        h = UnitLinearHead.on_sphere(self.hidden, n, temperature=1.0).to(model.device)

        def terms(epoch: int) -> dict[str, Tensor]:
            return {"teacher": F.cross_entropy(h(g(task.graph)), p)}

        history = minimize(
            terms, [g, h], epochs=self.epochs, lr=self.lr, weight_decay=self.weight_decay
        )
        everybody = torch.arange(task.graph.num_nodes, device=model.device)
        memory = Memory.remember(g, task.graph, everybody, p.argmax(dim=1), n)
        return model.grown(encoder=g, head=h, memory=memory, history=history)
