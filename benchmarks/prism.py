"""Prism against SWORD and scikit-learn's dense route, in one run; and a graph of a million nodes.

python benchmarks/prism.py            # ratios
python benchmarks/prism.py scale      # 50,000 nodes, 500,000 edges: where time and memory go
python benchmarks/prism.py million    # one million nodes, ten million edges: minutes
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.decomposition import TruncatedSVD

import nodenova as nova
from nodenova.nn import sparse
from nodenova.nn.blocks import Blocks
from nodenova.nn.seeding import fixed_threads


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(work: object) -> float:
    start = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - start


def dense_route(graph: nova.Graph) -> None:
    """The six views of words the plain way: smooth a dense feature matrix, then TruncatedSVD."""
    a = graph.adjacency + sp.eye_array(graph.num_nodes)
    half = sp.diags_array(1 / np.sqrt(a.sum(axis=1)))
    smooth = sp.csr_array(half @ a @ half)
    assert not isinstance(graph.x, np.ndarray)
    for _ in range(2):
        x = (graph.x.toarray() != 0).astype(np.float32)
        steps = [x]
        for _ in range(8):
            steps.append(smooth @ steps[-1])
        for view in (x, (x + steps[1] + steps[2]) / 3, steps[8]):
            TruncatedSVD(128, random_state=0).fit_transform(view)


def ratios() -> None:
    labelled = nova.load_dataset("citeseer")
    old, new, _ = nova.split(labelled, old=range(4))
    with fixed_threads(1):
        ours = timed(lambda: nova.discover(nova.fit(old), new))
        sword = timed(lambda: nova.discover(nova.fit(old, "gcn"), new, nova.Sword()))
        dense = timed(lambda: dense_route(labelled.graph))
    print(
        f"CiteSeer, both phases: Prism is {sword / ours:.1f} times faster than SWORD "
        "(200 + 600 epochs, GCN)"
    )
    print(
        "and its views alone, the dense way with TruncatedSVD, take "
        f"{dense / ours:.1f} times as long as all of Prism"
    )
    for name, code in {
        "Prism": "nova.discover(nova.fit(old), new)",
        "the dense route": "import benchmarks.prism as b; b.dense_route(labelled.graph)",
    }.items():
        script = "import nodenova as nova; labelled = nova.load_dataset('citeseer');"
        script += f"old, new, _ = nova.split(labelled, old=range(4)); {code};"
        # getrusage would count what the parent had before the fork.
        script += "lines = open('/proc/self/status').readlines();"
        script += "print(next(line for line in lines if line.startswith('VmHWM')).split()[1])"
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        print(f"peak memory of a process with {name}: {int(done.stdout) / 2**10:.0f} MiB")


def scale(nodes: int = 50_000) -> None:
    """Phase 1 against its own sparse products, two threads against one, the peak against the graph.

    Seconds are of processor time, but for threads, where they are by the clock.
    """
    labelled = nova.synthetic(nodes=nodes, classes=8, words=500, degree=20)
    graph = labelled.graph
    assert not isinstance(graph.x, np.ndarray)
    size = sum(part.nbytes for part in (graph.x.data, graph.x.indices, graph.edge_index)) / 2**20
    old, new, _ = nova.split(labelled, old=range(5))
    new = nova.NewTask(graph, np.flatnonzero(labelled.y >= 5), 3)
    multiply, spent = sparse._multiplied, [0.0]

    def counted(csr: torch.Tensor | Blocks, dense: torch.Tensor) -> torch.Tensor:
        start = time.process_time()
        product = multiply(csr, dense)
        spent[0] += time.process_time() - start
        return product

    sparse._multiplied = counted
    model = nova.fit(old, threads=1)  # builds the operators of the graph
    grown = nova.discover(model, new, threads=1)
    phases: dict[str, Callable[[], object]] = {
        "fit": lambda: nova.fit(old, threads=1),
        "discover": lambda: nova.discover(model, new, threads=1),
        "predict": lambda: grown.predict(graph),
    }
    for phase, work in phases.items():
        spent[0] = 0.0
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew here
        start = time.process_time()
        with fixed_threads(1):
            work()
        total = time.process_time() - start
        lines = Path("/proc/self/status").read_text().splitlines()
        top = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**10
        print(
            f"{phase}: {total:.1f} s, {total / spent[0]:.2f} times its sparse products; "
            f"peak {top:.0f} MiB, {top / size:.0f} times the graph's {size:.0f} MiB",
            flush=True,
        )
    sparse._multiplied = multiply
    one, two = (timed(partial(nova.fit, old, threads=t)) for t in (1, 2))
    print(f"fit on two threads: {one / two:.2f} times as fast as on one")


def million() -> None:
    start = time.perf_counter()
    labelled = nova.synthetic(nodes=1_000_000, classes=20, words=2000, degree=20)
    print(
        f"{labelled.graph}: made in {time.perf_counter() - start:.0f} s, {peak():.1f} GiB",
        flush=True,
    )
    old, new, exam = nova.split(labelled, old=range(12))
    start = time.perf_counter()
    model = nova.fit(old)
    print(f"fit {time.perf_counter() - start:.0f} s, {peak():.1f} GiB", flush=True)
    start = time.perf_counter()
    model = nova.discover(model, new)
    print(f"discover {time.perf_counter() - start:.0f} s, {peak():.1f} GiB", flush=True)
    start = time.perf_counter()
    scores = nova.grade(model, exam).scores("block")
    print(f"predict and grade {time.perf_counter() - start:.0f} s, {peak():.1f} GiB")
    print(f"All {scores['all']:.1f}, H {scores['h']:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["scale", "million"])
    {"scale": scale, "million": million, None: ratios}[parser.parse_args().what]()
