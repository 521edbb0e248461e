"""A row: everything that made a run, and what it said of the test nodes.

Rows are JSON objects on disk (`to_json`, `from_json`) and values everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from json import loads
from typing import Any, ClassVar, TypeAlias

from nodenova.errors import StorageError
from nodenova.evaluation.graded import (
    SCHEMA,
    Counts,
    GradedRun,
    Reader,
    read_counts,
    read_ints,
    read_names,
)

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | None"
Settings: TypeAlias = "Mapping[str, Value]"


@dataclass(frozen=True)
class NodeCounts:
    """How many nodes phase 2 and the exam were about."""

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
    """Settings with tuples for lists, by the names they have now.

    Examples:
        >>> frozen_settings({"neighbours": [1, 2]})
        {'neighbors': (1, 2)}
    """
    now = {RENAMED.get(name, name): frozen(value) for name, value in settings.items()}
    return {name: OLD_VALUES.get(name, {}).get(value, value) for name, value in now.items()}


@dataclass(frozen=True, kw_only=True)
class Row(GradedRun):
    """One run for one seed. A failed one has no confusion matrix, and an error instead.

    What it said of the test nodes, and the scores, are those of a `GradedRun`.

    Attributes:
        dataset: The name of the graph.
        method: What tables know the method by.
        encoder: Of phase 1.
        num_new: How many classes phase 2 was told to find.
        key: A hash of everything that decides the result; "" outside a row file.
        status: "done" or "failed".
        error: What went wrong; "" if nothing did.
        old_classes: Ids of the classes that were labelled.
        class_split: The number of a random choice of these; None for the paper's.
        draw: Of training nodes: "published", "balanced", "as-it-comes", or "protocol".
        split: Where the split comes from, in words.
        visibility: "transductive" or "inductive".
        protocol: Of the league: "pown", "openima", "mixed-95", ...; "" for the paper's.
        handed: In the league, how unlabelled nodes were handed over.
        nodes: How many nodes there were.
        settings: Of the method, resolved.
        changed: Those that are not as they are by default.
        fit_settings: Of phase 1, resolved.
        fit_changed: Those that were asked for.
        sees: What phase 2 was shown.
        sessions: Of many stages, the confusion matrix of the joint head after each phase.
        measured: What is read off no matrix.
        device: On which it ran.
        versions: Of the packages that decide the result.
        commit: Of the code; None if it is not known.
        data: The fingerprint of the graph.
        map: The file with the embeddings of some test nodes; None if they were not kept.

    Examples:
        >>> row = Row(dataset="cora", method="sword", encoder="gcn", seed=0, num_old=3, num_new=4,
        ...           status="failed", error="out of memory")
        >>> row.is_done, Row.from_json(row.to_json()) == row
        (False, True)
    """

    dataset: str
    method: str
    encoder: str
    num_new: int
    key: str = ""
    status: str = "done"
    error: str = ""
    old_classes: tuple[int, ...] = ()
    class_split: int | None = None
    draw: str = "published"
    split: str = ""
    visibility: str = "transductive"
    protocol: str = ""
    handed: str = ""
    nodes: NodeCounts = NodeCounts()
    settings: Settings = field(default_factory=dict)
    changed: Settings = field(default_factory=dict)
    fit_settings: Settings = field(default_factory=dict)
    fit_changed: Settings = field(default_factory=dict)
    sees: tuple[str, ...] = ()
    sessions: tuple[Counts, ...] = ()
    measured: Mapping[str, float] = field(default_factory=dict)
    device: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    data: str = ""
    map: str | None = None

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
        "protocol": str,
        "handed": str,
        "nodes": lambda value: NodeCounts(**value),
        "settings": frozen_settings,
        "changed": frozen_settings,
        "fit_settings": frozen_settings,
        "fit_changed": frozen_settings,
        "sees": read_names,
        "sessions": lambda matrices: tuple(map(read_counts, matrices)),
        "measured": lambda values: {name: float(value) for name, value in values.items()},
        "device": str,
        "versions": dict,
        "commit": str,
        "data": str,
        "map": str,
    }

    @property
    def is_done(self) -> bool:
        """Whether there is a result."""
        return self.status == "done"

    @property
    def is_failed(self) -> bool:
        """Whether there is an error instead."""
        return self.status == "failed"

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it. What a failed run does not know is left out."""
        document = asdict(self)
        out = {name for name in ("key", "error", "stored", *_LEAGUE) if not document[name]}
        if self.is_failed:
            out |= _FINISHED
        return {"schema": SCHEMA} | {name: document[name] for name in _ORDER if name not in out}

    def _check_shapes(self) -> None:
        super()._check_shapes()
        for i, counts in enumerate(self.sessions, start=1):
            lines, columns = sum(self.sizes[:i]), sum(self.predicted_sizes[:i])
            if [len(line) for line in counts] != [columns] * lines:
                raise StorageError(
                    f"a damaged result row: session {i} is not of its classes, {lines} × {columns}"
                )

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
    "old_classes", "class_names", "class_split", "draw", "split", "visibility", "protocol",
    "handed", "nodes", "settings", "changed", "fit_settings", "fit_changed", "sees", "confusion",
    "confusion_fit", "confusion_old", "confusion_new", "sessions", "measured", "sizes",
    "predicted_sizes", "seconds", "device", "versions", "commit", "data", "map", "stored",
)  # fmt: skip
_FINISHED = {
    "class_names", "split", "nodes", "settings", "fit_settings", "sees", "confusion",
    "confusion_fit", "confusion_old", "confusion_new", "sizes", "predicted_sizes", "seconds",
    "device", "map",
}  # fmt: skip
_LEAGUE = ("protocol", "handed", "sessions", "measured")  # what only rows of the league have
