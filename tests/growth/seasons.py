"""A graph that grows: nodes of four classes in spring, a fifth one in autumn with words of its own.

All of it from one draw, so that the nodes of spring are the first ones of autumn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import nodenova as nova

SPRING, AUTUMN, LATE = 160, 260, 4
OWN = 12  # words of a class
SHARED = 30  # words of all


@dataclass(frozen=True, eq=False)
class Seasons:
    """spring, autumn: the graphs; y: the class of every node of autumn."""

    spring: nova.Graph
    autumn: nova.Graph
    y: np.ndarray

    @property
    def model(self) -> nova.Model:
        """Two classes known in spring, two discovered among the others."""
        y = np.where((np.arange(SPRING) % 3 > 0) & (self.y[:SPRING] < 2), self.y[:SPRING], -1)
        loaded = nova.load_graph(nova.LabelledGraph(self.spring, y, ("oak", "elm")))
        old, new, _ = nova.tasks_from_labels(loaded, num_new=2)
        return nova.discover(nova.fit(old), new, nova.Prism(n_resamples=2))

    @property
    def came(self) -> np.ndarray:
        return np.arange(SPRING, AUTUMN)


def seasons(seed: int = 0) -> Seasons:
    """Every node has words of its class and four others, and is linked to one like it.

    Half of the late class are linked to anyone instead.
    """
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(200) % 4, np.full(AUTUMN - 200, LATE)])
    names = [f"own{c}-{w}" for c in range(5) for w in range(OWN)]
    names += [f"word-{w}" for w in range(SHARED)]
    x = np.zeros((AUTUMN, len(names)), dtype=np.float32)
    edges = []
    for node, c in enumerate(y.tolist()):
        x[node, c * OWN + rng.choice(OWN, 5 if c == LATE else 3, replace=False)] = 1
        x[node, rng.choice(4 * OWN, 2, replace=False)] = 1  # of any class of spring
        x[node, 5 * OWN + rng.choice(SHARED, 2, replace=False)] = 1
        alike = np.flatnonzero(y[:node] == c)
        if c == LATE and rng.random() < 0.5:  # its words alone tell it apart
            edges.append((node, int(rng.integers(200))))
        elif len(alike):
            edges.append((node, int(rng.choice(alike))))
    ids = [f"n{i}" for i in range(AUTUMN)]
    autumn = nova.Graph.of(x, np.array(edges).T, node_ids=ids, feature_names=names, dense=False)
    spring = autumn.subgraph(np.arange(SPRING))
    known = [name for name in names if not name.startswith(f"own{LATE}")]
    return Seasons(spring.aligned(known)[0], autumn, y)
