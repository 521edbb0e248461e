"""A row: everything that made a run, and what it said of the test nodes.

Rows are JSON objects on disk (`to_json`, `from_json`) and values everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from json import loads
from typing import Any, ClassVar, TypeAlias

from nodenova.evaluation.graded import SCHEMA, GradedRun, Reader, read_ints, read_names

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | None"
Settings: TypeAlias = "Mapping[str, Value]"


@dataclass(frozen=True)
class NodeCounts:
    unlabelled_new: int = 0
    test: int = 0


def frozen(value: Any) -> Value:
    """A value with tuples for lists, as rows have them."""
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


# What rows said before: settings and values by the names they have now.
RENAMED = {
    "joint": "new_rows",
    "neighbours": "neighbors",
    "row_normalise": "row_normalize",
    "groupings": "n_resamples",
    "relearn": "refit",
    "student": "encoder",
}
OLD_VALUES: Mapping[str, Mapping[Any, str]] = {"new_rows": {"strict": "untrained"}}
OLD_METHODS = {"taught": "distilled_gnn"}
OLD_VISIBILITIES = {"induced": "inductive"}


def frozen_settings(settings: Mapping[str, Any]) -> Settings:
    now = {RENAMED.get(name, name): frozen(value) for name, value in settings.items()}
    return {name: OLD_VALUES.get(name, {}).get(value, value) for name, value in now.items()}


@dataclass(frozen=True, kw_only=True)
class Row(GradedRun):
    """One run for one seed. A failed one has no confusion matrix, and an error instead."""

    dataset: str
    method: str
    encoder: str
    num_new: int
    key: str = ""  # a hash of everything that decides the result; "" outside a row file
    status: str = "done"  # or "failed"
    error: str = ""
    old_classes: tuple[int, ...] = ()
    class_split: int | None = None
    draw: str = "published"
    split: str = ""
    visibility: str = "transductive"
    nodes: NodeCounts = NodeCounts()
    settings: Settings = field(default_factory=dict)  # of the method, resolved
    changed: Settings = field(default_factory=dict)  # those that are not as they are by default
    fit_settings: Settings = field(default_factory=dict)  # of phase 1, resolved
    fit_changed: Settings = field(default_factory=dict)  # those that were asked for
    sees: tuple[str, ...] = ()  # what phase 2 was shown
    device: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    data: str = ""  # fingerprint of the graph
    map: str | None = None  # file with the embeddings of some test nodes

    _NEEDED: ClassVar[tuple[str, ...]] = (
        "dataset", "method", "encoder", "seed", "num_old", "num_new",
    )  # fmt: skip
    _READERS: ClassVar[Mapping[str, Reader]] = {
        **GradedRun._READERS,
        "dataset": str,
        "method": lambda name: OLD_METHODS.get(name, name),
        "encoder": str,
        "num_new": int,
        "key": str,
        "status": str,
        "error": str,
        "old_classes": read_ints,
        "class_split": int,
        "draw": str,
        "split": str,
        "visibility": lambda word: OLD_VISIBILITIES.get(word, word),
        "nodes": lambda value: NodeCounts(**value),
        "settings": frozen_settings,
        "changed": frozen_settings,
        "fit_settings": frozen_settings,
        "fit_changed": frozen_settings,
        "sees": read_names,
        "device": str,
        "versions": dict,
        "commit": str,
        "data": str,
        "map": str,
    }

    @property
    def is_done(self) -> bool:
        return self.status == "done"

    @property
    def is_failed(self) -> bool:
        return self.status == "failed"

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it. What a failed run does not know is left out."""
        document = asdict(self)
        out = {name for name in ("key", "error", "stored") if not document[name]}
        if self.is_failed:
            out |= _FINISHED
        return {"schema": SCHEMA} | {name: document[name] for name in _ORDER if name not in out}

    @classmethod
    def _of_schema_1(cls, document: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of failed runs were text."""
        found = super()._of_schema_1(document, values)
        if values.get("status") == "failed":
            changed = values.get("changed", {}).items()
            found["changed"] = {name: _from_text(value) for name, value in changed}
        return found


def _from_text(value: Value) -> Value:
    try:
        return frozen(loads(value)) if isinstance(value, str) else value
    except ValueError:
        return value


# In which order a row is written, and what only a finished run has.
_ORDER = (
    "key", "status", "error", "dataset", "method", "encoder", "seed", "num_old", "num_new",
    "old_classes", "class_names", "class_split", "draw", "split", "visibility", "nodes", "settings",
    "changed", "fit_settings", "fit_changed", "sees", "confusion", "confusion_fit", "confusion_old",
    "confusion_new", "sizes", "predicted_sizes", "seconds", "device", "versions", "commit", "data",
    "map", "stored",
)  # fmt: skip
_FINISHED = {
    "class_names", "split", "nodes", "settings", "fit_settings", "sees", "confusion",
    "confusion_fit", "confusion_old", "confusion_new", "sizes", "predicted_sizes", "seconds",
    "device", "map",
}  # fmt: skip
