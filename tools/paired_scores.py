"""Compare scores, processor time and memory of two commits.

    python tools/paired_scores.py BEFORE AFTER --data-root DIR [--splits 3] [--planted 50000 ...]

For each graph and each choice of old classes (that of prism_results.py, training nodes redrawn),
both commits fit, discover and are graded on the same task: where every node given is new, and, on
all nodes of the graph that are neither labelled nor in the exam, where they may be of known classes
too. --planted adds planted graphs with these numbers of nodes, ten times the edges, 500 words and
8 classes.
Prints All and H (block matching, seed 0) of each commit and their paired difference, then seconds
of processor time and the peak of memory as ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
OLD = {"cora": 4, "citeseer": 4, "pubmed": 2, "acm": 2, "uai2010": 10, "facebook": 2, "actor": 3}
OLD |= {"wordnet": 7}
CHILD = """
import json, sys, time, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import numpy as np
import nodenova as nova
from nodenova.data.splits import resample_training_nodes
name, num_old, seed, root = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
def peak():
    lines = open("/proc/self/status").readlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
def timed(row, key, work):
    open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew here
    start = time.process_time()
    made = work()
    row[key], row[key + " MiB"] = time.process_time() - start, peak()
    return made
if name.isdigit():
    labelled = nova.synthetic(nodes=int(name), classes=8, words=500, degree=20, seed=seed)
elif name in ("citeseer", "wordnet"):
    labelled = nova.load_dataset(name)
elif name in ("cora", "pubmed"):
    labelled = nova.load_dataset(name, root)
else:
    labelled = nova.load_graph(root / f"graphs/{name}.npz")
drawn = np.random.default_rng([seed, 42]).permutation(labelled.num_classes)
old = sorted(drawn[:num_old].tolist())
if not name.isdigit():
    labelled = resample_training_nodes(labelled, old, seed=seed, balanced=False)
first, new, exam = nova.split(labelled, old)
taken = np.zeros(labelled.graph.num_nodes, dtype=bool)
taken[first.train_ids] = True
taken[exam.ids] = not name.isdigit()
rest = np.flatnonzero(~taken & (labelled.y >= 0))
if name.isdigit():
    new = nova.NewTask(new.graph, rest[~np.isin(labelled.y[rest], old)], new.num_new)
tasks = {"strict": new, "mixed": nova.NewTask(new.graph, rest, new.num_new, mixed=True)}
row = {}
model = timed(row, "fit", lambda: nova.fit(first))
for kind, task in tasks.items():
    grown = timed(row, "discover " + kind, lambda: nova.discover(model, task))
    timed(row, "predict", lambda: grown.predict_proba(labelled.graph))
    scores = nova.grade(grown, exam).scores("block")
    row[kind + " all"], row[kind + " h"] = scores["all"], scores["h"]
print(json.dumps(row))
"""


def rows(tree: Path, name: str, splits: int, data_root: Path) -> Iterator[dict[str, float]]:
    """Yield one row per choice of old classes, each from its own process."""
    environment = os.environ | {"PYTHONPATH": f"{tree}/src", "OMP_NUM_THREADS": "1"}
    for seed in range(splits):
        task = [name, str(OLD.get(name, 5)), str(seed), str(data_root)]
        command = [sys.executable, "-c", CHILD, *task]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{tree}, {name}: {done.stderr}")
        yield json.loads(done.stdout)


def show(name: str, before: list[dict[str, float]], after: list[dict[str, float]]) -> None:
    for key in (key for key in before[0] if key.endswith((" all", " h"))):
        a, b = (np.array([row[key] for row in each]) for each in (before, after))
        off = b - a
        print(
            f"{name:9} {key:10} {a.mean():6.2f} -> {b.mean():6.2f}, paired {off.mean():+.2f} "
            f"(from {off.min():+.2f} to {off.max():+.2f})"
        )
    for key in (key for key in before[0] if not key.endswith((" all", " h"))):
        total = [sum(row[key] for row in each) / len(each) for each in (before, after)]
        unit = "" if key.endswith("MiB") else " s"
        print(
            f"{name:9} {key:19} {total[0]:7.1f} -> {total[1]:7.1f}{unit}, "
            f"{total[1] / total[0]:.2f} times"
        )
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--graphs", nargs="*", default=list(OLD), choices=list(OLD))
    parser.add_argument("--planted", nargs="*", default=[], type=int, help="numbers of nodes")
    parser.add_argument(
        "--keep", type=Path, help="folder in which rows of commits are cached, by graph"
    )
    arguments = parser.parse_args()
    names = [*arguments.graphs, *map(str, arguments.planted)]
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        trees = [Path(folder, "before"), Path(folder, "after")]
        for tree, commit in zip(trees, (arguments.before, arguments.after), strict=True):
            subprocess.run([*git, "add", "--detach", "--quiet", str(tree), commit], check=True)
        try:
            for name in names:
                found: list[Any] = []
                for tree in trees:
                    splits = 1 if name.isdigit() else arguments.splits
                    found.append(
                        _cached_rows(arguments.keep, tree, name, splits, arguments.data_root)
                    )
                show(name, found[0], found[1])
        finally:
            for tree in trees:
                subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def _cached_rows(keep: Path | None, tree: Path, name: str, splits: int, data_root: Path) -> Any:
    """Return the rows of a commit, from the cache if they are there."""
    head = ["git", "-C", str(tree), "rev-parse", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    path = None if keep is None else keep / f"{commit}-{name}-{splits}.json"
    if path is not None and path.exists():
        return json.loads(path.read_text())
    made = list(rows(tree, name, splits, data_root))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(made))
    return made


if __name__ == "__main__":
    main()
