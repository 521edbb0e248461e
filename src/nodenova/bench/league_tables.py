"""Tables of the league, each a pure function of rows: lines measured here, then published ones.

What others have published under their own protocols; league.json holds it and its sources.

A table of the league: cells measured from rows run by run, and published lines below them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import product
from statistics import fmean
from typing import Any, TypeAlias

from nodenova.bench import league_scores
from nodenova.bench.league_scores import Measure
from nodenova.bench.protocols import SHARES_COUNTED, SHARES_MIXED
from nodenova.bench.row import Row
from nodenova.bench.row_filters import latest
from nodenova.bench.table import MIN_PAIRS, Cell, Column, Line, Table, tested
from nodenova.bench.titles import DATASETS, METHODS, TABLES, dataset_title, in_order, method_title
from nodenova.data.splits import SETTINGS
from nodenova.evaluation.scores import mean_std

_FILE = resources.files("nodenova.bench") / "league.json"
FACTS: Mapping[str, Any] = json.loads(_FILE.read_text("utf-8"))
Printed: TypeAlias = "Mapping[tuple[str, str], float]"  # {(dataset, score): number}


def printed(bench: str) -> dict[str, Printed]:
    """The lines that others have in a bench.

    Args:
        bench: One of the league.

    Returns:
        For each name its numbers; nothing where nobody has published any.

    Examples:
        >>> printed("gnnsafe")["GNNSafe"]["cora", "auroc"]
        92.8
    """
    facts = FACTS.get(bench, {"scores": [], "datasets": [], "lines": []})
    places = [(dataset, score) for dataset in facts["datasets"] for score in facts["scores"]]
    found = dict[str, Printed]()
    for name, *numbers in facts["lines"]:
        cells = dict(zip(places, numbers, strict=True))
        found[name] = {place: value for place, value in cells.items() if value is not None}
    return found


def source(bench: str) -> str:
    """Where the numbers are from.

    Args:
        bench: One of the league.

    Returns:
        Sentences; "" where there are no numbers.
    """
    return str(FACTS.get(bench, {}).get("source", ""))


HERE, THERE = "measured here", "published"
Runs: TypeAlias = "dict[tuple[str, str], dict[int, float]]"  # {(dataset, measure): {run: value}}


@dataclass(frozen=True)
class Entry:
    """A line to be measured.

    Attributes:
        label: What it is called.
        rows: Its runs.
        group: The block of lines it stands in.
        reference: Whether the others of its group are tested against it.
    """

    label: str
    rows: Sequence[Row]
    group: str = HERE
    reference: bool = False


def measured_table(
    title: str,
    caption: Sequence[str],
    entries: Sequence[Entry],
    measures: Mapping[str, Measure],
    *,
    others: Mapping[str, Printed] | None = None,
    others_source: str = "",
    average: bool = False,
) -> Table:
    """Measure the entries on every dataset they have.

    Args:
        title: Of the table.
        caption: Sentences.
        entries: Its lines.
        measures: Its columns, for each dataset.
        others: Published lines: their numbers.
        others_source: A note at each published number.
        average: Whether the mean over the datasets shown stands behind them.

    Returns:
        The table; published lines stand in a block of their own.
    """
    datasets = in_order({row.dataset for entry in entries for row in entry.rows}, DATASETS)
    groups = [*datasets, *(["average"] if average and len(datasets) > 1 else [])]
    places = product(groups, measures.items())
    columns = tuple(Column(group, name, each.title, each.tested) for group, (name, each) in places)
    values, lines, notes = list[Runs](), list[Line](), list[str]()
    for entry in entries:
        by_run = {
            (dataset, name): _values([r for r in entry.rows if r.dataset == dataset], measure)
            for dataset in datasets
            for name, measure in measures.items()
        }
        cells = dict[tuple[str, str], Cell]()
        for (dataset, name), found in by_run.items():
            cells[dataset, name] = _cell(found, measures[name], _failed(entry, dataset))
        for name in measures:
            means = [cells[dataset, name].mean for dataset in datasets]
            there = [mean for mean in means if mean is not None]
            whole = fmean(there) if there and len(there) == len(means) else None
            cells["average", name] = Cell(whole, n=min(cells[d, name].n for d in datasets))
        values.append(by_run)
        sees = tuple(sorted({what for row in entry.rows for what in row.sees}))
        shown = tuple(cells[column.group, column.score] for column in columns)
        lines.append(Line(entry.group, (entry.label,), shown, sees, entry.reference))
        notes += [note for note in _failures(entry.rows) if note not in notes]
    lines = tested(lines, columns, values)
    for name, numbers in (others or {}).items():
        theirs = [numbers.get((column.group, column.score)) for column in columns]
        if any(number is not None for number in theirs):
            note = _place(notes, others_source)
            shown = tuple(Cell(mean, notes=(note,) if mean is not None else ()) for mean in theirs)
            lines.append(Line(THERE, (name,), shown))
    heads = ("Method",)
    return Table(title, tuple(caption), heads, columns, tuple(lines), tuple(notes), unit="runs")


def _place(notes: list[str], note: str) -> int:
    """The number, from 1, of a note; it is added if it is not there."""
    if note not in notes:
        notes.append(note)
    return notes.index(note) + 1


def _values(rows: Sequence[Row], measure: Measure) -> dict[int, float]:
    """The measure of each run, by a number that is the same for the same fold and seed."""
    found = {}
    for row in rows:
        value = measure.read(row) if row.is_done else None
        if value is not None:
            found[1000 * (row.class_split or 0) + row.seed] = value
    return found


def _cell(found: Mapping[int, float], measure: Measure, failed: int) -> Cell:
    spread = mean_std(list(found.values()))
    return Cell(spread.mean, None if measure.is_share else spread.std, spread.n, failed)


def _failed(entry: Entry, dataset: str) -> int:
    return sum(row.is_failed for row in entry.rows if row.dataset == dataset)


def _failures(rows: Sequence[Row]) -> list[str]:
    return [
        f"Failed: {row.dataset}, {row.method}, {row.protocol} {row.class_split}, seed {row.seed}: "
        + (row.error.strip().splitlines() or ["no message"])[-1][:200]
        for row in rows
        if row.is_failed
    ]


TITLES = {
    ("prism", "mixed"): "Prism",
    ("prism", "told"): "Prism, told which nodes are new",
    ("prism", "all-new"): "Prism, every unlabelled node taken for new",
    ("gcd", "mixed"): "GCD's semi-supervised k-means",
    ("sword", "told"): "SWORD, told which nodes are new",
}
COUNTERS = {
    "count": "Prism's count",
    "silhouette": "silhouette",
    "hdbscan": "HDBSCAN",
    "scatter": "scatter rule",
    "prism": "number given",
}
PERCENT = "Percent, mean ± sample standard deviation over {} (how many: column n)."
GIVEN = "† was given labels, old nodes or which nodes are new in phase 2."
BLOCK = "New classes are matched one to one among themselves (block); old ids are fixed."
INDUCTIVE = (
    "Inductive: a phase sees the nodes of classes met so far and of its own and earlier sessions, "
    "so the graph grows; where it has grown much, Prism's representation is fitted anew."
)
TESTED = (
    "▲ ▼ better or worse than Prism on the same runs: paired t-test, Holm-corrected over the "
    "table, p < 0.05, and exact Wilcoxon signed-rank test p < 0.05; △ ▽ by the t-test alone. "
    f"Fewer than {MIN_PAIRS} common runs: no claim."
)


def _of(rows: Sequence[Row], *protocols: str, setting: str = SETTINGS[0]) -> list[Row]:
    return [r for r in latest(rows) if r.protocol in protocols and r.visibility == setting]


def _settings(rows: Sequence[Row], protocol: str) -> list[str]:
    """What rows of a protocol were shown of the graph; the first of SETTINGS if there are none."""
    there = {row.visibility for row in rows if row.protocol.startswith(protocol)}
    return [setting for setting in SETTINGS if setting in there] or [SETTINGS[0]]


def _entries(rows: Sequence[Row], group: str = HERE) -> list[Entry]:
    """Lines by method and by how unlabelled nodes were handed to it."""
    known = list(TITLES)
    pairs = dict.fromkeys((row.method, row.handed) for row in rows)
    ordered = sorted(pairs, key=lambda pair: known.index(pair) if pair in known else len(known))
    return [
        Entry(
            TITLES.get(pair, f"{method_title(pair[0])}, {pair[1]}"),
            [row for row in rows if (row.method, row.handed) == pair],
            group,
            pair == ("prism", "mixed"),
        )
        for pair in ordered
    ]


def pown(rows: Sequence[Row]) -> list[Table]:
    """POWN's table."""
    caption = [
        PERCENT.format("folds and seeds"),
        "POWN's protocol: the fold before the test fold is unlabelled and not graded; everything "
        "that is not labelled is a mixture; the number of classes is given.",
        "all: one matching over all outputs. known: plain accuracy. unknown: nodes of new classes "
        "alone, any output may stand for one. H: harmonic mean of known and unknown.",
        "POWN chooses epoch and settings with labels of the validation fold's classes; ours none.",
        GIVEN,
        TESTED,
    ]
    return _with_published("pown", caption, _of(rows, "pown"), league_scores.POWN)


