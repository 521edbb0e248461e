"""Save models: safetensors and JSON, written whole or not at all.

A model folder holds `model.json` and one `weights-<hash>.safetensors`. The JSON names the weights
file and is renamed into place last, which completes the save.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from nodenova.errors import StorageError
from nodenova.files import to_json, write_atomically
from nodenova.model import decisions

if TYPE_CHECKING:
    from nodenova.model.model import Model, Stage


FORMAT = "nodenova model"
# 2 adds edited classes: the class of each column of the head, and ids that are gone.
# 3 adds the number of nodes of each class and where they were (cells), without which a model can
#   neither weigh nodes by their odds of being new nor count new classes.
# 4 adds refitted representations. 5 adds vectors of texts.
# A model is written in the first version that holds all of it.
VERSION = 5


def save_model(model: Model, folder: str | PathLike[str]) -> None:
    """Write a model into a folder; see `nodenova.Model.save`."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise StorageError(f"{folder} is a file, not a folder to save a model in")
    replaced: Path | None = None
    if folder.is_dir() and any(folder.iterdir()):
        try:
            replaced = folder / read_document(folder)["weights"]
        except StorageError as error:
            raise StorageError(
                f"{folder} exists and is not a saved model; nothing was written"
            ) from error
    weights, digest = _weights(model)
    weights_path = folder / f"weights-{digest[:16]}.safetensors"
    document = {
        "format": FORMAT,
        "version": _version(model),
        "weights": weights_path.name,
        "sha256": digest,
        "encoder": _encoder(model),
        "head": model.head().description(),
        "classes": [asdict(c) for c in model.classes],
        "stages": [_stage(stage) for stage in model.stages],
        "columns": list(model.column_class_ids),
        "edits": [decisions.to_json(edit) for edit in model.edits],
    }
    if model.fit_signature is not None:
        document["fitted_on"] = model.fit_signature.to_json()
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


def read_document(folder: Path) -> dict[str, Any]:
    """The content of `model.json`, checked as far as possible without the weights."""
    path = folder / "model.json"
    if not path.is_file():
        raise StorageError(f"{folder} is not a saved model: it has no model.json")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StorageError(f"{path}: damaged, not readable as JSON ({error})") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise StorageError(f"{path}: not a model of nodenova")
    if document.get("version") not in range(1, VERSION + 1):
        raise StorageError(
            f"{path}: format {document.get('version')} of another nodenova; "
            f"this one reads formats up to {VERSION}"
        )
    for key in ("weights", "sha256"):
        if not isinstance(document.get(key), str):
            raise StorageError(f"{path}: damaged, {key} is missing")
    if not re.fullmatch(r"weights-[0-9a-f]+\.safetensors", document["weights"]):
        raise StorageError(
            f"{path}: damaged, {document['weights']!r} is not the name of a weights file"
        )
    return document


def weights_digest(model: Model) -> str:
    """The sha256 of all weights, as `model.json` records it."""
    return _weights(model)[1]


def _weights(model: Model) -> tuple[bytes, str]:
    tensors = {name: t.detach().cpu().contiguous() for name, t in _tensors(model).items()}
    weights = save_tensors(tensors)
    return weights, hashlib.sha256(weights).hexdigest()


def _tensors(model: Model) -> dict[str, Tensor]:
    parts: dict[str, nn.Module | None] = {
        "encoder": model.frozen_encoder(),
        "head": model.head(),
        "novel_head": model.novel_head(),
    }
    tensors = {
        f"{part}.{key}": t
        for part, m in parts.items()
        if m is not None
        for key, t in m.state_dict().items()
    }
    tensors |= {f"prototypes.{key}": tensor for key, tensor in model.memory.tensors().items()}
    cells = {} if model.cells is None else vars(model.cells)
    return tensors | {f"cells.{key}": tensor for key, tensor in cells.items()}


def _version(model: Model) -> int:
    """The first format that holds all of the model, so that an earlier nodenova can read it."""
    if "vector_size" in _encoder(model) or any(stage.found_in for stage in model.stages):
        return VERSION
    if any(stage.refresh for stage in model.stages):
        return 4
    if len(model.memory.classes.count) or model.cells is not None:
        return 3
    return 2 if model.edits else 1


def _encoder(model: Model) -> dict[str, Any]:
    """The spec of the encoder; without an empty vector_size, as before there were vectors."""
    spec = asdict(model.frozen_encoder().spec)
    return {name: value for name, value in spec.items() if value or name != "vector_size"}


def _stage(stage: Stage) -> dict[str, Any]:
    """The fields of a stage, without empty ones that the first models did not have."""
    written = asdict(stage)
    later = ("count", "mixed", "refresh", "found_in")
    return {k: v for k, v in written.items() if v or k not in later}
