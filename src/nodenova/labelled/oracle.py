"""Oracle: all labels, from scratch. The ceiling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.data.answers import GivenTask
from nodenova.encoders import Encoder
from nodenova.heads import CosineHead
from nodenova.labelled.lesson import lesson_of
from nodenova.model import Model, trained_head
from nodenova.prototypes import Prototypes
from nodenova.settings import check_settings
from nodenova.training import minimise


@dataclass(frozen=True)
class Oracle:
    """What the encoder learns when all labels are there from the start: L = cross-entropy on old and new training nodes.

    An encoder of phase 1's kind and a joint head begin afresh; nothing of phase 1 is used but their shapes. Without
    validation nodes it runs all its epochs.
    """

    prefers: ClassVar[str] = "gcn"
    needs: ClassVar[tuple[str, ...]] = ("new_labels", "old_nodes", "old_labels")

    epochs: int = 200
    lr: float = 0.01
    weight_decay: float = 5e-4

    def __post_init__(self) -> None:
        check_settings(self, counts=("epochs",), not_negative=("lr", "weight_decay"))

    def learn(self, model: Model, given: GivenTask) -> Model:
        head, old = trained_head(model, "oracle"), model.frozen_encoder()
        assert isinstance(old, Encoder)  # a trained head stands on a trained encoder
        assert given.old_ids is not None
        num_classes = len(model.classes) + given.num_new
        g = Encoder(old.spec).to(model.device)
        h_a = CosineHead(old.spec.hidden, num_classes, head.temperature).to(model.device)
        lesson = lesson_of(model, given, keep=np.arange(len(given.old_ids)))
        at, y = torch.cat([lesson.old, lesson.new]), torch.cat([lesson.y_old, lesson.y])

        def terms(epoch: int) -> dict[str, Tensor]:
            return {"ce": F.cross_entropy(h_a(g(lesson.graph)[at]), y)}

        history = minimise(terms, [g, h_a], epochs=self.epochs, lr=self.lr, weight_decay=self.weight_decay)
        known = Prototypes.remember(g, lesson.graph, at, y, num_classes)  # the old ones speak of another encoder's z
        return model.grown(encoder=g, head=h_a, prototypes=known, history=history)
