"""Load models. Nothing in a model folder is executed; damage is detected by a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor, nn

from nodenova.encoders.own import OWN, OwnEncoder
from nodenova.encoders.prism.encoder import VECTOR_VIEWS, WORD_VIEWS
from nodenova.encoders.prism.lda import LDASettings
from nodenova.encoders.registry import build_encoder, missing_class
from nodenova.errors import NodenovaError, StorageError, brief, first_line
from nodenova.files.documents import map_of, nullable, plain, read_json, record
from nodenova.model import decisions
from nodenova.model.classes import NodeClass
from nodenova.model.model import FitSignature, Model, Refresh, Stage
from nodenova.model.saving import read_document
from nodenova.nn.class_memory import ON_DISK, Memory
from nodenova.nn.encoder import Encoder, EncoderSpec
from nodenova.nn.heads import Head, UnitLinearHead, build_head
from nodenova.open_world.count import ClassCountEstimate
from nodenova.open_world.novelty import Partition
from nodenova.settings import check_arguments

RUN_FEATURES = "features.json"  # in the folder of a run, beside that of its model
RECIPE = record({}, {"recipe": nullable(map_of(plain))})
MAX_WEIGHT = 1e38  # close to the largest 32-bit number
NOT_NEGATIVE = (
    "prototypes.var",
    "prototypes.rest",
    "prototypes.count",
    "prototypes.view_scale",
    "cells.table",
)
CONSTANT = "encoder.counts.spread"  # infinite for a count that is the same for all nodes
POSITIVE = ("prototypes.dof", "prototypes.temperature", CONSTANT)


def load_model(folder: str | PathLike[str]) -> Model:
    """Load a model that `Model.save` wrote, or the model of a run.

    Nothing in the folder is executed; damage is detected by a hash. A model with an encoder of
    your own needs its class before: `register_encoder`.

    Args:
        folder: Path of a saved model, or of a run of `nodenova discover` or
            `NodeDiscoverer.report`.

    Raises:
        StorageError: If the folder holds no model, a damaged one, one of a later nodenova, or one
            whose encoder is a class that was not given, or that computes something else now.

    Examples:
        >>> import tempfile
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     nova.fit(old).save(folder)
        ...     nova.load_model(folder)
        Model(prism, 2 classes, 0 of them discovered)
    """
    check_arguments(load_model, locals())
    folder = Path(folder)
    run = folder / RUN_FEATURES
    if run.is_file() and not (folder / "model.json").is_file():
        return _with_recipe(load_model(folder / "model"), read_json(run, RECIPE).get("recipe"))
    document = read_document(folder)
    own = missing_class(document["encoder"])
    if own is not None:
        raise StorageError(
            f"{folder}: its encoder is the class {brief(own)} of your own, and a model holds no "
            "code: name its file, nova.register_encoder('path/to/mine.py:Net') or "
            "nodenova --import path/to/mine.py:Net"
        )
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
    except (SafetensorError, NodenovaError) as error:
        raise StorageError(
            f"{folder}: model.json and the weights do not belong together ({first_line(error)})"
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

    classes = tuple(NodeClass(**c) for c in document["classes"])
    columns = tuple(document.get("columns", [c.id for c in classes]))
    _check_classes(document, classes, columns)
    check_weights(tensors)
    _check_size("the encoder", _encoder_weights(document["encoder"]), state("encoder"))
    _check_size("the head", _head_weights(document["head"]), state("head"))
    # Modules draw initial weights, which must not move the caller's generator.
    with torch.random.fork_rng():
        encoder = build_encoder(document["encoder"])
        head = build_head(document["head"])
        size = encoder.spec.hidden
        novel_state = state("novel_head")
        _check_novel(novel_state, size)
        novel = nn.Linear(size, len(novel_state["bias"])) if novel_state else None
    for part, module in {"encoder": encoder, "head": head, "novel_head": novel}.items():
        if module is not None:
            own = part == "encoder" and isinstance(encoder, OwnEncoder)
            types = {key: each.dtype for key, each in module.state_dict().items()} if own else {}
            _check_shapes(part, _shapes(module.state_dict()), state(part), types)
            module.load_state_dict(state(part))
    _check_probe(encoder, state("probe"))
    # Models saved before views had weights weigh them equally.
    views = encoder.spec.multirank.views
    memory = {"view_scale": torch.ones(views)} | state("prototypes")
    cells = state("cells")
    _check_head(head, size)
    _check_memory(encoder.spec, len(columns), memory)
    if cells:
        _check_cells(encoder.spec, len(columns), cells)
    edits, signature = document.get("edits", ()), document.get("fitted_on")
    return Model(
        # Nothing else holds these modules, so that they need no copy.
        _encoder=encoder.eval().requires_grad_(False),
        _head=head.eval().requires_grad_(False),
        _novel_head=None if novel is None else novel.eval().requires_grad_(False),
        _memory=Memory.from_tensors(memory),
        _cells=Partition(**cells) if cells else None,
        classes=classes,
        stages=tuple(map(_stage, document["stages"])),
        column_class_ids=columns,
        edits=tuple(decisions.from_json(edit, done=True, where="edit") for edit in edits),
        fit_signature=None if signature is None else FitSignature.from_json(signature),
    )


def _check_probe(encoder: Encoder, probe: Mapping[str, Tensor]) -> None:
    """Raise if a user's encoder computes something else than when the model was saved."""
    if isinstance(encoder, OwnEncoder) and "z" in probe:
        encoder.eval()
        if probe["z"].dtype != torch.float32 or not encoder.is_same(probe["z"]):
            raise StorageError(
                f"{encoder.spec.name} computes another z than when the model was saved: "
                "give the class as it was"
            )


