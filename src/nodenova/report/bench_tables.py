"""The tables of the bench, each a pure function of rows: it picks the rows that are its own and measures them.

The order of rows does not matter, but of two rows with one key (a failed run that was done again) the later counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nodenova.experiments.paper import LEFT_OUT
from nodenova.experiments.results import mean_std
from nodenova.experiments.run import Row
from nodenova.report.bench_cells import DATASETS, FEWEST_PAIRS, Cell, Column, Entry, Line, Table, in_order, table
from nodenova.report.bench_rows import (
    ENCODERS,
    LOSSES,
    METHODS,
    PARAMETERS,
    by_method,
    compared,
    confusions,
    depth_of,
    encoder_title,
    latest,
    left_out,
    of_the_paper,
    panels,
    swept,
    unchanged,
    where,
)

PERCENT = "Percent of the test nodes, mean ± sample standard deviation over seeds (how many: column n)."
BLOCK = "Discovered classes are matched one to one among the new classes (block); old ids are fixed."
BESIDE = "In parentheses the paper's number: one run, matched by identity."
BEST = "Best bold, runner-up underlined, by block of lines, among methods without labels in phase 2."
LABELS = "† was given labels (or old nodes) in phase 2 and is never best."
TESTED = (
    "▲ ▼ better or worse than {}: paired t-test on common seeds, Holm-corrected over the table, p < 0.05, and exact "
    f"Wilcoxon signed-rank test p < 0.05; △ ▽ by the t-test alone. Fewer than {FEWEST_PAIRS} common seeds: no claim."
)
CONFUSION = (
    "Percent of the nodes of the true class (lines) by predicted class (columns), mean ± sample standard deviation over "
    "seeds (how many: column n).",
    "Discovered classes are matched one to one among the new classes (block); old ids are fixed.",
)
AVERAGE = "Average: over the datasets shown, of ours and of the paper's numbers, where all of them are there."


def comparison(rows: Sequence[Row]) -> list[Table]:
    entries = by_method(compared(of_the_paper(rows)))
    hides = "All can be high while no new class is found at all (never new); H, the harmonic mean of Old and New, cannot."
    lottery = (
        "The discovered class with number i must be the true class i, as the paper counts. Without labels a method cannot "
        "know these numbers, so New is a lottery here: nothing is marked and nothing is tested."
    )
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
    return [block, identity]


def heads(rows: Sequence[Row]) -> list[Table]:
    what = "Old and All by the joint head; New-N: test nodes of new classes only, by the head for new classes."
    caption = [PERCENT, BLOCK, what, BESIDE, BEST, LABELS, TESTED.format("SWORD")]
    entries, scores = by_method(unchanged(of_the_paper(rows))), ("old", "new_n", "all")
    return [table("heads", "Task-specific head", caption, ("Method",), entries, scores, marked=("new_n", "all"))]


def forgetting(rows: Sequence[Row]) -> list[Table]:
    what = "AA: mean of Old and New after phase 2. AF: Old after phase 2 minus Old after phase 1; negative is forgotten."
    caption = [PERCENT, BLOCK, what, BESIDE, BEST, LABELS, TESTED.format("SWORD"), AVERAGE]
    entries, scores = by_method(compared(of_the_paper(rows))), ("aa", "af")
    return [table("forgetting", "Forgetting", caption, ("Method",), entries, scores, marked=scores, average=True)]


def ablation(rows: Sequence[Row]) -> list[Table]:
    rows = where([r for r in of_the_paper(rows) if left_out(r) in LEFT_OUT], lambda row: left_out(row) != "none")
    entries = []
    for encoder in in_order({row["encoder"] for row in rows}, ENCODERS):
        for line in LEFT_OUT:
            mine = [row for row in rows if row["encoder"] == encoder and left_out(row) == line]
            ticks = tuple("" if loss in line.split("+") else "✓" for loss in LOSSES)
            entries.append(Entry(encoder_title(encoder), ticks, mine, encoder, line, line == "none"))
    what = "SWORD with only the losses that have a ✓; the others have weight zero."
    caption = [PERCENT, BLOCK, what, BESIDE, BEST, TESTED.format("SWORD with all five")]
    scores = ("old", "new", "all", "h")
    return [table("ablation", "Ablation", caption, tuple(LOSSES.values()), entries, scores, marked=("all", "h"))]


def sensitivity(rows: Sequence[Row]) -> list[Table]:
    entries = []
    for parameter, letter in PARAMETERS.items():
        sweep = swept(rows, parameter)
        for encoder in in_order({row["encoder"] for each in sweep.values() for row in each}, ENCODERS):
            for value, each in sweep.items():
                mine = [row for row in each if row["encoder"] == encoder]
                default = " (default)" if any(not row.get("changed") for row in mine) else ""
                group = f"{letter}, {encoder_title(encoder)}"
                entries += [Entry(group, (f"{value:g}{default}",), mine, encoder)] if mine else []
    what = (
        "SWORD with one parameter changed and all others as they are by default. The paper shows curves without numbers, "
    )
    caption = [PERCENT, BLOCK, what + "and none for k, the number of top activations that must agree."]
    return [table("sensitivity", "Sensitivity", caption, ("Value",), entries, ("old", "new", "all", "h"))]


def layers(rows: Sequence[Row]) -> list[Table]:
    deep = [row for row in unchanged(of_the_paper(rows, ("layers",))) if row["encoder"] in ENCODERS]
    deep = where(deep, lambda row: "layers" in (row.get("fit_changed") or {}))
    entries = []
    for encoder in in_order({row["encoder"] for row in deep}, ENCODERS):
        for method in in_order({row["method"] for row in deep if row["encoder"] == encoder}, METHODS):
            mine = [row for row in deep if row["encoder"] == encoder and row["method"] == method]
            depths = {depth_of(row) for row in mine}
            group = f"{METHODS.get(method, method)}, {ENCODERS[encoder]}"
            for depth in sorted(depths) if len(depths) > 1 else ():
                entries.append(Entry(group, (str(depth),), [row for row in mine if depth_of(row) == depth], encoder))
    caption = [PERCENT, BLOCK, "Everything else as it is by default. The paper shows curves without numbers."]
    return [table("layers", "Number of layers", caption, ("Layers",), entries, ("old", "new", "all", "h"))]


def class_splits(rows: Sequence[Row]) -> list[Table]:
    rows = [row for row in latest(rows) if row.get("class_split") is not None]
    rows = [row for row in unchanged(rows) if set(row.get("fit_changed") or ()) <= {"hidden"}]
    entries: list[Entry] = []
    for draw in in_order({row["draw"] for row in rows}, ("published", "balanced", "as-it-comes")):
        for visibility in in_order({row["visibility"] for row in rows}, ("transductive", "induced")):
            mine = [row for row in rows if row["draw"] == draw and row["visibility"] == visibility]
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
    return [table("class-splits", title, caption, ("Method",), entries, scores, marked=scores, by="class_split")]


def confusion(rows: Sequence[Row]) -> list[Table]:
    tables = []
    for (dataset, encoder, title), each in panels(rows).items():
        counts, names = confusions(each), each[0]["class_names"]
        share = 100 * counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)  # (runs, true, predicted)
        shown = [*names, *(["no partner"] if counts[:, :, -1].any() else [])]
        columns = tuple(Column("predicted", f"class {j}", name) for j, name in enumerate(shown))
        lines = []
        for i, name in enumerate(names):
            spreads = [mean_std(share[:, i, j].tolist()) for j in range(len(shown))]
            cells = tuple(Cell(spread["mean"], spread["std"], len(share)) for spread in spreads)
            lines.append(Line("old classes" if i < each[0]["num_old"] else "new classes", (name,), cells))
        where = f"{DATASETS.get(dataset, dataset)}, {encoder_title(encoder)}, {title}"
        tables.append(Table(f"Confusion: {where}", CONFUSION, ("True class",), columns, tuple(lines)))
    return tables


def tsne(rows: Sequence[Row]) -> list[Table]:
    mapped = {(r["dataset"], r["encoder"], r["method"]) for r in latest(rows) if r.get("map")}
    shown = [r for r in unchanged(of_the_paper(rows)) if (r["dataset"], r["encoder"], r["method"]) in mapped]
    what = (
        "The maps in numbers: agreement of true and predicted classes over all test nodes (NMI, ARI), and how many nodes "
    )
    caption = [PERCENT, what + "are put on the right side, old or new (Gate). The panels are in the page.", LABELS]
    title, scores = "What the t-SNE panels show, in numbers", ("nmi", "ari", "gate")
    return [table("tsne", title, caption, ("Method",), by_method(shown), scores)]


TABLES: Mapping[str, Callable[[Sequence[Row]], list[Table]]] = {
    "comparison": comparison,
    "heads": heads,
    "ablation": ablation,
    "forgetting": forgetting,
    "sensitivity": sensitivity,
    "layers": layers,
    "confusion": confusion,
    "tsne": tsne,
    "class-splits": class_splits,
}