def openima(rows: Sequence[Row]) -> list[Table]:
    """OpenIMA's table."""
    caption = [
        PERCENT.format("its ten splits"),
        "OpenIMA's protocol: half of the classes seen, 50 training and 50 validation nodes of "
        "each; all other nodes are unlabelled and graded; the number of classes is given.",
        "One matching over all outputs (global): All, Seen, Novel.",
        GIVEN,
        TESTED,
    ]
    return _with_published("openima", caption, _of(rows, "openima"), league_scores.OPENIMA)


def gnnsafe(rows: Sequence[Row]) -> list[Table]:
    """GNNSafe's split of Cora by label."""
    caption = [
        PERCENT.format("seeds"),
        "Cora, classes 4, 5, 6 labelled: is a node of these (test nodes) or of classes 0, 1, 2 "
        "(all nodes)? Score: the probability of belonging to no old class. AUPR of finding old "
        "nodes, FPR95 at 95 % of them.",
        "Another task for ours: it has seen all nodes, without labels, and the number of classes.",
        "Accuracy: test nodes of old classes told apart among these.",
    ]
    return _with_published("gnnsafe", caption, _of(rows, "gnnsafe"), league_scores.GNNSAFE)


def _with_published(
    bench: str,
    caption: Sequence[str],
    rows: Sequence[Row],
    measures: Mapping[str, Measure],
) -> list[Table]:
    table = measured_table(
        TABLES[bench].title,
        caption,
        _entries(rows),
        measures,
        others=printed(bench),
        others_source=source(bench),
    )
    return [table]


