"""What to run: plans, their schedules, and the keys by which runs are found in a row file.

The paper's text gives one schedule for all datasets, the released configuration files one for each.
A plan follows the text unless its `fit_settings` name another schedule.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

from nodenova.bench.paper import FACTS
from nodenova.bench.registry import (
    ALL_METHODS,
    BASELINES,
    BENCH_METHODS,
    AnyMethod,
    get_method,
    name_of,
)
from nodenova.bench.row import OLD_METHODS, OLD_VALUES, OLD_VISIBILITIES, RENAMED, Row
from nodenova.bench.row import frozen_settings as frozen
from nodenova.data.protocols import PaperSplit, WorldProtocol, protocol_of
from nodenova.encoders.prism.lda import LDASettings
from nodenova.encoders.registry import ENCODERS, encoder_kind
from nodenova.errors import SettingError, one_of
from nodenova.fitting import TRAINING
from nodenova.io.dataset_table import DATASETS
from nodenova.methods._plugin import origin_of
from nodenova.methods.registry import settings_of, with_settings
from nodenova.nn.sampling import check_batches

DRAWS = ("published", "balanced", "as-it-comes")
SCHEDULES = ("paper", "released")
# Methods whose second phase the released files are about; others keep their own epochs.
FOLLOW = ("sword", "sword_as_released")
AS_RELEASED = "sword_as_released"  # uses the released schedule wherever there is one
HIDDEN = 16  # default of `fit`
PER_CLASS = 20

# {(dataset, encoder): settings of fit} and {(dataset, encoder): epochs of phase 2}.
RELEASED_FIT: dict[tuple[str, str], dict[str, Any]] = {
    (dataset, encoder): {
        "hidden": hidden,
        "epochs": epochs,
        "early_stopping": False,
        **FACTS["released"]["fit"][encoder],
    }
    for dataset, encoder, hidden, epochs, _ in FACTS["released"]["schedules"]
}
RELEASED_EPOCHS: dict[tuple[str, str], int] = {
    (dataset, encoder): epochs for dataset, encoder, _, _, epochs in FACTS["released"]["schedules"]
}


@dataclass(frozen=True)
class Plan:
    """What to run, apart from the seed.

    Two runs of equal plans, data and seeds give equal scores.

    Attributes:
        dataset: Name of the graph.
        method: Method; its fields are its settings.
        encoder: Name of the encoder of phase 1, or path/to/mine.py:Net.
        old: Ids of the classes that are labelled in phase 1.
        num_new: Number of classes to find in phase 2.
        fit_settings: Settings of phase 1; "schedule" stands for all settings of a schedule.
        visibility: "transductive", or "inductive": a phase sees only classes met so far.
        per_class: Training nodes per class, for a graph without a published split.
        device: "auto", "cpu" or "cuda".
        class_split: Number of a random choice of old classes; None for the paper's.
        draw: How training nodes are drawn: "published", "balanced" or "as-it-comes".
        protocol: Name of an open-world protocol ("pown", "mixed-95"), which then decides classes
            and nodes; "" for the paper's split.
        handed: How an open-world protocol gives unlabelled nodes to the method: "mixed", "told" or
            "all-new".
        encoder_source: Hash of the file of a user's own encoder, taken when the plan is made; ""
            for other encoders.

    Raises:
        SettingError: If `method` is a name or does not train on batches that `fit_settings` ask
            for, or `draw` is unknown.

    Examples:
        >>> import nodenova as nova
        >>> plan = Plan("cora", nova.Sword(epochs=300), "gcn", old=(0, 1, 2), num_new=4)
        >>> plan.method_name, plan.changed
        ('sword', {'epochs': 300})
    """

    dataset: str
    method: AnyMethod
    encoder: str
    old: tuple[int, ...]
    num_new: int
    fit_settings: tuple[tuple[str, Any], ...] = ()
    visibility: str = "transductive"
    per_class: int = PER_CLASS
    device: str = "auto"
    class_split: int | None = None
    draw: str = "published"
    protocol: str = ""
    handed: str = ""
    encoder_source: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.method, str):
            raise SettingError(f"the method of a plan is a value, not a name: {self.method!r}")
        if self.draw not in DRAWS:
            raise one_of("draw", self.draw, DRAWS)
        if self.method_name not in BASELINES:  # they do not train
            check_batches(dict(self.fit_settings).get("batch"), self.method, self.method_name)
        origin = encoder_kind(self.encoder).origin
        if origin is not None and not self.encoder_source:
            object.__setattr__(self, "encoder", origin.name)
            object.__setattr__(self, "encoder_source", origin.digest)

    @property
    def method_name(self) -> str:
        """Name of the method in rows and tables."""
        return name_of(self.method)

    @property
    def encoder_name(self) -> str:
        """Name of the encoder in rows and tables: of a user's own, that of its class."""
        return self.encoder.rpartition(":")[2]

    def check_source(self) -> None:
        """Raise if the file of a user's own encoder has changed since the plan was made."""
        origin = encoder_kind(self.encoder).origin
        if origin is not None and origin.digest != self.encoder_source:
            raise SettingError(f"{origin.name}: the file has changed since the run was planned")

    @property
    def world_protocol(self) -> WorldProtocol:
        """Protocol that decides which nodes are labelled, unlabelled and graded."""
        if self.protocol:
            return protocol_of(self.protocol, self.class_split or 0, self.visibility)
        return PaperSplit(self.old, self.num_new, self.draw, self.per_class, self.visibility)

    @property
    def schedule(self) -> str:
        """Schedule of both phases: "paper" or "released"."""
        return str(dict(self.fit_settings).get("schedule", "paper"))

    @property
    def phase1_settings(self) -> dict[str, Any]:
        """Settings of phase 1 that differ from the defaults of `fit`: the schedule's, then own."""
        own = dict(self.fit_settings)
        if own.pop("schedule", "paper") == "released":
            return RELEASED_FIT[self.dataset, self.encoder] | own
        return own

    @property
    def resolved_training(self) -> dict[str, Any]:
        """Settings of phase 1 with the defaults of training; a computed encoder has no defaults."""
        trained = self.encoder_source or encoder_kind(self.encoder).trainable
        return (TRAINING if trained else {}) | self.phase1_settings

    @property
    def changed(self) -> dict[str, Any]:
        """Settings of the method that differ from its defaults, or from those of the schedule."""
        default = type(self.method)()
        usual = settings_of(apply_schedule(default, self.dataset, self.encoder, self.schedule))
        settings = settings_of(self.method)
        return {name: value for name, value in settings.items() if value != usual[name]}

    def to_json(self) -> dict[str, Any]:
        """Return the plan for run.json: the method by name (a user's by its file), its settings."""
        origin = origin_of(self.method)
        return {
            "dataset": self.dataset,
            "method": self.method_name if origin is None else origin.name,
            "method_settings": _plain(settings_of(self.method)),
            "encoder": self.encoder,
            "old": list(self.old),
            "num_new": self.num_new,
            "fit_settings": _plain(dict(self.fit_settings)),
            "visibility": self.visibility,
            "per_class": self.per_class,
            "device": self.device,
            "class_split": self.class_split,
            "draw": self.draw,
            **({"encoder_source": self.encoder_source} if self.encoder_source else {}),
        }


