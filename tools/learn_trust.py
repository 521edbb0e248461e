"""Learn how likely a discovered class is one true class, and how right its nodes are.

    python tools/learn_trust.py collect|learn ROWS

collect  takes the natural tasks of tools/learn_counting.py, discovers the true number of classes
         and another number near it, and appends one JSON line per discovery to ROWS: the evidence
         on each discovered class, its purity, some of its nodes; and how many nodes of known
         classes are in discovered ones. Existing lines are not computed again.
learn    fits the weights to ROWS and prints the evaluation: each graph by weights learned without
         it, with equal weight for all graphs. --write src/nodenova/review/trust.py writes those
         learned on all graphs into it, --page docs/trust.md writes the tables into that page.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import into_page
import numpy as np
import torch
from learn_counting import load, tasks
from learn_likeness import fit_weights
from scipy.special import expit, logit

import nodenova as nova
from nodenova.data.labels import LabelledGraph
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.nn.encode_cache import shared_passes
from nodenova.review.trust import CLIP, FLOOR, MIN_GOOD, MIN_LOOK, class_evidence, found_in
from nodenova.runs.run import DiscoveryRun

SPREAD = 0.4  # of the log of the number that is asked for, around the true one
MAX_NODES = 60  # nodes of a class that calibration learns from
MIN_JUDGED = 10  # unlabelled nodes of a class whose purity is measured
PURE = 0.8  # purity of one class


def collect(graphs: list[str], rows: Path, seeds: range) -> None:
    existing = read(rows) if rows.exists() else []
    done = {(row["graph"], row["seed"]) for row in existing}
    for seed in seeds:
        for name in graphs:
            if (Path(name).stem, seed) not in done:
                lines = [json.dumps(line) for line in measure(load(name), name, seed)]
                with rows.open("a") as file:
                    file.write("".join(f"{line}\n" for line in lines))
                print(seed, name, flush=True)


_ENCODERS: dict[str, PrismEncoder] = {}  # per graph, before whitening


def measure(labelled: LabelledGraph, name: str, seed: int) -> Iterator[dict[str, Any]]:
    if name not in _ENCODERS:
        _ENCODERS[name] = PrismEncoder.fit(labelled.graph, torch.device("cpu"))
    rng = np.random.default_rng([seed, *Path(name).stem.encode(), 11])
    with shared_passes(), patch.object(PrismEncoder, "fit", lambda *_: _ENCODERS[name]):
        model = None
        for what, first, ids, is_new in tasks(labelled, name, seed):
            if what["kind"] != "natural" or what["task"] > 1:
                continue
            model = nova.fit(first, seed=seed) if model is None else model
            k = what["k"]
            other = max(1, round(k * np.exp(SPREAD * rng.standard_normal())))
            other = other if other != k else k + 1 if rng.random() < 0.5 else max(k - 1, 1)
            for asked in dict.fromkeys((k, other)):
                task = nova.NewTask(labelled.graph, ids, asked, mixed=True)
                found = nova.discover(model, task, seed=seed)
                every = np.sort(np.concatenate([ids, first.train_ids]))
                yield what | {"asked": asked} | judge(labelled, found, first, every, ids, is_new)


def judge(
    labelled: LabelledGraph,
    found: nova.Model,
    first: Any,
    every: np.ndarray,
    ids: np.ndarray,
    is_new: np.ndarray,
) -> dict[str, Any]:
    """Evidence and truth of one discovery; the run has the nodes of the task only."""
    label_ids = np.full(labelled.graph.num_nodes, -1)
    label_ids[first.train_ids] = first.train_y
    run = DiscoveryRun(
        "", found, labelled.graph.subgraph(every), label_ids=label_ids[every],
        label_names=first.class_names,
    )  # fmt: skip
    z, p = found.embed_and_predict(labelled.graph)  # the nodes are embedded in the whole graph
    run.__dict__["outputs"] = z[every], p[every]
    infos, scores, o = run.classes, run.held_out_scores, len(first.class_names)
    assert scores is not None
    group, sure, y = p[ids].argmax(axis=1), p[ids].max(axis=1), labelled.y[ids]
    groupings, stage = found_in(found.stages), len(found.classes) - o
    rng, classes = np.random.default_rng(0), []
    for row, (info, evidence) in enumerate(zip(infos, class_evidence(infos), strict=True)):
        mine = np.flatnonzero(group == row)
        if row < o or len(mine) < MIN_JUDGED:
            continue
        counts = np.bincount(y[mine])
        right = y[mine] == counts.argmax()
        some = rng.permutation(len(mine))[:MAX_NODES]
        found_times, times = groupings.get(info.id, (0, 0))
        others = {
            "two": info.two, "cohesion": info.cohesion, "own_edges": info.own_edges,
            "same_as": info.same_as_probability, "groupings": found_times / max(times, 1),
            "alone": stage == 1, "num_found": stage, "size": len(mine),
            "labelled": info.labelled,
        }  # fmt: skip
        classes.append(
            {"evidence": evidence, "others": others, "purity": float(right.mean()),
             "p": sure[mine][some].round(5).tolist(), "right": right[some].astype(int).tolist()}
        )  # fmt: skip
    known, right = ~is_new, [0, 0]
    row_of = {labelled.class_names.index(name): row for row, name in enumerate(first.class_names)}
    truth = np.array([row_of.get(int(c), -1) for c in y])
    right = [float((group == truth)[known].mean()), float((group >= o)[known].mean())]
    landed = np.array(scores.landed)
    return {
        "classes": classes,
        "known_right": right[0], "known_called_new": right[1],
        "held_right": scores.num_right / landed.sum(), "held_new": landed[o:].sum() / landed.sum(),
    }  # fmt: skip


def read(rows: Path) -> list[dict[str, Any]]:
    content = rows.read_bytes()
    text = gzip.decompress(content) if rows.suffix == ".gz" else content
    return [json.loads(line) for line in text.splitlines()]


@dataclass(frozen=True, eq=False)
class Table:
    """Cases (classes or nodes) with their features; graphs have the same total weight."""

    names: tuple[str, ...]
    x: np.ndarray  # (n, features)
    y: np.ndarray  # (n,) what is predicted, 0 or 1
    graph: np.ndarray  # (n,) name of the graph
    weight: np.ndarray  # (n,)

    def fit(
        self, without: str | None = None
    ) -> tuple[dict[str, tuple[float, float, float]], float]:
        """{feature: (mean, spread, weight)} and the constant, learned without a graph."""
        here = self.graph != without
        x, y, weight = self.x[here], self.y[here], self.weight[here] / self.weight[here].sum()
        mean, spread = np.nanmean(x, axis=0), np.maximum(np.nanstd(x, axis=0), 1e-6)
        scaled = np.nan_to_num(np.clip((x - mean) / spread, -CLIP, CLIP))
        b = fit_weights(scaled, y, weight)
        each = zip(mean.tolist(), spread.tolist(), b[1:].tolist(), strict=True)
        return dict(zip(self.names, each, strict=True)), float(b[0])

    def predict(self, weights: dict[str, tuple[float, float, float]], bias: float) -> np.ndarray:
        """(n,) probabilities."""
        total = np.full(len(self.x), bias)
        for column, name in zip(self.x.T, self.names, strict=True):
            mean, spread, weight = weights[name]
            total += weight * np.nan_to_num(np.clip((column - mean) / spread, -CLIP, CLIP))
        return np.asarray(expit(total))

    def judge(self) -> np.ndarray:
        """(n,) probabilities of each case by weights learned without its graph."""
        p = np.zeros(len(self.x))
        for graph in np.unique(self.graph):
            p[self.graph == graph] = self.predict(*self.fit(graph))[self.graph == graph]
        return p


def class_table(made: list[dict[str, Any]]) -> tuple[Table, np.ndarray]:
    """Every discovered class, whether it is one class, and its purity."""
    cases = [(row, c) for row in made for c in row["classes"]]
    purity = np.array([c["purity"] for _, c in cases])
    names = tuple(cases[0][1]["evidence"])
    x = np.array([[c["evidence"][name] for name in names] for _, c in cases], dtype=float)
    graph = np.array([row["graph"] for row, _ in cases])
    return Table(names, x, purity >= PURE, graph, weigh(graph, np.ones(len(graph)))), purity


def node_table(made: list[dict[str, Any]]) -> tuple[Table, np.ndarray, np.ndarray]:
    """Some nodes of every class, whether each is of its majority, its p, and its run."""
    classes, _ = class_table(made)
    names = tuple(name for name in classes.names if name != "confidence")
    x, y, graph, run, weight = [], [], [], [], []
    of_class = iter(classes.x[:, [classes.names.index(name) for name in names]])
    for number, row in enumerate(made):
        for c in row["classes"]:
            n, evidence = len(c["p"]), next(of_class)
            p = np.clip(np.array(c["p"]), FLOOR, 1 - FLOOR)
            x.append(np.column_stack([logit(p), np.tile(evidence, (n, 1))]))
            y += c["right"]
            graph += [row["graph"]] * n
            run += [number] * n
            weight += [c["others"]["size"] / n] * n
    runs = np.array(run)
    share = np.array(weight) / np.bincount(runs, weight)[runs]  # runs count alike
    table = Table(("logit", *names), np.concatenate(x), np.array(y), np.array(graph),
                  weigh(np.array(graph), share))  # fmt: skip
    return table, expit(table.x[:, 0]), runs


def weigh(graph: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weights with the same total for every graph."""
    _, number = np.unique(graph, return_inverse=True)
    return np.asarray(weight / np.bincount(number, weight)[number])


