"""Save models: safetensors and JSON, written whole or not at all.

A model folder holds `model.json` and one `weights-<hash>.safetensors`, which the JSON names.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from nodenova.encoders.gnn import GNN
from nodenova.encoders.own import OWN, OwnEncoder
from nodenova.encoders.registry import FIRST_NAMES
from nodenova.errors import StorageError, brief
from nodenova.files.atomic import write_atomically
from nodenova.files.content import to_json
from nodenova.files.documents import (
    Schema,
    boolean,
    check,
    list_of,
    map_of,
    nullable,
    number,
    one_of,
    plain,
    read_json,
    record,
    text,
    variant,
    whole,
)
from nodenova.files.folders import change_folder, is_empty, lock_folder, recover
from nodenova.model import decisions

if TYPE_CHECKING:
    from nodenova.model.model import Model, Stage


FORMAT = "nodenova model"
# 2 adds edited classes: the class of each column of the head, and ids that are gone.
# 3 adds the number of nodes of each class and where they were (cells), without which a model can
#   neither weigh nodes by their odds of being new nor count new classes.
# 4 adds refitted representations. 5 adds vectors of texts. 6 adds ids of revised classes.
# 7 adds encoders of one's own, and text vectors of trained encoders.
# 8 adds encoders that are run on batches of nodes or in a lower precision, and created classes.
# A model is written in the first version that holds all of it.
VERSION = 8
WEIGHTS = "weights-*.safetensors"

SIZE = whole(1, 2**31 - 1)  # of features, nodes and the like; the weights limit it further
CLASS_ID = whole(0, 2**31 - 1)
_TRAINED = record(
    {"name": text, "num_features": SIZE, "hidden": whole(1, 65_536)},
    {
        "layers": whole(1, 64),
        "dropout": number(0, 1),
        "heads": whole(1, 1_024),
        "row_normalize": boolean,
        **dict.fromkeys(FIRST_NAMES, boolean),
        "input_dropout": number(0, 1),
        "attention": one_of("v1", "v2"),
        "vector_size": whole(0, 2**20),
        "batch": whole(0, 2**31 - 1),
        "neighbors": whole(1, 2**31 - 1),
        "precision": one_of("float32", "bfloat16", "float16"),
    },
    exact=True,
)
_OWN_CLASS = record(
    {
        "name": text,
        "class": text,
        "num_features": SIZE,
        "hidden": whole(1, 65_536),
        "row_normalize": boolean,
        "residual": boolean,
        "settings": map_of(plain),
    },
    {"vector_size": whole(0, 2**20)},
    exact=True,
)
_PRISM = record(
    {"name": text, "num_features": SIZE, "view_size": whole(1, 4_096)},
    {
        "views": whole(6, 10),
        "is_random": boolean,
        "averaged": boolean,
        "vector_size": whole(0, 2**20),
    },
    exact=True,
)
_TEMPERATURE = number(0, above=True)
_HEADS = {
    "linear": record({"hidden": SIZE, "classes": SIZE}),
    "cosine": record({"hidden": SIZE, "classes": SIZE, "temperature": _TEMPERATURE}),
    "ladder": record(
        {
            "views": SIZE,
            "view_size": SIZE,
            "rungs": list_of(SIZE, 1, 64),
            "classes": SIZE,
            "temperature": _TEMPERATURE,
        }
    ),
}
COUNT = record(
    {
        "number": whole(0, 10_000),
        "probabilities": list_of(number(0), 1),
        "p_new": number(0),
        "p_value": nullable(number(0)),
        "share": number(),
        "nodes": whole(0),
    },
    {"by_size": nullable(number(0))},  # younger than the first models
    exact=True,
)
_STAGE = record(
    {"method": text, "settings": map_of(plain), "seed": plain, "sees": list_of(text)},
    {
        "history": map_of(list_of(nullable(number()))),  # null was no finite number
        "count": nullable(COUNT),
        "mixed": boolean,
        "refresh": nullable(
            record(
                {
                    "why": text,
                    "carried": list_of(list_of(whole(0), 2, 2), 1),
                    "told": whole(0),
                    "notes": list_of(text),
                }
            )
        ),
        "found_in": map_of(
            list_of(whole(0), 2, 2),
            key=Schema("the id of a class", "ids", frozenset({str}), str.isdecimal),
        ),
        "revised": list_of(CLASS_ID),
    },
    exact=True,
)
MODEL = record(
    {
        "weights": text,
        "sha256": text,
        "encoder": variant(
            "name",
            {"prism": _PRISM, **dict.fromkeys(("gcn", "gat", "sage"), _TRAINED), OWN: _OWN_CLASS},
        ),
        "head": variant("kind", _HEADS),
        "classes": list_of(
            record({"id": CLASS_ID, "name": text, "stage": whole(0, 9_999)}, exact=True), 1
        ),
        "stages": list_of(_STAGE, 1),
    },
    {
        "columns": list_of(CLASS_ID, 1),
        "edits": list_of(map_of(plain)),
        "fitted_on": nullable(
            record(
                {"nodes": whole(0), "edges": whole(0), "feature_names": nullable(list_of(text))},
                {"recipe": nullable(map_of(plain))},
            )
        ),
    },
)


def save_model(model: Model, folder: str | PathLike[str]) -> None:
    """Write a model into a folder, whole or not at all; see `nodenova.Model.save`."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise StorageError(f"{folder} is a file, not a folder to save a model in")
    with lock_folder(folder) as folder:
        if not is_empty(folder):
            try:
                read_document(folder)
            except StorageError as error:
                raise StorageError(
                    f"{folder} exists and is not a saved model; nothing was written"
                ) from error
        with change_folder(folder) as change:
            write_model(model, change.new)
            change.remove(WEIGHTS)


