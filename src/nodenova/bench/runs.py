"""A table of the paper is a function that returns its runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nodenova.bench import schedules
from nodenova.bench.plan import Plan
from nodenova.bench.registry import NCD, AnyMethod, name_of
from nodenova.bench.run_key import first_settings, first_words, key_of
from nodenova.data.labels import LabelledGraph
from nodenova.encoders.registry import encoder_kind
from nodenova.errors import SettingError
from nodenova.fitting import LDA
from nodenova.methods._plugin import origin_of
from nodenova.methods._two_heads import JOINTS
from nodenova.methods.registry import preferred_encoder, with_settings
from nodenova.methods.sword import Sword

# The rows of the paper's ablation table, by zero weights.
ABLATION: tuple[tuple[str, ...], ...] = (
    (), ("omega",), ("replay",), ("replay", "omega"),
    ("alpha1",), ("alpha1", "replay", "omega"), ("alpha2",), ("pseudo",),
)  # fmt: skip
# The paper's figure shows alpha1, alpha2, eta and lambda without their values in print;
# k is ours to add.
SENSITIVITY: dict[str, tuple[float, ...]] = {
    "alpha1": (0.02, 0.05, 0.08, 0.1, 0.2),
    "alpha2": (1.0, 3.0, 4.0, 5.0, 7.0),
    "eta": (0.05, 0.1, 0.2, 0.5, 1.0),
    "lam": (0.1, 0.2, 0.4, 0.7, 1.0),
    "k": (1, 2, 3, 4, 5),
}
LAYERS = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class RunSpec:
    """One run of a table.

    Attributes:
        plan: What to run.
        seed: Of both phases.
        data: The fingerprint of the graph.
        keep_map: Whether the embeddings of test nodes are kept for a figure.
    """

    plan: Plan
    seed: int
    data: str
    keep_map: bool = False

    @property
    def key(self) -> str:
        """The same for the same run, whichever table asks for it.

        Settings of both phases count as they are resolved.
        """
        p = self.plan
        what: dict[str, object] = {
            "dataset": p.dataset,
            "method": first_words(p.method_name),
            "method_settings": first_settings(p.method, schedules.fit_settings(p)),
            "encoder": p.encoder,
            "old": p.old,
            "num_new": p.num_new,
            "fit_settings": schedules.resolved(p),
            "schedule": schedules.schedule_of(p),
            "visibility": first_words(p.visibility),
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
        if p.protocol:
            what |= {"protocol": p.protocol, "handed": p.handed}
        return key_of(what)

    @property
    def phase_1(self) -> tuple[object, ...]:
        """Runs that are equal in this start from the same model of the old classes."""
        p = self.plan
        asked = (p.dataset, p.encoder, p.old, p.fit_settings, p.visibility, p.per_class, p.device)
        return (*asked, p.class_split, p.draw, p.protocol, self.seed, self.data)


@dataclass(frozen=True)
class BenchConfig:
    """What a bench was asked for.

    Attributes:
        datasets: Graphs, each with how many of its classes are old: the first so many.
        encoders: Names of trained encoders.
        methods: With their settings.
        seeds: Each a run of its own.
        fit_settings: Settings of phase 1 that were asked for.
        given: Names of the method's settings that were asked for: no schedule and no variant of a
            table changes them.
        hidden: Size of the representation; None is the paper's.
        schedule: "paper" or "released": how long both phases take.
        visibility: "transductive" or "inductive": what a phase sees of the graph.
    """

    datasets: Sequence[tuple[LabelledGraph, int]]
    encoders: Sequence[str]
    methods: Sequence[AnyMethod]
    seeds: Sequence[int]
    fit_settings: tuple[tuple[str, Any], ...] = ()
    given: Collection[str] = ()
    hidden: int | None = None
    schedule: str = "paper"
    visibility: str = "transductive"


def plain(config: BenchConfig) -> list[RunSpec]:
    """Every method on every encoder and dataset.

    A method with a closed-form encoder of its own runs on that, once.
    """
    return _specs(config, [(m, e) for m in config.methods for e in _encoders(m, config)])


def comparison(config: BenchConfig) -> list[RunSpec]:
    """Every method as it is; and those that join two heads, with the other way of joining them."""
    found = plain(config)
    for other in () if config.given else JOINTS:
        joined = [m for m in config.methods if getattr(m, "new_rows", other) != other]
        if joined:
            methods = [with_settings(m, new_rows=other) for m in joined]
            found += plain(replace(config, methods=methods, given=("new_rows",)))
    return found


def heads(config: BenchConfig) -> list[RunSpec]:
    """New nodes by the head for new classes alone (New-N)."""
    wanted = [m for m in config.methods if name_of(m) not in ("never_new", "oracle")]
    return plain(replace(config, methods=wanted))


def ablation(config: BenchConfig) -> list[RunSpec]:
    """SWORD with some of its losses weighted zero."""
    return [spec for zero in ABLATION for spec in _sword(config, dict.fromkeys(zero, 0.0))]


def sensitivity(config: BenchConfig) -> list[RunSpec]:
    """SWORD with one setting moved at a time."""
    moved = [{name: value} for name, values in SENSITIVITY.items() for value in values]
    return [spec for settings in moved for spec in _sword(config, settings)]


def layers(config: BenchConfig) -> list[RunSpec]:
    """SWORD on encoders of 2 to 64 layers."""
    depths = [() if depth == 2 else (("layers", depth),) for depth in LAYERS]
    configs = [replace(config, fit_settings=config.fit_settings + depth) for depth in depths]
    return [spec for each in configs for spec in _sword(each, {})]


def tsne(config: BenchConfig) -> list[RunSpec]:
    """One seed of each method with the embeddings of its test nodes kept."""
    first = plain(replace(config, seeds=config.seeds[:1]))
    return [replace(spec, keep_map=True) for spec in first]


def class_splits(config: BenchConfig) -> list[RunSpec]:
    """Old classes drawn at random: one draw a seed.

    Unlabelled nodes evenly of all new classes, and as they come.
    """
    found = []
    for spec in plain(config):
        labelled = next(graph for graph, _ in config.datasets if graph.name == spec.plan.dataset)
        order = np.random.default_rng([spec.seed, 42]).permutation(labelled.num_classes)
        old = tuple(sorted(order[: len(spec.plan.old)].tolist()))
        for draw in ("balanced", "as-it-comes"):
            plan = replace(spec.plan, old=old, class_split=spec.seed, draw=draw)
            found.append(replace(spec, plan=plan))
    return found


TABLES: dict[str, Callable[[BenchConfig], list[RunSpec]]] = {
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
# Tables of SWORD, whichever methods were asked for.
SWORD_ALONE = ("ablation", "sensitivity", "layers")


def runs_of(table: str, config: BenchConfig) -> list[RunSpec]:
    """The runs a table is made of, each once.

    Args:
        table: One of `TABLES`; "all" is every table's.
        config: What was asked for.

    Raises:
        SettingError: None of the methods is in that table.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> config = BenchConfig([(graph, 2)], ["gcn"], [nova.Sword()], seeds=[0, 1])
        >>> [spec.seed for spec in runs_of("heads", config)]
        [0, 1]
        >>> len(runs_of("ablation", config))
        16
    """
    wanted = TABLES if table == "all" else [table]
    specs = [spec for name in wanted for spec in TABLES[name](_shown_in(name, config))]
    if config.methods and config.datasets and not specs:
        names = ", ".join(name_of(method) for method in config.methods)
        raise SettingError(f"the table {table} does not show {names}; the table settings does")
    return list({spec.key: spec for spec in specs}.values())


def _shown_in(table: str, config: BenchConfig) -> BenchConfig:
    """Without the methods that a table does not show: what nobody can read is not run."""
    if table == "settings":
        return config
    return replace(config, methods=[m for m in config.methods if name_of(m) not in NCD])


def _encoders(method: AnyMethod, config: BenchConfig) -> Sequence[str]:
    preferred = preferred_encoder(method)
    return config.encoders if encoder_kind(preferred).trainable else [preferred]


def _sword(config: BenchConfig, settings: Mapping[str, float]) -> list[RunSpec]:
    """SWORD with these settings, on top of those that were asked for."""
    asked = next((method for method in config.methods if isinstance(method, Sword)), Sword())
    method = with_settings(asked, **settings)
    return _specs(config, [(method, encoder) for encoder in config.encoders])


def _fit_settings(
    config: BenchConfig, method: AnyMethod, dataset: str, encoder: str
) -> tuple[tuple[str, Any], ...]:
    """Settings of phase 1; what `fit` has by default is not named.

    An encoder that is computed has none of training.
    """
    if not encoder_kind(encoder).trainable:
        return tuple((name, value) for name, value in config.fit_settings if name in LDA)
    hidden = schedules.hidden_size(dataset) if config.hidden is None else config.hidden
    schedule = schedules.schedule_for(name_of(method), dataset, encoder, config.schedule)
    released = schedules.RELEASED_FIT[dataset, encoder] if schedule == "released" else {}
    found = list(config.fit_settings)
    if hidden != schedules.HIDDEN or hidden != released.get("hidden", hidden):
        found.append(("hidden", hidden))
    if schedule != "paper":
        found.append(("schedule", schedule))
    return tuple(found)


def _specs(config: BenchConfig, pairs: Sequence[tuple[AnyMethod, str]]) -> list[RunSpec]:
    """Phase 1 is shared by runs that stand side by side: of one dataset, encoder and seed."""
    found = []
    for labelled, num_old in config.datasets:
        name = labelled.name
        data = labelled.fingerprint()
        for encoder in dict.fromkeys(encoder for _, encoder in pairs):
            for seed in config.seeds:
                for method in (method for method, its in pairs if its == encoder):
                    fit_settings = _fit_settings(config, method, name, encoder)
                    schedule = dict(fit_settings).get("schedule", "paper")
                    plan = Plan(
                        dataset=name,
                        method=schedules.scheduled(method, name, encoder, schedule, config.given),
                        encoder=encoder,
                        old=tuple(range(num_old)),
                        num_new=labelled.num_classes - num_old,
                        fit_settings=fit_settings,
                        visibility=config.visibility,
                    )
                    found.append(RunSpec(plan, seed, data))
    return found
