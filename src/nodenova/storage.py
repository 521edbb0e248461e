"""Models on disk: safetensors and JSON, written so that a reader sees either the old state or the new one, never half.

A model folder holds `model.json` and one `weights-<hash>.safetensors`. The JSON names the weights file and is renamed
into place last: it is the moment at which a save becomes true.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tempfile
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from nodenova.encoders import Encoder, EncoderSpec
from nodenova.errors import StorageError
from nodenova.heads import build_head
from nodenova.model import Model, NodeClass, Stage, frozen
from nodenova.prototypes import Prototypes
from nodenova.views import Views, ViewsSpec

FORMAT = "nodenova model"
# 2 knows of edited classes: which column of the head belongs to which, and which ids are gone. Others are written as 1.
VERSION = 2


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: temporary file beside it, fsync, rename, fsync of the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.chmod(temporary, 0o666 & ~umask())  # readable like any other file the user writes
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def to_json(value: object) -> bytes:
    """Strict JSON: a number that is not there (nan) is null."""

    def strict(part: object) -> object:
        if isinstance(part, dict):
            return {key: strict(inner) for key, inner in part.items()}
        if isinstance(part, list | tuple):
            return [strict(inner) for inner in part]
        return None if isinstance(part, float) and not math.isfinite(part) else part

    return (json.dumps(strict(value), indent=1, allow_nan=False) + "\n").encode()


def save_model(model: Model, folder: str | PathLike[str]) -> None:
    """Write `model` into `folder`, which is new, empty, or holds an earlier save of a model."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise StorageError(f"{folder} is a file, not a folder to save a model in")
    replaced: Path | None = None
    if folder.is_dir() and any(folder.iterdir()):
        try:
            replaced = folder / _document(folder)["weights"]
        except StorageError as error:
            raise StorageError(f"{folder} exists and is not a saved model; nothing was written") from error
    weights, digest = _weights(model)
    weights_path = folder / f"weights-{digest[:16]}.safetensors"
    document = {
        "format": FORMAT,
        "version": 2 if model.edits else 1,
        "weights": weights_path.name,
        "sha256": digest,
        "encoder": asdict(model.frozen_encoder().spec),
        "head": model.head().description(),
        "classes": [asdict(c) for c in model.classes],
        "stages": [asdict(stage) for stage in model.stages],
        "columns": list(model.columns),
        "edits": list(model.edits),
    }
    content = to_json(document)
    try:
        write_atomically(weights_path, weights)
        write_atomically(folder / "model.json", content)
    except BaseException:
        if weights_path != replaced:
            weights_path.unlink(missing_ok=True)
        raise
    if replaced is not None and replaced != weights_path:
        replaced.unlink(missing_ok=True)


def load_model(folder: str | PathLike[str]) -> Model:
    """Read a model that `Model.save` wrote. Nothing in the folder is executed; damage is detected by its hash."""
    folder = Path(folder)
    document = _document(folder)
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


def _document(folder: Path) -> dict[str, Any]:
    path = folder / "model.json"
    if not path.is_file():
        raise StorageError(f"{folder} is not a saved model: it has no model.json")
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise StorageError(f"{path}: damaged, not readable as JSON ({error})") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise StorageError(f"{path}: not a model of nodenova")
    if document.get("version") not in range(1, VERSION + 1):
        raise StorageError(f"{path}: format {document.get('version')} of another nodenova; this one reads up to {VERSION}")
    for key in ("weights", "sha256"):
        if not isinstance(document.get(key), str):
            raise StorageError(f"{path}: damaged, {key} is missing")
    if not re.fullmatch(r"weights-[0-9a-f]+\.safetensors", document["weights"]):
        raise StorageError(f"{path}: damaged, {document['weights']!r} is not the name of a weights file")
    return document


def weights_digest(model: Model) -> str:
    """The sha256 that `model.json` says when this model is saved: of all its numbers."""
    return _weights(model)[1]


def _weights(model: Model) -> tuple[bytes, str]:
    weights = save_tensors({name: tensor.detach().cpu().contiguous() for name, tensor in _tensors(model).items()})
    return weights, hashlib.sha256(weights).hexdigest()


def _tensors(model: Model) -> dict[str, Tensor]:
    parts: dict[str, nn.Module | None] = {
        "encoder": model.frozen_encoder(),
        "head": model.head(),
        "novel_head": model.novel_head(),
    }
    tensors = {f"{part}.{key}": t for part, m in parts.items() if m is not None for key, t in m.state_dict().items()}
    return tensors | {f"prototypes.{key}": tensor for key, tensor in vars(model.prototypes).items()}


def build_encoder(spec: dict[str, Any]) -> Encoder | Views:
    """An empty encoder of the saved kind and shape."""
    return Views(ViewsSpec(**spec)) if spec["name"] == "prism" else Encoder(EncoderSpec(**spec))


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
        _prototypes=Prototypes(**{"view_scale": torch.ones(encoder.spec.views), **state("prototypes")}),
        classes=classes,
        stages=tuple(Stage(**{**stage, "sees": tuple(stage["sees"])}) for stage in document["stages"]),
        columns=columns,
        edits=tuple(document.get("edits", ())),
    )
