"""Learn how likely two similar classes are one, and evaluate the other suggestions of a run.

    python tools/learn_likeness.py collect|learn ROWS

collect  makes tasks as tools/learn_counting.py does, discovers one class too few to two too many in
         each, and appends one JSON line per task to ROWS: the features of each pair of classes and
         of each class that may be two, and the share of pairs of nodes that are of one class; which
         labels are called wrong after a tenth of them was made wrong; and how many nodes of known
         and of new classes are marked as fitting none. Existing lines are not computed again.
learn    fits the weights to ROWS and prints the evaluation: each graph by weights learned without
         it, with equal weight for all graphs. --write src/nodenova/model/similarity.py
         writes those learned on all graphs, --page docs/open-world.md writes the tables into that
         page.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import into_page
import numpy as np
import torch
from learn_counting import load, tasks
from scipy.optimize import minimize
from scipy.special import expit

import nodenova as nova
from nodenova.data.labels import LabelledGraph, OldTask
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.model.similarity import evidence
from nodenova.nn.encode_cache import shared_passes
from nodenova.review.cross_validation import best_fits, cross_validate
from nodenova.review.suggestions import MIN_WRONG

TASKS = range(6)  # of learn_counting.py: 30, 50, 70, 90 and 100 % known, and none
OFF = (-1, 0, 1, 2)  # error of the requested number of classes
WRONG = 0.1  # share of labels that are made wrong
NONE_SHARES = (0.01, 0.05, 0.1)
PENALTY = 1e-4  # of squared weights
BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)
LABEL_BINS = (0.5, 0.7, 0.8, 0.9, 1.01)


def collect(graphs: list[str], rows: Path, seeds: range) -> None:
    existing = read(rows) if rows.exists() else []
    done = {(row["graph"], row["seed"]) for row in existing}
    for seed in seeds:
        for name in graphs:
            if (Path(name).stem, seed) not in done:
                labelled = load(name)
                lines = [json.dumps(line) for line in measure(labelled, name, seed)]
                with rows.open("a") as file:
                    file.write("".join(f"{line}\n" for line in lines))
                print(seed, name, flush=True)


_ENCODERS: dict[str, PrismEncoder] = {}  # per graph, before whitening


def measure(labelled: LabelledGraph, name: str, seed: int) -> Iterator[dict[str, Any]]:
    if name not in _ENCODERS:
        _ENCODERS[name] = PrismEncoder.fit(labelled.graph, torch.device("cpu"))
    rng = np.random.default_rng([seed, *Path(name).stem.encode(), 7])
    with shared_passes(), patch.object(PrismEncoder, "fit", lambda *_: _ENCODERS[name]):
        model = None
        for what, first, ids, is_new in tasks(labelled, name, seed):
            if what["task"] not in TASKS:
                continue
            model = nova.fit(first, seed=seed) if model is None else model
            num_new = max(1, what["k"] + int(rng.choice(OFF)))
            task = nova.NewTask(labelled.graph, ids, num_new, mixed=what["share"] > 0)
            found = nova.discover(model, task, seed=seed)
            z, p = found.embed_and_predict(labelled.graph)
            every = np.sort(np.concatenate([ids, first.train_ids]))
            line = what | {"asked": num_new} | alike(found, z[every], p[every], labelled.y[every])
            if what["task"] == 1:  # half of the nodes known
                line |= {"none": none_of(model, z, first, ids, is_new)}
                line |= {"wrong_labels": wrong_labels(labelled, first, task, seed, rng)}
            yield line


def alike(model: nova.Model, z: np.ndarray, p: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Features of pairs and halves of classes, and the true share of pairs of one class."""
    features = evidence(model, z, p)
    groups, members = p.argmax(axis=1), np.eye(y.max() + 1)[y]

    def same(one: np.ndarray, other: np.ndarray) -> float:
        return round(float(members[one].mean(axis=0) @ members[other].mean(axis=0)), 5)

    pairs = [
        [*features.pairs[a, b].round(5).tolist(), same(groups == a, groups == b)]
        for a, b in np.argwhere(~np.isnan(features.pairs[:, :, 0]))
        if a > b
    ]

    def differ(c: int) -> float:
        """Whether most of one half is of another class than most of the other."""
        most = [members[(groups == c) & (features.half == h)].sum(axis=0).argmax() for h in (0, 1)]
        return float(most[0] != most[1])

    halves = [
        [*features.halves[c].round(5).tolist(), differ(c)]
        for c in np.flatnonzero(~np.isnan(features.halves[:, 0])).tolist()
    ]
    return {"pairs": pairs, "halves": halves}


def none_of(
    model: nova.Model, z: np.ndarray, first: OldTask, ids: np.ndarray, is_new: np.ndarray
) -> list[list[float]]:
    """For each share: shares of unlabelled nodes of known and of new classes that fit none."""
    row = np.full(len(z), -1)
    row[first.train_ids] = first.train_y
    checked, fit = cross_validate(model, z, row), best_fits(model, z)[ids]
    assert checked is not None
    shares = []
    for share in NONE_SHARES:
        if share * (len(checked.ids) + 1) >= 1:
            low = fit < checked.threshold(share)
            shares.append([share, float(low[~is_new].mean()), float(low[is_new].mean())])
    return shares