def calibration_error(p: np.ndarray, right: np.ndarray, run: np.ndarray, w: np.ndarray) -> float:
    """Expected calibration error in ten bins, the mean over runs."""
    errors = []
    for number in np.unique(run):
        mine = run == number
        bins = np.minimum((p[mine] * 10).astype(int), 9)
        gap = np.bincount(bins, w[mine] * (p[mine] - right[mine]))
        errors.append(np.abs(gap).sum() / w[mine].sum())
    return float(np.mean(errors))


def area(p: np.ndarray, y: np.ndarray) -> float:
    """Area under the ROC curve."""
    rank = np.argsort(np.argsort(p)) + 1
    return float((rank[y].sum() - y.sum() * (y.sum() + 1) / 2) / (y.sum() * (~y).sum()))


def class_lines(made: list[dict[str, Any]]) -> list[str]:
    table, purity = class_table(made)
    p, y = table.judge(), table.y
    level = np.where(p >= MIN_GOOD, 0, np.where(p >= MIN_LOOK, 1, 2))
    lines = [
        "| verdict | classes | at least 80% one class | below 70% | share of all pure classes |",
        "|---|---|---|---|---|",
    ]
    for number, word in enumerate(("Holds up", "Look closer", "Doubtful")):
        here = level == number
        lines.append(
            f"| {word} | {here.sum()} | {100 * y[here].mean():.0f}% | "
            f"{100 * (purity[here] < 0.7).mean():.0f}% | {100 * here[y].mean():.0f}% |"
        )
    return [
        *lines,
        "",
        f"{len(p)} discovered classes of {len(made)} runs on {len(np.unique(table.graph))} graphs, "
        f"{100 * y.mean():.0f}% of them pure. AUC {area(p, y):.3f}, Brier score "
        f"{((p - y) ** 2).mean():.3f}.",
    ]


