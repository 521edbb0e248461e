"""Which classes the edges of a class lead to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nodenova.graph import Graph


class Neighbor(NamedTuple):
    """Another class that edges of a class lead to.

    Attributes:
        id: Of the other class.
        share: Of the class's edges that lead to it.
        expected: The share that would, if edges fell at random.
    """

    id: int
    share: float
    expected: float


def edge_counts(graph: Graph, groups: np.ndarray, n: int) -> np.ndarray:
    """(C, C) edges from a class to a class, each counted from both of its ends."""
    a, b = groups[graph.edge_index]
    return np.bincount(a * n + b, minlength=n * n).reshape(n, n)


def neighbors_of(edges: np.ndarray, i: int, ids: Sequence[int], count: int) -> tuple[Neighbor, ...]:
    """The other classes that most edges of class i lead to, at most `count`."""
    if not edges[i].any():
        return ()
    share, expected = edges[i] / edges[i].sum(), edges.sum(axis=0) / edges.sum()
    others = [j for j in np.argsort(-share, kind="stable").tolist() if j != i and share[j] > 0]
    return tuple(Neighbor(ids[j], float(share[j]), float(expected[j])) for j in others[:count])