def mixed(rows: Sequence[Row]) -> list[Table]:
    """One block for each share of old nodes among the unlabelled; a table for each setting."""
    tables = []
    for setting in _settings(rows, "mixed"):
        entries = []
        for share in SHARES_MIXED:
            mine = _of(rows, f"mixed-{share}", setting=setting)
            entries += _entries(mine, f"{share} % of the unlabelled are old")
        caption = [
            PERCENT.format("random choices of the old classes, half of all"),
            "20 nodes of each old class are labelled; half of the others are held out and graded. "
            "The number of new classes is given.",
            *_shown(setting),
            BLOCK,
            "Old-new accuracy: put on the right side, old or new.",
            GIVEN,
            TESTED,
        ]
        title = f"Old and new mixed{_in(setting)}"
        tables.append(measured_table(title, caption, entries, league_scores.MIXED, average=True))
    return tables


def _in(setting: str) -> str:
    return "" if setting == SETTINGS[0] else f", {setting}"


def _shown(setting: str) -> list[str]:
    """What phases see of the graph, where that is not all of it."""
    return [] if setting == SETTINGS[0] else [INDUCTIVE]


def stages(rows: Sequence[Row]) -> list[Table]:
    """One table for each dataset: All, Old and New after every session."""
    tables = []
    found = {s: _of(rows, "stages", setting=s) for s in _settings(rows, "stages")}
    datasets = in_order({row.dataset for some in found.values() for row in some}, DATASETS)
    for setting, dataset in product(found, datasets):
        mine = [row for row in found[setting] if row.dataset == dataset]
        if not mine:
            continue
        sizes = next((row.sizes for row in mine if row.is_done), ())
        measures = dict[str, Measure]()
        for session, score in product(range(1, len(sizes)), ("all", "old", "new")):
            title = f"{score.capitalize()} {session}"
            measures[f"{score}-{session}"] = Measure(
                title, league_scores.in_session(session, score)
            )
        caption = [
            PERCENT.format("seeds, each with an order of the classes of its own"),
            f"{' + '.join(map(str, sizes))} classes: the first are labelled, each session brings "
            "unlabelled nodes of the next and of every class met before. All, Old (classes met "
            "before) and New after each session.",
            *_shown(setting),
            BLOCK,
            "mean All: over the sessions. AA: mean accuracy on the classes of each phase after the "
            "last session. kept: accuracy on labelled classes then, as a share of that before the "
            "first.",
            GIVEN,
            TESTED,
        ]
        title = f"Many stages{_in(setting)}: {dataset_title(dataset)}"
        measures |= league_scores.STAGES
        tables.append(measured_table(title, caption, _entries(mine), measures))
    return tables


