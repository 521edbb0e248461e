"""k-means on principal components. All draws come from PyTorch's generator."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from nodenova.nn.numerics import eigh
from nodenova.progress import report


def cluster(rows: Tensor, k: int, restarts: int = 20) -> Tensor:
    """(n,) groups 0..k-1 of rows (n, D): k-means on the first k components, best of `restarts`.

    Later components hold what differs between nodes of one class.
    """
    return _kmeans(_components, rows, k, restarts)


def spherical_kmeans(rows: Tensor, k: int, restarts: int = 20) -> Tensor:
    """(n,) groups 0..k-1 of rows (n, D) by direction from their mean, in the first 3k/2 components.

    Lengths would split the outer parts off wide classes where others are narrow.
    """
    return _kmeans(_directions, rows, k, restarts)


def subsampled_kmeans(
    rows: Tensor, groups: Tensor, k: int, times: int, restarts: int = 4
) -> list[Tensor]:
    """Groupings (n,) by spherical k-means on two thirds of the rows (n, D), drawn anew each time.

    All rows are then assigned to the nearest center, and groups are numbered as in `groups` (n,) by
    Hungarian matching. A grouping with an empty group is dropped, so there may be fewer than
    `times`; with k = 1 there are none.
    """
    if k == 1:
        return []
    points = _directions(rows, k)
    reference = groups.cpu().numpy()
    part = max(k, -(-2 * len(rows) // 3))
    found = []
    for number in range(times):
        report(number + 1, times, "grouping")
        some = points[torch.randperm(len(rows))[:part].numpy()]
        if len(np.unique(some, axis=0)) < k:
            continue
        other = KMeans(k, n_init=restarts, random_state=_seed()).fit(some).predict(points)
        if len(np.unique(other)) == k:
            shared = np.zeros((k, k))
            np.add.at(shared, (other, reference), 1)
            number = linear_sum_assignment(shared, maximize=True)[1]
            found.append(torch.from_numpy(number[other]).to(groups.device))
    return found


def _kmeans(
    points: Callable[[Tensor, int], np.ndarray], rows: Tensor, k: int, restarts: int
) -> Tensor:
    if k == 1:
        return torch.zeros(len(rows), dtype=torch.long, device=rows.device)
    with warnings.catch_warnings():
        # Equal points make fewer groups than k; the other groups stay empty.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(k, n_init=restarts, random_state=_seed()).fit_predict(points(rows, k))
    return torch.from_numpy(found).long().to(rows.device)


def _directions(rows: Tensor, k: int) -> np.ndarray:
    """(n, 3k/2) components of unit length; the first k as they are if too few differ."""
    components = _components(rows, (3 * k + 1) // 2)
    unit = components / np.maximum(np.linalg.norm(components, axis=1, keepdims=True), 1e-12)
    return unit if len(np.unique(unit.round(9), axis=0)) >= k else components[:, -k:]


def _components(rows: Tensor, k: int) -> np.ndarray:
    """(n, k) first principal components, the first of all last; from the smaller Gram matrix."""
    centered = (rows - rows.mean(0)).double()
    size = min(k, *centered.shape)
    if centered.shape[0] <= centered.shape[1]:
        value, vector = eigh(centered @ centered.t(), "the products of the rows")
        return (vector[:, -size:] * value[-size:].clamp_min(0).sqrt()).cpu().numpy()
    vector = eigh(centered.t() @ centered, "the scatter of the rows")[1]
    return (centered @ vector[:, -size:]).cpu().numpy()


def _seed() -> int:
    return int(torch.randint(2**31, (1,)))
