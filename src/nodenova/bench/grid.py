"""A table of the paper is a function that returns its runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nodenova.bench import schedules
from nodenova.bench.contenders import AnyMethod, name_of
from nodenova.bench.plan import Plan
from nodenova.data.labels import Labelled
from nodenova.fitting import TRAINING
from nodenova.methods._plugin import origin_of
from nodenova.methods._two_heads import JOINTS
from nodenova.methods.registry import preferred_encoder, settings_of, with_settings
from nodenova.methods.sword import Sword

# The rows of the paper's ablation table, by zero weights.
ABLATION: tuple[tuple[str, ...], ...] = (
    (),
    ("omega",),
    ("replay",),
    ("replay", "omega"),
    ("alpha1",),
    ("alpha1", "replay", "omega"),
    ("alpha2",),
    ("pseudo",),
)
# The paper's figure shows alpha1, alpha2, eta and lambda without their values in print; k is ours to add.
SENSITIVITY: dict[str, tuple[float, ...]] = {
    "alpha1": (0.02, 0.05, 0.08, 0.1, 0.2),
    "alpha2": (1.0, 3.0, 4.0, 5.0, 7.0),
    "eta": (0.05, 0.1, 0.2, 0.5, 1.0),
    "lam": (0.1, 0.2, 0.4, 0.7, 1.0),
    "k": (1, 2, 3, 4, 5),
}
LAYERS = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Cell:
    """One run of a table: a plan, a seed, and whether the embeddings are kept for a figure. `data` is the graph's hash."""

    plan: Plan
    seed: int
    data: str
    keep_map: bool = False

    @property
    def key(self) -> str:
        """The same for the same run, whichever table asks for it: settings of both phases count as they are resolved."""
        p = self.plan
        what: dict[str, Any] = {
            "dataset": p.dataset,
            "method": p.method_name,
            "method_settings": settings_of(p.method),
            "encoder": p.encoder,
            "old": p.old,
            "num_new": p.num_new,
            "fit_settings": {} if p.encoder == "prism" else TRAINING | schedules.fit_settings(p),
            "schedule": schedules.schedule_of(p),
            "visibility": p.visibility,
            "per_class": p.per_class,
            "device": p.device,
            "class_split": p.class_split,
            "draw": p.draw,
            "seed": self.seed,
            "data": self.data,
            "map": self.keep_map,
        }
        if (origin := origin_of(p.method)) is not None:
            what["source"] = origin.digest
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def phase_1(self) -> tuple[object, ...]:
        """Cells that are equal in this start from the same model of the old classes."""
        p = self.plan
        return (p.dataset, p.encoder, p.old, p.fit_settings, p.visibility, p.per_class, p.device, p.class_split, p.draw,
                self.seed, self.data)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """What a bench was asked for. Datasets come with how many of their classes are old; hidden=None is the paper's size.

    given: names of the method's settings that were asked for: no schedule and no variant of a table changes them.
    """

    datasets: Sequence[tuple[Labelled, int]]
    encoders: Sequence[str]
    methods: Sequence[AnyMethod]
    seeds: Sequence[int]
    fit_settings: tuple[tuple[str, Any], ...] = ()
    given: Collection[str] = ()
    hidden: int | None = None
    schedule: str = "paper"
    visibility: str = "transductive"


def plain(choice: Choice) -> list[Cell]:
    """Every method on every encoder and dataset; a method with a closed-form encoder of its own runs on that, once."""
    return _cells(choice, [(method, encoder) for method in choice.methods for encoder in _encoders(method, choice)])


def comparison(choice: Choice) -> list[Cell]:
    """Every method as it is; and those that join two heads, with the other way of joining them."""
    found = plain(choice)
    for other in () if choice.given else JOINTS:
        methods = [with_settings(m, joint=other) for m in choice.methods if getattr(m, "joint", other) != other]
        if methods:
            found += plain(replace(choice, methods=methods, given=("joint",)))
    return found


def heads(choice: Choice) -> list[Cell]:
    """New nodes by the head for new classes alone (New-N)."""
    wanted = [m for m in choice.methods if name_of(m) not in ("never_new", "oracle")]
    return plain(replace(choice, methods=wanted))


def ablation(choice: Choice) -> list[Cell]:
    """SWORD with some of its losses weighted zero."""
    return [cell for zero in ABLATION for cell in _sword(choice, dict.fromkeys(zero, 0.0))]


