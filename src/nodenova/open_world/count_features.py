"""Groupings of unlabelled nodes into every number of new classes, and how well each fits.

Measures of groupings: how alike groups are, how well nodes lie in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from nodenova.open_world.anchored_kmeans import (
    Directions,
    group_sums,
    seeds,
    settle,
    squared_distances,
)
from nodenova.open_world.mixed import WhitenedSpace
from nodenova.open_world.novelty import self_likeness
from nodenova.progress import report


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


MAX_NEW = 15
STEPS = 12  # of Lloyd's algorithm for a candidate
TRIED = 10  # nodes at which one more center is tried
COMPARED = 400  # nodes whose silhouette is taken
MIN_GROUP = 5  # nodes of a group whose likeness to others is looked at
SPARE_SCATTER = 0.14  # log of how much wider than an old class a new one may be
CELLS = (5, 6, 7)  # a class, in the cell counter
MIN_CELLS, MAX_CELLS = 16, 48
MIN_SHARE, MIN_NODES = 0.01, 8  # of a class that the cell counter counts
# Cells are known if as like a known class as the first; groups are one while as like each other as
# the second.
LOOSE, TIGHT = (0.70, -0.1), (0.60, 0.1)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Groupings of n nodes into k = 0..MAX_NEW + 1 new classes beside the known ones.

    groups:   for each k, (n,) the class of each node: known ones first, then new ones.
    scatter:  for each k, the mean squared distance of u to the mean of its group.
    plain:    the same of k-means in u, without whitening; of all-new nodes only.
    u, x:     (n, D) the nodes, and whitened.
    mean:     (o, D) whitened means of the known classes;  own: (o,) their self-likeness there.
    typical:  in u, how alike nodes of a class are, and near: those of the two nearest classes.
    near_white: the correlation of the two nearest classes, whitened.
    """

    scene: WhitenedSpace
    num_old: int
    groups: list[np.ndarray]
    scatter: np.ndarray
    plain: np.ndarray | None
    u: np.ndarray
    x: np.ndarray
    mean: np.ndarray
    own: np.ndarray
    typical: float
    near: float
    near_white: float
    old_scatter: float

    @classmethod
    def of(cls, scene: WhitenedSpace, mixed: bool, rng: np.random.Generator) -> Candidates:
        known = scene.old
        scale = scene.used.per_column(known.view_scale)
        every = torch.ones(len(scale), dtype=torch.bool, device=scale.device)
        u = scene.u.double()
        x = u @ scene.white
        center = (known.center * scale).double()
        mean = (center @ scene.white).cpu().numpy()
        own = self_likeness(known, every, scale, scene.white, mean)
        old_scatter = max(float(known.covariance(every, 0.0, scale).trace()), 1e-12)
        between = (center @ center.t()).cpu().numpy()
        count = known.nodes.double().cpu().numpy().clip(2)
        length = float(u.square().sum(dim=1).mean())
        typical = float(((count * between.diagonal() - length) / (count - 1)).mean())
        correlation = mean @ mean.T / np.sqrt(np.outer(own, own))
        anchors = scene.anchors if mixed else scene.anchors[:0]
        groups = _path(scene.points, anchors, rng)
        rows = u.cpu().numpy()
        plain = None
        if not mixed:
            white = torch.eye(u.shape[1], dtype=torch.float64, device=u.device)
            directions = Directions.of(scene.u, white, scene.points.shape[1])
            points = directions(scene.u).double().cpu().numpy()
            plain = _scatters(rows, _path(points, anchors, rng), 0)
        o = len(anchors)
        return cls(
            scene,
            o,
            groups,
            _scatters(rows, groups, o),
            plain,
            rows,
            x.cpu().numpy(),
            mean,
            own,
            typical,
            nearest_pair(between),
            float(np.clip(nearest_pair(correlation), -1, 1)),
            old_scatter,
        )

    def alike(self, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the new groups that have some nodes: mean inner products, their means, their sizes."""
        groups = self.groups[k] - self.num_old
        count = np.bincount(groups[groups >= 0], minlength=k)
        return likeness(rows, groups, np.flatnonzero(count >= MIN_GROUP))

    def like_old(self, k: int) -> float:
        """How like the nearest known class the k new groups are, on the mean over their nodes."""
        own, mean, size = self.alike(self.x, k)
        if not len(size):
            return 1.0
        floor = 1e-3 * self.own.mean()
        alike = np.sqrt(np.maximum(own.diagonal(), floor)[:, None] * self.own)
        return float((mean @ self.mean.T / alike).max(axis=1).clip(-2, 2) @ size / size.sum())

    def share_of_new(self, k: int) -> float:
        """The share of nodes in the k new groups."""
        return float((self.groups[k] >= self.num_old).mean())


def candidate_features(
    made: Candidates, chance: np.ndarray | None, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """name -> (MAX_NEW,) the features of 1..MAX_NEW new classes; what does not exist at an end is
    as beside it.

    chance: (n,) of being new, by the cells of phase 1; None where all nodes are new.
    """
    k = np.arange(1, MAX_NEW + 1)
    wide = np.log(np.maximum(made.scatter, 1e-12) / made.old_scatter)
    enough = np.flatnonzero(wide[1:-1] <= SPARE_SCATTER)
    silhouette, of_new = _silhouettes(made, rng)
    between, white, least = _between(made)
    sizes = [np.bincount(made.groups[c], minlength=made.num_old + c)[made.num_old :] for c in k]
    smallest = np.array([size.min() for size in sizes])
    loose, tight, covered = cell_counts(made, chance, rng)
    features = {
        "log": np.log(k),
        "linear": k / 10,
        "one": (k == 1).astype(float),
        "wide": np.maximum(wide[1:-1] - SPARE_SCATTER, 0),
        "off_scatter": off_count(k, 1 + int(enough[0]) if len(enough) else MAX_NEW),
        "silhouette": of_new - of_new.max(),
        "off_silhouette": off_count(k, 1 + int(silhouette.argmax())),
        "alike": between[:-1],
        "alike_much": np.maximum(between[:-1], 0),
        "alike_next": white[1:] - made.near_white,
        "loosest": least[:-1],
        "smallest": np.log(smallest / len(made.u) + 0.003),
        "off_loose": off_count(k, loose),
        "off_tight": off_count(k, tight),
        "off_covered": off_count(k, covered),
    }
    if made.plain is not None:
        plain = np.log(np.maximum(made.plain, 1e-12) / made.old_scatter)
        features["wide_plain"] = np.maximum(plain[1:-1] - SPARE_SCATTER, 0)
    return features


def cell_counts(
    made: Candidates, chance: np.ndarray | None, rng: np.random.Generator
) -> tuple[int, int, int]:
    """The number of new classes by merging cells of the nodes: medians of three cellings, at least
    1.

    Twice by how like a known class a new cell may be (`LOOSE`, `TIGHT`), once by the chance of its
    nodes to be new.
    """
    points = made.scene.points
    found = []
    for per_class in CELLS:
        count = int(np.clip(per_class * len(made.mean), MIN_CELLS, MAX_CELLS))
        half = points[rng.permutation(len(points))[: -(-len(points) // 2)]]
        even, none = np.ones(len(half)), points[:0]
        start = seeds(half, none, min(count, len(half)), rng, even, 3)
        center, _ = settle(half, none, start, even, STEPS)
        cell = squared_distances(points, center).argmin(axis=1)
        size = np.bincount(cell, minlength=len(center))
        full = np.flatnonzero(size >= 2)
        alike, mean, _ = likeness(made.x, cell, full)
        floor = 1e-3 * made.own.mean()
        root = np.sqrt(np.maximum(alike.diagonal(), floor)[:, None] * made.own)
        near = (mean @ made.mean.T / root).max(axis=1)
        if chance is None:
            near, new = np.full(len(full), -np.inf), np.ones(len(full))
        else:
            new = (np.bincount(cell, chance, minlength=len(center)) / np.maximum(size, 1))[full]
        by_likeness = [_merged(made, cell, full[near < a], b) for a, b in (LOOSE, TIGHT)]
        found.append([*by_likeness, _merged(made, cell, full[new >= 0.5], 0.0)])
    loose, tight, covered = np.median(found, axis=0).astype(int).clip(1).tolist()
    return loose, tight, covered


def _merged(made: Candidates, cell: np.ndarray, some: np.ndarray, least: float) -> int:
    """How many groups are left when `some` cells are merged by average linkage while `least` alike
    or more."""
    size = np.array([(cell == c).sum() for c in some], dtype=float)
    total = group_sums(made.u, cell, int(cell.max()) + 1)[some]
    product = total @ total.T
    span = max(made.typical - made.near, 1e-9)
    while len(size) > 1:
        alike = (product / np.outer(size, size) - made.near) / span
        np.fill_diagonal(alike, -np.inf)
        a, b = divmod(int(alike.argmax()), len(size))
        if alike[a, b] < least:
            break
        product[a] += product[b]
        product[:, a] += product[:, b]
        size[a] += size[b]
        product = np.delete(np.delete(product, b, axis=0), b, axis=1)
        size = np.delete(size, b)
    return int((size >= max(MIN_SHARE * len(made.u), MIN_NODES)).sum())


def _path(points: np.ndarray, anchors: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Groupings into 0..MAX_NEW + 1 new centers beside the anchors: each the better of one more
    center and a new start."""
    even, center = np.ones(len(points)), points[:0]
    groups = []
    for k in range(MAX_NEW + 2):
        report(k + 1, MAX_NEW + 2, "counting")
        if k:
            more = seeds(points, np.concatenate([anchors, center]), 1, rng, even, TRIED)
            fresh = seeds(points, anchors, k, rng, even, 3)
            starts = (np.concatenate([center, more]), fresh)
            center = min((settle(points, anchors, s, even, STEPS) for s in starts), key=_inertia)[0]
        everything = np.concatenate([anchors, center])
        if not len(everything):
            everything = points.mean(axis=0, keepdims=True)
        groups.append(squared_distances(points, everything).argmin(axis=1))
    return groups


def _inertia(settled: tuple[np.ndarray, float]) -> float:
    return settled[1]


def _scatters(rows: np.ndarray, groups: list[np.ndarray], o: int) -> np.ndarray:
    """(candidates,) mean squared distance to the mean of the group, a degree of freedom lost for
    each group."""
    square = float((rows**2).sum())
    found = []
    for k, mine in enumerate(groups):
        size = np.bincount(mine)
        total = group_sums(rows, mine, len(size))
        between = ((total**2).sum(axis=1) / np.maximum(size, 1)).sum()
        found.append((square - float(between)) / max(len(rows) - o - k, 1))
    return np.array(found)


def _silhouettes(made: Candidates, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(MAX_NEW,) mean silhouette of all nodes, and of those in new groups, for each number of new
    classes."""
    some = rng.permutation(len(made.u))[:COMPARED]
    points = made.scene.points[some]
    distance = np.sqrt(squared_distances(points, points))
    every, new = np.full(MAX_NEW, np.nan), np.full(MAX_NEW, np.nan)
    for k in range(1, MAX_NEW + 1):
        groups = made.groups[k][some]
        value = silhouettes(distance, groups)
        if value is not None:
            is_new = groups >= made.num_old
            every[k - 1] = value.mean()
            new[k - 1] = value[is_new].mean() if is_new.any() else np.nan
    return filled(every), filled(new)


def _between(made: Candidates) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For 1..MAX_NEW + 1: how alike the two most alike new groups are, in u and whitened, and the
    loosest is in itself."""
    span = max(made.typical - made.near, 1e-9)
    alike, white, loosest = (np.full(MAX_NEW + 1, np.nan) for _ in range(3))
    for k in range(1, MAX_NEW + 2):
        product = (made.alike(made.u, k)[0] - made.near) / span
        if len(product):
            loosest[k - 1] = product.diagonal().min()
        if len(product) > 1:
            alike[k - 1] = product[np.triu_indices(len(product), 1)].max()
            product = made.alike(made.x, k)[0]
            root = np.sqrt(np.maximum(product.diagonal(), 1e-3 * made.own.mean()))
            white[k - 1] = (product / np.outer(root, root))[np.triu_indices(len(product), 1)].max()
    return (
        np.clip(filled(alike), -3, 3),
        np.clip(filled(white), -2, 2),
        np.clip(filled(loosest), -3, 3),
    )