def _check_classes(
    document: Mapping[str, Any], classes: Sequence[NodeClass], columns: Sequence[int]
) -> None:
    """Raise unless classes, columns of the head, features and settings fit together."""
    ids = [c.id for c in classes]
    if len(set(ids)) < len(ids):
        raise StorageError("two classes have the same id")
    if set(columns) != set(ids):
        raise StorageError("the columns are of other classes than those that are named")
    head, encoder = document["head"], document["encoder"]
    if head["classes"] != len(columns):
        raise StorageError(f"the head is for {head['classes']} classes, {len(columns)} are named")
    signature = document.get("fitted_on") or {}
    names = signature.get("feature_names")
    if names is not None and len(names) != encoder["num_features"]:
        what = f"the encoder is for {encoder['num_features']} features, {len(names)} are named"
        raise StorageError(what)
    try:
        LDASettings.of_stages(stage["settings"] for stage in document["stages"])
    except TypeError:
        raise StorageError("a setting of a stage is not a number") from None
    for stage in document["stages"]:
        count = stage.get("count")
        if count is not None and count["number"] >= len(count["probabilities"]):
            raise StorageError("the number of new classes has no probability")


def check_weights(tensors: Mapping[str, Tensor]) -> None:
    """Raise for weights by which nothing can be computed: not finite, or of a wrong sign."""
    for name, tensor in tensors.items():
        if not tensor.numel():
            continue
        # The sum is quick to compute, and not finite if one of the numbers is not.
        low = high = 0.0 if name in POSITIVE else float(tensor.sum())
        if name in POSITIVE or name in NOT_NEGATIVE or not abs(low) <= MAX_WEIGHT:
            low, high = (float(end) for end in tensor.double().aminmax())
        most = float("inf") if name == CONSTANT else MAX_WEIGHT
        least = 0.0 if name in (*POSITIVE, *NOT_NEGATIVE) else -MAX_WEIGHT
        if not least <= low <= high <= most or (name in POSITIVE and not low > 0):
            raise StorageError(f"the weights {brief(name)} hold numbers that cannot be used")


def _encoder_weights(spec: Mapping[str, Any]) -> int:
    """Lower bound of the numbers that an encoder needs; what it takes is at most twice as much."""
    d = spec["num_features"]
    if spec["name"] == "prism":
        width = WORD_VIEWS * d + VECTOR_VIEWS * spec.get("vector_size", 0)
        return int(width * spec["view_size"])
    if spec["name"] == OWN:
        return 0  # only the class knows
    d += spec.get("vector_size", 0)
    layers, hidden = spec.get("layers", 2), spec["hidden"]
    wide = hidden * (spec.get("heads", 8) if spec["name"] == "gat" else 1)
    sizes = [d, *[wide] * (layers - 1), hidden]
    return int(sum(a * b for a, b in pairwise(sizes)))


def _head_weights(head: Mapping[str, Any]) -> int:
    if head["kind"] == "ladder":
        return int(head["views"] * sum(head["rungs"]) * head["classes"])
    return int(head["hidden"] * head["classes"])


