"""A person's decisions about classes as a document, review.json, and a model that has taken them.

    {"format": "nodenova review", "version": 1, "model": "<sha256 in the model's model.json>", "decisions": [
        {"do": "rename", "class": 7, "name": "plants"},
        {"do": "merge", "classes": [5, 8], "name": "places"},       the name may be left out
        {"do": "reject", "class": 9},
        {"do": "split", "class": 6, "into": 2}]}                    into 2 unless told

Decisions are taken in order, each on what the ones before it left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nodenova.errors import NodenovaError, SettingError
from nodenova.graph import Graph
from nodenova.model import Model
from nodenova.storage import weights_digest

FORMAT = "nodenova review"
VERSION = 1


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# What a value must be, in words and as a test.
KINDS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "class": ("the id of a class", _is_id),
    "classes": ("a list of ids of classes", lambda value: isinstance(value, list) and all(map(_is_id, value))),
    "name": ("a text", lambda value: isinstance(value, str)),
    "into": ("a whole number", _is_id),
}
# decision: (what it must say, what it may say)
DECISIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "rename": (("class", "name"), ()),
    "merge": (("classes",), ("name",)),
    "reject": (("class",), ()),
    "split": (("class",), ("into",)),
}


def apply_review(model: Model, document: object, graph: Graph | None = None) -> Model:
    """The model with all decisions of a review taken; if one cannot be, none is, and the error says which and why.

    `graph` is needed for splits only: its nodes say what the parts are.
    """
    decisions = _check(document)
    if document["model"] != weights_digest(model):  # type: ignore[index]
        raise SettingError("the review was made for another model (its sha256 is not this model's)")
    for number, decision in enumerate(decisions, start=1):
        try:
            model = _take(model, decision, graph)
        except NodenovaError as error:
            raise SettingError(f"decision {number} ({decision['do']}): {error}") from error
    return model


def _take(model: Model, decision: Mapping[str, Any], graph: Graph | None) -> Model:
    match decision["do"]:
        case "rename":
            return model.rename(decision["class"], decision["name"])
        case "merge":
            return model.merge(decision["classes"], decision.get("name"))
        case "reject":
            return model.reject(decision["class"])
        case _:
            if graph is None:
                raise SettingError("splitting a class needs the graph")
            return model.split(decision["class"], graph, decision.get("into", 2))


def _check(document: object) -> list[dict[str, Any]]:
    """The decisions of a document of the right form; raises for anything else."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SettingError(f'this is not a review: it does not say "format": "{FORMAT}"')
    if document.get("version") != VERSION:
        raise SettingError(
            f"version {document.get('version')!r} of another nodenova; this one reads reviews of version {VERSION}"
        )
    unknown = sorted(map(str, set(document) - {"format", "version", "model", "decisions"}))
    if unknown:
        raise SettingError(f"the review has {', '.join(unknown)}, which no review has")
    decisions = document.get("decisions")
    if not isinstance(document.get("model"), str) or not isinstance(decisions, list):
        raise SettingError("a review names its model (a sha256) and has a list of decisions")
    for number, decision in enumerate(decisions, start=1):
        _check_decision(number, decision)
    return decisions


def _check_decision(number: int, decision: object) -> None:
    do = decision.get("do") if isinstance(decision, dict) else None
    if not isinstance(decision, dict) or not isinstance(do, str) or do not in DECISIONS:
        raise SettingError(f"decision {number}: must say what to do, one of {', '.join(DECISIONS)}, not {do!r}")
    must, may = DECISIONS[do]
    for key in must:
        if key not in decision:
            raise SettingError(f"decision {number} ({do}): {key} is missing")
    for key, value in decision.items():
        if key != "do" and key not in must + may:
            raise SettingError(f"decision {number} ({do}): unknown key {key!r}")
        if key != "do" and not KINDS[key][1](value):
            raise SettingError(f"decision {number} ({do}): {key} must be {KINDS[key][0]}, not {value!r}")
