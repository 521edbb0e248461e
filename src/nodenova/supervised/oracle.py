"""Oracle: all labels, from scratch. The ceiling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.data.labels import LabelledNewTask
from nodenova.model.model import Model, trained_encoder
from nodenova.nn.class_memory import Memory
from nodenova.nn.encoder import receptive_subgraph
from nodenova.nn.heads import LinearHead
from nodenova.nn.training import TrainedMethod
from nodenova.settings import setting


@dataclass(frozen=True)
class Oracle(TrainedMethod):
    """The ceiling: a well-made GNN that has all labels from the start.

        L = cross-entropy on old and new training nodes

    An encoder of phase 1's kind and depth and a linear head are trained from scratch, with common
    choices: a hidden size of 64, dropout on the input too, early stopping on
    validation nodes of all classes (accuracy, then loss). Nothing of phase 1 is used. Without
    validation nodes it runs all its epochs. An encoder of your own has this hidden size, and this
    dropout if `dropout` is one of its settings.

    Attributes:
        epochs: Largest number of epochs, of one step each.
        lr: Learning rate of Adam, as in phase 1.
        weight_decay: Weight decay of Adam, as in phase 1.
        patience: Number of epochs without a better validation score after which training stops.
        hidden: Number of dimensions of z.
        dropout: Rate on the input and between layers, chosen on validation nodes (0.5 is worse).
    """

    needs: ClassVar[tuple[str, ...]] = ("new_labels", "old_nodes", "old_labels", "validation")

    epochs: int = setting(400, at_least=1)
    patience: int = setting(100, at_least=1)
    hidden: int = setting(64, at_least=1)
    dropout: float = setting(0.8, at_least=0)

    def learn(self, model: Model, task: LabelledNewTask) -> Model:
        old = trained_encoder(model, "oracle")
        assert task.y is not None
        assert task.old_ids is not None
        assert task.old_y is not None
        assert task.val_ids is not None
        assert task.val_y is not None
        n_old = len(model.classes)
        g = old.fresh(hidden=self.hidden, dropout=self.dropout, input_dropout=self.dropout)
        h = LinearHead(self.hidden, n_old + task.num_new).to(model.device)
        count = len(task.old_ids) + len(task.ids)
        wanted = np.concatenate([task.old_ids, task.ids, task.val_ids])
        graph, at = receptive_subgraph(task.graph, wanted, g)
        y_train = np.concatenate([task.old_y, n_old + task.y])
        parts = (at[:count], y_train, at[count:], task.val_y)
        ids, y, val, y_val = (torch.from_numpy(part).to(model.device) for part in parts)

        def terms(epoch: int) -> dict[str, Tensor]:
            return {"ce": F.cross_entropy(h(g(graph)[ids]), y)}

        def validate() -> tuple[float, float]:
            logits = h(g(graph)[val])
            accuracy = float((logits.argmax(dim=1) == y_val).float().mean())
            return accuracy, -float(F.cross_entropy(logits, y_val))

        history = self._train(
            terms, [g, h], validate=validate if len(val) else None, patience=self.patience
        )
        # The statistics of old classes belong to another encoder: all are computed again.
        known = Memory.remember(g, graph, ids, y, h.num_classes)
        return model.grown(encoder=g, head=h, memory=known, history=history)
