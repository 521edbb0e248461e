"""A row: everything that made a run, and the confusion matrices of its test nodes.

Rows are JSON objects on disk (`to_json`, `from_json`) and values everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from json import loads
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from nodenova.errors import StorageError
from nodenova.evaluation.graded import (
    SCHEMA,
    Counts,
    GradedRun,
    Reader,
    commit,
    read_counts,
    read_ints,
    read_names,
    versions,
)
from nodenova.files.documents import (
    Schema,
    list_of,
    map_of,
    number,
    one_of,
    plain,
    record,
    text,
    whole,
)

if TYPE_CHECKING:
    from nodenova.bench.plan import Plan

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | None"
Settings: TypeAlias = "Mapping[str, Value]"


@dataclass(frozen=True)
class NodeCounts:
    """Numbers of unlabelled nodes in phase 2 and of graded nodes."""

    unlabelled_new: int = 0
    test: int = 0


def frozen(value: Any) -> Value:
    """Return a value with tuples for lists."""
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


# Names in rows of earlier versions, and the names they have now.
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
    """Return settings with tuples for lists, by the names they have now."""
    now = {RENAMED.get(name, name): frozen(value) for name, value in settings.items()}
    return {
        name: OLD_VALUES.get(name, {}).get(value, value) if isinstance(value, str) else value
        for name, value in now.items()
    }


@dataclass(frozen=True, kw_only=True)
class Row(GradedRun):
    """One run of one seed; a failed run has an error instead of a confusion matrix.

    Confusion matrices and scores are those of a `GradedRun`.

    Attributes:
        dataset: Name of the graph.
        method: Name of the method.
        encoder: Name of the encoder of phase 1.
        num_new: Number of classes that phase 2 had to find.
        key: Hash of everything that decides the result; "" outside a row file.
        status: "done" or "failed".
        error: Error message; "" if there is none.
        old_classes: Ids of the classes that were labelled.
        class_split: Number of a random choice of these; None for the paper's.
        draw: Draw of training nodes: "published", "balanced", "as-it-comes", or "protocol".
        split: Origin of the split, in words.
        visibility: "transductive" or "inductive".
        protocol: Open-world protocol: "pown", "openima", "mixed-95", ...; "" for the paper's.
        handed: How an open-world protocol gave unlabelled nodes to the method.
        nodes: Numbers of nodes.
        settings: Settings of the method, resolved.
        changed: Settings of the method that differ from the defaults.
        fit_settings: Settings of phase 1, resolved.
        fit_changed: Settings of phase 1 that were set explicitly.
        sees: What phase 2 was given.
        sessions: Confusion matrix of the joint head after each phase, where there are many stages.
        measured: Scores that cannot be computed from a matrix.
        device: Device of the run.
        versions: Versions of the packages that decide the result.
        commit: Commit of the code; None if it is not known.
        data: Fingerprint of the graph.
        map: File with the embeddings of some test nodes; None if they were not stored.
        source: File of rows of others and the verdict on their method; "" for a row of our own.

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
    source: str = ""

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
        "source": str,
    }

    _FORMS: ClassVar[Mapping[str, Schema]] = {
        **GradedRun._FORMS,
        **dict.fromkeys(
            ("dataset", "method", "encoder", "key", "error", "draw", "split", "visibility",
             "protocol", "handed", "device", "commit", "data", "map", "source"), text
        ),
        "status": one_of("done", "failed"),
        "num_new": whole(0, 1_000_000),
        "old_classes": list_of(whole()),
        "class_split": whole(),
        "nodes": record({}, {"unlabelled_new": whole(0), "test": whole(0)}, exact=True),
        **dict.fromkeys(("settings", "changed", "fit_settings", "fit_changed"), map_of(plain)),
        "sees": list_of(text),
        "sessions": list_of(list_of(list_of(whole(0)))),
        "measured": map_of(number()),
        "versions": map_of(text),
    }  # fmt: skip

    @classmethod
    def of(cls, plan: Plan, seed: int, data: str, **results: Any) -> Row:
        """Return the row of a run: fields of the plan, and results by field."""
        return cls(
            dataset=plan.dataset,
            method=plan.method_name,
            encoder=plan.encoder_name,
            seed=seed,
            num_old=len(plan.old),
            num_new=plan.num_new,
            old_classes=plan.old,
            class_split=plan.class_split,
            draw="protocol" if plan.protocol else plan.draw,
            visibility=plan.visibility,
            protocol=plan.protocol,
            handed=plan.handed,
            changed=frozen_settings(plan.changed),
            fit_changed=frozen_settings(dict(plan.fit_settings)),
            versions=versions(),
            commit=commit(),
            data=data,
            **results,
        )

    @property
    def is_done(self) -> bool:
        """Whether there is a result."""
        return self.status == "done"

    @property
    def is_failed(self) -> bool:
        """Whether there is an error instead."""
        return self.status == "failed"

    def to_json(self) -> dict[str, Any]:
        """Return the row for JSON; a failed run has no fields of results."""
        document = asdict(self)
        absent = {name for name in _OPTIONAL if not document[name]}
        if self.is_failed:
            absent |= _FINISHED
        return {"schema": SCHEMA} | {name: document[name] for name in _ORDER if name not in absent}

    def _check_shapes(self) -> None:
        super()._check_shapes()
        for i, counts in enumerate(self.sessions, start=1):
            lines, columns = sum(self.sizes[:i]), sum(self.predicted_sizes[:i])
            if [len(line) for line in counts] != [columns] * lines:
                raise StorageError(
                    f"a damaged result row: the matrix of session {i} is not {lines} × {columns}"
                )

    @classmethod
    def _of_schema_1(cls, document: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the settings of failed runs, which were text."""
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


# Order of the fields on disk, and the fields that only a finished run has.
_ORDER = (
    "key", "status", "error", "dataset", "method", "encoder", "seed", "num_old", "num_new",
    "old_classes", "class_names", "class_split", "draw", "split", "visibility", "protocol",
    "handed", "nodes", "settings", "changed", "fit_settings", "fit_changed", "sees", "confusion",
    "confusion_fit", "confusion_old", "confusion_new", "sessions", "measured", "sizes",
    "predicted_sizes", "seconds", "device", "versions", "commit", "data", "map", "source",
    "stored",
)  # fmt: skip
_FINISHED = {
    "class_names", "split", "nodes", "settings", "fit_settings", "sees", "confusion",
    "confusion_fit", "confusion_old", "confusion_new", "sizes", "predicted_sizes", "seconds",
    "device", "map",
}  # fmt: skip
_OPTIONAL = ("key", "error", "stored", "protocol", "handed", "sessions", "measured", "source")
