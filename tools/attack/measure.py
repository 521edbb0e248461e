"""What it costs to be careful: processor time of two checkouts, taken in turn.

    python tools/table_scores.py BEFORE AFTER --data-root DIR --seeds 4 > scores.md
    python -m tools.attack.measure BEFORE AFTER --scores scores.md

Every step is measured several times in each checkout, in turn, and the least time counts: other
work on the machine only adds to it. The result, with the table of scores, is a part of the report.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .run import RESULTS

CHILD = """
import json, sys, time, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import nodenova as nova
from nodenova.cli import app
place = Path(sys.argv[1])
seconds = {}

def measure(name, work, times):
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    seconds[name] = min(taken)

tables = ["--nodes", str(place / "nodes.csv"), "--edges", str(place / "edges.csv")]
out = str(place / sys.argv[2])
command = ["discover", *tables, "--label-column", "label", "--out", out, "--overwrite", "-q"]
app(command, standalone_mode=False)
measure("nodenova discover, 9,997 nouns", lambda: app(command, standalone_mode=False), 2)
measure("nova.load_graph, tables", lambda: nova.load_graph(
    nodes=place / "nodes.csv", edges=place / "edges.csv", label_column="label"), 3)
measure("nova.load_graph, npz", lambda: nova.load_graph(Path(out) / "graph.npz"), 20)
measure("nova.open_run and its model", lambda: nova.open_run(out).model, 20)
print(json.dumps(seconds))
"""
WRITE = """
import sys
from pathlib import Path
import pandas as pd
import nodenova as nova
place, nouns = Path(sys.argv[1]), nova.load_dataset("wordnet")
graph, names = nouns.graph, nouns.graph.feature_names
rows = zip(graph.x.indptr, graph.x.indptr[1:])
text = [" ".join(names[j] for j in graph.x.indices[a:b]) for a, b in rows]
label = [nouns.class_names[c] if c < 7 and i % 8 == 0 else "" for i, c in enumerate(nouns.y)]
ids = [f"n{i}" for i in range(graph.num_nodes)]
pd.DataFrame({"id": ids, "label": label, "text": text}).to_csv(place / "nodes.csv", index=False)
a, b = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
ends = {"source": [ids[i] for i in a], "target": [ids[i] for i in b]}
pd.DataFrame(ends).to_csv(place / "edges.csv", index=False)
"""


def run_code(tree: Path, code: str, *arguments: str) -> str:
    """Run code with the package of a checkout; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def commit_of(tree: Path) -> str:
    """The commit of a checkout."""
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True).stdout.strip()


def measure_costs(before: Path, after: Path, rounds: int) -> list[list[object]]:
    """A row per step: milliseconds before and after, and their ratio."""
    least: tuple[dict[str, float], dict[str, float]] = ({}, {})
    with tempfile.TemporaryDirectory() as place:
        run_code(after, WRITE, place)
        for _ in range(rounds):
            for tree, name, times in ((before, "a", least[0]), (after, "b", least[1])):
                for step, taken in json.loads(run_code(tree, CHILD, place, name)).items():
                    times[step] = min(taken, times.get(step, taken))
    return [
        [step, f"{old * 1000:,.1f}", f"{new * 1000:,.1f}", f"{new / old:.3f}"]
        for (step, old), new in zip(least[0].items(), least[1].values(), strict=True)
    ]


def read_scores(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table that tools/table_scores.py printed."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return header, rows


def main() -> None:
    """Measure, and write results/attack/measured.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--scores", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    header, rows = read_scores(options.scores)
    commits = " and ".join(commit_of(tree) for tree in (options.before, options.after))
    tables = [
        {
            "title": "What it costs",
            "text": f"Milliseconds of processor time of commits {commits}, one thread, least of "
            f"{options.rounds} rounds taken in turn.",
            "header": ["step", "before", "after", "ratio"],
            "rows": measure_costs(options.before, options.after, options.rounds),
        },
        {
            "title": "All and H before and after canonical order",
            "text": "Graphs written as tables; five class splits each, mean of four seeds, block "
            "matching, the number of new classes given (tools/table_scores.py).",
            "header": header,
            "rows": rows,
        },
    ]
    result = {"part": "measured", "tables": tables}
    path = RESULTS / "measured.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"Written: {path}")


if __name__ == "__main__":
    main()
