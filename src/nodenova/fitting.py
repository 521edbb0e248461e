"""Phase 1: labelled old nodes into a Model. Keeps no node and no label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.data.labels import OldTask
from nodenova.encoders.gnn import ENCODERS, Encoder, EncoderSpec
from nodenova.errors import SettingError, one_of
from nodenova.graph import Graph
from nodenova.model.model import Model, NodeClass, Stage
from nodenova.nn.heads import CosineHead, Head, LinearHead
from nodenova.nn.seeding import pick_device, repeatable
from nodenova.nn.statistics import Prototypes
from nodenova.nn.training import Watcher, frozen, minimise, watched_by
from nodenova.prism.classifier import calibrated_temperature, gaussian_head, learnt_view_scale
from nodenova.prism.encoder import Views
from nodenova.settings import from_text

SEES = ("graph", "old_nodes", "old_labels")
# Settings of the encoders that are trained: of their shape, and of training with what it is unless told otherwise.
SHAPE = ("hidden", "layers", "dropout", "heads", "input_dropout", "attention")
TRAINING: dict[str, Any] = {
    "epochs": 200,
    "lr": 0.01,
    "weight_decay": 5e-4,
    "early_stopping": True,
    "patience": 100,
    "head": "linear",
    "prototype_passes": 0,
}
HEADS = {"linear": LinearHead, "cosine": CosineHead}


def fit(
    old: OldTask,
    encoder: str = "prism",
    *,
    seed: int = 0,
    device: str = "auto",
    threads: int = 1,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Model:
    """Learn the old classes and remember each of them: an encoder, a head, and statistics of the classes (Eq. 9).

    `prism` computes its encoder and head in closed form and has no settings. `gcn`, `gat` and `sage` are trained on the
    labelled old nodes (Eq. 1) with a plain linear head; their settings are hidden=16, layers=2, dropout=0.5,
    input_dropout=0 (of the features), heads=8 and attention="v1" (gat), epochs=200, lr=0.01, weight_decay=5e-4,
    patience=100. They end in the state that was best on the old validation nodes (accuracy, then loss), and training
    stops when that has not improved for `patience` epochs; without validation nodes, or with early_stopping=False, it runs
    all epochs and ends in the last one. head="cosine" trains a head on z/|z| at temperature 0.1; prototype_passes=20
    remembers classes under dropout.
    """
    check_settings(encoder, settings)
    place = pick_device(device)
    with repeatable(seed, "fit", threads), watched_by(watcher):
        return _compute(old, seed, place) if encoder == "prism" else _train(old, encoder, seed, place, settings)


def _compute(old: OldTask, seed: int, device: torch.device) -> Model:
    train, y = _tensors(old.train_ids, old.train_y, device)
    views, n = Views.fit(old.graph, device), len(old.class_names)
    g, z = views.whitened(views(old.graph)[train], y)
    prototypes = Prototypes.of(z, y, n, g.spec.view_size, g.spec.rungs)
    prototypes = prototypes.with_view_scale(learnt_view_scale(g.spec, z, y, n, g.spec.worth))
    prototypes = prototypes.with_temperature(calibrated_temperature(g.spec, z, y, n, prototypes.view_scale))
    head = gaussian_head(g.spec, prototypes, prototypes, float(prototypes.temperature))
    return _model(g, head, prototypes, old, Stage("fit", g.spec.as_settings(), seed, SEES))


def _train(old: OldTask, encoder: str, seed: int, device: torch.device, settings: Mapping[str, Any]) -> Model:
    graph, training = old.graph, TRAINING | {key: value for key, value in settings.items() if key in TRAINING}
    shape = {key: value for key, value in settings.items() if key not in TRAINING}
    spec = EncoderSpec(encoder, graph.num_features, row_normalise=_are_counts(graph), **shape)
    train, y = _tensors(old.train_ids, old.train_y, device)
    val, y_val = _tensors(old.val_ids, old.val_y, device)
    num_classes = len(old.class_names)
    g, h = Encoder(spec).to(device), HEADS[training["head"]](spec.hidden, num_classes).to(device)

    def terms(epoch: int) -> dict[str, Tensor]:
        return {"ce": F.cross_entropy(h(g(graph)[train]), y)}

    def validate() -> tuple[float, float]:
        logits = h(g(graph)[val])
        accuracy = float((logits.argmax(dim=1) == y_val).float().mean())
        return accuracy, -float(F.cross_entropy(logits, y_val))

    history = minimise(
        terms,
        [g, h],
        epochs=training["epochs"],
        lr=training["lr"],
        weight_decay=training["weight_decay"],
        validate=validate if len(val) and training["early_stopping"] else None,
        patience=training["patience"],
    )
    prototypes = Prototypes.remember(g, graph, train, y, num_classes, training["prototype_passes"])
    with torch.no_grad():
        temperature = calibrated_temperature(spec, g(graph)[train], y, num_classes, prototypes.view_scale)
        prototypes = prototypes.with_temperature(temperature)
    return _model(g, h, prototypes, old, Stage("fit", spec.as_settings() | training, seed, SEES, history))


def _model(g: Encoder | Views, h: Head, prototypes: Prototypes, old: OldTask, stage: Stage) -> Model:
    return Model(
        _encoder=frozen(g),
        _head=frozen(h),
        _novel_head=None,
        _prototypes=prototypes,
        classes=tuple(NodeClass(i, name, 0) for i, name in enumerate(old.class_names)),
        stages=(stage,),
    )


def settings_from_text(texts: Mapping[str, str]) -> dict[str, Any]:
    """Settings of `fit` given as text, as on the command line."""
    known = {field.name: field.default for field in fields(EncoderSpec) if field.name in SHAPE} | TRAINING
    for key in texts:
        if key not in known:
            raise one_of("setting of fit", key, known)
    return {key: from_text(key, text, known[key]) for key, text in texts.items()}


def check_settings(encoder: str, settings: Mapping[str, Any]) -> None:
    """Raise, before anything is done, if `fit` would not take these settings for this encoder."""
    if encoder == "prism":
        if settings:
            raise SettingError(
                f"{', '.join(settings)}: for encoders that are trained (gcn, gat, sage), and prism is computed"
            )
        return
    if encoder not in ENCODERS:
        raise one_of("encoder", encoder, [*ENCODERS, "prism"])
    shape = {key: value for key, value in settings.items() if key not in TRAINING}
    for key in shape:
        if key not in SHAPE:
            raise one_of("setting of fit", key, [*SHAPE, *TRAINING])
    EncoderSpec(encoder, **shape)
    if settings.get("epochs", 1) < 1:
        raise SettingError(f"epochs must be at least 1, it is {settings['epochs']}")
    if settings.get("prototype_passes", 0) < 0:
        raise SettingError(f"prototype_passes must not be negative, it is {settings['prototype_passes']}")
    if settings.get("head", "linear") not in HEADS:
        raise one_of("head", str(settings["head"]), HEADS)


def _tensors(ids: np.ndarray, y: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(ids).to(device), torch.from_numpy(y).to(device)


def _are_counts(graph: Graph) -> bool:
    """Bags of words and other non-negative features are divided by their sum, as the paper does; others are left alone."""
    values = graph.x if isinstance(graph.x, np.ndarray) else graph.x.data
    return bool((values >= 0).all())
