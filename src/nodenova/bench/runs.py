"""The runs of each table of the bench: the paper's tables and the open-world benches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from nodenova.bench.baselines import Baseline, CountingRule, Phase1
from nodenova.bench.plan import (
    HIDDEN,
    RELEASED_FIT,
    Plan,
    RunSpec,
    apply_schedule,
    hidden_size,
    schedule_for,
)
from nodenova.bench.registry import NCD, AnyMethod, get_baseline, name_of
from nodenova.bench.rivals import require
from nodenova.data.labels import LabelledGraph
from nodenova.data.protocols import (
    CFC_OLD,
    GNNSAFE_EXPOSED,
    OPENIMA_SEEDS,
    POWN_FOLDS,
    SHARES_COUNTED,
    SHARES_MIXED,
    num_folds,
    protocol_of,
)
from nodenova.encoders.registry import encoder_kind
from nodenova.errors import SettingError
from nodenova.files.own_code import is_path
from nodenova.fitting import LDA
from nodenova.methods._two_heads import JOINTS
from nodenova.methods.registry import preferred_encoder, with_settings
from nodenova.methods.sword import Sword

# The rows of the paper's ablation table, by zero weights.
ABLATION: tuple[tuple[str, ...], ...] = (
    (), ("omega",), ("replay",), ("replay", "omega"),
    ("alpha1",), ("alpha1", "replay", "omega"), ("alpha2",), ("pseudo",),
)  # fmt: skip
# The paper's figure shows alpha1, alpha2, eta and lambda without printed values; k is added here.
SENSITIVITY: dict[str, tuple[float, ...]] = {
    "alpha1": (0.02, 0.05, 0.08, 0.1, 0.2),
    "alpha2": (1.0, 3.0, 4.0, 5.0, 7.0),
    "eta": (0.05, 0.1, 0.2, 0.5, 1.0),
    "lam": (0.1, 0.2, 0.4, 0.7, 1.0),
    "k": (1, 2, 3, 4, 5),
}
LAYERS = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class BenchConfig:
    """Options of a bench of the paper's tables.

    Attributes:
        datasets: Graphs, each with its number of old classes (the first ones).
        encoders: Names of trained encoders.
        methods: Methods with their settings.
        seeds: Seeds; each is a run of its own.
        fit_settings: Settings of phase 1.
        fixed: Names of method settings that no schedule and no variant of a table changes.
        hidden: Size of the representation; None for the paper's.
        schedule: Length of both phases: "paper" or "released".
        visibility: What a phase sees of the graph: "transductive" or "inductive".
    """

    datasets: Sequence[tuple[LabelledGraph, int]]
    encoders: Sequence[str]
    methods: Sequence[AnyMethod]
    seeds: Sequence[int]
    fit_settings: tuple[tuple[str, Any], ...] = ()
    fixed: Collection[str] = ()
    hidden: int | None = None
    schedule: str = "paper"
    visibility: str = "transductive"


def plain(config: BenchConfig) -> list[RunSpec]:
    """Every method on every encoder and dataset; on its own encoder only, if that is computed."""
    return _specs(config, [(m, e) for m in config.methods for e in _encoders(m, config)])


def comparison(config: BenchConfig) -> list[RunSpec]:
    """Every method; those that join two heads also with the other way of joining them."""
    found = plain(config)
    for other in () if config.fixed else JOINTS:
        joined = [m for m in config.methods if getattr(m, "new_rows", other) != other]
        if joined:
            methods = [with_settings(m, new_rows=other) for m in joined]
            found += plain(replace(config, methods=methods, fixed=("new_rows",)))
    return found


def heads(config: BenchConfig) -> list[RunSpec]:
    """Methods whose head for new classes can be graded alone (New-N)."""
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
    """One seed of each method, with the embeddings of its test nodes stored."""
    first = plain(replace(config, seeds=config.seeds[:1]))
    return [replace(spec, keep_map=True) for spec in first]


def class_splits(config: BenchConfig) -> list[RunSpec]:
    """Old classes drawn at random by the seed; unlabelled nodes balanced, and as they come."""
    found = []
    for spec in plain(config):
        labelled = next(graph for graph, _ in config.datasets if graph.name == spec.plan.dataset)
        old = draw_classes(labelled.num_classes, len(spec.plan.old), spec.seed)
        for draw in ("balanced", "as-it-comes"):
            plan = replace(spec.plan, old=old, class_split=spec.seed, draw=draw)
            found.append(replace(spec, plan=plan))
    return found


def draw_classes(num_classes: int, num_old: int, seed: int) -> tuple[int, ...]:
    """Return the old classes that a seed draws, ascending.

    Examples:
        >>> draw_classes(6, 4, seed=0)
        (0, 1, 2, 4)
    """
    order = np.random.default_rng([seed, 42]).permutation(num_classes)
    return tuple(sorted(order[:num_old].tolist()))


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
# Tables that show SWORD alone.
SWORD_ALONE = ("ablation", "sensitivity", "layers")


def runs_of(table: str, config: BenchConfig) -> list[RunSpec]:
    """Return the runs of a table of the paper, each once.

    Args:
        table: Name of the table; "all" for every table.
        config: Datasets, encoders, methods and seeds.

    Raises:
        SettingError: If the table shows none of the methods.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> config = BenchConfig([(graph, 2)], ["gcn"], [nova.Sword()], seeds=[0, 1])
        >>> [spec.seed for spec in runs_of("heads", config)]
        [0, 1]
        >>> len(runs_of("ablation", config))
        16
    """
    names = TABLES if table == "all" else [table]
    specs = [spec for name in names for spec in TABLES[name](_shown_in(name, config))]
    if config.methods and config.datasets and not specs:
        methods = ", ".join(name_of(method) for method in config.methods)
        raise SettingError(f"the table {table} does not show {methods}; the table settings does")
    return list({spec.key: spec for spec in specs}.values())


def _shown_in(table: str, config: BenchConfig) -> BenchConfig:
    """Drop the methods that a table does not show."""
    if table == "settings":
        return config
    return replace(config, methods=[m for m in config.methods if name_of(m) not in NCD])


def _encoders(method: AnyMethod, config: BenchConfig) -> Sequence[str]:
    preferred = preferred_encoder(method)
    return config.encoders if encoder_kind(preferred).trainable else [preferred]


def _sword(config: BenchConfig, settings: Mapping[str, float]) -> list[RunSpec]:
    """SWORD with these settings on top of the configured ones."""
    base = next((method for method in config.methods if isinstance(method, Sword)), Sword())
    method = with_settings(base, **settings)
    return _specs(config, [(method, encoder) for encoder in config.encoders])


def _fit_settings(
    config: BenchConfig, method: AnyMethod, dataset: str, encoder: str
) -> tuple[tuple[str, Any], ...]:
    """Settings of phase 1 that differ from the defaults of `fit`."""
    if not encoder_kind(encoder).trainable:
        return tuple((name, value) for name, value in config.fit_settings if name in LDA)
    hidden = hidden_size(dataset) if config.hidden is None else config.hidden
    schedule = schedule_for(name_of(method), dataset, encoder, config.schedule)
    released = RELEASED_FIT[dataset, encoder] if schedule == "released" else {}
    found = list(config.fit_settings)
    if hidden != HIDDEN or hidden != released.get("hidden", hidden):
        found.append(("hidden", hidden))
    if schedule != "paper":
        found.append(("schedule", schedule))
    return tuple(found)


def _specs(config: BenchConfig, pairs: Sequence[tuple[AnyMethod, str]]) -> list[RunSpec]:
    """Runs of one dataset, encoder and seed stand side by side: they share phase 1."""
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
                        method=apply_schedule(method, name, encoder, schedule, config.fixed),
                        encoder=encoder,
                        old=tuple(range(num_old)),
                        num_new=labelled.num_classes - num_old,
                        fit_settings=fit_settings,
                        visibility=config.visibility,
                    )
                    found.append(RunSpec(plan, seed, data))
    return found


# Open-world benches

# Entrants: a method by its name, and how the unlabelled nodes are given to it.
ENTRANTS: dict[str, tuple[str, str]] = {
    "prism": ("prism", "mixed"),
    "told": ("prism", "told"),
    "all-new": ("prism", "all-new"),
    "gcd": ("gcd", "mixed"),
    "simgcd": ("simgcd", "mixed"),
    "simgcd-labelled": ("simgcd_labelled", "mixed"),
    "frost": ("frost", "told"),
    "sword": ("sword", "told"),
    "count": ("count", "mixed"),
    "silhouette": ("silhouette", "mixed"),
    "hdbscan": ("hdbscan", "mixed"),
    "scatter": ("scatter", "mixed"),
    "phase-1": ("phase_1", "mixed"),
    "leiden": ("leiden", "mixed"),
    "fastrp": ("fastrp", "mixed"),
    "evoc": ("evoc", "mixed"),
    "scikit-learn": ("scikit_learn", "mixed"),
    "leiden-count": ("leiden_count", "mixed"),
    "evoc-count": ("evoc_count", "mixed"),
}
COUNTING = ("count", "clusters")  # benches in which the number of new classes is not given
NOTHING_FOUND = ("gnnsafe", "closed")  # benches for a model of phase 1 alone
SYNTHETIC = "synthetic:nodes=8000,classes=40,words=2000"  # of many stages
HETEROPHILOUS = ("actor", "wisconsin", "chameleon_filtered", "squirrel_filtered")
AT_HAND = ("cora", "citeseer", "pubmed", "wordnet")
# Protocols of a graph and a seed, each with the number of its fold, split or draw of classes.
Numbered: TypeAlias = "Callable[[LabelledGraph, int], list[tuple[str, int]]]"


@dataclass(frozen=True)
class OpenWorldBench:
    """Protocols of an open-world bench, and its default entrants, number of seeds and datasets."""

    protocols: Numbered
    entrants: tuple[str, ...]
    seeds: int
    datasets: tuple[str, ...]


OPEN_WORLD: dict[str, OpenWorldBench] = {
    "mixed": OpenWorldBench(
        lambda graph, seed: [(f"mixed-{share}", seed) for share in SHARES_MIXED],
        (
            "prism",
            "told",
            "gcd",
            "all-new",
            "simgcd",
            "simgcd-labelled",
            "frost",
            "sword",
            "fastrp",
            "scikit-learn",
        ),
        10,
        AT_HAND,
    ),
    "count": OpenWorldBench(
        lambda graph, seed: [(f"count-{share}", seed) for share in SHARES_COUNTED],
        ("count", "silhouette", "hdbscan", "scatter", "prism"),
        20,
        AT_HAND,
    ),
    "stages": OpenWorldBench(
        lambda graph, seed: [("stages", seed)],
        ("prism", "told", "simgcd", "frost", "sword"),
        5,
        ("cora", "citeseer", "wordnet", SYNTHETIC),
    ),
    "pown": OpenWorldBench(
        lambda graph, seed: [("pown", fold) for fold in range(num_folds(graph.name))],
        ("prism", "gcd", "all-new", "simgcd", "simgcd-labelled"),
        5,
        tuple(POWN_FOLDS),
    ),
    "openima": OpenWorldBench(
        lambda graph, seed: [("openima", seed)],
        ("prism", "gcd", "all-new", "simgcd", "simgcd-labelled"),
        len(OPENIMA_SEEDS),
        ("cora", "citeseer", "photo", "computers", "cs", "physics"),
    ),
    "gnnsafe": OpenWorldBench(
        lambda graph, seed: [("gnnsafe", 0)], ("prism", "phase-1"), 5, tuple(GNNSAFE_EXPOSED)
    ),
    "cfc": OpenWorldBench(lambda graph, seed: [("cfc", 0)], ("prism",), 5, tuple(CFC_OLD)),
    "hope": OpenWorldBench(lambda graph, seed: [("hope", 0)], ("prism",), 5, HETEROPHILOUS),
    "closed": OpenWorldBench(
        lambda graph, seed: [("closed", 0)], ("phase-1",), 5, ("cora", "citeseer", "pubmed")
    ),
    "clusters": OpenWorldBench(
        lambda graph, seed: [("clusters", seed)],
        ("count",),
        10,
        ("cora", "citeseer", "pubmed", "computers", "photo", "cs", "physics"),
    ),
}


def open_world_runs(
    bench: str,
    graphs: Sequence[LabelledGraph],
    entrants: Sequence[str],
    seeds: Sequence[int],
    setting: str = "transductive",
) -> list[RunSpec]:
    """Return the runs of an open-world bench; those that share phase 1 stand side by side.

    An entrant is one of `ENTRANTS`, or a user's own method, path/to/mine.py:Mine, which gets the
    mixture. For `openima` the seeds are the numbers of its splits.
    """
    methods = [_entrant(bench, name) for name in entrants]
    specs = []
    for labelled in graphs:
        data = labelled.fingerprint()
        for seed in seeds:
            for protocol, number in OPEN_WORLD[bench].protocols(labelled, seed):
                world = protocol_of(protocol, number, setting).world(labelled, seed)
                for method, handed in methods:
                    if protocol == "count-100" and not isinstance(method, CountingRule):
                        continue  # nothing is new, so there is no number to be given
                    encoder = preferred_encoder(method)
                    plan = Plan(
                        dataset=labelled.name,
                        method=method,
                        encoder=encoder,
                        old=world.classes[0],
                        num_new=sum(task.num_new or 0 for task in world.tasks),
                        fit_settings=_hidden_setting(labelled.name, encoder),
                        visibility=setting,
                        class_split=number,
                        protocol=protocol,
                        handed="all-new" if protocol == "count-0" else handed,
                    )
                    specs.append(RunSpec(plan, seed, data))
    return list({spec.key: spec for spec in specs}.values())


def _entrant(bench: str, name: str) -> tuple[AnyMethod, str]:
    """Return the method of an entrant and how unlabelled nodes are given to it."""
    method_name, handed = ENTRANTS.get(name, (name, "mixed"))
    if name not in ENTRANTS and not is_path(name):
        known = ", ".join(ENTRANTS)
        raise SettingError(
            f"unknown entrant {name!r} of {bench}; known: {known}, or path/to/mine.py:Mine"
        )
    method = get_baseline(method_name)
    if package := getattr(method, "needs", ""):
        require(package)  # before anything runs
    counts = isinstance(method, CountingRule)
    if counts != (bench in COUNTING) and not (bench == "count" and name == "prism"):
        what = "counts classes" if counts else "does not count classes"
        raise SettingError(f"{name} {what}, so it cannot take part in {bench}")
    if isinstance(method, Phase1) and bench not in NOTHING_FOUND:
        benches = " and ".join(NOTHING_FOUND)
        raise SettingError(f"{name} discovers nothing: it takes part in {benches} alone")
    if bench == "closed" and not isinstance(method, Phase1):
        raise SettingError("closed has no new class: phase-1 alone takes part")
    if bench == "stages" and isinstance(method, Baseline):
        what = f"{name} keeps labelled nodes in phase 2"
        raise SettingError(f"{what}, so it cannot take part in stages")
    return method, handed


def _hidden_setting(dataset: str, encoder: str) -> tuple[tuple[str, int], ...]:
    hidden = hidden_size(dataset)
    trained = encoder_kind(encoder).trainable
    return (("hidden", hidden),) if trained and hidden != HIDDEN else ()
