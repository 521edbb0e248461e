"""K-means in which the known classes are centers that do not move, in a space where classes are
round.

Centers that move follow the nearest dense mass, which is a new class as soon as there is more of
it. Centers that stay make the new ones settle where memory has nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from nodenova.nn.statistics import largest_eigenvectors

MAX_STEPS = 50  # of Lloyd's algorithm
STILL = 1e-6  # how little the inertia falls, as a share of it, when centers have come to rest


def whitening(covariance: Tensor) -> Tensor:
    """(D, D) W with W' Sigma W = 1: rows times it are as wide within classes in every direction.

    Distances and angles are those after Sigma^-1/2, from which it differs by a rotation; Cholesky's
    factor is cheaper.
    """
    factor = torch.linalg.cholesky(covariance.double())
    one = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
    return torch.linalg.solve_triangular(factor, one, upper=False).t()


@dataclass(frozen=True, eq=False)
class Directions:
    """Which way rows point from their mean, in the first principal components of rows that were
    whitened.

    basis: (D, r), the whitening in it;  shift: (r,) of the mean row.

    Examples:
        >>> rows = torch.tensor([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        >>> directions = Directions.of(rows, torch.eye(2, dtype=torch.float64), 1)
        >>> directions(rows).abs().round().flatten().tolist()
        [1.0, 1.0, 0.0, 0.0]
    """

    basis: Tensor
    shift: Tensor

    @classmethod
    def of(
        cls, rows: Tensor, white: Tensor, components: int, weight: Tensor | None = None
    ) -> Directions:
        """Those of (n, D) rows, by the whitening (D, D); rows count by (n,) `weight`, or alike."""
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
    """K-means with fixed centers beside the ones that move.

    Args:
        points: (n, r).
        anchors: (o, r) centers that stay.
        num_new: How many centers move.
        restarts: The start with the least inertia counts.
        rng: For the seeding, greedy k-means++ from the distance to the nearest anchor.
        weight: (n,) how much each point counts, in seeding, means and inertia.

    Returns:
        (num_new, r) the centers found.

    Examples:
        >>> points = np.array([[0.0], [0.1], [5.0], [5.2], [9.0]])
        >>> rng = np.random.default_rng(0)
        >>> anchored_kmeans(points, np.zeros((1, 1)), 1, 2, rng).round(1).tolist()
        [[6.4]]
    """
    weight = np.ones(len(points)) if weight is None else weight
    found, least = None, np.inf
    for _ in range(restarts):
        center = seeds(points, anchors, num_new, rng, weight)
        center, inertia = settle(points, anchors, center, weight)
        if found is None or inertia < least:
            found, least = center, inertia
    assert found is not None
    return found


def seeds(
    points: np.ndarray,
    anchors: np.ndarray,
    num_new: int,
    rng: np.random.Generator,
    weight: np.ndarray,
    candidates: int | None = None,
) -> np.ndarray:
    """(num_new, r) points by greedy k-means++, beside centers that are there already."""
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


def settle(
    points: np.ndarray,
    anchors: np.ndarray,
    center: np.ndarray,
    weight: np.ndarray,
    steps: int = MAX_STEPS,
) -> tuple[np.ndarray, float]:
    """Lloyd's algorithm from `center` on, and the inertia it ends with. A center without a point
    goes to the farthest."""
    o, k, before = len(anchors), len(center), np.inf
    center = center.copy()
    for _ in range(steps):
        distance = squared_distances(points, np.concatenate([anchors, center]))
        nearest = distance.argmin(axis=1)
        far = distance[np.arange(len(points)), nearest] * weight
        inertia = float(far.sum())
        mine = nearest >= o
        total = np.bincount(nearest[mine] - o, weight[mine], minlength=k)
        for c in np.flatnonzero(total == 0):
            farthest = int(far.argmax())
            center[c], far[farthest] = points[farthest], -1.0
        member = np.zeros((len(points), k))
        member[np.flatnonzero(mine), nearest[mine] - o] = weight[mine]
        full = total > 0
        center[full] = (member.T @ points)[full] / total[full, None]
        if before - inertia <= STILL * inertia and full.all():
            break
        before = inertia
    return center, inertia


def group_sums(rows: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """(count, D) the sum of the rows of each group; rows of a group below 0 are in none.

    Examples:
        >>> group_sums(np.array([[1.0], [2.0], [4.0]]), np.array([1, -1, 1]), 2).tolist()
        [[0.0], [5.0]]
    """
    mine = np.flatnonzero(groups >= 0)
    member = sp.csr_array((np.ones(len(mine)), (groups[mine], mine)), shape=(count, len(rows)))
    return member @ rows


def squared_distances(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(n, c), never below 0."""
    square = (points**2).sum(axis=1)[:, None] - 2 * points @ centers.T + (centers**2).sum(axis=1)
    return np.maximum(square, 0.0)


def nearest_new(points: np.ndarray, anchors: np.ndarray, center: np.ndarray) -> np.ndarray:
    """(n,) which of the new centers each point is nearest to, -1 for an anchor. No new center is
    left without a point."""
    distance = squared_distances(points, np.concatenate([anchors, center]))
    groups = distance.argmin(axis=1) - len(anchors)
    groups[groups < 0] = -1
    taken = np.zeros(len(points), dtype=bool)
    for c in np.flatnonzero(np.bincount(groups[groups >= 0], minlength=len(center)) == 0):
        alone = np.bincount(groups[groups >= 0], minlength=len(center)) == 1
        free = ~taken & ((groups < 0) | ~alone[groups])
        at = np.flatnonzero(free)[distance[free, len(anchors) + c].argmin()]
        groups[at], taken[at] = c, True
    return groups


def renumbered(other: np.ndarray, groups: np.ndarray, k: int) -> np.ndarray:
    """`other` (-1 for old, 0..k-1) with its groups numbered as those of `groups` that they share
    most points with."""
    both = (other >= 0) & (groups >= 0)
    shared = np.zeros((k, k))
    np.add.at(shared, (other[both], groups[both]), 1)
    number = np.append(linear_sum_assignment(shared, maximize=True)[1], -1)
    return number[other]
