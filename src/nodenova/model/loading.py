"""Load models. Nothing in a model folder is executed; damage is detected by a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor, nn

from nodenova.encoders.registry import build_encoder
from nodenova.errors import StorageError
from nodenova.files import read_json
from nodenova.model import decisions
from nodenova.model.classes import NodeClass
from nodenova.model.model import FitSignature, Model, Refresh, Stage
from nodenova.model.saving import read_document
from nodenova.nn.class_memory import Memory
from nodenova.nn.heads import build_head
from nodenova.nn.training import freeze
from nodenova.open_world.count import ClassCountEstimate
from nodenova.open_world.novelty import Partition

RUN_FEATURES = "features.json"  # in the folder of a run, beside that of its model
# Errors that arise where model.json and the weights do not belong together.
MISFITS = (KeyError, TypeError, ValueError, RuntimeError, AttributeError, SafetensorError)


def load_model(folder: str | PathLike[str]) -> Model:
    """Load a model that `Model.save` wrote, or the model of a run.

    Nothing in the folder is executed; damage is detected by a hash.

    Args:
        folder: Path of a saved model, or of a run of `nodenova discover` or
            `NodeDiscoverer.report`.

    Raises:
        StorageError: If the folder holds no model, a damaged one, or one of a later nodenova.

    Examples:
        >>> import tempfile
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     nova.fit(old).save(folder)
        ...     nova.load_model(folder)
        Model(prism, 2 classes, 0 of them discovered)
    """
    folder = Path(folder)
    run = folder / RUN_FEATURES
    if run.is_file() and not (folder / "model.json").is_file():
        return _with_recipe(load_model(folder / "model"), read_json(run).get("recipe"))
    document = read_document(folder)
    weights_path = folder / document["weights"]
    if not weights_path.is_file():
        raise StorageError(
            f"{folder}: model.json names the weights {weights_path.name}, which are not there"
        )
    weights = weights_path.read_bytes()
    if hashlib.sha256(weights).hexdigest() != document["sha256"]:
        raise StorageError(f"{weights_path}: damaged, its content is not what was saved")
    try:
        return _rebuild(document, load_tensors(weights))
    except MISFITS as error:
        raise StorageError(
            f"{folder}: model.json and the weights do not belong together ({error})"
        ) from error


def _with_recipe(model: Model, recipe: Mapping[str, Any] | None) -> Model:
    """The model of an earlier run, which kept the recipe beside the model, with that recipe."""
    known = model.fit_signature
    if recipe is None or known is None or known.recipe is not None:
        return model
    return replace(model, fit_signature=replace(known, recipe=recipe))


def _rebuild(document: dict[str, Any], tensors: dict[str, Tensor]) -> Model:
    def state(part: str) -> dict[str, Tensor]:
        start = part + "."
        return {k.removeprefix(start): t for k, t in tensors.items() if k.startswith(start)}

    # Modules draw initial weights, which must not move the caller's generator.
    with torch.random.fork_rng():
        encoder = build_encoder(document["encoder"])
        head = build_head(document["head"])
        novel_state = state("novel_head")
        size = encoder.spec.hidden
        novel = nn.Linear(size, len(novel_state["weight"])) if novel_state else None
    encoder.load_state_dict(state("encoder"))
    head.load_state_dict(state("head"))
    if novel is not None:
        novel.load_state_dict(novel_state)
    classes = tuple(NodeClass(**c) for c in document["classes"])
    columns = tuple(document.get("columns", [c.id for c in classes]))
    if set(columns) != {c.id for c in classes}:
        named = [c.id for c in classes]
        raise ValueError(
            f"the columns are of the classes {sorted(set(columns))}, named are {named}"
        )
    if head.num_classes != len(columns):
        raise ValueError(f"the head is for {head.num_classes} classes, {len(columns)} are named")
    # Models saved before views had weights weigh them equally.
    equal = {"view_scale": torch.ones(encoder.spec.multirank.views)}
    stages = [_stage(stage) for stage in document["stages"]]
    cells = state("cells")
    edits, signature = document.get("edits", ()), document.get("fitted_on")
    return Model(
        _encoder=freeze(encoder),
        _head=freeze(head),
        _novel_head=None if novel is None else freeze(novel),
        _memory=Memory.from_tensors(equal | state("prototypes")),
        _cells=Partition(**cells) if cells else None,
        classes=classes,
        stages=tuple(stages),
        column_class_ids=columns,
        edits=tuple(decisions.from_json(edit, done=True, where="edit") for edit in edits),
        fit_signature=None if signature is None else FitSignature.from_json(signature),
    )


def _stage(document: dict[str, Any]) -> Stage:
    count = document.get("count")
    refresh = document.get("refresh")
    parsed = {
        "sees": tuple(document["sees"]),
        "count": None if count is None else ClassCountEstimate.from_json(count),
        "refresh": None if refresh is None else Refresh.from_json(refresh),
        "found_in": {int(c): (k, of) for c, (k, of) in document.get("found_in", {}).items()},
    }
    return Stage(**document | parsed)
