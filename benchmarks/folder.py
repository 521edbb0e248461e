"""Compare a graph folder with the same graph in memory: products, and peak memory of a discovery.

    python benchmarks/folder.py [--nodes 200000] [--edges 1000000] [--skip-discover]

Ratios are within one run. Memory is what the kernel cannot drop and read again (RssAnon), sampled
from outside every 20 ms (Linux); mapped files add to it while there is room.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

import nodenova as nova
from nodenova.io.graph_folder.prepare import convert
from nodenova.nn import sparse
from nodenova.nn.seeding import fixed_threads

COLUMNS = 144  # of a product in Prism's encoder
WORDS = 20  # a node
VOCABULARY = 500
CLASSES = 6


def make(nodes: int, edges: int) -> nova.LabelledGraph:
    """Six classes, the last two unlabelled; neighbors and words mostly from the own class."""
    rng = np.random.default_rng(0)
    label = np.arange(nodes) % CLASSES
    ends = rng.integers(nodes, size=(2, edges))
    alike = rng.random(edges) < 0.7
    moved = ends[1] // CLASSES * CLASSES + label[ends[0]]
    ends[1, alike] = np.minimum(moved, nodes - 1)[alike]
    words = (rng.pareto(0.8, size=(nodes, WORDS)) * 20).astype(np.int64) + label[:, None] * 40
    indptr = np.arange(0, nodes * WORDS + 1, WORDS)
    ones = np.ones(nodes * WORDS, dtype=np.float32)
    x = sp.csr_array((ones, (words % VOCABULARY).ravel(), indptr), shape=(nodes, VOCABULARY))
    x.sum_duplicates()
    x.data[:] = 1.0
    names = [f"word{number}" for number in range(VOCABULARY)]
    graph = nova.Graph.of(x, ends, feature_names=names, dense=False)
    y = np.where((label < CLASSES - 2) & (rng.random(nodes) < 0.2), label, -1)
    return nova.LabelledGraph(graph, y, tuple(f"class {c}" for c in range(CLASSES - 2)))


def write(labelled: nova.LabelledGraph, folder: Path) -> None:
    graph = labelled.graph
    assert not isinstance(graph.x, np.ndarray)
    np.savez(
        folder / "graph.npz",
        edge_index=graph.edge_index,
        x_data=graph.x.data, x_indices=graph.x.indices, x_indptr=graph.x.indptr,
        x_shape=np.array(graph.x.shape), y=labelled.y,
        feature_names=np.array(graph.feature_names), class_names=np.array(labelled.class_names),
    )  # fmt: skip
    convert(labelled, folder / "graph")
    with (folder / "nodes.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "label", "text"])
        names = np.array(graph.feature_names)
        for node, (start, end) in enumerate(zip(graph.x.indptr, graph.x.indptr[1:], strict=False)):
            label = "" if labelled.y[node] < 0 else labelled.class_names[labelled.y[node]]
            lines.writerow([f"n{node}", label, " ".join(names[graph.x.indices[start:end]])])
    once = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].T.tolist()
    with (folder / "edges.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["source", "target"])
        lines.writerows((f"n{a}", f"n{b}") for a, b in once)


def products(labelled: nova.LabelledGraph, folder: Path) -> None:
    cpu = torch.device("cpu")
    columns = torch.randn(labelled.graph.num_nodes, COLUMNS)
    plain = sparse.gcn_operator(labelled.graph, cpu)
    kinds = {"in memory": plain}
    kinds["from the folder"] = sparse.gcn_operator(nova.load_graph(folder / "graph").graph, cpu)
    whole, sparse.BLOCK_ENTRIES = sparse.BLOCK_ENTRIES, plain.csr.shape[0]
    kinds["by blocks of rows"] = sparse.gcn_operator(nova.load_graph(folder / "graph").graph, cpu)
    sparse.BLOCK_ENTRIES = whole
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(7):
        for kind, matrix in kinds.items():
            start = time.process_time()
            out = matrix @ columns
            times[kind].append(time.process_time() - start)
            assert torch.equal(out, plain @ columns)
    base = statistics.median(times.pop("in memory"))
    for kind, taken in times.items():
        print(f"a product {kind}: {statistics.median(taken) / base:.2f} of the time in memory")


def watched(*command: object) -> tuple[float, float, float]:
    """Peak MiB of anonymous and of all resident memory, and seconds of a process."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *map(str, command)], stdout=subprocess.DEVNULL)
    anonymous = resident = 0
    while process.poll() is None:
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        except OSError:
            break
        found = dict(line.split(":", 1) for line in lines)
        anonymous = max(anonymous, int(found.get("RssAnon", "0").split()[0]))
        resident = max(resident, int(found.get("VmHWM", "0").split()[0]))
        time.sleep(0.02)
    if process.wait():
        raise SystemExit(f"{command} failed")
    return anonymous / 1024, resident / 1024, time.perf_counter() - start


def compare(title: str, ours: tuple[float, ...], theirs: tuple[float, ...]) -> None:
    print(
        f"{title}: {ours[0] / theirs[0]:.2f} of the memory ({ours[0]:.0f} and {theirs[0]:.0f} MiB; "
        f"with mapped files {ours[1]:.0f} and {theirs[1]:.0f}), "
        f"{ours[2] / theirs[2]:.2f} of the time ({ours[2]:.0f} and {theirs[2]:.0f} s here and now)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--skip-discover", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        labelled = make(options.nodes, options.edges)
        write(labelled, folder)
        size = sum(path.stat().st_size for path in (folder / "graph").iterdir()) / 2**20
        print(f"{labelled.graph}, {size:.0f} MiB as a folder", flush=True)
        with fixed_threads(1):
            products(labelled, folder)
        tables = ("--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv", "-q")
        nodenova = ("-m", "nodenova")
        made = watched(*nodenova, "prepare", *tables, "--out", folder / "made")
        read = watched(*nodenova, "inspect", *tables)
        compare("nodenova prepare, against reading the tables into memory", made, read)
        sys.stdout.flush()
        if not options.skip_discover:
            asked = (*nodenova, "discover", "--num-new", 2, "--no-keep-graph", "-q", "--out")
            mapped = watched(*asked, folder / "a", "--graph", folder / "graph")
            whole = watched(*asked, folder / "b", "--graph", folder / "graph.npz")
            compare("nodenova discover from the folder, against npz", mapped, whole)
            same = [(folder / run / "predictions.csv").read_text() for run in "ab"]
            print("the same predictions" if same[0] == same[1] else "OTHER PREDICTIONS")


if __name__ == "__main__":
    main()