def _check_size(what: str, least: int, tensors: Mapping[str, Tensor]) -> None:
    """Raise before memory is taken for modules that are larger than their weights."""
    have = sum(tensor.numel() for tensor in tensors.values())
    if least > have:
        raise StorageError(f"{what} has {least:,} or more numbers, the weights hold {have:,}")


def _check_novel(tensors: Mapping[str, Tensor], hidden: int) -> None:
    """Raise unless these are the weights of a head for new classes, if there are any."""
    if tensors:
        _check_shapes("novel_head", {"weight": (None, hidden), "bias": (None,)}, tensors)
        if not 0 < len(tensors["bias"]) == len(tensors["weight"]):
            raise StorageError("novel_head.bias and novel_head.weight are of different classes")


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _check_shapes(
    part: str,
    shapes: Mapping[str, Sequence[int | None]],
    tensors: Mapping[str, Tensor],
    types: Mapping[str, torch.dtype] | None = None,
) -> None:
    """Raise unless a part has these tensors; None is any length.

    They are in single precision, or of `types`.
    """
    for name in sorted(shapes.keys() | tensors.keys()):
        if name not in tensors or name not in shapes:
            what = "missing" if name not in tensors else "not known"
            raise StorageError(f"the weights {part}.{brief(name)} are {what}")
        shape, tensor = tuple(tensors[name].shape), tensors[name]
        fits = [a in (b, None) for a, b in zip(shapes[name], shape, strict=False)]
        if len(shape) != len(shapes[name]) or not all(fits):
            raise StorageError(f"{part}.{name} has the shape {shape}, which does not fit")
        usual = torch.int64 if name == "ranks" else torch.float32
        if tensor.dtype != (types or {}).get(name, usual):
            raise StorageError(f"{part}.{name} has numbers of the type {tensor.dtype}")


def _check_head(head: Head, hidden: int) -> None:
    """Raise unless a head reads z with this many columns."""
    if isinstance(head, UnitLinearHead):
        own = head.multirank
        if own.views * own.view_size != hidden or max(own.ranks) > own.view_size:
            raise StorageError(f"the head reads {own.views} × {own.view_size} of {hidden} numbers")
        if sorted(set(own.ranks)) != list(own.ranks):
            raise StorageError("the ranks of the head are not ascending")
    elif head.linear.in_features != hidden:
        raise StorageError(f"the head reads {head.linear.in_features} numbers, z has {hidden}")


def _check_memory(spec: EncoderSpec, classes: int, memory: Mapping[str, Tensor]) -> None:
    """Raise unless the statistics of the classes are those of this encoder."""
    size, hidden = spec.multirank.size, spec.hidden
    shapes: dict[str, tuple[int | None, ...]] = {
        "mean": (classes, hidden),
        "var": (classes, hidden),
        ON_DISK["center"]: (classes, size),
        "factor": (None, size),
        ON_DISK["diag"]: (size,),
        "dof": (),
        "temperature": (),
        "view_scale": (spec.multirank.views,),
        "count": (classes,),
    }
    if "count" not in memory:  # in the first models
        del shapes["count"]
    _check_shapes("prototypes", shapes, memory)


def _check_cells(spec: EncoderSpec, classes: int, cells: Mapping[str, Tensor]) -> None:
    """Raise unless cells belong to this encoder and its classes."""
    any_length = dict.fromkeys(("ranks", "shift"), (None,)) | {"basis": (None, None)}
    _check_shapes("cells", any_length | dict.fromkeys(("center", "table"), (None,) * 3), cells)
    ranks = cells["ranks"].tolist()
    if not ranks or sorted(set(ranks)) != ranks or not set(ranks) <= set(spec.multirank.ranks):
        raise StorageError("cells.ranks are not ranks of the encoder")
    times, number, size = cells["center"].shape
    shapes = {
        "ranks": (None,),
        "basis": (spec.multirank.views * sum(ranks), size),
        "shift": (size,),
        "center": (times, number, size),
        "table": (times, number, classes),
    }
    _check_shapes("cells", shapes, cells)
    if not number or not times:
        raise StorageError("there are no cells")


def _stage(document: dict[str, Any]) -> Stage:
    count = document.get("count")
    refresh = document.get("refresh")
    parsed = {
        "sees": tuple(document["sees"]),
        "count": None if count is None else ClassCountEstimate.from_json(count),
        "refresh": None if refresh is None else Refresh.from_json(refresh),
        "found_in": {int(c): (k, of) for c, (k, of) in document.get("found_in", {}).items()},
        "revised": tuple(document.get("revised", ())),
    }
    return Stage(**document | parsed)