def node_lines(made: list[dict[str, Any]]) -> list[str]:
    table, before, run = node_table(made)
    after, w = table.judge(), table.weight / table.weight.sum()
    lines = [
        "| probability | by the model: nodes, right | calibrated: nodes, right |",
        "|---|---|---|",
    ]
    for low in np.arange(0.1, 1, 0.1).round(1):
        cells = []
        for p in (before, after):
            here = (p >= low) & (p < low + 0.1 + (low == 0.9))
            right = f"{100 * np.average(table.y[here], weights=w[here]):.0f}%" if here.any() else ""
            cells.append(f"{100 * w[here].sum():.0f}%, {right}")
        lines.append(f"| {100 * low:.0f} to {100 * low + 10:.0f}% | {cells[0]} | {cells[1]} |")
    for name, p in (("By the model", before), ("Calibrated", after)):
        error = calibration_error(p, table.y, run, w)
        bias, brier = 100 * (w @ (p - table.y)), w @ (p - table.y) ** 2
        lines += ["", f"{name}: bias {bias:+.1f} points, ECE {100 * error:.1f} (mean of runs), "
                      f"Brier score {brier:.3f}."]  # fmt: skip
    return lines


def diagram(made: list[dict[str, Any]]) -> str:
    """Reliability diagram as SVG: share of right nodes against their probability."""
    table, before, _ = node_table(made)
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 330" font-family="sans-serif" '
        'font-size="12" role="img"><title>Share of right nodes by probability</title>',
        '<rect width="360" height="330" fill="#fff"/>',
        '<path d="M50 270 350 10" stroke="#999" stroke-dasharray="4 4"/>',
        '<path d="M50 10V270H350" fill="none" stroke="#333"/>',
    ]
    for tick in range(0, 101, 20):
        x, y = 50 + 3 * tick, 270 - 2.6 * tick
        parts.append(f'<text x="{x}" y="286" text-anchor="middle">{tick}%</text>')
        parts.append(f'<text x="44" y="{y + 4:.0f}" text-anchor="end">{tick}%</text>')
    parts.append('<text x="200" y="304" text-anchor="middle">probability</text>')
    lines = (("by the model", before, "#d55e00", 60), ("calibrated", table.judge(), "#0072b2", 200))
    for name, p, color, x in lines:
        bins = np.minimum((p * 10).astype(int), 9)
        full = [b for b in range(10) if table.weight[bins == b].sum() > 0.01 * table.weight.sum()]
        points = [
            (50 + 300 * np.average(p[bins == b], weights=table.weight[bins == b]),
             270 - 260 * np.average(table.y[bins == b], weights=table.weight[bins == b]))
            for b in full
        ]  # fmt: skip
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{color}"/>' for a, b in points]
        parts.append(f'<text x="{x}" y="322" fill="{color}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def known_lines(made: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| graph | runs | labels in discovered classes | known nodes there | mean error |",
        "|---|---|---|---|---|",
    ]
    both = np.array([[row["held_new"], row["known_called_new"]] for row in made])
    graph = np.array([row["graph"] for row in made])
    for name in [*np.unique(graph), None]:
        here = both[graph == name] if name else both
        error = np.abs(here[:, 0] - here[:, 1]).mean()
        cells = (f"{100 * value:.1f}%" for value in (*here.mean(axis=0), error))
        lines.append(f"| {name or '**all**'} | {len(here)} | {' | '.join(cells)} |")
    return lines


