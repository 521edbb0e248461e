"""How long a user's own files take, and how much memory: 50,000 nodes with a text column, 500,000 edges, as CSV.

    python benchmarks/files.py [--nodes 50000] [--edges 500000] [--words 100]

The files are made first, in a process of their own; what is measured is `load_graph` alone, in another.
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
            drawn = (rng.pareto(0.6, size=words) * 30 + label * 7).astype(np.int64) % len(vocabulary)
            text = " ".join(vocabulary[drawn])
            shown = f"class {label}" if label < 8 else ""
            writer.writerow([f"paper-{node}", shown, text, 1980 + node % 40, f"venue {node % 30}", node % 2])
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows((f"paper-{a}", f"paper-{b}") for a, b in rng.integers(nodes, size=(edges, 2)).tolist())


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--edges", type=int, default=500_000)
    parser.add_argument("--words", type=int, default=100, help="in the text of a node")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load is not None:
        print(json.dumps(load(options.load), indent=2))
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), options.nodes, options.edges, options.words)
        subprocess.run([sys.executable, __file__, "--load", folder], check=True)


if __name__ == "__main__":
    main()
