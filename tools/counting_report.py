"""Learn the weights of counting and judge them; `learn_counting.py` is the command."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from counting_fit import (
    NEW_SIGNS,
    NUMBER_SIGNS,
    Row,
    evidence,
    fit_new,
    fit_number,
    fit_odds,
    graph_weights,
    graphs_of,
    read,
    stretched,
    strongest,
)

from nodenova.open_world.count import HELD, ClassCountEstimate, Logit, best_number, judge

FALSE_ALARMS = 0.05
STRETCHES = tuple(np.arange(1.5, 0.45, -0.05).round(2).tolist())
KINDS = ("mixed", "strict")
HEAD = 3  # lines of a table up to its mean


@dataclass(frozen=True)
class Report:
    """How well it counts: tables in Markdown, the means over graphs alone and all of it."""

    means: str
    whole: str


def learn(rows: Path, cells: Path, write: Path | None, fresh: int) -> Report:
    """How many: tasks with a seed from `fresh` on are judged by weights learnt on the others, after
    which the form of it all was chosen; those that are written are learnt on all."""
    made = read(rows)
    new, judged, threshold, anything = learn_new(made)
    means, whole = [*anything], [*anything]
    for kind in KINDS:
        these = of_kind(made, kind)
        others = [r for r in these if r["seed"] >= fresh]
        earlier = [r for r in these if r["seed"] < fresh]
        _, counts = learn_number(earlier, others, judged, threshold)
        table = number_table(kind, others, counts)
        means += ["", *table[:HEAD]]
        whole += ["", *table]
    if write is not None:
        weights: dict[str, Any] = {"odds": fit_odds(read(cells))}
        for kind in KINDS:
            weights[kind], _ = learn_number(of_kind(made, kind), [], judged, threshold)
        write.write_text(as_module(weights, new, made))
    return Report("\n".join(means), "\n".join(whole))


def of_kind(made: Sequence[Row], kind: str) -> list[Row]:
    """The tasks in which something is new."""
    return [r for r in made if r["k"] and (r["share"] > 0) == (kind == "mixed")]


def learn_number(
    rows: Sequence[Row],
    others: Sequence[Row],
    judged: Mapping[str, Logit],
    threshold: Mapping[str, float],
) -> tuple[Logit, list[ClassCountEstimate]]:
    """Weights learnt on `rows`, and what those learnt without its graph say of each of `others`."""
    names = [name for name in NUMBER_SIGNS if name in rows[0]["by_number"]]
    if not rows[0]["of_new"]:
        names.remove("off_covered")  # the same as another count where all nodes are new
    held = {
        g: strongest(fit_number, [r for r in rows if r["graph"] != g], names)
        for g in graphs_of(rows)
    }

    def counted(these: Sequence[Row], by: Mapping[str, float]) -> list[ClassCountEstimate]:
        stretch = {g: stretched(logit, by[g]) for g, logit in held.items()}
        return [
            judge(evidence(r), stretch[r["graph"]], judged[r["graph"]], threshold[r["graph"]])
            for r in these
        ]

    tried = {by: counted(rows, dict.fromkeys(held, by)) for by in STRETCHES}
    without = {g: surest(rows, tried, without=g) for g in held}
    shipped = stretched(strongest(fit_number, rows, names), surest(rows, tried))
    return shipped, counted(others, without)


def surest(
    rows: Sequence[Row],
    tried: Mapping[float, Sequence[ClassCountEstimate]],
    without: str | None = None,
) -> float:
    """How far to stretch: as sure of itself as it can be while four fifths of its sets are true,
    on all graphs but one."""
    some = [i for i, r in enumerate(rows) if r["graph"] != without]
    weight = graph_weights([rows[i] for i in some])
    for by, counts in tried.items():
        inside = [rows[i]["k"] in counts[i].likely for i in some]
        if np.average(inside, weights=weight) >= HELD:
            return by
    return min(tried)


def learn_new(
    made: Sequence[Row],
) -> tuple[tuple[Logit, float], dict[str, Logit], dict[str, float], list[str]]:
    """Weights and threshold learnt on all; for each graph those learnt on the others; a table."""
    rows = [r for r in made if r["share"] > 0]
    names = list(NEW_SIGNS)
    held = {g: fit_new([r for r in rows if r["graph"] != g], names) for g in graphs_of(made)}
    score = {id(r): float(held[r["graph"]].score(evidence(r).of_new)) for r in rows}
    null = [r for r in rows if not r["k"]]

    def limit(these: Sequence[Row], level: float) -> float:
        """Above it is one more such task with a chance of `level` at the most."""
        scores = sorted(score[id(r)] for r in these)
        return scores[min(math.ceil((len(scores) + 1) * (1 - level)), len(scores)) - 1]

    def level_of(graphs: Sequence[str]) -> float:
        """Graphs differ: what keeps false alarms down on some does not quite do so on another. The
        level that does, each of `graphs` judged by the others."""
        mine = [r for r in null if r["graph"] in graphs]
        for level in np.arange(FALSE_ALARMS, 0.005, -0.005).tolist():
            limits = {g: limit([r for r in mine if r["graph"] != g], level) for g in graphs}
            if np.mean([score[id(r)] > limits[r["graph"]] for r in mine]) <= FALSE_ALARMS:
                break
        return float(level)

    every = graphs_of(made)
    threshold = {}
    for g in every:
        others = [other for other in every if other != g]
        threshold[g] = limit([r for r in null if r["graph"] != g], level_of(others))
    said = [
        "| known | tasks | said to be new | coverage test, p at most 0.05 |",
        "|---|---|---|---|",
    ]
    for share in sorted({r["share"] for r in rows}):
        these = [r for r in rows if r["share"] == share]
        new = [score[id(r)] > threshold[r["graph"]] for r in these]
        test = [r["p_value"] <= 0.05 for r in these]
        both = [100 * float(np.average(v, weights=graph_weights(these))) for v in (new, test)]
        what = f"{100 * share:.0f} %" + (", nothing new" if share == 1 else "")
        said.append(f"| {what} | {len(these)} | {both[0]:.0f} % | {both[1]:.0f} % |")
    limit_of_all = limit(null, level_of(every))
    return (fit_new(rows, names), limit_of_all), held, threshold, said


def number_table(kind: str, rows: Sequence[Row], counts: Sequence[ClassCountEstimate]) -> list[str]:
    """Each graph judged by weights learnt without it; the mean of all graphs comes first."""

    def line(name: str, some: Sequence[int], weight: np.ndarray) -> str:
        k = np.array([rows[i]["k"] for i in some])
        number = np.array([best_number(np.array(counts[i].probabilities[1:])) for i in some])
        or_none = np.array([counts[i].number for i in some])
        inside = np.array([rows[i]["k"] in counts[i].likely for i in some])
        size = np.array([len(counts[i].likely) for i in some])
        off, off_zero = np.abs(number - k), np.abs(or_none - k)

        def mean(values: np.ndarray) -> float:
            return float(np.average(values, weights=weight))

        cells = [
            name,
            str(len(some)),
            *(f"{100 * mean(values):.0f}" for values in (off == 0, off <= 1)),
            f"{mean(off):.2f}",
            f"{mean(number - k):+.2f}",
            f"{100 * mean(inside):.0f} % with {mean(size):.1f}",
            f"{100 * mean(off_zero <= 1):.0f}, {mean(off_zero):.2f}",
        ]
        return f"| {' | '.join(cells)} |"

    every = range(len(rows))
    said = [
        f"| {kind} | tasks | exact | within one | mean error | bias | 80 % set | 0 allowed |",
        "|---|---|---|---|---|---|---|---|",
        line("**mean of graphs**", list(every), graph_weights(rows)),
    ]
    for key, title in (("graph", "{}"), ("k", "{} new")):
        for value in sorted({r[key] for r in rows}):
            mine = [i for i in every if rows[i][key] == value]
            said.append(line(title.format(value), mine, np.ones(len(mine))))
    return said


def as_module(weights: Mapping[str, Any], new: tuple[Logit, float], rows: Sequence[Row]) -> str:
    def table(logit: Logit) -> str:
        inside = "".join(
            f'    "{name}": ({mean:.4g}, {spread:.4g}, {weight:.4g}),\n'
            for name, (mean, spread, weight) in logit.features.items()
            if round(weight, 4)
        )
        return "{\n" + inside + "}"

    odds = ", ".join(f"{value:.4g}" for value in weights["odds"])
    return f'''"""What the evidence for a number of new classes is worth, by learn_counting.py.

Learnt on {len(rows):,} tasks of {len(graphs_of(rows))} graphs. A feature has its mean, its spread,
and what a spread from the mean is worth.
"""

from __future__ import annotations

Weights = dict[str, tuple[float, float, float]]

# Of a cell to be new: a constant, then the features of `nodenova.open_world.novelty.Coverage`.
ODDS = ({odds})
# Of a number of new classes, in a mixture and where all nodes are new.
MIXED: Weights = {table(weights["mixed"])}
STRICT: Weights = {table(weights["strict"])}
# Of anything being new.
NEW: Weights = {table(new[0])}
NEW_BIAS = {new[0].bias:.4g}
# Above it something is said to be new: {100 * FALSE_ALARMS:.0f} % of tasks with nothing new are.
THRESHOLD = {new[1]:.4g}
'''
