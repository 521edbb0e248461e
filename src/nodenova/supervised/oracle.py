"""Oracle: all labels, from scratch. The ceiling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.data.labels import GivenTask
from nodenova.encoders.gnn import GNN
from nodenova.model.model import Model, trained_encoder
from nodenova.nn.heads import LinearHead
from nodenova.nn.memory import Memory
from nodenova.nn.receptive_field import nodes_around
from nodenova.nn.training import minimize
from nodenova.settings import check_settings, setting


@dataclass(frozen=True)
class Oracle:
    """A well-made GNN that has all labels from the start: L = cross-entropy on old and new training nodes.

    An encoder of phase 1's kind and depth and a plain linear head begin afresh. They are given what anybody would give
    them: a hidden size of 64, dropout on the input too, early stopping on validation nodes of all classes (accuracy, then
    loss). Nothing of phase 1 is used. Without validation nodes it runs all its epochs.
    """

    prefers: ClassVar[str] = "gcn"
    needs: ClassVar[tuple[str, ...]] = ("new_labels", "old_nodes", "old_labels", "validation")

    epochs: int = setting(400, at_least=1)
    lr: float = setting(0.01, at_least=0)
    weight_decay: float = setting(5e-4, at_least=0)
    patience: int = setting(100, at_least=1)
    hidden: int = setting(64, at_least=1)
    dropout: float = setting(0.8, at_least=0)  # on the input and between layers; by validation nodes (0.5: worse)

    def __post_init__(self) -> None:
        check_settings(self)

    def learn(self, model: Model, given: GivenTask) -> Model:
        old = trained_encoder(model, "oracle")
        assert given.y is not None
        assert given.old_ids is not None
        assert given.old_y is not None
        assert given.val_ids is not None
        assert given.val_y is not None
        n_old = len(model.classes)
        spec = replace(old.spec, hidden=self.hidden, dropout=self.dropout, input_dropout=self.dropout)
        g, h = GNN(spec).to(model.device), LinearHead(self.hidden, n_old + given.num_new).to(model.device)
        train, count = np.concatenate([given.old_ids, given.ids]), len(given.old_ids) + len(given.ids)
        graph, at = nodes_around(given.graph, np.concatenate([train, given.val_ids]), g)
        parts = (at[:count], np.concatenate([given.old_y, n_old + given.y]), at[count:], given.val_y)
        ids, y, val, y_val = (torch.from_numpy(part).to(model.device) for part in parts)

        def terms(epoch: int) -> dict[str, Tensor]:
            return {"ce": F.cross_entropy(h(g(graph)[ids]), y)}

        def validate() -> tuple[float, float]:
            logits = h(g(graph)[val])
            return float((logits.argmax(dim=1) == y_val).float().mean()), -float(F.cross_entropy(logits, y_val))

        history = minimize(
            terms,
            [g, h],
            epochs=self.epochs,
            lr=self.lr,
            weight_decay=self.weight_decay,
            validate=validate if len(val) else None,
            patience=self.patience,
        )
        known = Memory.remember(g, graph, ids, y, h.num_classes)  # the old ones speak of another encoder's z
        return model.grown(encoder=g, head=h, memory=known, history=history)