def sensitivity(choice: Choice) -> list[Cell]:
    """SWORD with one setting moved at a time."""
    return [c for name, values in SENSITIVITY.items() for v in values for c in _sword(choice, {name: v})]


def layers(choice: Choice) -> list[Cell]:
    """SWORD on encoders of 2 to 64 layers."""
    depths = [() if depth == 2 else (("layers", depth),) for depth in LAYERS]
    return [cell for given in depths for cell in _sword(replace(choice, fit_settings=choice.fit_settings + given), {})]


def tsne(choice: Choice) -> list[Cell]:
    """One seed of each method with the embeddings of its test nodes kept."""
    return [replace(cell, keep_map=True) for cell in plain(replace(choice, seeds=choice.seeds[:1]))]


def class_splits(choice: Choice) -> list[Cell]:
    """Old classes drawn at random: one draw a seed. Unlabelled nodes evenly of all new classes, and as they come."""
    found = []
    for cell in plain(choice):
        labelled = next(graph for graph, _ in choice.datasets if graph.name == cell.plan.dataset)
        order = np.random.default_rng([cell.seed, 42]).permutation(labelled.num_classes)
        old = tuple(sorted(order[: len(cell.plan.old)].tolist()))
        for draw in ("balanced", "as-it-comes"):
            found.append(replace(cell, plan=replace(cell.plan, old=old, class_split=cell.seed, draw=draw)))
    return found


TABLES: dict[str, Callable[[Choice], list[Cell]]] = {
    "comparison": comparison,
    "heads": heads,
    "ablation": ablation,
    "forgetting": comparison,
    "sensitivity": sensitivity,
    "layers": layers,
    "confusion": plain,
    "tsne": tsne,
    "class-splits": class_splits,
    "collapse": comparison,
    "settings": plain,
}
SWORD_ALONE = ("ablation", "sensitivity", "layers")  # tables of SWORD, whichever methods were asked for


def cells_of(table: str, choice: Choice) -> list[Cell]:
    """The runs a table is made of, each once; "all" is every table's."""
    wanted = TABLES if table == "all" else [table]
    return list({cell.key: cell for name in wanted for cell in TABLES[name](choice)}.values())


def _encoders(method: AnyMethod, choice: Choice) -> Sequence[str]:
    return ["prism"] if preferred_encoder(method) == "prism" else choice.encoders


def _sword(choice: Choice, settings: Mapping[str, float]) -> list[Cell]:
    """SWORD with these settings, on top of those that were asked for."""
    asked = next((method for method in choice.methods if isinstance(method, Sword)), Sword())
    return _cells(choice, [(with_settings(asked, **settings), encoder) for encoder in choice.encoders])


def _fit_settings(choice: Choice, method: AnyMethod, dataset: str, encoder: str) -> tuple[tuple[str, Any], ...]:
    """Settings of phase 1, none for an encoder that is computed; what is as `fit` has it by default is not named."""
    if encoder == "prism":
        return ()
    hidden = schedules.hidden_size(dataset) if choice.hidden is None else choice.hidden
    schedule = schedules.schedule_for(name_of(method), dataset, encoder, choice.schedule)
    released = schedules.RELEASED_FIT[dataset, encoder] if schedule == "released" else {}
    named = {"hidden": hidden} if hidden != schedules.HIDDEN or hidden != released.get("hidden", hidden) else {}
    return (*choice.fit_settings, *named.items(), *([("schedule", schedule)] if schedule != "paper" else []))


def _cells(choice: Choice, pairs: Sequence[tuple[AnyMethod, str]]) -> list[Cell]:
    """Phase 1 is shared by cells that stand side by side: of one dataset, encoder and seed."""
    found = []
    for labelled, num_old in choice.datasets:
        data = labelled.fingerprint()
        for encoder in dict.fromkeys(encoder for _, encoder in pairs):
            for seed in choice.seeds:
                for method in (method for method, its in pairs if its == encoder):
                    fit_settings = _fit_settings(choice, method, labelled.name, encoder)
                    schedule = dict(fit_settings).get("schedule", "paper")
                    plan = Plan(
                        dataset=labelled.name,
                        method=schedules.scheduled(method, labelled.name, encoder, schedule, choice.given),
                        encoder=encoder,
                        old=tuple(range(num_old)),
                        num_new=labelled.num_classes - num_old,
                        fit_settings=fit_settings,
                        visibility=choice.visibility,
                    )
                    found.append(Cell(plan, seed, data))
    return found
