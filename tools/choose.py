"""Compare settings without new classes and without test nodes: hide old classes, discover them, grade on validation nodes.

    python tools/choose.py --data-root DIR --datasets cora,citeseer lam=0.4 lam=1.0 hidden=32,lam=0.4

Only labels of old training and validation nodes are used. Half of the latter stop phase 1, the others are the exam.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np

import nodenova as nova
from nodenova.data.datasets import DATASETS
from nodenova.experiments.results import mean_std
from nodenova.methods import make_method
from nodenova.report.tables import cell, markdown


def without_new_classes(labelled: nova.Labelled, num_old: int) -> nova.Labelled:
    """The graph with nothing known but old training and validation nodes; every other validation node becomes the test."""
    assert labelled.train is not None
    assert labelled.val is not None
    known = (labelled.y >= 0) & (labelled.y < num_old) & (labelled.train | labelled.val)
    y = np.where(known, labelled.y, -1)
    shuffled = np.random.default_rng(0).permutation(np.flatnonzero(labelled.val & known))
    val, test = np.zeros_like(labelled.val), np.zeros_like(labelled.val)
    val[shuffled[::2]], test[shuffled[1::2]] = True, True
    return nova.Labelled(labelled.graph, y, labelled.class_names[:num_old], labelled.train & known, val, test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="+", help="name=value,… of SWORD; hidden=N goes to fit")
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--datasets", default="cora,citeseer")
    parser.add_argument("--encoder", default="gcn")
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    lines = []
    for text in arguments.settings:
        settings = dict(pair.split("=") for pair in text.split(","))
        hidden = int(settings.pop("hidden", 16))
        line = [text]
        for dataset in arguments.datasets.split(","):
            labelled = without_new_classes(nova.load_dataset(dataset, arguments.data_root), DATASETS[dataset].num_old)
            scores = []
            for old in combinations(range(labelled.num_classes), labelled.num_classes // 2):
                for seed in range(arguments.seeds):
                    first, new, exam = nova.split(labelled, old)
                    model = nova.fit(first, arguments.encoder, seed=seed, hidden=hidden)
                    found = nova.discover(model, new, make_method("sword", settings), seed=seed)
                    scores.append(nova.grade(found, exam).scores("block"))
            line += [cell(mean_std([score[key] for score in scores])) for key in ("all", "h")] + [str(len(scores))]
        lines.append(line)
        print(
            markdown(["settings", *[f"{d} {k}" for d in arguments.datasets.split(",") for k in ("All", "H", "n")]], lines)
        )


if __name__ == "__main__":
    main()