def learn(rows: list[Path], path: Path | None) -> str:
    made = [row for each in rows for row in read(each)]
    if path is not None:
        text = path.read_text()
        (one, bias), (nodes, node_bias) = class_table(made)[0].fit(), node_table(made)[0].fit()
        mean, spread, slope = nodes.pop("logit")
        # p enters unscaled: its log-odds are clipped by FLOOR only.
        values = {"ONE_CLASS_BIAS": bias, "NODES_BIAS": node_bias - slope * mean / spread,
                  "SLOPE": slope / spread}  # fmt: skip
        for name, table in (("ONE_CLASS", one), ("NODES", nodes)):
            inside = "".join(
                f'    "{key}": ({", ".join(f"{v:.4g}" for v in value)}),\n'
                for key, value in table.items()
            )
            text = re.sub(rf"^{name}: Weights = {{.*?^}}", f"{name}: Weights = {{\n{inside}}}",
                          text, flags=re.MULTILINE | re.DOTALL)  # fmt: skip
        for name, value in values.items():
            text = re.sub(rf"^{name} = [-.\d]+", f"{name} = {value:.4g}", text, flags=re.MULTILINE)
        path.write_text(text)
    parts = (class_lines(made), node_lines(made), known_lines(made))
    return "\n\n".join("\n".join(lines) for lines in parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["collect", "learn"])
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--graphs", nargs="+", default=["cora", "citeseer", "pubmed", "wordnet"])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 3), metavar=("FIRST", "END"))
    parser.add_argument("--write", type=Path, help="the module to put the weights into")
    parser.add_argument("--page", type=Path, help="page into which the tables are written")
    arguments = parser.parse_args()
    if arguments.what == "collect":
        collect(arguments.graphs, arguments.rows[0], range(*arguments.seeds))
        return
    text = learn(arguments.rows, arguments.write)
    print(text)
    if arguments.page is not None:
        into_page.put(arguments.page, "trust", text)
        made = [row for each in arguments.rows for row in read(each)]
        (arguments.page.parent / "images" / "calibration.svg").write_text(diagram(made))


if __name__ == "__main__":
    main()
