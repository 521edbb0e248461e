"""Measures of groupings: how alike groups are, how well nodes lie in them."""

from __future__ import annotations

import numpy as np

from nodenova.prism.anchored import group_sums


def likeness(
    rows: np.ndarray, groups: np.ndarray, some: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(g, g) mean inner products between groups, a node not with itself; (g, D) means; (g,)
    sizes."""
    number = np.full(max(int(groups.max(initial=0)), int(some.max(initial=0))) + 2, -1)
    number[some] = np.arange(len(some))
    mine = np.where(groups >= 0, number[np.maximum(groups, 0)], -1)
    size = np.bincount(mine[mine >= 0], minlength=len(some))
    total = group_sums(rows, mine, len(some))
    product = total @ total.T
    alike = product / np.maximum(np.outer(size, size), 1)
    itself = group_sums((rows**2).sum(axis=1, keepdims=True), mine, len(some))[:, 0]
    np.fill_diagonal(alike, (product.diagonal() - itself) / np.maximum(size * (size - 1), 1))
    return alike, total / np.maximum(size, 1)[:, None], size


def silhouettes(distance: np.ndarray, groups: np.ndarray) -> np.ndarray | None:
    """(n,) the silhouette of each point, 0 for one that is alone in its group; None where there is
    one group."""
    present, mine = np.unique(groups, return_inverse=True)
    if len(present) < 2:
        return None
    size = np.bincount(mine)
    total = np.stack([distance[:, mine == g].sum(axis=1) for g in range(len(present))], axis=1)
    at = np.arange(len(mine)), mine
    within = total[at] / np.maximum(size[mine] - 1, 1)
    other = total / size
    other[at] = np.inf
    nearest = other.min(axis=1)
    value = (nearest - within) / np.maximum(np.maximum(nearest, within), 1e-12)
    return np.where(size[mine] > 1, value, 0.0)


def filled(values: np.ndarray) -> np.ndarray:
    """What is missing is as it is beside; 0 where all is missing."""
    there = np.flatnonzero(~np.isnan(values))
    if not len(there):
        return np.zeros_like(values)
    nearest = np.abs(np.arange(len(values))[:, None] - there).argmin(axis=1)
    return values[there[nearest]]


def nearest_pair(likeness: np.ndarray) -> float:
    """The mean over classes of how like the nearest other one is; 0 for one class."""
    if len(likeness) < 2:
        return 0.0
    other = likeness.copy()
    np.fill_diagonal(other, -np.inf)
    return float(other.max(axis=1).mean())


def off_count(k: np.ndarray, at: int) -> np.ndarray:
    """How far off another count, as a ratio."""
    return np.abs(np.log((k + 0.5) / (at + 0.5)))
