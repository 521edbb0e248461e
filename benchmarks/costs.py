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
ONE_NUMBER = "the same, without previews of other numbers"
CITESEER = {"dataset": "citeseer", "known": 3}
READ = {"nodes": 20_000, "edges": 200_000, "words": 100}
WITHOUT_NEIGHBORS = (
    "from nodenova.cli import main; from nodenova.runs import numbers; "
    "numbers.NEIGHBORS = (); main()"
)
CASES = [
    Case("costs", FIT, "fit", GRAPH),
    Case("costs", f"{FIT}, two threads", "fit", GRAPH | {"threads": 2}, FIT, 2),
    Case("costs", "import nodenova", "start", {"arguments": ["-c", "import nodenova"]}),
    Case("costs", "nodenova --help", "start", {"arguments": ["-m", "nodenova", "--help"]}),
    Case("costs", "reading CSV files", "reading", READ),
    Case("costs", "nodenova discover, WordNet, to the page", "command", {"options": STRICT}, "", 2),
    Case("costs", ONE_NUMBER, "command", {"neighbors": False}, "", 2),
    Case("costs", "the same, nothing said of new nodes", "command", {}, ONE_NUMBER, 2),
    Case("costs", f"CiteSeer, {ONE_NUMBER}", "command", {"neighbors": False} | CITESEER, "", 2),
    Case("costs", "CiteSeer", "command", CITESEER, f"CiteSeer, {ONE_NUMBER}", 2),
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


def command(
    options: Sequence[str] = (), dataset: str = "wordnet", known: int = 7, neighbors: bool = True
) -> dict[str, float]:
    """`nodenova discover` with three classes unlabelled, from a file to the page.

    Without `neighbors`, no other number of new classes is looked at.
    """
    with tempfile.TemporaryDirectory() as place:
        nouns = nova.load_dataset(dataset)
        graph = nouns.graph
        assert not isinstance(graph.x, np.ndarray)
        file = Path(place) / f"{dataset}.npz"
        names = {} if graph.feature_names is None else {"feature_names": graph.feature_names}
        np.savez(
            file,
            edge_index=graph.edge_index,
            x_data=graph.x.data, x_indices=graph.x.indices, x_indptr=graph.x.indptr,
            x_shape=np.array(graph.x.shape), y=np.where(nouns.y < known, nouns.y, -1),
            node_ids=graph.node_ids, class_names=np.array(nouns.class_names[:known]),
            **{name: np.array(of) for name, of in names.items()},  # type: ignore[arg-type]
        )  # fmt: skip
        program = ["-m", "nodenova"] if neighbors else ["-c", WITHOUT_NEIGHBORS]
        arguments = [*program, "discover", "--graph", str(file), "-q", *options]
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
