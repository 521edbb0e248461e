"""K-means with fixed centers (anchors) for the known classes, in a space where classes are round.

A center that moves follows the nearest dense mass, which is a new class as soon as that one is
larger. Fixed centers make the new ones move to where no known class is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from nodenova.nn.numerics import cholesky
from nodenova.nn.statistics import largest_eigenvectors

MAX_STEPS = 50  # iterations of Lloyd's algorithm
TOLERANCE = 1e-6  # relative decrease of the inertia at which Lloyd's algorithm stops


def whitening(covariance: Tensor) -> Tensor:
    """(D, D) W with W' Sigma W = 1."""
    # W differs from Sigma^-1/2 by a rotation, which changes no distance; Cholesky is cheaper.
    factor = cholesky(covariance.double(), "the covariance within classes")
    one = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
    return torch.linalg.solve_triangular(factor, one, upper=False).t()


@dataclass(frozen=True, eq=False)
class Directions:
    """Projection of rows to unit length in the first principal components of whitened rows."""

    basis: Tensor  # (D, r) including the whitening
    shift: Tensor  # (r,) the projected mean row

    @classmethod
    def of(
        cls, rows: Tensor, white: Tensor, components: int, weight: Tensor | None = None
    ) -> Directions:
        """Fit to (n, D) rows with the whitening (D, D); rows are weighted by (n,) `weight`."""
        share = torch.ones(len(rows)) if weight is None else weight * len(rows) / weight.sum()
        share = share.to(white)[:, None]
        mean = (share * rows).mean(dim=0)
        centered = (rows.double() - mean) @ white
        total = centered.t() @ (share * centered)
        count = min(components, *rows.shape)
        basis = white @ largest_eigenvectors(total, count, len(rows) - 1)
        return cls(basis.float(), (mean @ basis).float())

    def __call__(self, rows: Tensor) -> Tensor:
        return torch.nn.functional.normalize(rows @ self.basis - self.shift, dim=1)


def anchored_kmeans(
    points: np.ndarray,
    anchors: np.ndarray,
    num_new: int,
    restarts: int,
    rng: np.random.Generator,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """(num_new, r) centers beside the (o, r) anchors: the best of several starts of k-means++."""
    weight = np.ones(len(points)) if weight is None else weight
    best, least = None, np.inf
    for _ in range(restarts):
        center = kmeans_pp(points, anchors, num_new, rng, weight)
        center, inertia = lloyd(points, anchors, center, weight)
        if best is None or inertia < least:
            best, least = center, inertia
    assert best is not None
    return best


def kmeans_pp(
    points: np.ndarray,
    anchors: np.ndarray,
    num_new: int,
    rng: np.random.Generator,
    weight: np.ndarray,
    candidates: int | None = None,
) -> np.ndarray:
    """(num_new, r) points chosen by greedy k-means++, given the centers `anchors`."""
    candidates = 2 + int(np.log(num_new + 1)) if candidates is None else candidates
    far = squared_distances(points, anchors).min(axis=1) if len(anchors) else np.ones(len(points))
    chosen = []
    for _ in range(num_new):
        mass = far * weight
        total = mass.sum()
        share = mass / total if total > 0 else np.full(len(points), 1 / len(points))
        tried = rng.choice(len(points), size=candidates, p=share)
        left = np.minimum(far[:, None], squared_distances(points, points[tried]))
        best = int((weight @ left).argmin())
        far = left[:, best]
        chosen.append(tried[best])
    return points[chosen]


def lloyd(
    points: np.ndarray,
    anchors: np.ndarray,
    center: np.ndarray,
    weight: np.ndarray,
    steps: int = MAX_STEPS,
) -> tuple[np.ndarray, float]:
    """Lloyd's algorithm: final centers and inertia; an empty center moves to the farthest point."""
    o, k, before = len(anchors), len(center), np.inf
    center = center.copy()
    for _ in range(steps):
        distance = squared_distances(points, np.concatenate([anchors, center]))
        nearest = distance.argmin(axis=1)
        far = distance[np.arange(len(points)), nearest] * weight
        inertia = float(far.sum())
        is_new = nearest >= o
        total = np.bincount(nearest[is_new] - o, weight[is_new], minlength=k)
        for c in np.flatnonzero(total == 0):
            farthest = int(far.argmax())
            center[c], far[farthest] = points[farthest], -1.0
        member = np.zeros((len(points), k))
        member[np.flatnonzero(is_new), nearest[is_new] - o] = weight[is_new]
        full = total > 0
        center[full] = (member.T @ points)[full] / total[full, None]
        if before - inertia <= TOLERANCE * inertia and full.all():
            break
        before = inertia
    return center, inertia


def group_sums(rows: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """(count, D) sum of the rows of each group; negative group numbers are skipped."""
    inside = np.flatnonzero(groups >= 0)
    shape = (count, len(rows))
    member = sp.csr_array((np.ones(len(inside)), (groups[inside], inside)), shape=shape)
    return member @ rows


def squared_distances(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(n, c) squared Euclidean distances, never below 0."""
    square = (points**2).sum(axis=1)[:, None] - 2 * points @ centers.T + (centers**2).sum(axis=1)
    return np.maximum(square, 0.0)


def assign_new(distance: np.ndarray, num_new: int) -> np.ndarray:
    """(n,) nearest new class by (n, o + num_new) distances, -1 for an anchor; none is empty."""
    o = distance.shape[1] - num_new
    groups = distance.argmin(axis=1) - o
    groups[groups < 0] = -1
    taken = np.zeros(len(groups), dtype=bool)
    for c in np.flatnonzero(np.bincount(groups[groups >= 0], minlength=num_new) == 0):
        alone = np.bincount(groups[groups >= 0], minlength=num_new) == 1
        free = ~taken & ((groups < 0) | ~alone[groups])
        at = np.flatnonzero(free)[distance[free, o + c].argmin()]
        groups[at], taken[at] = c, True
    return groups


def match_numbers(other: np.ndarray, groups: np.ndarray, k: int) -> np.ndarray:
    """Renumber the groups 0..k-1 of `other` like those of `groups` (Hungarian); -1 stays."""
    both = (other >= 0) & (groups >= 0)
    shared = np.zeros((k, k))
    np.add.at(shared, (other[both], groups[both]), 1)
    number = np.append(linear_sum_assignment(shared, maximize=True)[1], -1)
    return number[other]
