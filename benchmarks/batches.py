"""SWORD on a graph of ogbn-arxiv's size, whole and on batches of nodes: memory and time.

    python benchmarks/run.py batches     # half an hour

169,343 nodes of 40 classes, about 1.2 million edges and 128 dense features, drawn at random; half
of the classes are old. As in ogbn-arxiv, 54% of the nodes are for training and 18% for validation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from large import links
from rows import Case, forget_peak, timed

import nodenova as nova

NODES, EDGES, FEATURES, CLASSES = 169_343, 1_166_243, 128, 40
TRAIN, VALIDATION = 0.54, 0.18
NOISE = 2.5  # standard deviation of a feature within a class; between classes it is 1
HIDDEN = 128

BATCH = {"batch": 512, "neighbors": 5}
FEW = {"fit_epochs": 10, "sword_epochs": 10}
BASE = "the whole graph, 10 epochs of each phase"
BATCHES = "batches of 512 nodes, 10 epochs of each phase"
CASES = [
    Case("batches", BASE, "both_phases", FEW),
    Case("batches", BATCHES, "both_phases", FEW | BATCH, BASE),
    Case("batches", f"half the nodes, {BATCHES}", "both_phases", FEW | BATCH | {"share": 0.5},
         BATCHES),
    Case("batches", "batches of 512 nodes, all epochs", "both_phases", BATCH, BASE),
]  # fmt: skip


def both_phases(
    batch: int = 0,
    neighbors: int = 10,
    fit_epochs: int = 200,
    sword_epochs: int = 600,
    share: float = 1.0,
) -> dict[str, float]:
    """Fit, discover and grade; memory of the phases is that beyond the graph."""
    labelled = arxiv_like(int(NODES * share), int(EDGES * share))
    old, new, exam = nova.split(labelled, range(CLASSES // 2))
    settings: dict[str, Any] = {"hidden": HIDDEN, "epochs": fit_epochs}
    if batch:
        settings |= {"batch": batch, "neighbors": neighbors}
    models: list[nova.Model] = []
    method = nova.Sword(epochs=sword_epochs)
    nova.fit(nova.split(nova.synthetic(nodes=60, classes=3), [0])[0], "gcn", epochs=1)  # imports
    before = forget_peak()
    found = timed(lambda: models.append(nova.fit(old, "gcn", **settings)), name="fit")
    found |= timed(lambda: models.append(nova.discover(models[0], new, method)), name="discover")
    peak = max(found["fit_peak_mib"], found["discover_peak_mib"])
    scores = nova.grade(models[1], exam).scores()
    done = len(models[0].stages[0].history["ce"])
    return found | {
        "nodes": labelled.graph.num_nodes,
        "edges": labelled.graph.num_edges,
        "fit_epochs": done,
        "fit_epoch_seconds": found["fit_seconds"] / done,
        "discover_epoch_seconds": found["discover_seconds"] / sword_epochs,
        "seconds": found["fit_seconds"] + found["discover_seconds"],
        "peak_mib": peak,
        "beyond_graph_mib": peak - before,
        "all_percent": scores["all"],
        "h_percent": scores["h"],
    }


def arxiv_like(nodes: int, edges: int) -> nova.LabelledGraph:
    """A labelled graph with a split."""
    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=nodes)
    key = links(rng, y, edges)
    center = rng.normal(size=(CLASSES, FEATURES)).astype(np.float32)
    x = center[y] + NOISE * rng.normal(size=(nodes, FEATURES)).astype(np.float32)
    graph = nova.Graph.of(x, np.stack([key // nodes, key % nodes]), dense=True)
    part = rng.random(nodes)
    masks = part < TRAIN, (part >= TRAIN) & (part < TRAIN + VALIDATION), part >= TRAIN + VALIDATION
    names = tuple(f"class-{c}" for c in range(CLASSES))
    labelled = nova.LabelledGraph(graph, y, names)
    return replace(labelled, train=masks[0], val=masks[1], test=masks[2])