def current_form(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the plan of a run.json in the form of `Plan.to_json`.

    Earlier versions stored settings as pairs, those of the method as text.
    """
    words = {"method": OLD_METHODS, "visibility": OLD_VISIBILITIES}
    document = {
        key: words.get(key, {}).get(value, value) if isinstance(value, str) else value
        for key, value in document.items()
    }
    if isinstance(document["method_settings"], dict):
        settings = frozen(document["method_settings"])
        # These are settings of phase 1 now.
        moved = asdict(LDASettings()) if document["method"] == "prism" else {}
        own = {name: value for name, value in settings.items() if moved.get(name) != value}
        return {**document, "method_settings": _plain(own)}
    settings = frozen(dict(document["method_settings"]))
    method = get_method(document["method"], {name: str(text) for name, text in settings.items()})
    fit_settings = tuple((name, value) for name, value in document["fit_settings"])
    values = {key: value for key, value in document.items() if key != "method_settings"}
    return Plan(
        **values | {"method": method, "old": tuple(document["old"]), "fit_settings": fit_settings}
    ).to_json()


def _plain(value: object) -> object:
    """Return a value as JSON returns it: lists for tuples."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


# Schedules


def hidden_size(dataset: str) -> int:
    """Size of the representation in the paper's setting."""
    return DATASETS[dataset].hidden if dataset in DATASETS else HIDDEN


def schedule_for(method: str, dataset: str, encoder: str, schedule: str = "paper") -> str:
    """Return the schedule of a run where `schedule` was chosen for the bench."""
    if schedule not in SCHEDULES:
        raise one_of("schedule", schedule, SCHEDULES)
    if not encoder_kind(encoder).trainable:
        return "paper"  # it is computed, so there are no epochs
    if schedule == "released" and (dataset, encoder) not in RELEASED_FIT:
        known = ", ".join(dict.fromkeys(name for name, _ in RELEASED_FIT))
        raise SettingError(
            f"there is no released schedule for {dataset} with {encoder}; there is one for {known}"
        )
    if schedule == "released" or (method == AS_RELEASED and (dataset, encoder) in RELEASED_FIT):
        return "released"
    return "paper"


def apply_schedule(
    method: AnyMethod, dataset: str, encoder: str, schedule: str, fixed: Collection[str] = ()
) -> AnyMethod:
    """Return the method with the epochs of a schedule, unless epochs are among `fixed`."""
    if schedule != "released" or name_of(method) not in FOLLOW or "epochs" in fixed:
        return method
    return with_settings(method, epochs=RELEASED_EPOCHS[dataset, encoder])


# Keys. Their words never change: a row file is continued only where keys are found again.

ADDED: Mapping[str, object] = {"weigh": True}  # younger than the first rows: skipped by default
MOVED = ("rank_low", "rank_high", "prior")  # were settings of Prism, are settings of phase 1
FIRST_SETTINGS = {new: first for first, new in RENAMED.items()}
FIRST_VALUES = {
    name: {new: first for first, new in values.items()} for name, values in OLD_VALUES.items()
}
FIRST_WORDS = {new: first for first, new in (OLD_METHODS | OLD_VISIBILITIES).items()}


@dataclass(frozen=True)
class RunSpec:
    """One run of a table.

    Attributes:
        plan: What to run.
        seed: Seed of both phases.
        data: Fingerprint of the graph.
        keep_map: Whether the embeddings of test nodes are stored for a figure.
    """

    plan: Plan
    seed: int
    data: str
    keep_map: bool = False

    @property
    def key(self) -> str:
        """Hash of everything that decides the result, the same in every table."""
        p = self.plan
        content: dict[str, object] = {
            "dataset": p.dataset,
            "method": FIRST_WORDS.get(p.method_name, p.method_name),
            "method_settings": _first_settings(p),
            "encoder": p.encoder_name,
            "old": p.old,
            "num_new": p.num_new,
            "fit_settings": p.resolved_training,
            "schedule": p.schedule,
            "visibility": FIRST_WORDS.get(p.visibility, p.visibility),
            "per_class": p.per_class,
            "device": p.device,
            "class_split": p.class_split,
            "draw": p.draw,
            "seed": self.seed,
            "data": self.data,
            "map": self.keep_map,
        }
        if (origin := origin_of(p.method)) is not None:
            content["source"] = origin.digest
        if p.encoder_source:
            content["encoder_source"] = p.encoder_source
        if p.protocol:
            content |= {"protocol": p.protocol, "handed": p.handed}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def phase_1(self) -> tuple[object, ...]:
        """Runs that are equal in this start from the same model of the old classes."""
        p = self.plan
        shared = (p.dataset, p.encoder, p.old, p.fit_settings, p.visibility, p.per_class, p.device)
        own = (p.encoder_source, p.class_split, p.draw, p.protocol)
        return (*shared, *own, self.seed, self.data)


def _first_settings(plan: Plan) -> dict[str, Any]:
    """Settings of a plan's method by the names and in the places they had at first."""
    # A user's own method may be a subclass of a registered one.
    names = {ALL_METHODS.name_of(kind) for kind in type(plan.method).__mro__} - {None}
    renamed, changed = (FIRST_SETTINGS, FIRST_VALUES) if names else ({}, {})
    found = {}
    for name, value in settings_of(plan.method).items():
        if name not in ADDED or value != ADDED[name]:
            first = changed.get(name, {})
            is_text = isinstance(value, str)
            found[renamed.get(name, name)] = first.get(value, value) if is_text else value
    phase_1 = asdict(LDASettings()) | plan.phase1_settings
    return found | {name: phase_1[name] for name in MOVED if "prism" in names}


def key_of_row(row: Row, kind: type[Any] | None = None) -> str:
    """Return the key that the run of a row has today, computed from what the row records.

    Earlier versions hashed other words, so the stored key may differ. It stays where the row does
    not record everything: of a failed run, of a user's own method (the key has its source) unless
    `kind` is its class, or of a version with fewer settings.
    """
    with suppress(SettingError):
        if (plan := _recorded_plan(row, kind)) is not None:
            return RunSpec(plan, row.seed, row.data, row.map is not None).key
    return row.key


def _recorded_plan(row: Row, own: type[Any] | None = None) -> Plan | None:
    """Return the plan of a finished run, or None where the row does not record all settings."""
    known = own is not None or row.method in BENCH_METHODS
    if not known or row.encoder not in ENCODERS or not row.is_done:
        return None
    kind = BENCH_METHODS[row.method] if own is None else own
    settings: dict[str, Any] = {**ADDED, **row.settings}
    names = [field.name for field in fields(kind)]
    training = TRAINING if encoder_kind(row.encoder).trainable else {}
    if not {*names} <= settings.keys() or not training.keys() <= row.fit_settings.keys():
        return None
    fit_settings: dict[str, Any] = {name: row.fit_settings[name] for name in training}
    fit_settings |= row.fit_changed
    released = fit_settings.get("schedule") == "released"
    if released and (row.dataset, row.encoder) not in RELEASED_FIT:
        return None
    for name, default in asdict(LDASettings()).items():
        value = row.settings.get(name, row.fit_settings.get(name, default))
        if value != default:
            fit_settings[name] = value
    per_class = re.match(r"seeded, (\d+) ", row.split)
    return Plan(
        dataset=row.dataset,
        method=kind(**{name: settings[name] for name in names}),
        encoder=row.encoder,
        old=row.old_classes,
        num_new=row.num_new,
        fit_settings=tuple(fit_settings.items()),
        visibility=row.visibility,
        per_class=int(per_class[1]) if per_class else PER_CLASS,
        class_split=row.class_split,
        draw="published" if row.protocol else row.draw,
        protocol=row.protocol,
        handed=row.handed,
    )
