"""The tables of the bench, each a pure function of rows: it picks the rows that are its own and measures them.

The order of rows does not matter, but of two rows with one key (a failed run that was done again) the later counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nodenova.bench.cells import MIN_PAIRS, Cell, Column, Entry, Line, Table, table
from nodenova.bench.paper import LEFT_OUT
from nodenova.bench.row import Row
from nodenova.bench.select import (
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
from nodenova.bench.settings_table import settings
from nodenova.bench.sweeps import ablated, confusions, deep, depth_of, left_out, panels, swept
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

PERCENT = (
    "Percent of the test nodes, mean ± sample standard deviation over seeds (how many: column n)."
)
BLOCK = (
    "Discovered classes are matched one to one among the new classes (block); old ids are fixed."
)
BESIDE = "In parentheses the paper's number: one run, matched by identity."
BEST = (
    "Best bold, runner-up underlined, by block of lines, among methods without labels in phase 2."
)
LABELS = "† was given labels (or old nodes) in phase 2 and is never best."
TESTED = (
    "▲ ▼ better or worse than {}: paired t-test on common seeds, Holm-corrected over the table, p < 0.05, and exact "
    f"Wilcoxon signed-rank test p < 0.05; △ ▽ by the t-test alone. Fewer than {MIN_PAIRS} common seeds: no claim."
)
CONFUSION = (
    "Percent of the nodes of the true class (lines) by predicted class (columns), mean ± sample standard deviation over "
    "seeds (how many: column n).",
    "Discovered classes are matched one to one among the new classes (block); old ids are fixed.",
)
AVERAGE = "Average: over the datasets shown, of ours and of the paper's numbers, where all of them are there."


def comparison(rows: Sequence[Row], asked: Collection[str] = ()) -> list[Table]:
    """Methods as they are, on other schedules and sizes too.

    Args:
        rows: Of any tables.
        asked: Keys of runs whose methods have other settings than by default: lines of their own.
    """
    hides = "All can be high while no new class is found at all (never new); H, the harmonic mean of Old and New, cannot."
    lottery = (
        "The discovered class with number i must be the true class i, as the paper counts. Without labels a method cannot "
        "know these numbers, so New is a lottery here: nothing is marked and nothing is tested."
    )
    masked = (
        "Induced: a phase sees only nodes of the classes met so far, features and edges of the others are masked (the "
        "paper's text); tested on the whole graph."
    )
    shown = no_ncd(compared(in_setting(rows, PHASE_1), asked))
    entries = by_method(shown, _with_changes(shown, variants(shown)))
    block = table(
        "comparison",
        "Comparison",
        [PERCENT, BLOCK, BESIDE, BEST, LABELS, TESTED.format("SWORD"), AVERAGE, hides],
        ("Method",),
        entries,
        ("old", "new", "all", "h"),
        marked=("all", "h"),
        average=True,
    )
    identity = table(
        "comparison",
        "Comparison, matched by identity",
        [PERCENT, lottery, BESIDE, LABELS, AVERAGE],
        ("Method",),
        entries,
        ("old", "new", "all"),
        matching="identity",
        average=True,
    )
    met = no_ncd(compared(of_the_paper(rows, visibility="inductive"), asked))
    inductive = table(
        "comparison",
        "Comparison, inductive",
        [PERCENT, masked, BLOCK, BESIDE, BEST, LABELS, TESTED.format("SWORD"), AVERAGE],
        ("Method",),
        by_method(met, _with_changes(met)),
        ("old", "new", "all", "h"),
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
    shown = no_ncd(compared(of_the_paper(rows)))
    counts = {row.dataset: row.num_new for row in shown}
    how_many = ", ".join(f"{dataset_title(d)} {counts[d]}" for d in in_order(set(counts), DATASETS))
    caption = [
        "Does a method use the classes it was told to find? Mean ± sample standard deviation over seeds (column n).",
        f"Used: how many discovered classes are said of at least one test node, of those to be found: {how_many}.",
        "Full: percent of the seeds in which all of them are. Largest: percent of the test nodes called new that are in "
        "the largest discovered class, over the seeds in which any is.",
        LABELS,
    ]
    scores = ("new_used", "new_all", "new_largest")
    return [
        table("collapse", "Use of the new classes", caption, ("Method",), by_method(shown), scores)
    ]


def heads(rows: Sequence[Row]) -> list[Table]:
    what = "Old and All by the joint head; New-N: test nodes of new classes only, by the head for new classes."
    caption = [PERCENT, BLOCK, what, BESIDE, BEST, LABELS, TESTED.format("SWORD")]
    entries, scores = by_method(no_ncd(unchanged(of_the_paper(rows)))), ("old", "new_n", "all")
    return [
        table(
            "heads",
            "Task-specific head",
            caption,
            ("Method",),
            entries,
            scores,
            marked=("new_n", "all"),
        )
    ]


def forgetting(rows: Sequence[Row]) -> list[Table]:
    what = "AA: mean of Old and New after phase 2. AF: Old after phase 2 minus Old after phase 1; negative is forgotten."
    caption = [PERCENT, BLOCK, what, BESIDE, BEST, LABELS, TESTED.format("SWORD"), AVERAGE]
    entries, scores = by_method(no_ncd(compared(of_the_paper(rows)))), ("aa", "af")
    return [
        table(
            "forgetting",
            "Forgetting",
            caption,
            ("Method",),
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
    found, entries = ablated(rows), []
    for encoder in in_order({row.encoder for _, row in found}, ENCODERS):
        for kind in dict.fromkeys(kind for kind, row in found if row.encoder == encoder):
            for line in LEFT_OUT:
                mine = [row for same, row in found if (same, row.encoder) == (kind, encoder)]
                mine = [row for row in mine if left_out(row, beside=True) == line]
                ticks = tuple("" if loss in line.split("+") else "✓" for loss in LOSSES)
                paper_line = "" if kind else line
                entries.append(
                    Entry(_beside(encoder, kind), ticks, mine, encoder, paper_line, line == "none")
                )
    what = "SWORD with only the losses that have a ✓; the others have weight zero."
    caption = [PERCENT, BLOCK, what, BESIDE, BEST, TESTED.format("SWORD with all five")]
    scores = ("old", "new", "all", "h")
    return [
        table(
            "ablation",
            "Ablation",
            caption,
            tuple(LOSSES.values()),
            entries,
            scores,
            marked=("all", "h"),
        )
    ]


def sensitivity(rows: Sequence[Row]) -> list[Table]:
    entries = []
    for parameter, letter in PARAMETERS.items():
        sweep = swept(rows, parameter)
        for encoder in in_order({row.encoder for each in sweep.values() for row in each}, ENCODERS):
            for (kind, value), each in sweep.items():
                mine = [row for row in each if row.encoder == encoder]
                default = " (default)" if any(parameter not in row.changed for row in mine) else ""
                group = f"{letter}, {_beside(encoder, kind)}"
                entries += [Entry(group, (f"{value:g}{default}",), mine, encoder)] if mine else []
    what = "SWORD with one parameter changed and all others as they are by default. The paper shows curves without numbers, "
    caption = [
        PERCENT,
        BLOCK,
        what + "and none for k, the number of top activations that must agree.",
    ]
    return [
        table(
            "sensitivity", "Sensitivity", caption, ("Value",), entries, ("old", "new", "all", "h")
        )
    ]


def layers(rows: Sequence[Row]) -> list[Table]:
    found, entries = deep(rows), []
    blocks = dict.fromkeys((row.encoder, row.method, kind) for kind, row in found)
    for encoder in in_order({encoder for encoder, _, _ in blocks}, ENCODERS):
        for method in in_order({method for its, method, _ in blocks if its == encoder}, METHODS):
            for kind in (kind for its, whose, kind in blocks if (its, whose) == (encoder, method)):
                mine = [
                    row
                    for same, row in found
                    if (row.encoder, row.method, same) == (encoder, method, kind)
                ]
                depths = sorted({depth_of(row) for row in mine})
                group = f"{method_title(method)}, {_beside(encoder, kind)}"
                for depth in depths if len(depths) > 1 else ():
                    entries.append(
                        Entry(
                            group,
                            (str(depth),),
                            [row for row in mine if depth_of(row) == depth],
                            encoder,
                        )
                    )
    caption = [
        PERCENT,
        BLOCK,
        "Everything else as it is by default. The paper shows curves without numbers.",
    ]
    return [
        table(
            "layers", "Number of layers", caption, ("Layers",), entries, ("old", "new", "all", "h")
        )
    ]


def class_splits(rows: Sequence[Row]) -> list[Table]:
    rows = [row for row in latest(rows) if row.class_split is not None]
    rows = [row for row in unchanged(rows) if set(row.fit_changed) <= {"hidden", "schedule"}]
    rows = no_ncd(at_home(rows))
    entries: list[Entry] = []
    for draw in in_order({row.draw for row in rows}, ("published", "balanced", "as-it-comes")):
        for visibility in in_order({row.visibility for row in rows}, ("transductive", "inductive")):
            mine = [row for row in rows if row.draw == draw and row.visibility == visibility]
            suffix = f", {draw}" + ("" if visibility == "transductive" else f", {visibility}")
            entries += [replace(entry, group=entry.group + suffix) for entry in by_method(mine)]
    over = "random choices of the old classes (how many: column n; seeds of one choice are averaged first)."
    caption = [
        f"Percent of the test nodes, mean ± sample standard deviation over {over}",
        BLOCK,
        "Balanced: as many unlabelled nodes of each new class; as-it-comes: drawn at random from all of them.",
        BEST,
        LABELS,
        TESTED.format("SWORD").replace("seeds", "class splits"),
    ]
    title, scores = "Random class splits", ("all", "h")
    return [
        table(
            "class-splits",
            title,
            caption,
            ("Method",),
            entries,
            scores,
            marked=scores,
            by="class_split",
        )
    ]


def confusion(rows: Sequence[Row]) -> list[Table]:
    tables = []
    for (dataset, encoder, title), each in panels(rows).items():
        counts, names = confusions(each), each[0].class_names
        share = (
            100 * counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)
        )  # (runs, true, predicted)
        shown = [*names, *(["no partner"] if counts[:, :, -1].any() else [])]
        columns = tuple(Column("predicted", f"class {j}", name) for j, name in enumerate(shown))
        lines = []
        for i, name in enumerate(names):
            spreads = [mean_std(share[:, i, j].tolist()) for j in range(len(shown))]
            cells = tuple(Cell(spread.mean, spread.std, len(share)) for spread in spreads)
            lines.append(
                Line("old classes" if i < each[0].num_old else "new classes", (name,), cells)
            )
        where = f"{dataset_title(dataset)}, {encoder_title(encoder)}, {title}"
        tables.append(
            Table(f"Confusion: {where}", CONFUSION, ("True class",), columns, tuple(lines))
        )
    return tables


def tsne(rows: Sequence[Row]) -> list[Table]:
    mapped = {(r.dataset, r.encoder, r.method) for r in latest(rows) if r.map}
    shown = [
        r
        for r in no_ncd(unchanged(of_the_paper(rows)))
        if (r.dataset, r.encoder, r.method) in mapped
    ]
    what = "The maps in numbers: agreement of true and predicted classes over all test nodes (NMI, ARI), and how many nodes "
    caption = [
        PERCENT,
        what + "are put on the right side, old or new (Gate). The panels are in the page.",
        LABELS,
    ]
    title, scores = "What the t-SNE panels show, in numbers", ("nmi", "ari", "old_new_accuracy")
    return [table("tsne", title, caption, ("Method",), by_method(shown), scores)]


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
}


def tables_of(name: str, rows: Sequence[Row], asked: Collection[str] = ()) -> list[Table]:
    """A table by its name, which may be several.

    Args:
        name: One of `TABLES`.
        rows: Of any tables.
        asked: Keys of the runs that a command asked for; the comparison shows them all.
    """
    return comparison(rows, asked) if name == "comparison" else TABLES[name](rows)
