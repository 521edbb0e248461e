"""Tables of the league, each a pure function of rows: lines measured here, then published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from nodenova.bench.cells import MIN_PAIRS, Table
from nodenova.bench.league import scores
from nodenova.bench.league.measured import HERE, Entry, measured_table
from nodenova.bench.league.published import Printed, printed, source
from nodenova.bench.league.scores import Measure
from nodenova.bench.league.worlds import SHARES_COUNTED, SHARES_MIXED
from nodenova.bench.row import Row
from nodenova.bench.select import latest
from nodenova.bench.titles import DATASETS, METHODS, TABLES, dataset_title, in_order, method_title
from nodenova.data.splits import SETTINGS

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
    return _with_published("pown", caption, _of(rows, "pown"), scores.POWN)


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
    return _with_published("openima", caption, _of(rows, "openima"), scores.OPENIMA)


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
    return _with_published("gnnsafe", caption, _of(rows, "gnnsafe"), scores.GNNSAFE)


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
        tables.append(measured_table(title, caption, entries, scores.MIXED, average=True))
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
            measures[f"{score}-{session}"] = Measure(title, scores.in_session(session, score))
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
        measures |= scores.STAGES
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
        measured_table("How many new classes", off, how_many, scores.COUNT, average=True),
        measured_table(
            "What a count is worth",
            worth,
            _counters(rows, some_new),
            scores.WORTH,
            others=_dgcluster(),
            others_source=source("count"),
        ),
        measured_table("Is there anything new", alarm, anything, scores.ALARM, average=True),
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
