"""Nodes between two classes: one list, by the pair that they are between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MAX_PAIRS = 12  # that are listed
MAX_OF_A_PAIR = 8  # nodes that are named of each
CLOSE = 0.2  # difference of probabilities below which a node is between known and discovered


@dataclass(frozen=True)
class AmbiguousNode:
    """A node between two classes.

    Attributes:
        node: Its number on the map.
        first: The likeliest class, a row in `PageData.classes`.
        second: The next one.
        p1: Probability of the first.
        p2: Probability of the second.
        in_first: How many of its neighbors are in the first.
        in_second: How many are in the second.
        degree: How many neighbors it has.
    """

    node: int
    first: int
    second: int
    p1: float
    p2: float
    in_first: int
    in_second: int
    degree: int


@dataclass(frozen=True)
class DoubtfulPair:
    """Two classes that nodes are between.

    Attributes:
        classes: Rows in `PageData.classes`, the one that more of the nodes are in first.
        total: How many nodes.
        nodes: Some of them, the closest calls first: (node, its likeliest class, the other).
    """

    classes: tuple[int, int]
    total: int
    nodes: tuple[tuple[int, int, int], ...]


def doubtful_pairs(
    best: np.ndarray, p: np.ndarray, is_new: np.ndarray, min_confidence: float
) -> list[DoubtfulPair]:
    """Nodes that are unsure, or hardly on one side of known and discovered, by pair of classes.

    Args:
        best: (N, 2 or more) the likeliest classes of every node, the likeliest first.
        p: (N, 2 or more) their probabilities.
        is_new: (C,) which classes were discovered.
        min_confidence: A node whose class is less likely is unsure.

    Returns:
        The pairs with most nodes first; numbers of nodes are those of the graph.

    Examples:
        >>> best = np.array([[0, 1], [1, 0], [0, 2], [0, 1]])
        >>> p = np.array([[0.45, 0.4], [0.48, 0.4], [0.55, 0.4], [0.9, 0.1]])
        >>> found = doubtful_pairs(best, p, np.array([False, False, True]), 0.5)
        >>> [(pair.classes, [node for node, _, _ in pair.nodes]) for pair in found]
        [((0, 1), [0, 1]), ((0, 2), [2])]
    """
    if len(is_new) < 2:
        return []
    first, second, margin = best[:, 0], best[:, 1], p[:, 0] - p[:, 1]
    between = (is_new[first] != is_new[second]) & (margin < CLOSE)
    doubtful = np.flatnonzero(between | (p[:, 0] < min_confidence))
    doubtful = doubtful[np.argsort(margin[doubtful], kind="stable")]
    key = np.minimum(first, second)[doubtful] * len(is_new) + np.maximum(first, second)[doubtful]
    pairs, counts = np.unique(key, return_counts=True)
    listed = []
    for pair in pairs[np.argsort(-counts, kind="stable")][:MAX_PAIRS]:
        mine = doubtful[key == pair]
        low, high = divmod(int(pair), len(is_new))
        most = int((first[mine] == high).sum()) > len(mine) / 2
        named = tuple((int(i), int(first[i]), int(second[i])) for i in mine[:MAX_OF_A_PAIR])
        listed.append(DoubtfulPair((high, low) if most else (low, high), len(mine), named))
    return listed


def numbers_of(pairs: Sequence[DoubtfulPair]) -> np.ndarray:
    """All nodes that the pairs name."""
    return np.array([node for pair in pairs for node, _, _ in pair.nodes], dtype=np.int64)
