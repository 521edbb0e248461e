"""Millions of nodes, in memory and from a graph folder: time and peak memory of the three phases.

    python benchmarks/run.py large       # a million nodes: a quarter of an hour
    python benchmarks/run.py largest     # ten million: an hour, 15 GB of disk

Nodes of eight classes, three of them new and all of their nodes unlabelled; twenty of 500 words and
twenty neighbors each, so that ten edges come to a node.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rows import Case, status, timed

CLASSES, NUM_OLD = 8, 5
WORDS, WORDS_PER_NODE = 500, 20
HOMOPHILY, TOPIC_SHARE = 0.8, 0.4
BLOCK = 250_000  # nodes whose words are drawn at a time
PAUSE = 0.05  # seconds between two looks at the memory

MILLION = {"nodes": 1_000_000, "edges": 10_000_000}
TEN = {"nodes": 10_000_000, "edges": 100_000_000, "threads": 2, "mapped": True}
BASE = "a million nodes in memory"
CASES = [
    Case("large", BASE, "phases", MILLION),
    Case("large", f"{BASE}, two threads", "phases", MILLION | {"threads": 2}, BASE, 2),
    Case("large", "a million nodes from a folder", "phases", MILLION | {"mapped": True}, BASE),
]
LARGEST = [Case("large", "ten million nodes from a folder, two threads", "phases", TEN, "", 2)]


def phases(nodes: int, edges: int, threads: int = 1, mapped: bool = False) -> dict[str, float]:
    """Fit, discover and predict; another process writes the graph."""
    from scaling import imports

    import nodenova as nova
    from nodenova.nn.seeding import fixed_threads

    with tempfile.TemporaryDirectory(prefix="nodenova-large-") as place:
        folder = Path(place) / "graph"
        made = [sys.executable, __file__, str(folder), str(nodes), str(edges)]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
        labelled = nova.load_graph(folder)
        graph = labelled.graph
        if not mapped:
            graph = nova.Graph.of(graph.x.copy(), graph.edge_index, dense=False)
        given = nova.LabelledGraph(graph, np.array(labelled.y), labelled.class_names)
        del labelled
        old, _, _ = nova.split(given, range(NUM_OLD))
        new = nova.NewTask(graph, np.flatnonzero(given.y >= NUM_OLD), CLASSES - NUM_OLD)
        models: list[nova.Model] = []
        said: list[np.ndarray] = []
        work = {
            "fit": lambda: models.append(nova.fit(old, threads=threads)),
            "discover": lambda: models.append(nova.discover(models[0], new, threads=threads)),
            "predict": lambda: said.append(models[1].predict(graph)),
        }
        found: dict[str, float] = {}
        with fixed_threads(threads):
            imports()
            for phase, do in work.items():
                with anonymous_peak() as peak:
                    found |= timed(do, name=phase)
                found[f"{phase}_anonymous_mib"] = max(peak)
                print(phase, found, file=sys.stderr, flush=True)
        return found | {
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "folder_mib": size,
            "found_percent": 100 * agreement(given.y, said[0]),
        }


def agreement(y: np.ndarray, said: np.ndarray) -> float:
    """Number of nodes in the class that most nodes of their true class are in."""
    counts = np.zeros((CLASSES, int(said.max()) + 1), dtype=np.int64)
    np.add.at(counts, (y, said), 1)
    return float(counts.max(axis=1).sum() / counts.sum())


@contextmanager
def anonymous_peak() -> Iterator[list[float]]:
    """Peak MiB that the kernel cannot drop and read again, sampled all the time."""
    seen, done = [status("RssAnon")], threading.Event()

    def look() -> None:
        while not done.wait(PAUSE):
            seen[0] = max(seen[0], status("RssAnon"))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def make(folder: Path, nodes: int, edges: int) -> None:
    """Write what `nodenova.synthetic` draws as a folder, without holding all of it."""
    from nodenova.io.mmap_graph import ArrayFile, new_folder, write_index

    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=nodes)
    with new_folder(folder, overwrite=False) as made:
        files = {
            name: ArrayFile(made / f"{name}.npy", dtype)
            for name, dtype in (
                ("links_indptr", np.int64), ("links_indices", np.int32), ("x_indptr", np.int64),
                ("x_indices", np.int32), ("x_data", np.float32), ("node_ids", np.int64),
                ("y", np.int64),
            )
        }  # fmt: skip
        key = links(rng, y, edges)
        files["links_indices"].add(key % nodes)
        degree = np.bincount(key // nodes, minlength=nodes)
        del key
        files["links_indptr"].add(np.concatenate([[0], np.cumsum(degree)]))
        last = np.zeros(1, dtype=np.int64)
        files["x_indptr"].add(last)
        for start in range(0, nodes, BLOCK):
            mine = y[start : start + BLOCK, None]
            shape = (len(mine), WORDS_PER_NODE)
            topical = rng.integers(WORDS // CLASSES, size=shape) * CLASSES + mine
            general = rng.integers(WORDS, size=shape)
            drawn = np.sort(np.where(rng.random(shape) < TOPIC_SHARE, topical, general), axis=1)
            first = np.ones(shape, dtype=bool)
            first[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
            ends = last[-1] + np.cumsum(first.sum(axis=1))
            files["x_indptr"].add(ends)
            files["x_indices"].add(drawn[first])
            files["x_data"].add(np.ones(int(first.sum())))
            last = ends
        files["node_ids"].add(np.arange(nodes))
        files["y"].add(y)
        for file in files.values():
            file.close()
        write_index(
            made,
            name="large",
            source="large",
            num_features=WORDS,
            feature_names=[f"word-{w}" for w in range(WORDS)],
            class_names=[f"class-{c}" for c in range(CLASSES)],
        )


def links(rng: np.random.Generator, y: np.ndarray, edges: int) -> np.ndarray:
    """(E,) source * N + target, ascending: both directions, none twice, none to itself."""
    nodes = len(y)
    source, target = (rng.integers(nodes, size=edges) for _ in range(2))
    same = rng.random(edges) < HOMOPHILY
    by_class = np.argsort(y, kind="stable")
    size = np.bincount(y, minlength=CLASSES)
    start = np.concatenate([[0], np.cumsum(size)[:-1]])
    c = y[source[same]]
    target[same] = by_class[start[c] + (rng.random(len(c)) * size[c]).astype(np.int64)]
    del same, c
    key = np.concatenate([source * nodes + target, target * nodes + source])
    key = key[np.tile(source != target, 2)]
    del source, target
    key.sort()
    return key[np.concatenate([[True], key[1:] != key[:-1]])]


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
