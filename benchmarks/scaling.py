"""Time and peak memory of fit, discover and predict while one size of a graph grows.

Synthetic graphs; sizes that do not grow are BASE's. Three eighths of the classes are new.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rows import Case, timed

import nodenova as nova
from nodenova.nn.seeding import fixed_threads

BASE = {"nodes": 10_000, "degree": 10, "words": 500, "classes": 8}
GROWING: dict[str, Sequence[int]] = {
    "nodes": (2_500, 5_000, 10_000, 20_000, 40_000, 80_000),
    "edges": (100_000, 200_000, 400_000, 800_000, 1_600_000, 3_200_000),
    "words": (500, 1_000, 2_000, 4_000, 8_000),
    "classes": (8, 16, 32, 64),
    "unlabelled": (500, 1_000, 2_000, 3_500),
}


def cases(further_nodes: Sequence[int] = ()) -> list[Case]:
    """The curves; `further_nodes` extend that of nodes."""
    sizes = {**GROWING, "nodes": (*GROWING["nodes"], *further_nodes)}
    return [
        Case("scaling", f"{what}: {size:,}", "phases", {"what": what, "size": size})
        for what in sizes
        for size in sizes[what]
    ]


def phases(what: str, size: int) -> dict[str, float]:
    """All three phases on one thread; the size in edges counts both directions."""
    given = dict(BASE)
    if what == "edges":
        given["degree"] = size // BASE["nodes"]
    elif what != "unlabelled":
        given[what] = size
    labelled = nova.synthetic(**given)
    graph = labelled.graph
    num_old = given["classes"] * 5 // 8
    old, _, _ = nova.split(labelled, range(num_old))
    ids = np.flatnonzero(labelled.y >= num_old)
    if what == "unlabelled":
        ids = np.sort(np.random.default_rng(0).choice(ids, size, replace=False))
    new = nova.NewTask(graph, ids, given["classes"] - num_old)
    models: list[nova.Model] = []
    with fixed_threads(1):
        imports()
        found = timed(lambda: models.append(nova.fit(old)), name="fit")
        found |= timed(lambda: models.append(nova.discover(models[0], new)), name="discover")
        found |= timed(lambda: models[1].predict(graph), name="predict")
    parts = [graph.edge_index, graph.x.data, graph.x.indices]  # type: ignore[union-attr]
    return found | {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "unlabelled": len(ids),
        "graph_mib": sum(part.nbytes for part in parts) / 2**20,
    }


def imports() -> None:
    """Import all that the phases need on first use."""
    small = nova.synthetic(nodes=200, classes=4)
    old, new, _ = nova.split(small, range(2))
    nova.discover(nova.fit(old), new).predict(small.graph)


CASES = cases()
