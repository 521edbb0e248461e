"""Phase 1: labelled old nodes into a Model. Keeps no node and no label."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.data.answers import OldTask
from nodenova.encoders import Encoder, EncoderSpec
from nodenova.errors import SettingError
from nodenova.graph import Graph
from nodenova.heads import CosineHead
from nodenova.model import Model, NodeClass, Stage, frozen
from nodenova.prototypes import Prototypes
from nodenova.randomness import pick_device, repeatable
from nodenova.training import Watcher, minimise, watched_by


def fit(
    old: OldTask,
    encoder: str = "gcn",
    *,
    seed: int = 0,
    hidden: int = 16,
    layers: int = 2,
    dropout: float = 0.5,
    heads: int = 8,
    epochs: int = 200,
    lr: float = 0.01,
    weight_decay: float = 5e-4,
    patience: int = 100,
    device: str = "auto",
    threads: int = 1,
    watcher: Watcher | None = None,
) -> Model:
    """Train an encoder and a head on the labelled old nodes (Eq. 1) and remember each class's prototype (Eq. 9).

    The model ends in the state that was best on the old validation nodes (accuracy, then loss), and training stops
    when that has not improved for `patience` epochs; without validation nodes it runs all `epochs`.
    """
    check_epochs(epochs)
    graph, place = old.graph, pick_device(device)
    spec = EncoderSpec(encoder, graph.num_features, hidden, layers, dropout, heads, row_normalise=_are_counts(graph))
    train, y = _tensors(old.train_ids, old.train_y, place)
    val, y_val = _tensors(old.val_ids, old.val_y, place)
    num_classes = len(old.class_names)
    with repeatable(seed, "fit", threads), watched_by(watcher):
        g, h = Encoder(spec).to(place), CosineHead(hidden, num_classes).to(place)

        def terms(epoch: int) -> dict[str, Tensor]:
            return {"ce": F.cross_entropy(h(g(graph)[train]), y)}

        def validate() -> tuple[float, float]:
            logits = h(g(graph)[val])
            accuracy = float((logits.argmax(dim=1) == y_val).float().mean())
            return accuracy, -float(F.cross_entropy(logits, y_val))

        history = minimise(
            terms,
            [g, h],
            epochs=epochs,
            lr=lr,
            weight_decay=weight_decay,
            validate=validate if len(val) else None,
            patience=patience,
        )
        prototypes = Prototypes.remember(g, graph, train, y, num_classes)
    settings = spec.as_settings() | {"epochs": epochs, "lr": lr, "weight_decay": weight_decay, "patience": patience}
    return Model(
        _encoder=frozen(g),
        _head=frozen(h),
        _novel_head=None,
        _prototypes=prototypes,
        classes=tuple(NodeClass(i, name, 0) for i, name in enumerate(old.class_names)),
        stages=(Stage("fit", settings, seed, ("graph", "old_nodes", "old_labels"), history),),
    )


def check_epochs(epochs: int) -> None:
    if epochs < 1:
        raise SettingError(f"epochs must be at least 1, it is {epochs}")


def _tensors(ids: np.ndarray, y: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(ids).to(device), torch.from_numpy(y).to(device)


def _are_counts(graph: Graph) -> bool:
    """Bags of words and other non-negative features are divided by their sum, as the paper does; others are left alone."""
    values = graph.x if isinstance(graph.x, np.ndarray) else graph.x.data
    return bool((values >= 0).all())
