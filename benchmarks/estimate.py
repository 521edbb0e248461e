"""Processor time and memory of `nodenova discover` by the size of a graph.

Each row is measured in its own process; the constants in `nodenova.cli.graph_options` are the
non-negative least squares of the rows, by relative error.

    python benchmarks/estimate.py                 # all sizes, about ten minutes of one core
    python benchmarks/estimate.py 8000 6 10       # one row: nodes, degree, words per node
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

SIZES = (
    (8_000, 6, 10), (8_000, 20, 30), (16_000, 20, 10), (16_000, 6, 60), (32_000, 6, 10),
    (32_000, 20, 30), (64_000, 6, 30), (64_000, 20, 10),
)  # fmt: skip


def measure(nodes: int, degree: int, words: int) -> dict[str, float]:
    """Processor seconds and peak memory of one mixed discovery with its page."""
    import nodenova as nova

    data = nova.synthetic(nodes=nodes, classes=10, words=2_000, words_per_node=words, degree=degree)
    rng = np.random.default_rng(0)
    y = np.where((data.y < 7) & (rng.random(nodes) < 0.2), data.y, -1)
    began = time.process_time()
    found = nova.NodeDiscoverer().fit(data.graph, y)
    fitted = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        found.report(Path(folder) / "run")
    graph = data.graph
    assert not isinstance(graph.x, np.ndarray)
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "entries": int(
            np.count_nonzero(graph.x) if isinstance(graph.x, np.ndarray) else graph.x.nnz
        ),
        "seconds": time.process_time() - began,
        "fit_seconds": fitted - began,
        "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def constants(rows: list[dict[str, float]], of: str) -> np.ndarray:
    """(4,) for 1, nodes, edges and entries of the features."""
    sizes = np.array([[1.0, row["nodes"], row["edges"], row["entries"]] for row in rows])
    said = np.array([row[of] for row in rows])
    scale = sizes.max(axis=0)
    found: np.ndarray = nnls(sizes / scale / said[:, None], np.ones(len(rows)))[0] / scale
    return found


def main() -> None:
    """Measure all sizes and print the constants."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(*map(int, sys.argv[1:]))))
        return
    rows = []
    for size in SIZES:
        command = [sys.executable, __file__, *map(str, size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(rows[-1]), flush=True)
    for of in ("seconds", "gib"):
        per = constants(rows, of)
        sizes = np.array([[1.0, row["nodes"], row["edges"], row["entries"]] for row in rows])
        ratio = sizes @ per / np.array([row[of] for row in rows])
        print(of, [f"{value:.3g}" for value in per], "said/true", ratio.round(2).tolist())


if __name__ == "__main__":
    main()
