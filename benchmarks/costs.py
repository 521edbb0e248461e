"""Costs of a fit, a second thread, starting a command, and reading files."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import files
import numpy as np
import torch
from rows import Case, timed

import nodenova as nova
from nodenova.nn.seeding import fixed_threads
from nodenova.nn.sparse import BagMatrix

GRAPH = {"nodes": 300_000, "degree": 20}
FIT = f"fit of {GRAPH['nodes']:,} nodes, {GRAPH['nodes'] * GRAPH['degree']:,} edges"
STRICT = ["--num-new", "3", "--all-new"]
READ = {"nodes": 20_000, "edges": 200_000, "words": 100}
CASES = [
    Case("costs", FIT, "fit", GRAPH),
    Case("costs", f"{FIT}, two threads", "fit", GRAPH | {"threads": 2}, FIT, 2),
    Case("costs", "import nodenova", "start", {"arguments": ["-c", "import nodenova"]}),
    Case("costs", "nodenova --help", "start", {"arguments": ["-m", "nodenova", "--help"]}),
    Case("costs", "reading CSV files", "reading", READ),
    Case("costs", "nodenova discover, WordNet, to the page", "command", {"options": STRICT}, "", 2),
    Case("costs", "the same, nothing said of new nodes", "command", {}, "", 2),
]


def fit(nodes: int, degree: int, threads: int = 1) -> dict[str, float]:
    """Phase 1, and the share of sparse products in it."""
    labelled = nova.synthetic(nodes=nodes, classes=8, words=500, degree=degree)
    old, _, _ = nova.split(labelled, range(5))
    multiply, spent = BagMatrix.__matmul__, [0.0]

    def counted(matrix: BagMatrix, dense: torch.Tensor) -> torch.Tensor:
        start = time.process_time()
        product = multiply(matrix, dense)
        spent[0] += time.process_time() - start
        return product

    nova.fit(old, threads=threads)  # builds the operators of the graph
    BagMatrix.__matmul__ = counted  # type: ignore[method-assign]
    with fixed_threads(threads):
        found = timed(lambda: nova.fit(old, threads=threads))
    return found | {"products_seconds": spent[0]}


def start(
    arguments: Sequence[str] | Callable[[], Sequence[str]], repeats: int = 5
) -> dict[str, float]:
    """A command from start to end, the fastest of several with warm files."""
    taken = []
    for _ in range(repeats + 1):
        command = [sys.executable, *(arguments() if callable(arguments) else arguments)]
        clock, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        taken.append((spent, time.perf_counter() - clock))
    seconds, clocks = (min(of) for of in zip(*taken[1:], strict=True))
    return {"seconds": seconds, "clock": clocks, "repeated": repeats}


def command(options: Sequence[str] = ()) -> dict[str, float]:
    """`nodenova discover` of WordNet with three classes unlabelled, from a file to the page."""
    with tempfile.TemporaryDirectory() as place:
        nouns, known = nova.load_dataset("wordnet"), 7
        graph = nouns.graph
        assert not isinstance(graph.x, np.ndarray)
        file = Path(place) / "wordnet.npz"
        np.savez(
            file,
            edge_index=graph.edge_index,
            x_data=graph.x.data, x_indices=graph.x.indices, x_indptr=graph.x.indptr,
            x_shape=np.array(graph.x.shape), y=np.where(nouns.y < known, nouns.y, -1),
            feature_names=np.array(graph.feature_names), node_ids=graph.node_ids,
            class_names=np.array(nouns.class_names[:known]),
        )  # fmt: skip
        arguments = ["-m", "nodenova", "discover", "--graph", str(file), "-q", *options]
        out = iter(range(100))
        return start(lambda: [*arguments, "--out", f"{place}/run-{next(out)}"], repeats=3)


def reading(nodes: int, edges: int, words: int) -> dict[str, float]:
    """`load_graph` of tables with a text column; the files are written first."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files.write(folder, nodes, edges, words)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
        found = timed(lambda: nova.load_graph(folder))
        return found | {"files_mib": size}
