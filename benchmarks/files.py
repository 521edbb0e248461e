"""Time and memory for a user's own files.

By default 50,000 nodes with a text column and 500,000 edges, as CSV:

    python benchmarks/files.py [--nodes 50000] [--edges 500000] [--words 100] [--whole]

The files are written first. Measured, each in its own process, are `load_graph` alone and, with
--whole, all of `nodenova discover`: from the files to the model, the tables and the page. Eight
classes are labelled, four are new.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write(folder: Path, nodes: int, edges: int, words: int) -> None:
    rng = np.random.default_rng(0)
    vocabulary = np.array([f"word{number}" for number in range(60_000)])
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", "abstract", "year", "venue", "open"])
        for node in range(nodes):
            label = node % 12
            drawn = (rng.pareto(0.6, size=words) * 30 + label * 7).astype(np.int64)
            text = " ".join(vocabulary[drawn % len(vocabulary)])
            shown = f"class {label}" if label < 8 else ""
            year = 1980 + node % 40
            writer.writerow([f"paper-{node}", shown, text, year, f"venue {node % 30}", node % 2])
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        ends = rng.integers(nodes, size=(edges, 2))
        alike = rng.random(edges) < 0.7  # these stay within a class: classes go round by twelves
        ends[alike, 1] = np.minimum(ends[alike, 0] % 12 + ends[alike, 1] // 12 * 12, nodes - 1)
        writer.writerows((f"paper-{a}", f"paper-{b}") for a, b in ends.tolist())


def load(folder: Path) -> dict[str, object]:
    import nodenova as nova

    nova.load_graph  # noqa: B018  imports are not what is measured
    before = peak_mib()
    clock, processor = time.perf_counter(), time.process_time()
    loaded = nova.load_graph(folder)
    return {
        "seconds": round(time.perf_counter() - clock, 1),
        "seconds_of_processor": round(time.process_time() - processor, 1),
        "peak_mib": round(peak_mib()),
        "peak_mib_before": round(before),
        "files_mib": round(sum(path.stat().st_size for path in folder.iterdir()) / 2**20),
        "graph": repr(loaded.graph),
        "notes": loaded.notes,
    }


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def whole(folder: Path) -> dict[str, object]:
    """The command as a user runs it, measured from outside."""
    run = folder / "run"
    files = ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv")]
    options = ["--label-column", "label", "--text-column", "abstract", "--num-new", "4"]
    options += ["--out", str(run), "--quiet"]
    clock = time.perf_counter()
    subprocess.run([sys.executable, "-m", "nodenova", "discover", *files, *options], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (run / "predictions.csv").open(newline="") as file:
        found = [
            (int(line["node"].removeprefix("paper-")) % 12, line["class"])
            for line in csv.DictReader(file)
        ]
    new = [(label, c) for label, c in found if label >= 8]
    classes = {c for _, c in new}
    largest = [max(new.count((label, c)) for label in range(8, 12)) for c in classes]
    purity = sum(largest) / len(new)
    return {
        "seconds": round(time.perf_counter() - clock, 1),
        "seconds_of_processor": round(used.ru_utime + used.ru_stime, 1),
        "peak_mib": round(used.ru_maxrss / 1024),
        "report_mib": round((run / "report.html").stat().st_size / 2**20, 1),
        "purity_of_new_nodes": round(purity, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--edges", type=int, default=500_000)
    parser.add_argument("--words", type=int, default=100, help="in the text of a node")
    parser.add_argument("--whole", action="store_true", help="all of `nodenova discover` too")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load is not None:
        print(json.dumps(load(options.load), indent=2))
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), options.nodes, options.edges, options.words)
        subprocess.run([sys.executable, __file__, "--load", folder], check=True)
        if options.whole:
            print(json.dumps({"whole": whole(Path(folder))}, indent=2))


if __name__ == "__main__":
    main()
