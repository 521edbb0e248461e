"""The tables of the bench, each a pure function of rows: it picks its own and measures them.

The order of rows does not matter, but of two rows with one key (a failed run that was done again)
the later counts.

What stands under each table of the bench: how its numbers were made and how they are read.

Five settings of learning classes in two phases, in one table.

What phase 2 is given makes three groups of methods; whether the exam says of a node that its class
is old or new makes two kinds of scores. Task-IL and class-IL, NCDwF and NC-NCD are the same runs,
read by the one or by the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nodenova.bench.league_tables import LEAGUE_TABLES
from nodenova.bench.paper import LEFT_OUT
from nodenova.bench.row import Row
from nodenova.bench.row_filters import (
    PHASE_1,
    at_home,
    by_method,
    changes,
    compared,
    in_setting,
    latest,
    no_ncd,
    of_the_paper,
    unchanged,
    variants,
)
from nodenova.bench.sword_variants import (
    ablated,
    confusions,
    deep,
    depth_of,
    left_out,
    panels,
    swept,
)
from nodenova.bench.table import MIN_PAIRS, Cell, Column, Entry, Line, Table, table
from nodenova.bench.titles import (
    DATASETS,
    ENCODERS,
    LOSSES,
    METHODS,
    PARAMETERS,
    dataset_title,
    encoder_title,
    in_order,
    method_title,
)
from nodenova.evaluation.scores import mean_std

SPREAD = "mean ± sample standard deviation over"
PERCENT = f"Percent of the test nodes, {SPREAD} seeds (how many: column n)."
BLOCK = (
    "Discovered classes are matched one to one among the new classes (block); old ids are fixed."
)
BESIDE = "In parentheses the paper's number: one run, matched by identity."
BEST = (
    "Best bold, runner-up underlined, by block of lines, among methods without labels in phase 2."
)
LABELS = "† was given labels (or old nodes) in phase 2 and is never best."
TESTED = (
    "▲ ▼ better or worse than {}: paired t-test on common seeds, Holm-corrected over the table, "
    "p < 0.05, and exact Wilcoxon signed-rank test p < 0.05; △ ▽ by the t-test alone. "
    f"Fewer than {MIN_PAIRS} common seeds: no claim."
)
AVERAGE = (
    "Average: over the datasets shown, of ours and of the paper's numbers, "
    "where all of them are there."
)
HIDES = (
    "All can be high while no new class is found at all (never new); "
    "H, the harmonic mean of Old and New, cannot."
)
LOTTERY = (
    "The discovered class with number i must be the true class i, as the paper counts. "
    "Without labels a method cannot know these numbers, so New is a lottery here: "
    "nothing is marked and nothing is tested."
)
MASKED = (
    "Inductive: a phase sees only nodes of the classes met so far, features and edges of the "
    "others are masked (the paper's text); tested on the whole graph."
)
TO_SWORD = TESTED.format("SWORD")

COMPARISON = (PERCENT, BLOCK, BESIDE, BEST, LABELS, TO_SWORD, AVERAGE, HIDES)
IDENTITY = (PERCENT, LOTTERY, BESIDE, LABELS, AVERAGE)
INDUCTIVE = (PERCENT, MASKED, BLOCK, BESIDE, BEST, LABELS, TO_SWORD, AVERAGE)
HEADS = (
    PERCENT,
    BLOCK,
    "Old and All by the joint head; New-N: test nodes of new classes only, "
    "by the head for new classes.",
    BESIDE,
    BEST,
    LABELS,
    TO_SWORD,
)
FORGETTING = (
    PERCENT,
    BLOCK,
    "AA: mean of Old and New after phase 2. "
    "AF: Old after phase 2 minus Old after phase 1; negative is forgotten.",
    BESIDE,
    BEST,
    LABELS,
    TO_SWORD,
    AVERAGE,
)
ABLATION = (
    PERCENT,
    BLOCK,
    "SWORD with only the losses that have a ✓; the others have weight zero.",
    BESIDE,
    BEST,
    TESTED.format("SWORD with all five"),
)
SENSITIVITY = (
    PERCENT,
    BLOCK,
    "SWORD with one parameter changed and all others as they are by default. "
    "The paper shows curves without numbers, "
    "and none for k, the number of top activations that must agree.",
)
LAYERS = (
    PERCENT,
    BLOCK,
    "Everything else as it is by default. The paper shows curves without numbers.",
)
CLASS_SPLITS = (
    f"Percent of the test nodes, {SPREAD} random choices of the old classes "
    "(how many: column n; seeds of one choice are averaged first).",
    BLOCK,
    "Balanced: as many unlabelled nodes of each new class; "
    "as-it-comes: drawn at random from all of them.",
    BEST,
    LABELS,
    TO_SWORD.replace("seeds", "class splits"),
)
CONFUSION = (
    "Percent of the nodes of the true class (lines) by predicted class (columns), "
    f"{SPREAD} seeds (how many: column n).",
    BLOCK,
)
TSNE = (
    PERCENT,
    "The maps in numbers: agreement of true and predicted classes over all test nodes (NMI, ARI), "
    "and how many nodes are put on the right side, old or new (old-new accuracy). "
    "The panels are in the page.",
    LABELS,
)


def collapse_caption(how_many: str) -> tuple[str, ...]:
    """Under the table of which new classes are used.

    Args:
        how_many: New classes there are to be found, by dataset.
    """
    return (
        "Does a method use the classes it was told to find? "
        "Mean ± sample standard deviation over seeds (column n).",
        "Used: how many discovered classes are said of at least one test node, "
        f"of those to be found: {how_many}.",
        "Full: percent of the seeds in which all of them are. "
        "Largest: percent of the test nodes called new that are in the largest discovered class, "
        "over the seeds in which any is.",
        LABELS,
    )


# What phase 2 is given, by whether it has labels of new nodes and of old ones.
GROUPS = {
    (True, True): "Labels of new classes (told: task-IL, not told: class-IL)",
    (False, True): "Old nodes with labels, new ones without (NCD: New-N alone)",
    (False, False): "New nodes without labels (told: NCDwF, not told: NC-NCD)",
}
CAPTION = (
    "Percent of the test nodes, mean ± sample standard deviation over seeds (how many: column n).",
    "Discovered classes are matched one to one among the new classes (block); old ids are fixed.",
    "Told, at the exam, whether a node's class is old or new: Old-N, New-N, All-N. "
    "Not told: Old, New, All and H.",
    "† was given labels (or old nodes) in phase 2.",
)


def settings(rows: Sequence[Row]) -> list[Table]:
    """Methods by what phase 2 is given, scored with and without being told old from new."""
    entries = by_method(unchanged(of_the_paper(rows)))
    placed = [
        replace(entry, group=f"{GROUPS[_given(entry)]}, {entry.group}", reference=False)
        for entry in entries
    ]
    order = list(GROUPS.values())
    placed.sort(
        key=lambda entry: next(i for i, group in enumerate(order) if entry.group.startswith(group))
    )
    scores = ("old_n", "new_n", "all_n", "old", "new", "all", "h")
    return [table("settings", "Settings", CAPTION, ("Method",), placed, scores)]


def _given(entry: Entry) -> tuple[bool, bool]:
    sees = {what for row in entry.rows for what in row.sees}
    labelled = "new_labels" in sees
    return labelled, labelled or "old_labels" in sees


METHOD = ("Method",)
ACCURACIES = ("old", "new", "all", "h")


def comparison(rows: Sequence[Row], asked: Collection[str] = ()) -> list[Table]:
    """Methods as they are, on other schedules and sizes too.

    Args:
        rows: Of any tables.
        asked: Keys of runs whose methods have other settings than by default: lines of their own.
    """
    shown = no_ncd(compared(in_setting(rows, PHASE_1), asked))
    entries = by_method(shown, _with_changes(shown, variants(shown)))
    block = table(
        "comparison",
        "Comparison",
        COMPARISON,
        METHOD,
        entries,
        ACCURACIES,
        marked=("all", "h"),
        average=True,
    )
    identity = table(
        "comparison",
        "Comparison, matched by identity",
        IDENTITY,
        METHOD,
        entries,
        ("old", "new", "all"),
        matching="identity",
        average=True,
    )
    met = no_ncd(compared(of_the_paper(rows, visibility="inductive"), asked))
    inductive = table(
        "comparison",
        "Comparison, inductive",
        INDUCTIVE,
        METHOD,
        by_method(met, _with_changes(met)),
        ACCURACIES,
        marked=("all", "h"),
        average=True,
    )
    return [block, identity, *([inductive] if inductive.lines else [])]


def _with_changes(rows: Sequence[Row], said: Sequence[str] | None = None) -> list[str]:
    """For each row what was changed of its method, and what else is `said` of it."""
    more = [""] * len(rows) if said is None else said
    both = [filter(None, (changes(row), its)) for row, its in zip(rows, more, strict=True)]
    return [", ".join(each) for each in both]


def collapse(rows: Sequence[Row]) -> list[Table]:
    """How many of the new classes each method uses."""
    shown = no_ncd(compared(of_the_paper(rows)))
    counts = {row.dataset: row.num_new for row in shown}
    how_many = ", ".join(f"{dataset_title(d)} {counts[d]}" for d in in_order(set(counts), DATASETS))
    caption = collapse_caption(how_many)
    entries = by_method(shown)
    scores = ("new_used", "new_all", "new_largest")
    return [table("collapse", "Use of the new classes", caption, METHOD, entries, scores)]


def heads(rows: Sequence[Row]) -> list[Table]:
    """New nodes by the head for new classes alone."""
    entries = by_method(no_ncd(unchanged(of_the_paper(rows))))
    scores = ("old", "new_n", "all")
    marked = scores[1:]
    return [table("heads", "Task-specific head", HEADS, METHOD, entries, scores, marked=marked)]


def forgetting(rows: Sequence[Row]) -> list[Table]:
    """Mean accuracy after phase 2, and what it cost the old classes."""
    entries = by_method(no_ncd(compared(of_the_paper(rows))))
    scores = ("aa", "af")
    return [
        table(
            "forgetting",
            "Forgetting",
            FORGETTING,
            METHOD,
            entries,
            scores,
            marked=scores,
            average=True,
        )
    ]


def _beside(encoder: str, kind: str) -> str:
    """The name of a block: its encoder, and what was set for all of its lines."""
    return f"{encoder_title(encoder)}, {kind}" if kind else encoder_title(encoder)


def ablation(rows: Sequence[Row]) -> list[Table]:
    """SWORD without some of its losses."""
    found = ablated(rows)
    entries = []
    for encoder in in_order({row.encoder for _, row in found}, ENCODERS):
        for kind in dict.fromkeys(kind for kind, row in found if row.encoder == encoder):
            group = _beside(encoder, kind)
            for line in LEFT_OUT:
                mine = [row for same, row in found if (same, row.encoder) == (kind, encoder)]
                mine = [row for row in mine if left_out(row, beside=True) == line]
                ticks = tuple("" if loss in line.split("+") else "✓" for loss in LOSSES)
                paper_line = "" if kind else line
                entries.append(Entry(group, ticks, mine, encoder, paper_line, line == "none"))
    losses = tuple(LOSSES.values())
    marked = ("all", "h")
    return [table("ablation", "Ablation", ABLATION, losses, entries, ACCURACIES, marked=marked)]


def sensitivity(rows: Sequence[Row]) -> list[Table]:
    """SWORD with one parameter moved."""
    entries = []
    for parameter, letter in PARAMETERS.items():
        sweep = swept(rows, parameter)
        for encoder in in_order({row.encoder for each in sweep.values() for row in each}, ENCODERS):
            for (kind, value), each in sweep.items():
                mine = [row for row in each if row.encoder == encoder]
                default = " (default)" if any(parameter not in row.changed for row in mine) else ""
                group = f"{letter}, {_beside(encoder, kind)}"
                entries += [Entry(group, (f"{value:g}{default}",), mine, encoder)] if mine else []
    return [table("sensitivity", "Sensitivity", SENSITIVITY, ("Value",), entries, ACCURACIES)]


def layers(rows: Sequence[Row]) -> list[Table]:
    """Methods by the depth of their encoder."""
    blocks: dict[tuple[str, str, str], list[Row]] = {}
    for kind, row in deep(rows):
        blocks.setdefault((row.encoder, row.method, kind), []).append(row)
    entries = []
    for encoder in in_order({encoder for encoder, _, _ in blocks}, ENCODERS):
        for method in in_order({method for its, method, _ in blocks if its == encoder}, METHODS):
            for kind in (kind for its, whose, kind in blocks if (its, whose) == (encoder, method)):
                group = f"{method_title(method)}, {_beside(encoder, kind)}"
                by_depth: dict[int, list[Row]] = {}
                for row in blocks[encoder, method, kind]:
                    by_depth.setdefault(depth_of(row), []).append(row)
                for depth in sorted(by_depth) if len(by_depth) > 1 else ():
                    entries.append(Entry(group, (str(depth),), by_depth[depth], encoder))
    return [table("layers", "Number of layers", LAYERS, ("Layers",), entries, ACCURACIES)]


def class_splits(rows: Sequence[Row]) -> list[Table]:
    """Methods over random choices of the old classes."""
    rows = [row for row in latest(rows) if row.class_split is not None and not row.protocol]
    rows = [row for row in unchanged(rows) if set(row.fit_changed) <= {"hidden", "schedule"}]
    rows = no_ncd(at_home(rows))
    entries: list[Entry] = []
    for draw in in_order({row.draw for row in rows}, ("published", "balanced", "as-it-comes")):
        for visibility in in_order({row.visibility for row in rows}, ("transductive", "inductive")):
            mine = [row for row in rows if row.draw == draw and row.visibility == visibility]
            suffix = f", {draw}" + ("" if visibility == "transductive" else f", {visibility}")
            entries += [replace(entry, group=entry.group + suffix) for entry in by_method(mine)]
    scores = ("all", "h")
    return [
        table(
            "class-splits",
            "Random class splits",
            CLASS_SPLITS,
            METHOD,
            entries,
            scores,
            marked=scores,
            by="class_split",
        )
    ]


def confusion(rows: Sequence[Row]) -> list[Table]:
    """Matched confusion matrices, one a method."""
    tables = []
    for (dataset, encoder, title), each in panels(rows).items():
        names = each[0].class_names
        counts = confusions(each)  # (runs, true, predicted)
        share = 100 * counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)
        shown = [*names, *(["no partner"] if counts[:, :, -1].any() else [])]
        columns = tuple(Column("predicted", f"class {j}", name) for j, name in enumerate(shown))
        lines = []
        for i, name in enumerate(names):
            spreads = [mean_std(share[:, i, j].tolist()) for j in range(len(shown))]
            cells = tuple(Cell(spread.mean, spread.std, len(share)) for spread in spreads)
            group = "old classes" if i < each[0].num_old else "new classes"
            lines.append(Line(group, (name,), cells))
        what = f"Confusion: {dataset_title(dataset)}, {encoder_title(encoder)}, {title}"
        tables.append(Table(what, CONFUSION, ("True class",), columns, tuple(lines)))
    return tables


def tsne(rows: Sequence[Row]) -> list[Table]:
    """Agreement of the methods whose maps are drawn."""
    mapped = {(r.dataset, r.encoder, r.method) for r in latest(rows) if r.map}
    plain = no_ncd(unchanged(of_the_paper(rows)))
    shown = [r for r in plain if (r.dataset, r.encoder, r.method) in mapped]
    title = "What the t-SNE panels show, in numbers"
    scores = ("nmi", "ari", "old_new_accuracy")
    return [table("tsne", title, TSNE, METHOD, by_method(shown), scores)]


TABLES: Mapping[str, Callable[[Sequence[Row]], list[Table]]] = {
    "comparison": comparison,
    "collapse": collapse,
    "settings": settings,
    "heads": heads,
    "ablation": ablation,
    "forgetting": forgetting,
    "sensitivity": sensitivity,
    "layers": layers,
    "confusion": confusion,
    "tsne": tsne,
    "class-splits": class_splits,
    **LEAGUE_TABLES,
}


def tables_of(name: str, rows: Sequence[Row], asked: Collection[str] = ()) -> list[Table]:
    """A table by its name, which may be several.

    Args:
        name: One of `TABLES`.
        rows: Of any tables.
        asked: Keys of the runs that a command asked for; the comparison shows them all.
    """
    return comparison(rows, asked) if name == "comparison" else TABLES[name](rows)