def wrong_labels(
    labelled: LabelledGraph, first: OldTask, task: nova.NewTask, seed: int, rng: np.random.Generator
) -> list[list[float]]:
    """Change a tenth of the labels; for each label that is or looks wrong: probability of the best
    class, whether the label is wrong, whether that class is right, whether it is another one."""
    y, o = first.train_y.copy(), len(first.class_names)
    moved = rng.random(len(y)) < WRONG
    y[moved] = (y[moved] + rng.integers(1, o, moved.sum())) % o
    if len(np.unique(y)) < o:
        return []
    found = nova.discover(nova.fit(replace(first, train_y=y), seed=seed), task, seed=seed)
    row = np.full(labelled.graph.num_nodes, -1)
    row[first.train_ids] = y
    checked = cross_validate(found, found.embed(labelled.graph), row)
    assert checked is not None
    at = np.searchsorted(checked.ids, first.train_ids)
    p = np.nan_to_num(checked.p[at])
    best = p.argmax(axis=1)
    columns = np.column_stack([p.max(axis=1).round(4), moved, best == first.train_y, best != y])
    labels: list[list[float]] = columns[(best != y) | moved].astype(float).tolist()
    return labels


def read(rows: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in rows.read_text().splitlines()]


def fit_weights(x: np.ndarray, same: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Constant and weights of a logistic regression on shares."""
    rows = np.column_stack([np.ones(len(x)), x])

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        margin = rows @ b
        value = weight @ (np.logaddexp(0, margin) - same * margin) + PENALTY * b[1:] @ b[1:]
        slope = rows.T @ (weight * (expit(margin) - same))
        return float(value), slope + 2 * PENALTY * np.concatenate([[0.0], b[1:]])

    start = np.zeros(rows.shape[1])
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)


def evaluate(made: list[dict[str, Any]], kind: str) -> tuple[np.ndarray, list[str]]:
    """The weights learned on all graphs, and the table by those learned without the graph."""
    graph = np.array([row["graph"] for row in made for _ in row[kind]])
    table = np.array([one for row in made for one in row[kind]])
    x, same = table[:, :-1], table[:, -1]
    graphs, number = np.unique(graph, return_inverse=True)
    weight = 1 / np.bincount(number)[number] / len(graphs)
    p = np.zeros(len(x))
    for g in range(len(graphs)):
        mine = number == g
        b = fit_weights(x[~mine], same[~mine], weight[~mine] / weight[~mine].sum())
        p[mine] = expit(b[0] + x[mine] @ b[1:])
    what = ("pairs of classes", "belong together")
    what = what if kind == "pairs" else ("classes", "are two")
    lines = [f"| probability | {what[0]} | mean | {what[1]} |", "|---|---|---|---|"]
    for low, high in pairwise(BINS):
        here = (p >= low) & (p < high)
        if here.any():
            said = f"{100 * low:.0f} to {100 * high:.0f} %"
            lines.append(
                f"| {said} | {here.sum():,} | {100 * p[here].mean():.0f}% | "
                f"{100 * same[here].mean():.0f}% |"
            )
    brier, plain = weight @ (p - same) ** 2, weight @ (weight @ same - same) ** 2
    lines += ["", f"Brier score {brier:.3f}; {plain:.3f} for always predicting the mean."]
    return fit_weights(x, same, weight), lines


def of_labels(made: list[dict[str, Any]]) -> list[str]:
    """Table: how often a label that looks wrong is wrong."""
    table = np.array([one for row in made for one in row.get("wrong_labels", [])])
    p, wrong, right, looks = table.T
    lines = [
        "| probability of the other class | labels | truly wrong | and of that class |",
        "|---|---|---|---|",
    ]
    for low, high in pairwise(LABEL_BINS):
        here = (p >= low) & (p < high) & (looks == 1)
        lines.append(
            f"| {100 * low:.0f} to {100 * min(high, 1):.0f}% | {here.sum():,} | "
            f"{100 * wrong[here].mean():.0f}% | {100 * (wrong * right)[here].mean():.0f}% |"
        )
    found = 100 * ((p >= MIN_WRONG) & (looks == 1))[wrong == 1].mean()
    return [
        *lines,
        "",
        f"{found:.0f} % of the wrong labels are at {100 * MIN_WRONG:.0f} % or more.",
    ]


def of_none(made: list[dict[str, Any]]) -> list[str]:
    """Table: shares of unlabelled nodes that fit none of the known classes."""
    shares = np.array([one for row in made for one in row.get("none", [])])
    lines = ["| asked | nodes of known classes | nodes of new classes |", "|---|---|---|"]
    for share in NONE_SHARES:
        here = shares[shares[:, 0] == share]
        if len(here):
            known, new = 100 * here[:, 1:].mean(axis=0)
            lines.append(f"| {100 * share:.0f}% | {known:.1f}% | {new:.0f}% |")
    return lines


def learn(rows: Path, path: Path | None) -> str:
    made = read(rows)
    (pairs, of_pairs), (halves, of_halves) = (evaluate(made, kind) for kind in ("pairs", "halves"))
    if path is not None:
        text = path.read_text()
        for name, weights in (("PAIRS", pairs), ("HALVES", halves)):
            line = f"{name} = ({', '.join(f'{value:.4g}' for value in weights)})"
            text = re.sub(rf"^{name} = .*$", line, text, flags=re.MULTILINE)
        path.write_text(text)
    return "\n".join([*of_pairs, "", *of_halves, "", *of_labels(made), "", *of_none(made)])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["collect", "learn"])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--graphs", nargs="+", default=["cora", "citeseer", "pubmed", "wordnet"])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 3), metavar=("FIRST", "END"))
    parser.add_argument("--write", type=Path, help="the module to put the weights into")
    parser.add_argument("--page", type=Path, help="page into which the tables are written")
    arguments = parser.parse_args()
    if arguments.what == "collect":
        collect(arguments.graphs, arguments.rows, range(*arguments.seeds))
    else:
        text = learn(arguments.rows, arguments.write)
        print(text)
        if arguments.page is not None:
            into_page.put(arguments.page, "likeness", text)


if __name__ == "__main__":
    main()
