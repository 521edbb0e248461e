"""Compare Ray with plain processes on this machine: a sweep of short runs, and one large discovery.

    python benchmarks/cluster.py [--runs 200] [--nodes 100000] [--edges 1000000]

Both use two processes. Ratios are within one run and include the start of Ray. Wall-clock times
need an idle machine; on a busy one compare the processor time of all processes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import psutil  # type: ignore[import-untyped]
from folder import make

import nodenova as nova
from nodenova.bench.ray_sweep import sweep_on_ray
from nodenova.bench.registry import get_method
from nodenova.bench.rowfile import RowFile
from nodenova.bench.runs import BenchConfig, runs_of
from nodenova.bench.sweep import Source, sweep
from nodenova.cluster.session import connect
from nodenova.cluster.split import split_graph
from nodenova.io.graph_folder.prepare import convert
from nodenova.io.load import load_graph

DATA = "synthetic:nodes=300,classes=4,words=100"
JOBS = 2
Made = TypeVar("Made")


def processor() -> float:
    """Processor seconds of this process and all its children, also finished ones."""
    me = psutil.Process()
    return sum(sum(each.cpu_times()[:4]) for each in (me, *me.children(recursive=True)))


@dataclass(frozen=True)
class Took:
    """Wall-clock and processor seconds of a piece of work."""

    clock: float
    processor: float

    def __str__(self) -> str:
        return f"{self.clock:.1f} s ({self.processor:.1f} s of processor time)"

    def over(self, other: Took) -> str:
        clock, used = self.clock / other.clock, self.processor / other.processor
        return f"{clock:.2f} × ({used:.2f} × in processor time)"


def timed(work: Callable[[], Made], on_ray: bool = False) -> tuple[Took, Made]:
    clock, before, used = time.perf_counter(), processor(), 0.0
    with connect("auto", JOBS) if on_ray else nullcontext():
        made = work()
        used = processor() - before  # of Ray's processes, which are gone afterwards
    return Took(time.perf_counter() - clock, used), made


def short_runs(count: int, folder: Path) -> None:
    methods = [get_method(name, {}) for name in ("never_new", "frozen_kmeans")]
    seeds = range(-(-count // len(methods)))
    config = BenchConfig(
        [(nova.load_dataset(DATA), 2)], ["gcn"], methods, seeds, (("epochs", 100),)
    )
    specs = runs_of("comparison", config)[:count]

    def plain() -> None:
        file = RowFile(folder / "plain.jsonl")
        with file.writing():
            sweep(specs, Source(), file, JOBS)

    def on_ray() -> None:
        file = RowFile(folder / "ray.jsonl")
        with file.writing():
            sweep_on_ray(specs, Source(), file)

    before, after = timed(plain)[0], timed(on_ray, on_ray=True)[0]
    rows = [RowFile(folder / name).read() for name in ("plain.jsonl", "ray.jsonl")]
    same = [{row.key: row.confusion for row in some} for some in rows]
    assert same[0] == same[1]
    assert len(rows[0]) == len(rows[1]) == len(specs)
    print(f"{len(specs)} short runs: processes {before}, Ray {after}")
    print(f"  Ray is {after.over(before)} processes, its start included")


def discovery(nodes: int, edges: int, folder: Path) -> None:
    convert(make(nodes, edges), folder / "graph")
    loaded = load_graph(folder / "graph")
    old, new, _ = nova.tasks_from_labels(loaded, 2)

    def both(threads: int) -> np.ndarray:
        model = nova.discover(nova.fit(old, threads=threads, device="cpu"), new, threads=threads)
        return model.predict(loaded.graph)

    def on_ray() -> np.ndarray:
        with split_graph(loaded.graph, folder / "graph"):
            return both(1)

    (one, alone), (two, _) = timed(lambda: both(1)), timed(lambda: both(2))
    ray, said = timed(on_ray, on_ray=True)
    differ = int((alone != said).sum())
    print(f"{nodes:,} nodes, {loaded.graph.num_edges // 2:,} edges: fit, discover and predict")
    print(f"  one thread {one}, two {two}, Ray with two processes {ray}")
    print(f"  Ray is {ray.over(one)} one thread, {ray.over(two)} two; {differ} nodes differ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    given = parser.parse_args()
    print(f"starting and ending Ray: {timed(lambda: None, on_ray=True)[0]}")
    with tempfile.TemporaryDirectory() as folder:
        if given.runs:
            short_runs(given.runs, Path(folder))
        if given.nodes:
            discovery(given.nodes, given.edges, Path(folder))


if __name__ == "__main__":
    main()
