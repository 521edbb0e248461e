"""Which nodes a review page shows on its map, and what it says of each and of its neighbors."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nodenova.graph import Graph
from nodenova.model.decisions import Split
from nodenova.model.model import Model

MIN_OF_A_CLASS = 50  # nodes that a sample takes of every class, if it has them
LIKELY = 5  # classes of a node whose probabilities are told
LISTED = 8  # neighbors of a node that are named
NEAR = 3  # classes of its neighbors that are counted
NOBODY = 0xFFFF  # instead of the number of a class


def likely_classes(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most likely classes of each node, and their probabilities, both (N, 2..5).

    NOBODY is the second where there is but one class.
    """
    best = np.argsort(-p, axis=1, kind="stable")[:, :LIKELY]
    missing = ((0, 0), (0, max(0, 2 - p.shape[1])))
    likely = np.take_along_axis(p, best, axis=1)
    return np.pad(best, missing, constant_values=NOBODY), np.pad(likely, missing)


def neighbor_classes(
    graph: Graph, first: np.ndarray, second: np.ndarray, n_classes: int
) -> tuple[np.ndarray, ...]:
    """The classes of each node's neighbors.

    Returns:
        (N, 3) the most frequent ones and their counts, NOBODY and 0 where there are fewer, and (N,)
        the counts of the node's own two classes, `first` and `second`.
    """
    n = graph.num_nodes
    most = min(NEAR, n_classes)
    member = sp.csr_array(
        (np.ones(n, dtype=np.float32), (np.arange(n), first)), shape=(n, n_classes)
    )
    near, near_count = np.full((n, NEAR), NOBODY), np.zeros((n, NEAR), dtype=np.int64)
    in_first, in_second = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for ids in np.array_split(np.arange(n), 1 + n // 4096):
        counts = (graph.adjacency[ids] @ member).toarray().astype(np.int64)  # (ids, classes)
        best = np.argsort(-counts, axis=1, kind="stable")[:, :most]
        near_count[ids, :most] = np.take_along_axis(counts, best, axis=1)
        near[ids, :most] = np.where(near_count[ids, :most] > 0, best, NOBODY)
        row = np.arange(len(ids))
        in_first[ids] = counts[row, first[ids]]
        there = second[ids] < n_classes
        in_second[ids] = counts[row, np.minimum(second[ids], n_classes - 1)] * there
    return near, near_count, in_first, in_second


def sample_nodes(first: np.ndarray, n_classes: int, most: int, must: np.ndarray) -> np.ndarray:
    """Ascending node numbers: all, or `must` and of every class its share of about `most`."""
    n = len(first)
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(0).permutation(n)
    parts = [must]
    for c in range(n_classes):
        mine = order[first[order] == c]
        parts.append(mine[: max(MIN_OF_A_CLASS, most * len(mine) // n)])
    return np.unique(np.concatenate(parts))


def listed_neighbors(
    graph: Graph, number: np.ndarray, n: int, p1: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """CSR (start, targets) of up to `LISTED` neighbors of each node on the map, surest first."""
    a, b = graph.edge_index[:, (number[graph.edge_index] >= 0).all(axis=0)]
    order = np.lexsort((b, -p1[b], a))
    a, b = number[a[order]], number[b[order]]
    rank = np.arange(len(a)) - np.searchsorted(a, a)
    a, b = a[rank < LISTED], b[rank < LISTED]
    return np.concatenate([[0], np.cumsum(np.bincount(a, minlength=n))]), b


def first_new_id(model: Model) -> int:
    """The id of the first class that was discovered: those learned from labels come before it."""
    splits = [edit for edit in model.edits if isinstance(edit, Split)]
    parts = {part for edit in splits for part in edit.parts}
    known = {c.id for c in model.classes if not c.is_new}
    learned = known - parts | {edit.class_id for edit in splits if known & {*edit.parts}}
    return 1 + max(learned - parts, default=-1)
