"""k-means on principal components. All draws come from PyTorch's generator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from nodenova.nn.numerics import eigh
from nodenova.progress import report

MIXTURE_STEPS = 15  # iterations of expectation and maximization after k-means
MIN_LENGTH, LENGTH_NODES = 0.1, 5.0  # bound of an anchor's length, nodes that its prior counts as


def cluster(rows: Tensor, k: int, restarts: int = 20) -> Tensor:
    """(n,) groups 0..k-1 of rows (n, D): k-means on the first k components, best of `restarts`.

    Later components hold what differs between nodes of one class.
    """
    if k == 1:
        return torch.zeros(len(rows), dtype=torch.long, device=rows.device)
    groups = _kmeans(_components(rows, k), k, restarts)
    return torch.from_numpy(groups).long().to(rows.device)


def spherical_kmeans(rows: Tensor, k: int, restarts: int = 20) -> Tensor:
    """(n,) groups 0..k-1 of rows (n, D) by direction from their mean, in the first 3k/2 components.

    Lengths would split the outer parts off wide classes where others are narrow. k-means cuts large
    classes into groups of like size; a mixture with unequal shares, fitted to its groups, mends it.
    """
    if k == 1:
        return torch.zeros(len(rows), dtype=torch.long, device=rows.device)
    points = _directions(rows, k)
    groups = _kmeans(points, k, restarts)
    found = _regroup(points, points, groups, k)
    return torch.from_numpy(groups if found is None else found).long().to(rows.device)


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
        means = KMeans(k, n_init=restarts, random_state=_seed()).fit(some)
        other = _regroup(points, some, means.labels_, k)
        other = means.predict(points) if other is None else other
        if len(np.unique(other)) == k:
            shared = np.zeros((k, k))
            np.add.at(shared, (other, reference), 1)
            number = linear_sum_assignment(shared, maximize=True)[1]
            found.append(torch.from_numpy(number[other]).to(groups.device))
    return found


def _kmeans(points: np.ndarray, k: int, restarts: int) -> np.ndarray:
    with warnings.catch_warnings():
        # Equal points make fewer groups than k; the other groups stay empty.
        warnings.simplefilter("ignore", ConvergenceWarning)
        groups: np.ndarray = KMeans(k, n_init=restarts, random_state=_seed()).fit_predict(points)
    return groups


def _regroup(points: np.ndarray, some: np.ndarray, groups: np.ndarray, k: int) -> np.ndarray | None:
    """(n,) groups by a mixture fitted to some points in groups; None if a group is empty."""
    if len(np.unique(groups)) < k:
        return None
    center = np.stack([some[groups == c].mean(axis=0) for c in range(k)])
    mixture = fit_mixture(some, center[:0], center, np.ones(len(some)))
    found = mixture.distances(points).argmin(axis=1)
    return found if len(np.unique(found)) == k else None


@dataclass(frozen=True, eq=False)
class Mixture:
    """Anchors and new classes as round clouds of one width, new classes with unequal shares."""

    center: np.ndarray  # (o + k, r) anchors first
    penalty: np.ndarray  # (o + k,) -2 variance log(share k), 0 for anchors

    def distances(self, points: np.ndarray) -> np.ndarray:
        """(n, o + k) squared distances of the points, plus the penalty of each class."""
        return cdist(points, self.center, "sqeuclidean") + self.penalty


def fit_mixture(
    points: np.ndarray, anchors: np.ndarray, center: np.ndarray, weight: np.ndarray
) -> Mixture:
    """Fit shares, width and centers of new classes to points (n, r) by expectation-maximization.

    It starts at the groups of the nearest center. Anchors (o, r) keep their direction and take the
    length of the mean of their points: at unit length they would be farther from their own points
    than a center that moves, which is shorter than its points.
    """
    o, k = len(anchors), len(center)
    dimensions = max(points.shape[1] - 1, 1)
    mixture = Mixture(np.concatenate([anchors, center]), np.zeros(o + k))
    cosine, variance = points @ anchors.T, 0.0
    for _ in range(MIXTURE_STEPS):
        distance = mixture.distances(points)
        member = _memberships(distance, variance)  # (n, o + k)
        part = member[:, o:] * weight[:, None]
        total = part.sum(axis=0)
        variance = float((part * (distance - mixture.penalty)[:, o:]).sum())
        variance = max(variance / (dimensions * max(float(total.sum()), 1e-12)), 1e-12)
        full = total > 0
        moved = mixture.center[o:].copy()
        moved[full] = (part.T @ points)[full] / total[full, None]
        share = np.maximum(total, 1.0)
        penalty = -2 * variance * np.log(share / share.mean())
        known = anchors * _lengths(member[:, :o], cosine)[:, None]
        mixture = Mixture(np.concatenate([known, moved]), np.concatenate([np.zeros(o), penalty]))
    return mixture


def _memberships(distance: np.ndarray, variance: float) -> np.ndarray:
    """(n, c) probability of each class; 1 for the nearest where the variance is 0."""
    if variance == 0:
        return np.eye(distance.shape[1])[distance.argmin(axis=1)]
    likely = np.exp((distance.min(axis=1, keepdims=True) - distance) / (2 * variance))
    return likely / likely.sum(axis=1, keepdims=True)


def _lengths(member: np.ndarray, cosine: np.ndarray) -> np.ndarray:
    """(o,) mean cosine of each anchor with its points, drawn to that of all anchors."""
    count, total = member.sum(axis=0), (member * cosine).sum(axis=0)
    mean = total.sum() / max(count.sum(), 1e-12)
    return np.clip((total + LENGTH_NODES * mean) / (count + LENGTH_NODES), MIN_LENGTH, 1.0)


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
