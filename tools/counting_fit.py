"""Fit and evaluate the weights of counting; `learn_counting.py` is the command."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from nodenova.open_world.count import (
    CLIP,
    SET_SHARE,
    ClassCountEstimate,
    Evidence,
    LinearScore,
    best_number,
    estimate_count,
)
from nodenova.open_world.count_features import NOVELTY_FEATURES, NUMBER_FEATURES, STRICT_FEATURES
from nodenova.open_world.count_weights import MIXED, NEW, NEW_BIAS, THRESHOLD

Row = dict[str, Any]
SIGNS = {f.name: f.sign for f in (*NUMBER_FEATURES, *STRICT_FEATURES, *NOVELTY_FEATURES)}
PENALTY = 0.01  # of squares and of absolute values
GROUPS = (2, 3, 4, 6, 9, 13)  # first numbers of new classes in groups of tasks
SIZE_WEIGHTS = (0.0, 0.5, 1.0, 2.0)
MAX_FEATURES = 12  # features with the largest weights
FALSE_ALARMS = 0.05
STRETCHES = tuple(np.arange(1.5, 0.45, -0.05).round(2).tolist())
KINDS = ("mixed", "strict")
HEAD = 3  # lines of a table up to the mean of graphs
RANGES = ((1, 8), (8, 20))  # numbers of new classes that are evaluated together


def read(rows: Path) -> list[Row]:
    return [json.loads(line) for line in rows.read_text().splitlines()]


def evidence(row: Row) -> Evidence:
    return Evidence(
        {key: np.array(value) for key, value in row["number"].items()},
        {key: np.array(value) for key, value in row["novelty"].items()},
        row["p_value"],
        row["novel_share"],
        row["n"],
    )


def graph_weights(rows: Sequence[Row]) -> np.ndarray:
    """(rows,) weights with the same total for every graph."""
    size = Counter(r["graph"] for r in rows)
    return np.array([1 / size[r["graph"]] for r in rows])


def standardize(values: np.ndarray) -> tuple[np.ndarray, float, float]:
    mean, spread = float(values.mean()), float(max(values.std(), 1e-6))
    return np.clip((values - mean) / spread, -CLIP, CLIP), mean, spread


def minimize_bounded(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]], signs: Sequence[int], free: int = 0
) -> np.ndarray:
    """Minimize a loss with fixed signs and a penalty on all weights but the last `free`."""
    size = len(signs)

    def penalized(b: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = loss(b)
        penalty = np.r_[np.ones(size), np.zeros(free)]
        slope = slope + penalty * (2 * PENALTY * b + PENALTY * np.sign(b))
        return value + PENALTY * float(penalty @ (b**2 + np.abs(b))), slope

    limits = {1: (0, None), -1: (None, 0), 0: (None, None)}
    bounds = [limits[sign] for sign in signs] + [(None, None)] * free
    start = np.r_[[0.01 * sign for sign in signs], np.zeros(free)]
    return minimize(penalized, start, jac=True, method="L-BFGS-B", bounds=bounds).x


def fit_number(rows: Sequence[Row], names: Sequence[str]) -> LinearScore:
    """Fit the conditional logit over 1..40."""
    columns, places = [], []
    for name in names:
        x, mean, spread = standardize(np.array([r["number"][name] for r in rows]))
        columns.append(x)
        places.append((mean, spread))
    x = np.stack(columns, axis=2)  # (tasks, candidates, features)
    k = np.array([r["k"] for r in rows]) - 1
    group = np.digitize(k + 1, GROUPS)  # numbers from 4 on are too rare to count one by one
    often = np.bincount(group)
    weight = graph_weights(rows) * often[group] ** -0.75
    weight /= weight.sum()
    at = np.arange(len(k))

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        score = x @ b
        slope = softmax(score, axis=1)
        slope[at, k] -= 1
        value = float(weight @ (logsumexp(score, axis=1) - score[at, k]))
        return value, np.einsum("t,tc,tcf->f", weight, slope, x)

    b = minimize_bounded(loss, [SIGNS[name] for name in names])
    return LinearScore({n: (*p, float(w)) for n, p, w in zip(names, places, b, strict=True)})


def fit_strongest(
    fit: Callable[[Sequence[Row], Sequence[str]], LinearScore],
    rows: Sequence[Row],
    names: Sequence[str],
) -> LinearScore:
    """Fit on all features, then again on those with the largest weights."""
    first = fit(rows, names)
    order = sorted(names, key=lambda name: -abs(first.features[name][2]))
    return fit(
        rows, [name for name in names if name in order[:MAX_FEATURES] and first.features[name][2]]
    )


def fit_new(rows: Sequence[Row], names: Sequence[str]) -> LinearScore:
    """Fit the logit of whether any class is new; both answers have the same total weight."""
    columns, places = [], []
    for name in names:
        x, mean, spread = standardize(np.array([r["novelty"][name] for r in rows]))
        columns.append(x)
        places.append((mean, spread))
    x = np.stack([*columns, np.ones(len(rows))], axis=1)
    y = np.array([r["k"] > 0 for r in rows])
    weight = graph_weights(rows)
    weight = np.where(y, weight / weight[y].sum(), weight / weight[~y].sum()) / 2

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        score = x @ b
        value = float(weight @ (np.logaddexp(0, score) - y * score))
        return value, x.T @ (weight * (expit(score) - y))

    b = minimize_bounded(loss, [SIGNS[name] for name in names], free=1)
    features = {n: (*p, float(w)) for n, p, w in zip(names, places, b[:-1], strict=True)}
    return LinearScore(features, float(b[-1]))


def fit_odds(rows: Sequence[Row]) -> list[float]:
    """Fit the log-odds of a cell to be new on its features; cells are weighted by their size."""
    x, share, weight = [], [], []
    for row in rows:
        for cells in row["cells"]:
            size = np.array(cells["size"])
            x.append(np.array(cells["features"]))
            share.append(np.array(cells["new"]) / size)
            weight.append(size / size.sum())
    rows_x, y, w = np.concatenate(x), np.concatenate(share), np.concatenate(weight)
    w /= w.sum()

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        score = rows_x @ b
        value = float(w @ (np.logaddexp(0, score) - y * score)) + 1e-3 * float(b @ b)
        return value, rows_x.T @ (w * (expit(score) - y)) + 2e-3 * b

    return [float(v) for v in minimize(loss, np.zeros(rows_x.shape[1]), jac=True).x]


def odds_without_each(rows: Sequence[Row]) -> dict[str, list[float]]:
    """{graph: log-odds of cells learned on all other graphs}."""
    return {g: fit_odds([r for r in rows if r["graph"] != g]) for g in graphs_of(rows)}


def stretch(score: LinearScore, by: float) -> LinearScore:
    """Multiply all weights by a factor: the same order of numbers, more or less certain."""
    weights = {n: (m, s, by * w) for n, (m, s, w) in score.features.items()}
    return LinearScore(weights, by * score.bias)


def graphs_of(rows: Sequence[Row]) -> list[str]:
    return sorted({r["graph"] for r in rows})


@dataclass(frozen=True)
class Report:
    """Tables in Markdown: the means over graphs, and all lines."""

    means: str
    whole: str


def learn(rows: Path, cells: Path, write: Path | None, fresh: int) -> Report:
    """Evaluate on tasks with a seed from `fresh` on, by weights learned on the others; write those
    learned on all tasks."""
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
    """Tasks of a kind that have new classes."""
    return [r for r in made if r["k"] and (r["kind"] != "strict") == (kind == "mixed")]


def learn_number(
    rows: Sequence[Row],
    others: Sequence[Row],
    judged: Mapping[str, LinearScore],
    threshold: Mapping[str, float],
) -> tuple[LinearScore, list[ClassCountEstimate]]:
    """Weights learned on `rows`, and estimates for `others` by weights learned without a graph."""
    names = list(rows[0]["number"])
    held = {
        g: fit_strongest(fit_number, [r for r in rows if r["graph"] != g], names)
        for g in graphs_of(rows)
    }

    def counted(these: Sequence[Row], by: Mapping[str, float]) -> list[ClassCountEstimate]:
        stretched = {g: stretch(score, by[g]) for g, score in held.items()}
        return [
            estimate_count(
                evidence(r), stretched[r["graph"]], judged[r["graph"]], threshold[r["graph"]]
            )
            for r in these
        ]

    tried = {by: counted(rows, dict.fromkeys(held, by)) for by in STRETCHES}
    without = {g: fit_certainty(rows, tried, without=g) for g in held}
    shipped = stretch(fit_strongest(fit_number, rows, names), fit_certainty(rows, tried))
    return shipped, counted(others, without)


def fit_certainty(
    rows: Sequence[Row],
    tried: Mapping[float, Sequence[ClassCountEstimate]],
    without: str | None = None,
) -> float:
    """The largest factor with which 80% of the 80% sets hold the true number, on other graphs."""
    some = [i for i, r in enumerate(rows) if r["graph"] != without]
    weight = graph_weights([rows[i] for i in some])
    for by, counts in tried.items():
        inside = [rows[i]["k"] in counts[i].likely for i in some]
        if np.average(inside, weights=weight) >= SET_SHARE:
            return by
    return min(tried)


def judge(rows: Path, size_weights: Sequence[float] | None = None) -> Report:
    """Evaluate the weights that are there, or each of some weights of the number by size.

    The weights were learned on draws of the same graphs, which flatters them.
    """
    scores = {"mixed": MIXED}
    if size_weights is not None:
        scores = {
            f"mixed, weight of size {weight:g}": MIXED | {"off_size_count": (0.0, 1.0, -weight)}
            for weight in size_weights
        }
    made = read(rows)
    novelty = LinearScore(NEW, NEW_BIAS)
    score = {id(r): float(novelty(evidence(r).novelty)) for r in made if r["kind"] != "strict"}
    threshold = dict.fromkeys(graphs_of(made), THRESHOLD)
    whole = new_table([r for r in made if r["kind"] != "strict"], score, threshold)
    means = [*whole]
    these = of_kind(made, "mixed")
    for title, weights in scores.items():
        counts = [estimate_count(evidence(r), LinearScore(weights)) for r in these]
        table = number_table(title, these, counts)
        means += ["", *table[:HEAD], "", *range_table(these, counts)]
        whole += ["", *table]
    return Report("\n".join(means), "\n".join(whole))


def learn_new(
    made: Sequence[Row],
) -> tuple[tuple[LinearScore, float], dict[str, LinearScore], dict[str, float], list[str]]:
    """Weights and threshold learned on all graphs; those learned without each graph; a table."""
    rows = [r for r in made if r["kind"] != "strict"]
    names = [feature.name for feature in NOVELTY_FEATURES]
    held = {g: fit_new([r for r in rows if r["graph"] != g], names) for g in graphs_of(made)}
    score = {id(r): float(held[r["graph"]](evidence(r).novelty)) for r in rows}
    null = [r for r in rows if not r["k"]]

    def limit(these: Sequence[Row], level: float) -> float:
        """Score that one more such task exceeds with a probability of at most `level`."""
        scores = sorted(score[id(r)] for r in these)
        return scores[min(math.ceil((len(scores) + 1) * (1 - level)), len(scores)) - 1]

    def level_of(graphs: Sequence[str]) -> float:
        """Level at which false alarms stay below FALSE_ALARMS, each graph judged by the others."""
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
    limit_of_all = limit(null, level_of(every))
    return (fit_new(rows, names), limit_of_all), held, threshold, new_table(rows, score, threshold)


def new_table(
    rows: Sequence[Row], score: Mapping[int, float], threshold: Mapping[str, float]
) -> list[str]:
    """Table: how often a new class is found, by kind of task."""
    lines = [
        "| share of new nodes | tasks | new class found | novelty test, p at most 0.05 |",
        "|---|---|---|---|",
    ]
    for what in ("natural", "many", "drawn", "nothing"):
        these = [r for r in rows if r["kind"] == what]
        new = [score[id(r)] > threshold[r["graph"]] for r in these]
        test = [r["p_value"] <= 0.05 for r in these]
        both = [100 * float(np.average(v, weights=graph_weights(these))) for v in (new, test)]
        lines.append(f"| {what} | {len(these)} | {both[0]:.0f}% | {both[1]:.0f}% |")
    return lines


def number_table(kind: str, rows: Sequence[Row], counts: Sequence[ClassCountEstimate]) -> list[str]:
    """Table of errors, each graph judged by weights learned without it; the mean comes first."""

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
            f"{100 * mean(inside):.0f}% with {mean(size):.1f}",
            f"{100 * mean(off_zero <= 1):.0f}, {mean(off_zero):.2f}",
        ]
        return f"| {' | '.join(cells)} |"

    every = range(len(rows))
    lines = [
        f"| {kind} | tasks | exact | within one | mean error | bias | 80% set | 0 allowed |",
        "|---|---|---|---|---|---|---|---|",
        line("**mean of graphs**", list(every), graph_weights(rows)),
    ]
    for key, title in (("graph", "{}"), ("k", "{} new")):
        for value in sorted({r[key] for r in rows}):
            mine = [i for i in every if rows[i][key] == value]
            lines.append(line(title.format(value), mine, np.ones(len(mine))))
    return lines


def range_table(rows: Sequence[Row], counts: Sequence[ClassCountEstimate]) -> list[str]:
    """Table of errors where few classes are new, and where many are; tasks count alike."""
    k = np.array([row["k"] for row in rows])
    number = np.array([best_number(np.array(count.probabilities[1:])) for count in counts])
    off = np.abs(number - k)
    lines = [
        "| new classes | tasks | within one | mean error | error by number |",
        "|---|---|---|---|---|",
    ]
    for low, high in RANGES:
        here = (low <= k) & (k <= high)
        if here.any():
            cells = (
                f"{low} to {high}",
                str(here.sum()),
                f"{100 * (off[here] <= 1).mean():.0f}",
                f"{off[here].mean():.2f}",
                f"{100 * (off[here] / k[here]).mean():.0f}%",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def as_module(
    weights: Mapping[str, Any], new: tuple[LinearScore, float], rows: Sequence[Row]
) -> str:
    def table(logit: LinearScore) -> str:
        inside = "".join(
            f'    "{name}": ({mean:.4g}, {spread:.4g}, {weight:.4g}),\n'
            for name, (mean, spread, weight) in logit.features.items()
            if round(weight, 4)
        )
        return "{\n" + inside + "}"

    odds = ", ".join(f"{value:.4g}" for value in weights["odds"])
    return f'''"""Weights of the features of counting, written by tools/learn_counting.py.

Learned on {len(rows):,} tasks of {len(graphs_of(rows))} graphs.
Each feature of `nodenova.open_world.count_features` has its mean, its standard deviation, and its
weight for one standard deviation; docs/counting.md.
"""

from __future__ import annotations

Weights = dict[str, tuple[float, float, float]]

# Log-odds of a cell to be new: a constant, then the features of `novelty.CellNovelty`.
ODDS = ({odds})
# Number of new classes, in a mixture and where all nodes are new.
MIXED: Weights = {table(weights["mixed"])}
STRICT: Weights = {table(weights["strict"])}
# Whether any class is new.
NEW: Weights = {table(new[0])}
NEW_BIAS = {new[0].bias:.4g}
# Score of a new class; {100 * FALSE_ALARMS:.0f}% of the tasks without new classes exceed it.
THRESHOLD = {new[1]:.4g}
'''