def count(rows: Sequence[Row]) -> list[Table]:
    """How far counts are off, what they are worth, and whether anything is new at all."""
    draws = "Mean ± sample standard deviation over draws of classes (how many: column n)."
    off = [
        draws,
        "At least two old classes and one to eight new ones are drawn; classes may be left over.",
        "Error and bias in classes; exact and within one in percent of the draws.",
        "set: numbers one of which is true with a probability of 80 %, where a rule names them.",
    ]
    worth = [
        draws,
        "Percent of held-out nodes when Prism finds as many classes as were counted.",
        BLOCK,
        "NMI: of all nodes of the graph.",
        "Published: another task, with no label at all, and its error is that of all classes.",
    ]
    alarm = [
        "Percent of the draws in which at least one new class is counted.",
        "Where all of the unlabelled are old this is a false alarm.",
    ]
    some_new, some_old = SHARES_COUNTED[:-1], SHARES_COUNTED[1:]
    counted = [row for row in rows if row.method != "prism"]
    how_many, anything = _counters(counted, some_new), _counters(counted, some_old)
    return [
        measured_table("How many new classes", off, how_many, league_scores.COUNT, average=True),
        measured_table(
            "What a count is worth",
            worth,
            _counters(rows, some_new),
            league_scores.WORTH,
            others=_dgcluster(),
            others_source=source("count"),
        ),
        measured_table("Is there anything new", alarm, anything, league_scores.ALARM, average=True),
    ]


def _counters(rows: Sequence[Row], shares: Sequence[int]) -> list[Entry]:
    """Lines by share of old nodes, and by who counts."""
    found = []
    for share in shares:
        mine = _of(rows, f"count-{share}")
        group = f"{share} % of the unlabelled are old" if share else "all new"
        for method in in_order({row.method for row in mine}, COUNTERS | METHODS):
            lines = [row for row in mine if row.method == method]
            found.append(Entry(COUNTERS.get(method, method_title(method)), lines, group))
    return found


def _dgcluster() -> dict[str, Printed]:
    """Its number of clusters as an error."""
    found = dict[str, Printed]()
    for name, numbers in printed("count").items():
        cells = dict[tuple[str, str], float]()
        for d in dict.fromkeys(dataset for dataset, _ in numbers):
            cells[d, "nmi_all"] = numbers[d, "nmi_all"]
            cells[d, "error"] = abs(numbers[d, "clusters"] - numbers[d, "classes"])
        found[name] = cells
    return found


LEAGUE_TABLES: Mapping[str, Callable[[Sequence[Row]], list[Table]]] = {
    "mixed": mixed,
    "count": count,
    "stages": stages,
    "pown": pown,
    "openima": openima,
    "gnnsafe": gnnsafe,
}
