"""Processor time and memory of `nodenova discover` by the size of a graph.

Each row is measured in its own process; the constants in `nodenova.cli.graph_options` are fitted
to the rows. With a file of rows, as it prints them, only the constants are computed again.

    python benchmarks/estimate.py                 # all sizes, about ten minutes of one core
    python benchmarks/estimate.py ROWS            # the constants of rows in a file
    python benchmarks/estimate.py 8000 6 10 10 0  # one row: nodes, degree, words, classes, weights
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
from scipy.optimize import lsq_linear

# Nodes, degree, words per node, classes, and whether edges have weights, as those of several types.
SIZES = (
    (500, 6, 10, 10, 0), (2_000, 6, 10, 10, 0), (8_000, 20, 30, 10, 0), (20_000, 6, 30, 10, 0),
    (20_000, 10, 10, 40, 1), (40_000, 20, 10, 10, 1), (64_000, 20, 30, 40, 0),
    (100_000, 10, 10, 10, 0),
)  # fmt: skip
# Nodes from which on a part of the time, or of the memory, no longer grows, and least coefficients:
# what products and arrays take.
BOUNDS = {"seconds": 5_000, "gib": 20_000}
LEAST = {
    "seconds": (2.5, 1e-4, 1e-5, 2e-5, 4e-6, 2e-6),
    "gib": (0.4, 1e-6, 1e-8, 1e-6, 3e-8, 3e-8),
}


def measure(nodes: int, degree: int, words: int, classes: int, weighted: int) -> dict[str, float]:
    """Processor seconds and peak memory of one mixed discovery with its page."""
    import nodenova as nova

    shape = {"classes": classes, "words": 2_000, "words_per_node": words, "degree": degree}
    data = nova.synthetic(nodes=nodes, **shape)
    rng = np.random.default_rng(0)
    known = 0.7 * classes
    y = np.where((data.y < known) & (rng.random(nodes) < 0.2), data.y, -1)
    graph = data.graph
    if weighted:
        weight = 1.0 + (graph.edge_index.sum(axis=0) % 3)
        names = graph.feature_names
        graph = nova.Graph.of(graph.x, graph.edge_index, edge_weight=weight, feature_names=names)
    began = time.process_time()
    found = nova.NodeDiscoverer().fit(graph, y)
    fitted = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        found.report(Path(folder) / "run")
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "entries": int(getattr(graph.x, "nnz", graph.x.size)),
        "classes": len(np.unique(y)) - 1,
        "weighted": weighted,
        "seconds": time.process_time() - began,
        "fit_seconds": fitted - began,
        "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def sizes_of(row: dict[str, float], of: str) -> list[float]:
    """What the estimate is linear in."""
    some = min(row["nodes"], BOUNDS[of])
    return [1.0, some, some * row["classes"], row["nodes"], row["edges"], row["entries"]]


def constants(rows: list[dict[str, float]], of: str) -> np.ndarray:
    """(6,) for the quantities of `sizes_of`, by least squares of relative errors."""
    sizes = np.array([sizes_of(row, of) for row in rows])
    true = np.array([row[of] for row in rows])
    scale = sizes.max(axis=0)
    least = np.array(LEAST[of]) * scale
    relative = sizes / scale / true[:, None]
    found: np.ndarray = lsq_linear(relative, np.ones(len(rows)), (least, np.inf)).x / scale
    return found


def main() -> None:
    """Measure all sizes and print the constants."""
    if len(sys.argv) == 6:
        print(json.dumps(measure(*map(int, sys.argv[1:]))))
        return
    kept = Path(sys.argv[1]).read_text().splitlines() if len(sys.argv) == 2 else []
    rows = [json.loads(line) for line in kept if line.startswith("{")]
    for size in () if rows else SIZES:
        command = [sys.executable, __file__, *map(str, size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(rows[-1]), flush=True)
    for of in BOUNDS:
        per = constants(rows, of)
        ratio = np.array([sizes_of(row, of) for row in rows]) @ per / [row[of] for row in rows]
        print(of, [f"{value:.3g}" for value in per], "said/true", ratio.round(2).tolist())


if __name__ == "__main__":
    main()
