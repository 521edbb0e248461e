"""Compare settings without using new classes or test nodes.

Old classes are hidden, discovered, and graded on validation nodes:

    python tools/choose.py --data-root DIR --datasets cora,citeseer,mine.npz \\
        defaults lam=1.0 fit.hidden=32,lam=0.4 fit.head=cosine

Only labels of old training and validation nodes are used. Half of the latter stop phase 1, the
others are the exam. Settings that begin with "fit." are for phase 1, the others for the method.
Half of the classes are old in a graph that is not the paper's.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import nodenova as nova
from nodenova.bench.render import markdown
from nodenova.data.splits import with_split
from nodenova.evaluation.scores import mean_std, spread_text
from nodenova.fitting import settings_from_text
from nodenova.io.dataset_table import DATASETS
from nodenova.methods import get_method


def without_new_classes(labelled: nova.LabelledGraph, num_old: int) -> nova.LabelledGraph:
    """Return the graph with labels of old nodes alone; half of the validation nodes test."""
    assert labelled.train is not None
    assert labelled.val is not None
    known = (labelled.y >= 0) & (labelled.y < num_old) & (labelled.train | labelled.val)
    y = np.where(known, labelled.y, -1)
    shuffled = np.random.default_rng(0).permutation(np.flatnonzero(labelled.val & known))
    val = np.zeros_like(labelled.val)
    val[shuffled[::2]] = True
    test = np.zeros_like(labelled.val)
    test[shuffled[1::2]] = True
    return nova.LabelledGraph(
        labelled.graph, y, labelled.class_names[:num_old], labelled.train & known, val, test
    )


def parse_settings(text: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return settings of phase 1 and of the method; "defaults" means none."""
    pairs = [] if text == "defaults" else [pair.split("=") for pair in text.split(",")]
    for_fit = {name.removeprefix("fit."): value for name, value in pairs if name.startswith("fit.")}
    for_method = {name: value for name, value in pairs if not name.startswith("fit.")}
    return settings_from_text(for_fit), for_method


def load(name: str, data_root: str | None) -> nova.LabelledGraph:
    """Load a dataset or a file without its new classes."""
    if name in DATASETS:
        return without_new_classes(nova.load_dataset(name, data_root), DATASETS[name].num_old)
    labelled = with_split(nova.load_graph(name))
    return without_new_classes(labelled, (labelled.num_classes + 1) // 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "settings",
        nargs="+",
        help="name=value,… of the method; fit.name=value of phase 1; or: defaults",
    )
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--datasets", default="cora,citeseer")
    parser.add_argument("--encoder", default="gcn")
    parser.add_argument("--method", default="sword")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument(
        "--splits",
        type=int,
        default=6,
        help="maximum number of ways of hiding half of the old classes",
    )
    arguments = parser.parse_args()
    lines = []
    graphs = {name: load(name, arguments.data_root) for name in arguments.datasets.split(",")}
    for text in arguments.settings:
        for_fit, settings = parse_settings(text)
        line = [text]
        for labelled in graphs.values():
            scores = []
            ways = list(combinations(range(labelled.num_classes), labelled.num_classes // 2))
            for old in ways[:: -(-len(ways) // arguments.splits)]:
                for seed in range(arguments.seeds):
                    first, new, exam = nova.split(labelled, old)
                    model = nova.fit(first, arguments.encoder, seed=seed, **for_fit)
                    method = get_method(arguments.method, settings)
                    found = nova.discover(model, new, method, seed=seed)
                    scores.append(nova.grade(found, exam).scores("block"))
            for key in ("all", "h"):
                line.append(spread_text(mean_std([score[key] for score in scores])))
            line.append(str(len(scores)))
        lines.append(line)
        heads = [f"{Path(name).stem} {key}" for name in graphs for key in ("All", "H", "n")]
        print(markdown(["settings", *heads], lines), flush=True)


if __name__ == "__main__":
    main()
