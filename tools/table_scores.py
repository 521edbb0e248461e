"""Compare All and H of two commits on graphs that are written as tables.

    python tools/table_scores.py BEFORE AFTER --data-root DIR [--splits 5] [--graphs cora ...]

BEFORE and AFTER are checkouts. Each graph becomes a table of nodes with the ids n0, n1, ..., the
labels of phase 1 and its features (the words of a node as one text, other features as columns of
numbers), and a table of edges. Old classes and training nodes are chosen as paired_scores.py does.
Both commits read the tables and discover with the number of new classes given: strict (the new
nodes are named) and mixed. Prints All and H (block matching, mean of the seeds) of each commit on
the test nodes, and the mean of their paired difference with its standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

OLD = {"cora": 4, "citeseer": 4, "acm": 2, "uai2010": 10, "facebook": 2, "actor": 3, "wordnet": 7}
CHILD = """
import json, sys, time, warnings
from dataclasses import replace
from pathlib import Path
warnings.simplefilter("ignore")
import numpy as np
import pandas as pd
import nodenova as nova
from nodenova.data.splits import resample_training_nodes
name, num_old, splits, root = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
seeds = int(sys.argv[5])
if name in ("citeseer", "wordnet"):
    whole = nova.load_dataset(name)
elif name == "cora":
    whole = nova.load_dataset(name, root)
else:
    whole = nova.load_graph(root / f"graphs/{name}.npz")
x, n = whole.graph.x, whole.graph.num_nodes
ids = np.array([f"n{i}" for i in range(n)])
if isinstance(x, np.ndarray):
    features = {f"f{j}": x[:, j] for j in range(x.shape[1])}
else:
    rows = zip(x.indptr, x.indptr[1:])
    features = {"text": [" ".join(f"word{j}" for j in x.indices[a:b]) for a, b in rows]}
once = whole.graph.edge_index[:, whole.graph.edge_index[0] < whole.graph.edge_index[1]]
edges = pd.DataFrame({"source": ids[once[0]], "target": ids[once[1]]})
options = {} if isinstance(x, np.ndarray) else {"text_columns": ["text"]}
for seed in range(splits):
    drawn = np.random.default_rng([seed, 42]).permutation(whole.num_classes)
    old = sorted(drawn[:num_old].tolist())
    labelled = resample_training_nodes(whole, old, seed=seed, balanced=False)
    first, new, exam = nova.split(labelled, old)
    label = np.full(n, None, dtype=object)
    label[first.train_ids] = [f"c{c:03}" for c in first.train_y]
    nodes = pd.DataFrame({"id": ids, "label": label, **features})
    taken = np.zeros(n, dtype=bool)
    taken[first.train_ids] = taken[exam.ids] = True
    rest = np.flatnonzero(~taken & (labelled.y >= 0))
    row = {"split": seed}
    for kind, numbers in (("strict", new.ids), ("mixed", rest)):
        start = time.process_time()
        loaded = nova.load_graph((nodes, edges), new_nodes=ids[numbers].tolist(), **options)
        row[kind + " load s"] = time.process_time() - start
        start, scores = time.process_time(), []
        for state in range(seeds):
            found = nova.NodeDiscoverer(new.num_new, mixed=kind == "mixed", random_state=state)
            model = found.fit(loaded).model_
            scores.append(nova.grade(model, replace(exam, graph=loaded.graph)).scores("block"))
        row[kind + " fit s"] = time.process_time() - start
        for measure in ("all", "h"):
            row[f"{kind} {measure}"] = float(np.mean([one[measure] for one in scores]))
    print(json.dumps(row), flush=True)
"""
MEASURES = ("strict all", "strict h", "mixed all", "mixed h")


def read_rows(tree: Path, name: str, splits: int, root: Path, seeds: int) -> list[dict[str, float]]:
    """One row per choice of old classes, by the code of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-c",
        CHILD,
        name,
        str(OLD[name]),
        str(splits),
        str(root),
        str(seeds),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    """Run both commits on every graph and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--graphs", nargs="+", default=list(OLD), choices=list(OLD))
    options = parser.parse_args()
    print("| graph | " + " | ".join(MEASURES) + " |\n|" + "---|" * (len(MEASURES) + 1))
    differences: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    seconds = {"load": [0.0, 0.0], "fit": [0.0, 0.0]}
    for name in options.graphs:
        pair = [
            read_rows(tree, name, options.splits, options.data_root, options.seeds)
            for tree in (options.before, options.after)
        ]
        cells = []
        for measure in MEASURES:
            before, after = (np.array([row[measure] for row in rows]) for rows in pair)
            differences[measure] += (after - before).tolist()
            cells.append(f"{before.mean():.1f} → {after.mean():.1f}")
        for part, total in seconds.items():
            for place, rows in enumerate(pair):
                total[place] += sum(
                    row[f"{k} {part} s"] for row in rows for k in ("strict", "mixed")
                )
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    means = []
    for measure in MEASURES:
        values = np.array(differences[measure])
        error = values.std(ddof=1) / np.sqrt(len(values))
        means.append(f"{values.mean():+.2f} ± {error:.2f}")
    print("| difference | " + " | ".join(means) + " |")
    ratios = (f"{part} {after / before:.3f}" for part, (before, after) in seconds.items())
    print(f"\nprocessor time, after to before: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
