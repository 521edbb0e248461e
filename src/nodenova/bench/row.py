"""A row: everything that made a run, and what it said of the test nodes. Scores are read off its confusion matrices.

Rows are JSON objects on disk (`to_json`, `from_json`) and values everywhere else. Rows of schema 1 keep scores instead of
the confusion matrix of the head for new classes; what the matrices they have cannot give is taken from those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from json import loads
from math import isfinite
from typing import Any, TypeAlias

import numpy as np

from nodenova.errors import StorageError
from nodenova.evaluation.grade import Grade, forgetting
from nodenova.evaluation.metrics import MATCHINGS

SCHEMA = 2
Counts: TypeAlias = "tuple[tuple[int, ...], ...]"  # a confusion matrix: true classes x predicted classes
Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | None"
Settings: TypeAlias = "Mapping[str, Value]"


@dataclass(frozen=True)
class NodeCounts:
    unlabelled_new: int = 0
    test: int = 0


@dataclass(frozen=True)
class Seconds:
    fit: float = 0.0
    discover: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run for one seed. A failed one has no confusion matrix, and an error instead."""

    dataset: str
    method: str
    encoder: str
    seed: int
    num_old: int
    num_new: int
    key: str = ""  # a hash of everything that decides the result; "" outside a row file
    status: str = "done"  # or "failed"
    error: str = ""
    old_classes: tuple[int, ...] = ()
    class_names: tuple[str, ...] = ()
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
    confusion: Counts = ()  # of the joint head after phase 2
    confusion_fit: Counts = ()  # of the model of phase 1
    confusion_old: Counts | None = None  # test nodes of old classes told apart among these
    confusion_new: Counts | None = None  # test nodes of new classes by the head for new classes
    sizes: tuple[int, ...] = ()  # true classes of each phase
    predicted_sizes: tuple[int, ...] = ()
    seconds: Seconds = Seconds()
    device: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    data: str = ""  # fingerprint of the graph
    map: str | None = None  # file with the embeddings of some test nodes
    stored: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # {matching: scores} no matrix can give

    @property
    def is_done(self) -> bool:
        return self.status == "done"

    @property
    def is_failed(self) -> bool:
        return self.status == "failed"

    @cached_property
    def grade(self) -> Grade:
        """After both phases."""
        new, old = (None if counts is None else np.array(counts) for counts in (self.confusion_new, self.confusion_old))
        return Grade(np.array(self.confusion), new, self.sizes, self.predicted_sizes, old)

    def scores(self, matching: str = "block") -> Mapping[str, float]:
        """Every score under a matching, nan where there was nothing to measure."""
        if matching not in self._scores:
            self._scores[matching] = dict(self.stored.get(matching, {})) | self.grade.scores(matching)
        return self._scores[matching]

    @cached_property
    def _scores(self) -> dict[str, Mapping[str, float]]:
        return {}

    @cached_property
    def once(self) -> Mapping[str, float]:
        """Scores that are the same under every matching: AA and AF are under the headline, the others need none."""
        found = {name: value for name, value in self.stored.get("block", {}).items() if name in ("aa", "af")}
        if self.confusion_fit:
            before = Grade(np.array(self.confusion_fit), None, self.sizes, self.sizes)
            found["aa"], found["af"] = forgetting([before, self.grade])
        found |= self.grade.collapse
        # 100 where every discovered class is used, else 0: its mean is a share of the seeds.
        return found | {"new_all": 100.0 * (found["new_used"] == self.predicted_sizes[-1])}

    def score(self, name: str, matching: str = "block") -> float | None:
        """One score; None for a failed run, and where there was nothing to measure."""
        if not self.is_done:
            return None
        value = self.once[name] if name in self.once else self.scores(matching).get(name)
        return value if value is not None and isfinite(value) else None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Row:
        """A row of this schema or of an earlier one."""
        for name in ("dataset", "method", "encoder", "seed", "num_old", "num_new"):
            if document.get(name) is None:
                raise StorageError(f"not a result row, it has no {name}")
        schema = document.get("schema", 1)
        if schema not in range(1, SCHEMA + 1):
            raise StorageError(f"a row of schema {schema}, and this version of nodenova knows schemas up to {SCHEMA}")
        try:
            values = {name: _READ[name](value) for name, value in document.items() if name in _READ and value is not None}
            if schema == 1:
                values |= _of_schema_1(document, values)
            row = cls(**values)
        except (TypeError, ValueError, AttributeError) as error:
            raise StorageError(f"a damaged result row ({error})") from error
        row._check_shapes()
        return row

    def _check_shapes(self) -> None:
        """Raise unless every confusion matrix is of the row's classes. A failed run has none."""
        true, said = self.sizes, self.predicted_sizes
        shapes = {
            "confusion": (sum(true), sum(said)),
            "confusion_fit": (sum(true), sum(true)),
            "confusion_old": (sum(true[:-1]), sum(said[:-1])),
            "confusion_new": (sum(true[-1:]), sum(said[-1:])),
        }
        for name, shape in shapes.items():
            counts = getattr(self, name)
            must = name == "confusion" and self.is_done
            if (counts or must) and ([len(line) for line in counts] != [shape[1]] * shape[0] or not counts):
                raise StorageError(f"a damaged result row: its {name} is not of its classes, {shape[0]} × {shape[1]}")

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it. What a failed run does not know is left out."""
        document = asdict(self)
        out = {name for name in ("key", "error", "stored") if not document[name]}
        if self.is_failed:
            out |= _FINISHED
        return {"schema": SCHEMA} | {name: document[name] for name in _ORDER if name not in out}


# In which order a row is written, and what only a finished run has.
_ORDER = ("key", "status", "error", *(f.name for f in fields(Row) if f.name not in ("key", "status", "error")))
_FINISHED = {
    "class_names", "split", "nodes", "settings", "fit_settings", "sees", "confusion", "confusion_fit", "confusion_old",
    "confusion_new", "sizes", "predicted_sizes", "seconds", "device", "map",
}  # fmt: skip


def frozen(value: Any) -> Any:
    """A value with tuples for lists, as rows have them."""
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def frozen_settings(settings: Mapping[str, Any]) -> Settings:
    return {name: frozen(value) for name, value in settings.items()}


def counts_of(confusion: np.ndarray) -> Counts:
    return tuple(map(tuple, confusion.tolist()))


def _ints(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(map(int, values))


def _names(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(str, values))


def _counts(rows: Sequence[Sequence[Any]]) -> Counts:
    return tuple(map(_ints, rows))


def _told(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    return {m: {name: float(v) for name, v in each.items() if v is not None} for m, each in stored.items()}


def _of_schema_1(document: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """What rows of schema 1 say otherwise: scores that their matrices do not give, and settings of failed runs in text."""
    missing = {"old": "confusion_old" not in values, "new": "confusion_new" not in values}
    names = [f"{side}_n" for side, is_missing in missing.items() if is_missing] + ["all_n"] * any(missing.values())
    scores = document.get("scores") or {}
    kept = {matching: {name: scores[matching].get(name) for name in names} for matching in MATCHINGS if matching in scores}
    if "confusion_fit" not in values and "block" in kept:
        kept["block"] |= {name: document.get(name) for name in ("aa", "af")}
    stored = {matching: each for matching, each in _told(kept).items() if each}
    if values.get("status") != "failed":
        return {"stored": stored}
    return {"stored": stored, "changed": {name: _from_text(value) for name, value in values.get("changed", {}).items()}}


def _from_text(value: Value) -> Value:
    try:
        return frozen(loads(value)) if isinstance(value, str) else value
    except ValueError:
        return value


_READ: dict[str, Callable[[Any], Any]] = {
    "dataset": str, "method": str, "encoder": str, "seed": int, "num_old": int, "num_new": int, "key": str, "status": str,
    "error": str, "old_classes": _ints, "class_names": _names, "class_split": int, "draw": str, "split": str,
    "visibility": str, "nodes": lambda value: NodeCounts(**value), "settings": frozen_settings,
    "changed": frozen_settings, "fit_settings": frozen_settings, "fit_changed": frozen_settings, "sees": _names,
    "confusion": _counts, "confusion_fit": _counts, "confusion_old": _counts, "confusion_new": _counts, "sizes": _ints,
    "predicted_sizes": _ints, "seconds": lambda value: Seconds(**value), "device": str, "versions": dict, "commit": str,
    "data": str, "map": str, "stored": _told,
}  # fmt: skip
