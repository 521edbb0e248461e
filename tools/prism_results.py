"""Run Prism on several graphs and class splits.

    python tools/prism_results.py --data-root DIR
    python tools/prism_results.py --further DIR

The first runs the seven graphs (results/prism.jsonl.gz), the second those of make_further.py, with
half of their classes old (results/further.jsonl.gz).

For each graph: the published split with the first classes old, and ten random choices of old
classes with redrawn training nodes, the unlabelled new nodes drawn evenly and as they come. A row
also has the ceiling (the same classifier with the unlabelled nodes grouped by their true classes)
and three earlier forms on the same task (earlier_forms.py). The data root holds Planetoid/ and
graphs/*.npz.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import earlier_forms
import numpy as np
import torch

import nodenova as nova
from nodenova.data.splits import resample_training_nodes
from nodenova.evaluation.metrics import expected_calibration_error

RESULTS = Path(__file__).resolve().parent.parent / "results"
GRAPHS = {"cora": 4, "citeseer": 4, "pubmed": 2, "acm": 2, "uai2010": 10, "facebook": 2, "actor": 3}


@dataclass(frozen=True)
class Ceiling(nova.Prism):
    """Prism with the true groups of the unlabelled nodes: an upper bound, not a method."""

    groupings: int = 0  # there is one true grouping
    truth: tuple[int, ...] = ()

    def group(self, u: torch.Tensor, num_new: int) -> torch.Tensor:
        return torch.tensor(self.truth)


def seven(root: Path) -> Iterator[tuple[str, nova.LabelledGraph, int]]:
    """Yield name, graph and number of old classes."""
    for name, num_old in GRAPHS.items():
        if name in ("cora", "citeseer", "pubmed"):
            yield name, nova.load_dataset(name, root), num_old
        else:
            yield name, nova.load_graph(root / f"graphs/{name}.npz"), num_old


def further(folder: Path) -> Iterator[tuple[str, nova.LabelledGraph, int]]:
    for path in sorted(folder.glob("*.npz")):
        labelled = nova.load_graph(path)
        yield path.stem, labelled, -(-labelled.num_classes // 2)


def measure(
    labelled: nova.LabelledGraph, old: list[int], what: Mapping[str, object]
) -> dict[str, object]:
    first, new, exam = nova.split(labelled, old)
    start = time.perf_counter()
    fitted = nova.fit(first)
    model = nova.discover(fitted, new)
    seconds = time.perf_counter() - start
    others = [c for c in range(labelled.num_classes) if c not in old]
    truth = tuple(others.index(c) for c in labelled.y[new.ids])
    scores = nova.grade(model, exam).scores("block")
    ceiling = nova.grade(nova.discover(fitted, new, Ceiling(truth=truth)), exam).scores("block")
    matched = nova.grade(model, exam).matched("block")
    probability = model.predict_proba(exam.graph)[exam.ids]
    ece = expected_calibration_error(
        probability.max(axis=1), matched[probability.argmax(axis=1)] == exam.y
    )
    return {
        **what,
        "old": old,
        "scores": scores,
        "ceiling": ceiling,
        "earlier": earlier_forms.scores(first, new, exam),
        "ece": ece,
        "seconds": seconds,
        "data": labelled.fingerprint(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--data-root", type=Path)
    where.add_argument("--further", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    arguments = parser.parse_args()
    graphs = seven(arguments.data_root) if arguments.data_root else further(arguments.further)
    rows = []
    for name, labelled, num_old in graphs:
        rows.append(measure(labelled, list(range(num_old)), {"graph": name, "split": "published"}))
        for seed in range(arguments.splits):
            drawn = np.random.default_rng([seed, 42]).permutation(labelled.num_classes)
            old = sorted(drawn[:num_old].tolist())
            for balanced in (True, False):
                split = "balanced" if balanced else "as they come"
                what = {"graph": name, "split": split, "seed": seed}
                drawn_anew = resample_training_nodes(labelled, old, seed=seed, balanced=balanced)
                rows.append(measure(drawn_anew, old, what))
        reached = [r["scores"]["all"] for r in rows if r["graph"] == name]  # type: ignore[index]
        print(name, [round(float(np.mean(reached)), 1)], flush=True)
    if not rows:
        parser.error(f"{arguments.further} has no graphs: make them with tools/make_further.py")
    path = RESULTS / ("prism.jsonl.gz" if arguments.data_root else "further.jsonl.gz")
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode() + b"\n", mtime=0))


if __name__ == "__main__":
    main()
