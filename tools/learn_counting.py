"""Learn what the evidence for a number of new classes is worth.

    python tools/learn_counting.py collect|learn ROWS

collect  makes tasks from class subsets of graphs, gathers the evidence in each, and appends a JSON
         line a task to ROWS. What is there already is not made again. --graphs: names, or paths of
         .npz files (tools/make_further.py).
learn    fits the weights to ROWS, each graph judged by weights learnt without it, and prints how
         that went. --write src/nodenova/prism/weights.py writes those learnt on all graphs,
         --page docs/open-world.md and --log docs/experiments/open-world.md put the means and all
         of it into these pages.

         --odds learns the odds of cells as well; some of the evidence is made of them, so it has to
         be collected again afterwards.

A task: o known classes with 20 to 50 labelled nodes each, k new ones, 500 to 2,000 unlabelled
nodes (fewer where classes are small), class sizes uneven, 30, 50, 70 or 90 % of them known; all of
them (nothing new); none of them (strict).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import counting_fit
import counting_report
import into_page
import numpy as np
import torch

import nodenova as nova
from nodenova import fitting
from nodenova.data.labels import LabelledGraph, OldTask
from nodenova.io.load import load_graph
from nodenova.nn.passes import encode
from nodenova.nn.seeding import repeatable
from nodenova.prism.calibration import TEMPERATURE
from nodenova.prism.counting import gather
from nodenova.prism.coverage import Coverage, coverages
from nodenova.prism.encoder import PrismEncoder

SHARES = (0.3, 0.5, 0.7, 0.9, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0)  # of known nodes, a task each
MIN_CLASS = 60  # nodes of a class that takes part
MAX_OLD, MAX_NEW_CLASSES = 8, 8
MIN_NEW = 20  # nodes of a new class, where it has as many


def load(name: str) -> LabelledGraph:
    return load_graph(name) if name.endswith(".npz") else nova.load_dataset(name)


def drawn(sizes: np.ndarray, total: int, rng: np.random.Generator, least: int) -> np.ndarray:
    """How many nodes of each class there are among `total`, unevenly."""
    if not len(sizes):
        return np.zeros(0, dtype=int)
    weight = sizes**0.7 * np.exp(rng.choice([0.5, 1.0]) * rng.standard_normal(len(sizes)))
    return np.minimum(np.maximum((total * weight / weight.sum()).astype(int), least), sizes)


def tasks(
    labelled: LabelledGraph, name: str, seed: int
) -> Iterator[tuple[dict[str, Any], OldTask, np.ndarray, np.ndarray]]:
    """Tasks with one draw of known classes.

    Each: what it is, phase 1, its unlabelled nodes, which of them are new.
    """
    rng = np.random.default_rng([seed, *Path(name).stem.encode()])
    size = np.bincount(labelled.y[labelled.y >= 0], minlength=labelled.num_classes)
    large = rng.permutation(np.flatnonzero(size >= MIN_CLASS))
    o = int(rng.integers(2, min(MAX_OLD, len(large) - 1) + 1))
    old, others = large[:o], large[o:]
    members = {int(c): rng.permutation(np.flatnonzero(labelled.y == c)) for c in large}
    labels = int(rng.integers(20, 51))
    train = {c: nodes[: min(labels, len(nodes) // 2)] for c, nodes in members.items()}
    ids = np.concatenate([train[int(c)] for c in old])
    y = np.repeat(np.arange(o), [len(train[int(c)]) for c in old])
    order = np.argsort(ids)
    none = np.zeros(0, dtype=np.int64)
    names = tuple(labelled.class_names[c] for c in old)
    first = OldTask(labelled.graph, ids[order], y[order], none, none, names)
    for number, share in enumerate(SHARES):
        k = 0 if share == 1.0 else int(rng.integers(1, min(MAX_NEW_CLASSES, len(others)) + 1))
        new = rng.permutation(others)[:k]
        total = int(500 * 4 ** rng.random())
        free_old = np.array([size[c] - len(train[int(c)]) for c in old])
        n_old = drawn(free_old, int(total * share), rng, 0) if share else np.zeros(o, dtype=int)
        n_new = drawn(size[new], int(total * (1 - share)), rng, MIN_NEW)
        parts = [members[int(c)][len(train[int(c)]) :][:n] for c, n in zip(old, n_old, strict=True)]
        found = [members[int(c)][:n] for c, n in zip(new, n_new, strict=True)]
        unlabelled = np.concatenate([*parts, *found])
        is_new = np.repeat([False, True], [sum(map(len, parts)), sum(map(len, found))])
        order = np.argsort(unlabelled)
        what = {
            "graph": Path(name).stem,
            "seed": seed,
            "task": number,
            "share": share,
            "o": o,
            "k": k,
            "labels": labels,
            "n": len(order),
        }
        yield what, first, unlabelled[order], is_new[order]


def collect(graphs: list[str], rows: Path, seeds: range) -> None:
    made = counting_fit.read(rows) if rows.exists() else []
    done = {(row["graph"], row["seed"], row["task"]) for row in made}
    for seed in seeds:
        for name in graphs:
            stem = Path(name).stem
            wanted = [i for i in range(len(SHARES)) if (stem, seed, i) not in done]
            if wanted:
                with rows.open("a") as file:
                    for line in evidence(load(name), name, seed, wanted):
                        file.write(json.dumps(line) + "\n")
                        file.flush()
                print(seed, name, flush=True)


_ENCODERS: dict[str, PrismEncoder] = {}  # of each graph, before whitening


def evidence(
    labelled: LabelledGraph, name: str, seed: int, wanted: list[int]
) -> Iterator[dict[str, Any]]:
    if name not in _ENCODERS:
        _ENCODERS[name] = PrismEncoder.fit(labelled.graph, torch.device("cpu"))
    model = None
    for what, first, unlabelled, is_new in tasks(labelled, name, seed):
        if what["task"] not in wanted:
            continue
        if model is None:
            # The views of a graph are the same in every task, and the temperature takes no part in
            # counting.
            with (
                patch.object(PrismEncoder, "fit", lambda *_: _ENCODERS[name]),
                patch.object(fitting, "calibrate_temperature", lambda *_: TEMPERATURE),
            ):
                model = nova.fit(first, seed=seed)
            z = encode(model.frozen_encoder(), labelled.graph)
        multirank, lda = model.frozen_encoder().spec.multirank, model.lda
        known, cells = model.memory.classes, model.cells
        assert cells is not None
        z_u, mixed = z[torch.from_numpy(unlabelled)], what["share"] > 0
        with repeatable(seed, f"count-{what['task']}"):
            found = gather(multirank, known, cells, z_u, mixed, lda)
        line = what | {
            "by_number": {key: rounded(value) for key, value in found.by_number.items()},
            "of_new": {key: rounded(value) for key, value in found.of_new.items()},
            "p_value": found.p_value,
            "share_said": found.share,
        }
        if mixed:
            each = coverages(multirank, known, cells, lda, z_u)
            line["cells"] = [cells_of(one, is_new) for one in each]
        yield line


def cells_of(one: Coverage, is_new: np.ndarray) -> dict[str, Any]:
    """The cells of a celling that have nodes: features, nodes, new ones among them."""
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
    parser.add_argument("what", choices=["collect", "learn"])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--graphs", nargs="+", default=["cora", "citeseer", "pubmed", "wordnet"])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 6), metavar=("FIRST", "END"))
    parser.add_argument("--write", type=Path, help="where to write the weights")
    parser.add_argument("--odds", action="store_true", help="learn those of cells too")
    parser.add_argument("--page", type=Path, help="a page to put the means into")
    parser.add_argument("--log", type=Path, help="a page to put all tables into")
    arguments = parser.parse_args()
    if arguments.what == "collect":
        collect(arguments.graphs, arguments.rows, range(*arguments.seeds))
    else:
        report = counting_report.learn(arguments.rows, arguments.write, arguments.odds)
        print(report.whole)
        for page, text in ((arguments.page, report.means), (arguments.log, report.whole)):
            if page is not None:
                into_page.put(page, "counting", text)


if __name__ == "__main__":
    main()
