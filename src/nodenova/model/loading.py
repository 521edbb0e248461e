"""Models from disk. Nothing in a model folder is executed; damage is detected by its hash."""

from __future__ import annotations

import hashlib
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor, nn

from nodenova.encoders.registry import build_encoder
from nodenova.errors import StorageError
from nodenova.model import decisions
from nodenova.model.classes import NodeClass
from nodenova.model.model import Model, Stage
from nodenova.model.saving import read_document
from nodenova.nn.heads import build_head
from nodenova.nn.memory import Memory
from nodenova.nn.training import frozen


def load_model(folder: str | PathLike[str]) -> Model:
    """Read a model that `Model.save` wrote. Nothing in the folder is executed; damage is detected by its hash."""
    folder = Path(folder)
    document = read_document(folder)
    weights_path = folder / document["weights"]
    if not weights_path.is_file():
        raise StorageError(f"{folder}: model.json names the weights {weights_path.name}, which are not there")
    weights = weights_path.read_bytes()
    if hashlib.sha256(weights).hexdigest() != document["sha256"]:
        raise StorageError(f"{weights_path}: damaged, its content is not what was saved")
    try:
        return _rebuild(document, load_tensors(weights))
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, SafetensorError) as error:
        raise StorageError(f"{folder}: model.json and the weights do not fit together ({error})") from error


def _rebuild(document: dict[str, Any], tensors: dict[str, Tensor]) -> Model:
    def state(part: str) -> dict[str, Tensor]:
        return {key.removeprefix(part + "."): t for key, t in tensors.items() if key.startswith(part + ".")}

    with torch.random.fork_rng():  # building modules draws initial weights, which must not disturb the caller
        encoder = build_encoder(document["encoder"])
        head = build_head(document["head"])
        novel_state = state("novel_head")
        novel = nn.Linear(encoder.spec.hidden, novel_state["weight"].shape[0]) if novel_state else None
    encoder.load_state_dict(state("encoder"))
    head.load_state_dict(state("head"))
    if novel is not None:
        novel.load_state_dict(novel_state)
    classes = tuple(NodeClass(**c) for c in document["classes"])
    columns = tuple(document.get("columns", [c.id for c in classes]))
    if set(columns) != {c.id for c in classes}:
        raise ValueError(f"the columns are of the classes {sorted(set(columns))}, named are {[c.id for c in classes]}")
    if head.num_classes != len(columns):
        raise ValueError(f"the head is for {head.num_classes} classes, {len(columns)} are named")
    return Model(
        _encoder=frozen(encoder),
        _head=frozen(head),
        _novel_head=None if novel is None else frozen(novel),
        # Models saved before views had weights weigh them all alike.
        _memory=Memory.from_tensors({"view_scale": torch.ones(encoder.spec.multirank.views)} | state("prototypes")),
        classes=classes,
        stages=tuple(Stage(**{**stage, "sees": tuple(stage["sees"])}) for stage in document["stages"]),
        columns=columns,
        edits=tuple(decisions.from_json(edit, done=True, where="edit") for edit in document.get("edits", ())),
    )
