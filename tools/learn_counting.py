"""Learn the weights of the features by which the number of new classes is estimated.

    python tools/learn_counting.py cells|collect|learn|size|judge ROWS --cells CELLS

cells    makes tasks from class subsets of graphs, and appends one JSON line per task to CELLS: the
         numbers of labelled, unlabelled and new nodes in each cell.
collect  computes the features of the same tasks, one line per task in ROWS. The odds of cells to be
         new, which some features use, are learned on CELLS of all other graphs.
learn    fits the odds to CELLS and the weights to ROWS, and prints the evaluation: odds, weights,
         certainty and threshold for a graph are learned without that graph. The number of classes
         is evaluated on tasks with a seed from --fresh on, which are not used for learning.
         --write src/nodenova/open_world/count_weights.py writes the weights learned on all of ROWS,
         --page docs/open-world.md and --log docs/experiments/open-world.md write the means and the
         whole tables into these pages.

size     evaluates weights of the number by size beside the weights that are there.
judge    evaluates the weights that are there; ROWS should have draws (--seeds) that chose nothing.

Existing lines are not computed again. --graphs takes names, or paths of .npz files
(tools/make_further.py).

A draw takes the same share of each class of a graph. Of o known classes 20 to 50 nodes each, or 10
to 30%, are labelled. Its tasks have k new classes and

natural  all other nodes of the known classes and all of the new ones, so that the share of new ones
         follows from the number of new classes (many: up to 20 new classes);
drawn    500 to 2,000 nodes with uneven class sizes, of which 30, 50, 70 or 90% are known;
nothing  only nodes of known classes;
strict   only nodes of new classes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import counting_fit
import into_page
import numpy as np
import torch

import nodenova as nova
from nodenova import fitting
from nodenova.data.labels import LabelledGraph, OldTask
from nodenova.encoders.prism.calibration import TEMPERATURE
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.encoders.prism.lda import LDASettings
from nodenova.io.load import load_graph
from nodenova.nn.encode_cache import encode
from nodenova.nn.multirank import MultiRank
from nodenova.nn.seeding import repeatable
from nodenova.nn.statistics import ClassStatistics
from nodenova.open_world import novelty
from nodenova.open_world.count import collect_evidence
from nodenova.open_world.count_weights import ODDS
from nodenova.open_world.novelty import CellNovelty, Partition, cell_novelty

# One per task.
KINDS = ("natural", "natural", "natural", "many", "many", "drawn", "nothing", "strict", "nothing")
SHARES = (0.3, 0.5, 0.7, 0.9)  # of known nodes, in a drawn task
MIN_CLASS = 60  # least nodes of a class
MAX_OLD, MAX_NEW_CLASSES = 10, 20
FEW = 8  # most new classes of most tasks
MIN_NEW = 20  # least nodes of a new class, if it has as many


def load(name: str) -> LabelledGraph:
    return load_graph(name) if name.endswith(".npz") else nova.load_dataset(name)


def draw_sizes(sizes: np.ndarray, total: int, rng: np.random.Generator, least: int) -> np.ndarray:
    """Number of nodes of each class among `total`, unevenly drawn."""
    if not len(sizes):
        return np.zeros(0, dtype=int)
    weight = sizes**0.7 * np.exp(rng.choice([0.5, 1.0]) * rng.standard_normal(len(sizes)))
    return np.minimum(np.maximum((total * weight / weight.sum()).astype(int), least), sizes)


def tasks(
    labelled: LabelledGraph, name: str, seed: int
) -> Iterator[tuple[dict[str, Any], OldTask, np.ndarray, np.ndarray]]:
    """Yield the tasks of one draw of known classes: (description, phase 1, ids, which are new)."""
    rng = np.random.default_rng([seed, *Path(name).stem.encode()])
    size = np.bincount(labelled.y[labelled.y >= 0], minlength=labelled.num_classes)
    large = rng.permutation(np.flatnonzero(size >= MIN_CLASS))
    o = int(rng.integers(2, min(MAX_OLD, 1 + len(large) // 2) + 1))
    old, others = large[:o], large[o:]
    part = min(1.0, 1000 * 4 ** rng.random() / (size[large].mean() * (o + 4)))
    size = np.maximum(np.round(part * size), np.minimum(size, MIN_NEW)).astype(int)
    members = {int(c): rng.permutation(np.flatnonzero(labelled.y == c))[: size[c]] for c in large}
    labels, label_share = int(rng.integers(20, 51)), rng.uniform(0.1, 0.3)
    by_share = rng.random() < 0.5

    def num_labels(c: int) -> int:
        wanted = max(int(label_share * size[c]), 5) if by_share else labels
        return int(min(wanted, size[c] // 2))

    train = {int(c): members[int(c)][: num_labels(int(c))] for c in old}
    rest = {c: members[c][len(nodes) :] for c, nodes in train.items()}
    ids = np.concatenate([train[int(c)] for c in old])
    y = np.repeat(np.arange(o), [len(train[int(c)]) for c in old])
    order = np.argsort(ids)
    none = np.zeros(0, dtype=np.int64)
    names = tuple(labelled.class_names[c] for c in old)
    first = OldTask(labelled.graph, ids[order], y[order], none, none, names)
    for number, kind in enumerate(KINDS):
        most = min(MAX_NEW_CLASSES, len(others))
        most = most if kind == "many" or rng.random() < 0.2 else min(most, FEW)
        k = 0 if kind == "nothing" else int(rng.integers(1, most + 1))
        new = rng.permutation(others)[:k]
        parts = [rest[int(c)] for c in old] if kind != "strict" else []
        found = [members[int(c)] for c in new]
        if kind == "drawn":
            share, total = rng.choice(SHARES), int(500 * 4 ** rng.random())
            n_old = draw_sizes(np.array([*map(len, parts)]), int(total * share), rng, 0)
            n_new = draw_sizes(size[new], int(total * (1 - share)), rng, MIN_NEW)
            parts = [nodes[:n] for nodes, n in zip(parts, n_old, strict=True)]
            found = [nodes[:n] for nodes, n in zip(found, n_new, strict=True)]
        unlabelled = np.concatenate([*parts, *found])
        is_new = np.repeat([False, True], [sum(map(len, parts)), sum(map(len, found))])
        order = np.argsort(unlabelled)
        what = {
            "graph": Path(name).stem,
            "seed": seed,
            "task": number,
            "kind": kind,
            "share": round(float((~is_new).mean()), 4),
            "o": o,
            "k": k,
            "labels": len(ids),
            "n": len(order),
        }
        yield what, first, unlabelled[order], is_new[order]


def collect(
    graphs: list[str], rows: Path, seeds: range, measure: Callable[[Task], dict[str, Any]]
) -> None:
    """Append one line for each task that has none yet."""
    existing = counting_fit.read(rows) if rows.exists() else []
    done = {(row["graph"], row["seed"], row["task"]) for row in existing}
    for seed in seeds:
        for name in graphs:
            stem = Path(name).stem
            missing = [i for i in range(len(KINDS)) if (stem, seed, i) not in done]
            if missing:
                with rows.open("a") as file:
                    for task in fitted_tasks(load(name), name, seed, missing):
                        file.write(json.dumps(task.what | measure(task)) + "\n")
                        file.flush()
                print(seed, name, flush=True)


@dataclass(frozen=True, eq=False)
class Task:
    """Description of a task, model of phase 1, z of the unlabelled nodes, which are new."""

    what: dict[str, Any]
    model: nova.Model
    z: torch.Tensor
    is_new: np.ndarray

    @property
    def mixed(self) -> bool:
        return bool(self.what["kind"] != "strict")

    @property
    def known(self) -> tuple[MultiRank, ClassStatistics, Partition, LDASettings]:
        model = self.model
        assert model.cells is not None
        multirank = model.frozen_encoder().spec.multirank
        return multirank, model.memory.classes, model.cells, model.lda


_ENCODERS: dict[str, PrismEncoder] = {}  # per graph, before whitening


def fitted_tasks(
    labelled: LabelledGraph, name: str, seed: int, numbers: list[int]
) -> Iterator[Task]:
    """Yield the tasks with some numbers, with their model of phase 1."""
    if name not in _ENCODERS:
        _ENCODERS[name] = PrismEncoder.fit(labelled.graph, torch.device("cpu"))
    model = None
    for what, first, unlabelled, is_new in tasks(labelled, name, seed):
        if what["task"] not in numbers:
            continue
        if model is None:
            # The views of a graph are the same in every task, and counting does not use the
            # temperature.
            with (
                patch.object(PrismEncoder, "fit", lambda *_: _ENCODERS[name]),
                patch.object(fitting, "calibrate_temperature", lambda *_: TEMPERATURE),
            ):
                model = nova.fit(first, seed=seed)
            z = encode(model.frozen_encoder(), labelled.graph)
        yield Task(what, model, z[torch.from_numpy(unlabelled)], is_new)


def cells_of_task(task: Task) -> dict[str, Any]:
    if not (task.mixed and task.what["k"]):
        return {"cells": []}
    multirank, known, cells, lda = task.known
    each = cell_novelty(multirank, known, cells, lda, task.z)
    return {"cells": [cells_of(one, task.is_new) for one in each]}


def evidence_of(odds: Mapping[str, Sequence[float]] | None, task: Task) -> dict[str, Any]:
    multirank, known, cells, lda = task.known
    mine = ODDS if odds is None else tuple(odds[task.what["graph"]])
    with (
        patch.object(novelty, "ODDS", mine),
        repeatable(task.what["seed"], f"count-{task.what['task']}"),
    ):
        evidence = collect_evidence(multirank, known, cells, task.z, task.mixed, lda)
    return {
        "number": {key: rounded(value) for key, value in evidence.number.items()},
        "novelty": {key: rounded(value) for key, value in evidence.novelty.items()},
        "p_value": evidence.p_value,
        "novel_share": evidence.share,
    }


def cells_of(one: CellNovelty, is_new: np.ndarray) -> dict[str, Any]:
    """Features, nodes and new nodes of the cells that have nodes."""
    full = one.size > 0
    new = np.bincount(one.cell, is_new, minlength=len(one.size))
    return {
        "features": rounded(one.features()[full]),
        "size": one.size[full].tolist(),
        "new": new[full].tolist(),
    }


def rounded(values: np.ndarray) -> Any:
    return np.round(values, 5).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["cells", "collect", "learn", "size", "judge"])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--cells", type=Path, help="without it, the odds stay as they are")
    parser.add_argument("--graphs", nargs="+", default=["cora", "citeseer", "pubmed", "wordnet"])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 6), metavar=("FIRST", "END"))
    parser.add_argument(
        "--fresh", type=int, default=8, help="seed from which on tasks are for evaluation"
    )
    parser.add_argument("--write", type=Path, help="path of the weights to write")
    parser.add_argument("--page", type=Path, help="page into which the means are written")
    parser.add_argument("--log", type=Path, help="page into which all tables are written")
    arguments = parser.parse_args()
    seeds = range(*arguments.seeds)
    if arguments.what == "cells":
        collect(arguments.graphs, arguments.cells, seeds, cells_of_task)
    elif arguments.what == "collect":
        odds = None
        if arguments.cells is not None:
            odds = counting_fit.odds_without_each(counting_fit.read(arguments.cells))
        collect(arguments.graphs, arguments.rows, seeds, partial(evidence_of, odds))
    else:
        rows, part = arguments.rows, "counting"
        if arguments.what == "learn":
            report = counting_fit.learn(rows, arguments.cells, arguments.write, arguments.fresh)
        elif arguments.what == "size":
            report, part = counting_fit.judge(rows, counting_fit.SIZE_WEIGHTS), "size"
        else:
            report = counting_fit.judge(rows)
        print(report.whole)
        for page, text in ((arguments.page, report.means), (arguments.log, report.whole)):
            if page is not None:
                into_page.put(page, part, text)


if __name__ == "__main__":
    main()