def write_model(model: Model, folder: Path) -> None:
    """Write the files of a model into a folder that is being made."""
    weights, digest = _weights(model)
    name = f"weights-{digest[:16]}.safetensors"
    document = {
        "format": FORMAT,
        "version": _version(model),
        "weights": name,
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
    write_atomically(folder / name, weights)
    write_atomically(folder / "model.json", to_json(document))


def read_document(folder: Path) -> dict[str, Any]:
    """The content of `model.json`, checked as far as possible without the weights."""
    recover(folder)
    path = folder / "model.json"
    if not path.is_file():
        raise StorageError(f"{folder} is not a saved model: it has no model.json")
    document: dict[str, Any] = read_json(path)
    if document.get("format") != FORMAT:
        raise StorageError(f"{path}: not a model of nodenova")
    if document.get("version") not in range(1, VERSION + 1):
        raise StorageError(
            f"{path}: format {brief(document.get('version'))} of another nodenova; "
            f"this one reads formats up to {VERSION}"
        )
    check(document, MODEL, str(path))
    if not re.fullmatch(r"weights-[0-9a-f]+\.safetensors", document["weights"]):
        raise StorageError(
            f"{path}: damaged, {brief(document['weights'])} is not the name of a weights file"
        )
    return document


def weights_digest(model: Model) -> str:
    """The sha256 of all weights, as `model.json` records it."""
    return _weights(model)[1]


def _weights(model: Model) -> tuple[bytes, str]:
    tensors = _own_memory(
        {name: t.detach().cpu().contiguous() for name, t in _tensors(model).items()}
    )
    weights = save_tensors(tensors)
    return weights, hashlib.sha256(weights).hexdigest()


def _own_memory(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same numbers, in memory of their own: a user's encoder may use a weight twice."""
    seen: set[int] = set()
    found = {}
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        found[name] = tensor.clone() if place in seen else tensor
        seen.add(place)
    return found


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
    g = parts["encoder"]
    probe = g.probe() if isinstance(g, OwnEncoder) else None
    if probe is not None:
        tensors["probe.z"] = probe
    tensors |= {f"prototypes.{key}": tensor for key, tensor in model.memory.tensors().items()}
    cells = {} if model.cells is None else vars(model.cells)
    return tensors | {f"cells.{key}": tensor for key, tensor in cells.items()}


def _version(model: Model) -> int:
    """The first format that holds all of the model, so that an earlier nodenova can read it."""
    encoder = _encoder(model)
    is_created = any(isinstance(edit, decisions.Create) for edit in model.edits)
    if "batch" in encoder or "precision" in encoder or is_created:
        return VERSION
    if encoder["name"] == OWN or ("vector_size" in encoder and encoder["name"] != "prism"):
        return 7
    if any(stage.revised for stage in model.stages):
        return 6
    if "vector_size" in encoder or any(stage.found_in for stage in model.stages):
        return 5
    if any(stage.refresh for stage in model.stages):
        return 4
    if len(model.memory.classes.count) or model.cells is not None:
        return 3
    return 2 if model.edits else 1


def _encoder(model: Model) -> dict[str, Any]:
    """The spec of the encoder; without an empty vector_size, as before there were vectors."""
    g = model.frozen_encoder()
    spec = g.spec.to_json() if isinstance(g, (GNN, OwnEncoder)) else asdict(g.spec)
    return {name: value for name, value in spec.items() if value or name != "vector_size"}


def _stage(stage: Stage) -> dict[str, Any]:
    """The fields of a stage, without empty ones that the first models did not have."""
    written = asdict(stage)
    later = ("count", "mixed", "refresh", "found_in", "revised")
    return {k: v for k, v in written.items() if v or k not in later}
