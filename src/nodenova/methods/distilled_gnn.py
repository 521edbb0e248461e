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
    """Knowledge distillation: a GNN trained on Prism's probabilities of every visible node.

        L = - mean over nodes of sum_c p_c log softmax_c(h(g(.)))

    p are Prism's probabilities of old and new classes. SWORD's pseudo-labels come from the few new
    nodes, and it overfits them; these come from the whole graph, old nodes included, so that
    neither replay nor distillation of the old encoder is needed. The method is designed for a model
    fitted with `prism` and returns one with a trained GNN and joint head.

    Attributes:
        encoder: Kind of the GNN: gcn, gat or sage.
        hidden: Number of dimensions of its z.
        layers: Number of its layers.
        epochs: Number of epochs, of one step each, on all visible nodes.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.

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
        graph = task.graph
        width = 0 if graph.vectors is None else graph.vectors.shape[1]
        spec = GNNSpec(
            self.encoder, graph.num_features, self.hidden, self.layers, vector_size=width
        )
        g = GNN(spec).standardize(graph).to(model.device)
        h = UnitLinearHead.on_sphere(self.hidden, n, temperature=1.0).to(model.device)

        def terms(epoch: int) -> dict[str, Tensor]:
            return {"teacher": F.cross_entropy(h(g(task.graph)), p)}

        history = minimize(
            terms, [g, h], epochs=self.epochs, lr=self.lr, weight_decay=self.weight_decay
        )
        every_node = torch.arange(task.graph.num_nodes, device=model.device)
        memory = Memory.remember(g, task.graph, every_node, p.argmax(dim=1), n)
        return model.grown(encoder=g, head=h, memory=memory, history=history)
