"""A bench of the league is a function that returns its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from nodenova.bench import schedules
from nodenova.bench.baselines import CountingRule
from nodenova.bench.plan import Plan
from nodenova.bench.protocols import SHARES_COUNTED, SHARES_MIXED, num_folds, world_of
from nodenova.bench.registry import AnyMethod, get_baseline
from nodenova.bench.runs import RunSpec
from nodenova.data.labels import LabelledGraph
from nodenova.data.protocols import OPENIMA_SEEDS, POWN_FOLDS
from nodenova.encoders.registry import encoder_kind
from nodenova.errors import SettingError
from nodenova.methods._plugin import is_path
from nodenova.methods.registry import preferred_encoder

# Who may take part: a method by its name, and how the unlabelled nodes are handed to it.
ENTRANTS: dict[str, tuple[str, str]] = {
    "prism": ("prism", "mixed"),
    "told": ("prism", "told"),
    "all-new": ("prism", "all-new"),
    "gcd": ("gcd", "mixed"),
    "sword": ("sword", "told"),
    "count": ("count", "mixed"),
    "silhouette": ("silhouette", "mixed"),
    "hdbscan": ("hdbscan", "mixed"),
    "scatter": ("scatter", "mixed"),
}
SYNTHETIC = "synthetic:nodes=8000,classes=40,words=2000"  # of many stages
AT_HAND = ("cora", "citeseer", "pubmed", "wordnet")


@dataclass(frozen=True)
class Bench:
    """What a bench of the league is run with unless told otherwise.

    Attributes:
        entrants: Who takes part.
        seeds: How many seeds (of `openima`, splits).
        datasets: On what, where it is on this machine.
    """

    entrants: tuple[str, ...]
    seeds: int
    datasets: tuple[str, ...]


LEAGUE: dict[str, Bench] = {
    "mixed": Bench(("prism", "told", "gcd", "all-new"), 10, AT_HAND),
    "count": Bench(("count", "silhouette", "hdbscan", "scatter", "prism"), 20, AT_HAND),
    "stages": Bench(("prism", "told", "sword"), 5, ("cora", "citeseer", "wordnet", SYNTHETIC)),
    "pown": Bench(("prism", "gcd", "all-new"), 5, tuple(POWN_FOLDS)),
    "openima": Bench(
        ("prism", "gcd", "all-new"),
        len(OPENIMA_SEEDS),
        ("cora", "citeseer", "photo", "computers", "cs", "physics"),
    ),
    "gnnsafe": Bench(("prism",), 5, ("cora",)),
}


@dataclass(frozen=True)
class Entry:
    """A protocol, and the number of its fold, split or draw of classes."""

    protocol: str
    number: int


def league_runs(
    bench: str,
    graphs: Sequence[LabelledGraph],
    entrants: Sequence[str],
    seeds: Sequence[int],
    setting: str = "transductive",
) -> list[RunSpec]:
    """The runs of a bench of the league.

    Args:
        bench: One of `LEAGUE`.
        graphs: Called as datasets are.
        entrants: Names out of `ENTRANTS`, or a user's own method, path/to/mine.py:Mine, which is
            given the mixture.
        seeds: Of the runs; of `openima` the numbers of its splits.
        setting: "transductive", or "inductive" for `mixed` and `stages`: unlabelled nodes come to
            the graph after phase 1.

    Returns:
        One for each graph, fold, seed and entrant; those that start from the same phase 1 stand
        side by side.

    Raises:
        SettingError: An entrant is unknown, or cannot take part in this bench.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.synthetic(nodes=400, classes=4, seed=0)
        >>> [run.plan.protocol for run in league_runs("mixed", [graph], ["prism"], seeds=[0])]
        ['mixed-30', 'mixed-50', 'mixed-70', 'mixed-95']
    """
    pairs = [_entrant(bench, name) for name in entrants]
    found = []
    for labelled in graphs:
        data = labelled.fingerprint()
        for seed in seeds:
            for entry in ENTRIES[bench](labelled, seed):
                world = world_of(labelled, entry.protocol, entry.number, seed, setting)
                for method, handed in pairs:
                    if _is_pointless(entry.protocol, method):
                        continue
                    encoder = preferred_encoder(method)
                    plan = Plan(
                        dataset=labelled.name,
                        method=method,
                        encoder=encoder,
                        old=world.classes[0],
                        num_new=sum(task.num_new or 0 for task in world.tasks),
                        fit_settings=_fit_settings(labelled.name, encoder),
                        visibility=setting,
                        class_split=entry.number,
                        protocol=entry.protocol,
                        handed="all-new" if entry.protocol == "count-0" else handed,
                    )
                    found.append(RunSpec(plan, seed, data))
    return found


def _entrant(bench: str, name: str) -> tuple[AnyMethod, str]:
    method_name, handed = ENTRANTS.get(name, (name, "mixed"))
    if name not in ENTRANTS and not is_path(name):
        known = ", ".join(ENTRANTS)
        raise SettingError(
            f"unknown entrant {name!r} of {bench}; known: {known}, or path/to/mine.py:Mine"
        )
    method = get_baseline(method_name)
    counts = isinstance(method, CountingRule)
    if counts != (bench == "count") and not (bench == "count" and name == "prism"):
        what = "counts classes" if counts else "does not count classes"
        raise SettingError(f"{name} {what}, and so it cannot take part in {bench}")
    if bench == "stages" and name == "gcd":
        raise SettingError("gcd keeps labelled nodes in phase 2: it cannot take part in stages")
    return method, handed


def _is_pointless(protocol: str, method: AnyMethod) -> bool:
    """Where nothing is new there is no number to be given."""
    return protocol == "count-100" and not isinstance(method, CountingRule)


def _fit_settings(dataset: str, encoder: str) -> tuple[tuple[str, int], ...]:
    hidden = schedules.hidden_size(dataset)
    trained = encoder_kind(encoder).trainable
    return (("hidden", hidden),) if trained and hidden != schedules.HIDDEN else ()


def _pown(labelled: LabelledGraph, seed: int) -> Iterable[Entry]:
    return [Entry("pown", fold) for fold in range(num_folds(labelled.name))]


def _openima(labelled: LabelledGraph, seed: int) -> Iterable[Entry]:
    return [Entry("openima", seed)]


def _gnnsafe(labelled: LabelledGraph, seed: int) -> Iterable[Entry]:
    return [Entry("gnnsafe", 0)]


def _stages(labelled: LabelledGraph, seed: int) -> Iterable[Entry]:
    return [Entry("stages", seed)]


def _mixed(labelled: LabelledGraph, seed: int) -> Iterable[Entry]:
    return [Entry(f"mixed-{share}", seed) for share in SHARES_MIXED]


def _count(labelled: LabelledGraph, seed: int) -> Iterable[Entry]:
    return [Entry(f"count-{share}", seed) for share in SHARES_COUNTED]


ENTRIES: dict[str, Callable[[LabelledGraph, int], Iterable[Entry]]] = {
    "mixed": _mixed,
    "count": _count,
    "stages": _stages,
    "pown": _pown,
    "openima": _openima,
    "gnnsafe": _gnnsafe,
}
