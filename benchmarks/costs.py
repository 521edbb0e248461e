"""What a fit costs beside its own sparse products, a second thread, starting, and reading files."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import files
import torch
from rows import Case, timed

import nodenova as nova
from nodenova.nn import sparse
from nodenova.nn.blocks import Blocks
from nodenova.nn.seeding import fixed_threads

GRAPH = {"nodes": 50_000, "degree": 20}
FIT = f"fit of {GRAPH['nodes']:,} nodes, {GRAPH['nodes'] * GRAPH['degree']:,} edges"
READ = {"nodes": 20_000, "edges": 200_000, "words": 100}
CASES = [
    Case("costs", FIT, "fit", GRAPH),
    Case("costs", f"{FIT}, two threads", "fit", GRAPH | {"threads": 2}, FIT, 2),
    Case("costs", "import nodenova", "start", {"arguments": ["-c", "import nodenova"]}),
    Case("costs", "nodenova --help", "start", {"arguments": ["-m", "nodenova", "--help"]}),
    Case("costs", "reading CSV files", "reading", READ),
]


def fit(nodes: int, degree: int, threads: int = 1) -> dict[str, float]:
    """Phase 1, and how much of it are sparse products."""
    labelled = nova.synthetic(nodes=nodes, classes=8, words=500, degree=degree)
    old, _, _ = nova.split(labelled, range(5))
    multiply, spent = sparse._multiplied, [0.0]

    def counted(csr: torch.Tensor | Blocks, dense: torch.Tensor) -> torch.Tensor:
        start = time.process_time()
        product = multiply(csr, dense)
        spent[0] += time.process_time() - start
        return product

    nova.fit(old, threads=threads)  # builds the operators of the graph
    sparse._multiplied = counted
    with fixed_threads(threads):
        found = timed(lambda: nova.fit(old, threads=threads))
    return found | {"products_seconds": spent[0]}


def start(arguments: list[str]) -> dict[str, float]:
    """A command from nothing to its end, the fastest of five: what it costs when files are warm."""
    command = [sys.executable, *arguments]
    taken = []
    for _ in range(6):
        clock, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        taken.append((spent, time.perf_counter() - clock))
    seconds, clocks = (min(of) for of in zip(*taken[1:], strict=True))
    return {"seconds": seconds, "clock": clocks, "repeated": 5}


def reading(nodes: int, edges: int, words: int) -> dict[str, float]:
    """`load_graph` of tables with a text column; the files are made first."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files.write(folder, nodes, edges, words)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
        found = timed(lambda: nova.load_graph(folder))
        return found | {"files_mib": size}
