"""Fit the weights of counting; `learn_counting.py` is the command."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from nodenova.open_world.count import CLIP, Evidence, Logit

Row = dict[str, Any]
# Which way each feature may speak: +1, -1, or 0 for either.
NUMBER_SIGNS = {
    "log": 0,
    "linear": 0,
    "one": 0,
    "wide": -1,
    "off_scatter": -1,
    "silhouette": 1,
    "off_silhouette": -1,
    "alike": -1,
    "alike_much": -1,
    "alike_next": 1,
    "loosest": 1,
    "smallest": 1,
    "off_loose": -1,
    "off_tight": -1,
    "off_covered": -1,
    "wide_plain": -1,
}
NEW_SIGNS = {
    "like_old_1": -1,
    "like_old_2": -1,
    "like_old_4": -1,
    "share_4": 1,
    "scatter_0": 1,
    "simes": -1,
    "bonferroni": -1,
    "pooled": -1,
    "share": 1,
    "sure": 1,
}
PENALTY = 0.01  # both of squares and of absolute values
KEPT = 12  # features with the largest weights


def read(rows: Path) -> list[Row]:
    return [json.loads(line) for line in rows.read_text().splitlines()]


def evidence(row: Row) -> Evidence:
    return Evidence(
        {key: np.array(value) for key, value in row["by_number"].items()},
        {key: np.array(value) for key, value in row["of_new"].items()},
        row["p_value"],
        row["share_said"],
        row["n"],
    )


def graph_weights(rows: Sequence[Row]) -> np.ndarray:
    """Every graph counts alike."""
    size = Counter(r["graph"] for r in rows)
    return np.array([1 / size[r["graph"]] for r in rows])


def scaled(values: np.ndarray) -> tuple[np.ndarray, float, float]:
    mean, spread = float(values.mean()), float(max(values.std(), 1e-6))
    return np.clip((values - mean) / spread, -CLIP, CLIP), mean, spread


def bounded(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]], signs: Sequence[int], free: int = 0
) -> np.ndarray:
    """The least of a loss, with a penalty on all weights but the last `free`; signs are held."""
    size = len(signs)

    def penalized(b: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = loss(b)
        held = np.r_[np.ones(size), np.zeros(free)]
        slope = slope + held * (2 * PENALTY * b + PENALTY * np.sign(b))
        return value + PENALTY * float(held @ (b**2 + np.abs(b))), slope

    limits = {1: (0, None), -1: (None, 0), 0: (None, None)}
    bounds = [limits[sign] for sign in signs] + [(None, None)] * free
    start = np.r_[[0.01 * sign for sign in signs], np.zeros(free)]
    return minimize(penalized, start, jac=True, method="L-BFGS-B", bounds=bounds).x


def fit_number(rows: Sequence[Row], names: Sequence[str]) -> Logit:
    """The conditional logit over 1..15."""
    columns, places = [], []
    for name in names:
        x, mean, spread = scaled(np.array([r["by_number"][name] for r in rows]))
        columns.append(x)
        places.append((mean, spread))
    x = np.stack(columns, axis=2)  # (tasks, candidates, features)
    k = np.array([r["k"] for r in rows]) - 1
    often = Counter(k.tolist())
    weight = graph_weights(rows) * np.array([often[c] ** -0.5 for c in k.tolist()])
    weight /= weight.sum()
    at = np.arange(len(k))

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        score = x @ b
        slope = softmax(score, axis=1)
        slope[at, k] -= 1
        value = float(weight @ (logsumexp(score, axis=1) - score[at, k]))
        return value, np.einsum("t,tc,tcf->f", weight, slope, x)

    b = bounded(loss, [NUMBER_SIGNS[name] for name in names])
    return Logit({n: (*p, float(w)) for n, p, w in zip(names, places, b, strict=True)})


def strongest(
    fit: Callable[[Sequence[Row], Sequence[str]], Logit], rows: Sequence[Row], names: Sequence[str]
) -> Logit:
    """Fitted on all features, then once more on those that matter."""
    first = fit(rows, names)
    order = sorted(names, key=lambda name: -abs(first.features[name][2]))
    return fit(rows, [name for name in names if name in order[:KEPT] and first.features[name][2]])


def fit_new(rows: Sequence[Row], names: Sequence[str]) -> Logit:
    """The logit of whether anything is new; tasks with and without count alike."""
    columns, places = [], []
    for name in names:
        x, mean, spread = scaled(np.array([r["of_new"][name] for r in rows]))
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

    b = bounded(loss, [NEW_SIGNS[name] for name in names], free=1)
    features = {n: (*p, float(w)) for n, p, w in zip(names, places, b[:-1], strict=True)}
    return Logit(features, float(b[-1]))


def fit_odds(rows: Sequence[Row]) -> list[float]:
    """How the odds of a cell to be new depend on its features, cells by their size."""
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
    """graph -> the odds of cells learnt on all other graphs."""
    return {g: fit_odds([r for r in rows if r["graph"] != g]) for g in graphs_of(rows)}


def stretched(logit: Logit, by: float) -> Logit:
    """The same, surer or less sure of itself."""
    return Logit({n: (m, s, by * w) for n, (m, s, w) in logit.features.items()}, by * logit.bias)


def graphs_of(rows: Sequence[Row]) -> list[str]:
    return sorted({r["graph"] for r in rows})
