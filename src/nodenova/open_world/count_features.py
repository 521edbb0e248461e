"""Features by which the number of new classes is estimated; docs/counting.md has the mathematics.

`Candidates` groups the unlabelled nodes into every number of new classes. `NUMBER_FEATURES` measure
how well each number fits, `NOVELTY_FEATURES` whether any class is new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from nodenova.open_world.anchored_kmeans import (
    Directions,
    group_sums,
    kmeans_pp,
    lloyd,
    squared_distances,
)
from nodenova.open_world.mixed import WhitenedSpace
from nodenova.open_world.novelty import (
    FLOOR,
    CellNovelty,
    bonferroni_test,
    self_likeness,
    simes_test,
)
from nodenova.progress import report

MAX_NEW = 40  # largest number of new classes
# Numbers of new classes that are tried; features of those between are interpolated. The first and
# the last are neighbors only.
NUMBERS = (*range(13), 14, 17, 20, 24, 28, 33, MAX_NEW, 48)
STEPS = 12  # iterations of Lloyd's algorithm for a candidate
TRIED = 10  # nodes at which one more center is tried
COMPARED = 400  # nodes whose silhouette is computed
MIN_GROUP = 5  # nodes of a group whose likeness to others is measured
SPARE_SCATTER = 0.14  # log of how much wider than a known class a new one may be
SURE = 0.7  # probability from which on a node is surely new
CELLS = (5, 6, 7)  # cells per class, in each partition of the cell counts
MIN_CELLS, MAX_CELLS = 16, 96
MIN_SHARE, MIN_NODES = 0.01, 8  # least size of a class in the cell counts
# (likeness to a known class below which a cell is new, likeness from which on two groups are one)
LOOSE, TIGHT = (0.70, -0.1), (0.60, 0.1)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Groupings of n nodes into each of NUMBERS of new classes beside the known ones."""

    space: WhitenedSpace
    num_old: int  # number of anchors: the known classes, or 0 where all nodes are new
    # for each k of NUMBERS, (n,) class of each node, the known classes first
    groups: dict[int, np.ndarray]
    scatter: np.ndarray  # for each k, mean squared distance of u to the mean of its group
    plain_scatter: np.ndarray | None  # for k-means without whitening; None in a mixture
    u: np.ndarray  # (n, D) features of the nodes
    x: np.ndarray  # (n, D) the same whitened
    mean: np.ndarray  # (o, D) whitened means of the known classes
    own: np.ndarray  # (o,) their self-likeness
    within: float  # mean inner product of two nodes of a known class, in u
    nearest: float  # mean inner product of a known class and the one nearest to it, in u
    nearest_white: float  # the same as a correlation, whitened
    known_scatter: float  # scatter within known classes

    @classmethod
    def of(cls, space: WhitenedSpace, mixed: bool, rng: np.random.Generator) -> Candidates:
        """Group the nodes of a space into every number of new classes."""
        known = space.known
        scale = space.used.per_column(known.view_scale)
        every = torch.ones(len(scale), dtype=torch.bool, device=scale.device)
        u = space.u.double()
        center = (known.center * scale).double()
        mean = (center @ space.white).cpu().numpy()
        own = self_likeness(known, every, scale, space.white, mean)
        between = (center @ center.t()).cpu().numpy()
        count = known.nodes.double().cpu().numpy().clip(2)
        length = float(u.square().sum(dim=1).mean())
        correlation = mean @ mean.T / np.sqrt(np.outer(own, own))
        anchors = space.anchors if mixed else space.anchors[:0]
        groups = _path(space.points, anchors, rng)
        rows = u.cpu().numpy()
        plain_scatter = None
        if not mixed:
            one = torch.eye(u.shape[1], dtype=torch.float64, device=u.device)
            directions = Directions.of(space.u, one, space.points.shape[1])
            points = directions(space.u).double().cpu().numpy()
            plain_scatter = _scatters(rows, _path(points, anchors, rng), 0)
        return cls(
            space=space,
            num_old=len(anchors),
            groups=groups,
            scatter=_scatters(rows, groups, len(anchors)),
            plain_scatter=plain_scatter,
            u=rows,
            x=(u @ space.white).cpu().numpy(),
            mean=mean,
            own=own,
            within=float(((count * between.diagonal() - length) / (count - 1)).mean()),
            nearest=_mean_nearest(between),
            nearest_white=float(np.clip(_mean_nearest(correlation), -1, 1)),
            known_scatter=max(float(known.covariance(every, 0.0, scale).trace()), 1e-12),
        )

    def group_likeness(self, rows: np.ndarray, k: int) -> Likeness:
        """Likeness of the new groups of candidate k that have MIN_GROUP nodes or more."""
        groups = self.groups[k] - self.num_old
        count = np.bincount(groups[groups >= 0], minlength=k)
        return group_likeness(rows, groups, np.flatnonzero(count >= MIN_GROUP))

    def relative(self, product: np.ndarray) -> np.ndarray:
        """Inner products in u on a scale with 0 for the nearest known classes, 1 within a class."""
        return (product - self.nearest) / max(self.within - self.nearest, 1e-9)

    def known_correlation(self, own: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """(g,) correlation of groups with the known class most like each, whitened."""
        floor = 1e-3 * self.own.mean()
        root = np.sqrt(np.maximum(own, floor)[:, None] * self.own)
        nearest: np.ndarray = (mean @ self.mean.T / root).max(axis=1)
        return nearest

    def known_likeness(self, k: int) -> float:
        """Correlation of k new groups with the nearest known class, the mean over their nodes."""
        product, mean, size = self.group_likeness(self.x, k)
        if not len(size):
            return 1.0
        like = self.known_correlation(product.diagonal(), mean)
        return float(like.clip(-2, 2) @ size / size.sum())

    def share_of_new(self, k: int) -> float:
        """Share of nodes in the k new groups."""
        return float((self.groups[k] >= self.num_old).mean())

    def log_scatter(self, scatter: np.ndarray) -> np.ndarray:
        """Log of a scatter, relative to that within known classes."""
        return np.log(np.maximum(scatter, 1e-12) / self.known_scatter)


class Measures(NamedTuple):
    """Measurements of the T numbers that are scored, from which number features are computed."""

    k: np.ndarray  # (T,) number of new classes
    scatter: np.ndarray  # (T,) log scatter relative to known classes
    plain_scatter: np.ndarray | None  # (T,) the same without whitening; None in a mixture
    silhouette: np.ndarray  # (T,) mean silhouette of all nodes
    new_silhouette: np.ndarray  # (T,) mean silhouette of nodes in new groups
    closest: np.ndarray  # (T + 1,) relative likeness of the two most alike new groups
    # (T + 1,) correlation of the two most alike new groups, minus the known classes'
    closest_white: np.ndarray
    loosest: np.ndarray  # (T + 1,) relative likeness within the loosest new group
    smallest: np.ndarray  # (T,) share of nodes in the smallest new group
    # numbers of new classes by merged cells: loose, tight, by novelty
    cell_counts: tuple[int, int, int]
    size_count: float  # number of new classes of the size of known ones

    @classmethod
    def of(
        cls,
        candidates: Candidates,
        probability: np.ndarray | None,
        size_count: float,
        rng: np.random.Generator,
    ) -> Measures:
        """Measure candidates, given (n,) probabilities of being new or None if all nodes are."""
        k, o = np.array(NUMBERS[1:-1]), candidates.num_old
        plain = candidates.plain_scatter
        silhouette, new_silhouette = _silhouettes(candidates, rng)
        closest, closest_white, loosest = _between_groups(candidates)
        sizes = [np.bincount(candidates.groups[c], minlength=o + c)[o:] for c in k]
        return cls(
            k=k,
            scatter=candidates.log_scatter(candidates.scatter)[1:-1],
            plain_scatter=None if plain is None else candidates.log_scatter(plain)[1:-1],
            silhouette=silhouette,
            new_silhouette=new_silhouette,
            closest=closest,
            closest_white=closest_white - candidates.nearest_white,
            loosest=loosest,
            smallest=np.array([size.min() for size in sizes]) / len(candidates.u),
            cell_counts=cell_counts(candidates, probability, size_count, rng),
            size_count=size_count,
        )

    def off(self, count: float) -> np.ndarray:
        """(T,) distance of each k to another estimate of the number, as a log ratio."""
        return np.abs(np.log((self.k + 0.5) / (count + 0.5)))

    def scatter_count(self) -> int:
        """Smallest k whose groups are not wider than known classes."""
        enough = np.flatnonzero(self.scatter <= SPARE_SCATTER)
        return int(self.k[enough[0]]) if len(enough) else MAX_NEW


class Novelty(NamedTuple):
    """What the novelty features are computed from: candidates, cells, (n,) probabilities."""

    candidates: Candidates
    cells: Sequence[CellNovelty]
    probability: np.ndarray


class Feature(NamedTuple):
    """A named feature of `Measures` (an array over k) or of `Novelty` (a number).

    sign: 1 or -1 if its weight may not be negative or positive, 0 if it may be either.
    """

    name: str
    sign: int
    value: Callable[[Any], Any]


NUMBER_FEATURES = (
    Feature("log_k", 0, lambda m: np.log(m.k)),
    Feature("k", 0, lambda m: m.k / 10),
    Feature("is_one", 0, lambda m: (m.k == 1).astype(float)),
    Feature("excess_scatter", -1, lambda m: np.maximum(m.scatter - SPARE_SCATTER, 0)),
    Feature("off_scatter_count", -1, lambda m: m.off(m.scatter_count())),
    Feature("silhouette", 1, lambda m: m.new_silhouette - m.new_silhouette.max()),
    Feature("off_silhouette_count", -1, lambda m: m.off(m.k[m.silhouette.argmax()])),
    Feature("closest_pair", -1, lambda m: m.closest[:-1]),
    Feature("closest_pair_excess", -1, lambda m: np.maximum(m.closest[:-1], 0)),
    Feature("next_closest_pair", 1, lambda m: m.closest_white[1:]),
    Feature("loosest_group", 1, lambda m: m.loosest[:-1]),
    Feature("smallest_group", 1, lambda m: np.log(m.smallest + 0.003)),
    Feature("off_loose_cell_count", -1, lambda m: m.off(m.cell_counts[0])),
    Feature("off_tight_cell_count", -1, lambda m: m.off(m.cell_counts[1])),
    Feature("off_novel_cell_count", -1, lambda m: m.off(m.cell_counts[2])),
    Feature("off_size_count", -1, lambda m: m.off(m.size_count) ** 2),
)
MIXED_ONLY = ("off_novel_cell_count", "off_size_count")
# Where all nodes are new, novelty does not distinguish cells, no unlabelled node shows how large a
# known class is, and groups in plain space help.
STRICT_FEATURES = (
    *(feature for feature in NUMBER_FEATURES if feature.name not in MIXED_ONLY),
    Feature("excess_plain_scatter", -1, lambda m: np.maximum(m.plain_scatter - SPARE_SCATTER, 0)),
)
NOVELTY_FEATURES = (
    Feature("known_likeness_1", -1, lambda n: n.candidates.known_likeness(1)),
    Feature("known_likeness_2", -1, lambda n: n.candidates.known_likeness(2)),
    Feature("known_likeness_4", -1, lambda n: n.candidates.known_likeness(4)),
    Feature("new_share_4", 1, lambda n: n.candidates.share_of_new(4)),
    Feature(
        "scatter_without_new", 1, lambda n: n.candidates.log_scatter(n.candidates.scatter[:1])[0]
    ),
    Feature("log_p_simes", -1, lambda n: _log10(simes_test(n.cells))),
    Feature("log_p_bonferroni", -1, lambda n: _log10(bonferroni_test(n.cells))),
    Feature("log_p_pooled", -1, lambda n: _log10(_median_pooled(n.cells))),
    Feature("novel_share", 1, lambda n: n.probability.mean()),
    Feature("surely_novel_share", 1, lambda n: (n.probability > SURE).mean()),
)


def compute(features: Sequence[Feature], source: Measures | Novelty) -> dict[str, np.ndarray]:
    """{name: value} of each feature, for 1..MAX_NEW where it depends on the number."""
    values = {feature.name: np.asarray(feature.value(source)) for feature in features}
    if isinstance(source, Novelty):
        return values
    at = np.log(np.arange(1, MAX_NEW + 1))
    return {name: np.interp(at, np.log(source.k), value) for name, value in values.items()}


def count_by_size(share: float, nodes: int, labelled: float, num_old: int) -> float:
    """Number of new classes that are as large as known classes are on average.

    Of `nodes` unlabelled nodes a `share` is new; the others, and the labelled ones, are of the
    known classes.
    """
    share = float(np.clip(share, 0, 1 - 1e-3))
    known = nodes * (1 - share) + labelled
    return float(np.clip(nodes * share * num_old / max(known, 1), 0.25, 2 * MAX_NEW))


def _log10(p: float) -> float:
    return float(np.log10(max(p, FLOOR)))


def _median_pooled(cells: Sequence[CellNovelty]) -> float:
    return float(np.median([one.pooled_p_value() for one in cells]))


class Likeness(NamedTuple):
    """(g, g) mean inner products between groups; (g, D) means; (g,) sizes."""

    product: np.ndarray
    mean: np.ndarray
    size: np.ndarray


def group_likeness(rows: np.ndarray, groups: np.ndarray, chosen: np.ndarray) -> Likeness:
    """Mean inner products of the rows (n, D) of chosen groups, a row never with itself."""
    number = np.full(max(int(groups.max(initial=0)), int(chosen.max(initial=0))) + 2, -1)
    number[chosen] = np.arange(len(chosen))
    place = np.where(groups >= 0, number[np.maximum(groups, 0)], -1)
    size = np.bincount(place[place >= 0], minlength=len(chosen))
    total = group_sums(rows, place, len(chosen))
    sums = total @ total.T
    product = sums / np.maximum(np.outer(size, size), 1)
    itself = group_sums((rows**2).sum(axis=1, keepdims=True), place, len(chosen))[:, 0]
    np.fill_diagonal(product, (sums.diagonal() - itself) / np.maximum(size * (size - 1), 1))
    return Likeness(product, total / np.maximum(size, 1)[:, None], size)


def silhouettes(distance: np.ndarray, groups: np.ndarray) -> np.ndarray | None:
    """(n,) silhouette of each point, 0 if it is alone in its group; None if there is one group."""
    present, place = np.unique(groups, return_inverse=True)
    if len(present) < 2:
        return None
    size = np.bincount(place)
    total = np.stack([distance[:, place == g].sum(axis=1) for g in range(len(present))], axis=1)
    at = np.arange(len(place)), place
    within = total[at] / np.maximum(size[place] - 1, 1)
    other = total / size
    other[at] = np.inf
    nearest = other.min(axis=1)
    value = (nearest - within) / np.maximum(np.maximum(nearest, within), 1e-12)
    return np.where(size[place] > 1, value, 0.0)


def _fill_missing(values: np.ndarray) -> np.ndarray:
    """Replace NaN by the nearest entry; by 0 if all are NaN."""
    there = np.flatnonzero(~np.isnan(values))
    if not len(there):
        return np.zeros_like(values)
    nearest = np.abs(np.arange(len(values))[:, None] - there).argmin(axis=1)
    return values[there[nearest]]


def _mean_nearest(likeness: np.ndarray) -> float:
    """Mean over classes of the likeness to the nearest other class; 0 for one class."""
    if len(likeness) < 2:
        return 0.0
    other = likeness.copy()
    np.fill_diagonal(other, -np.inf)
    return float(other.max(axis=1).mean())


def cell_counts(
    candidates: Candidates,
    probability: np.ndarray | None,
    size_count: float,
    rng: np.random.Generator,
) -> tuple[int, int, int]:
    """Numbers of new classes by merging new cells: medians over three partitions, at least 1.

    A cell is new if it is unlike every known class (LOOSE, then TIGHT), or if its nodes are new
    with probability 0.5 or more.
    """
    points = candidates.space.points
    counts = []
    for per_class in CELLS:
        # Half of the classes may be new where nothing is known about their number.
        classes = max((len(candidates.mean) + size_count) / 2, len(candidates.mean))
        count = int(np.clip(per_class * classes, MIN_CELLS, MAX_CELLS))
        half = points[rng.permutation(len(points))[: -(-len(points) // 2)]]
        even, none = np.ones(len(half)), points[:0]
        start = kmeans_pp(half, none, min(count, len(half)), rng, even, 3)
        center, _ = lloyd(half, none, start, even, STEPS)
        cell = squared_distances(points, center).argmin(axis=1)
        size = np.bincount(cell, minlength=len(center))
        full = np.flatnonzero(size >= 2)
        product, mean, _ = group_likeness(candidates.x, cell, full)
        like = candidates.known_correlation(product.diagonal(), mean)
        if probability is None:
            like, novel = np.full(len(full), -np.inf), np.ones(len(full))
        else:
            total = np.bincount(cell, probability, minlength=len(center))
            novel = (total / np.maximum(size, 1))[full]
        by_likeness = [_merge(candidates, cell, full[like < a], b) for a, b in (LOOSE, TIGHT)]
        counts.append([*by_likeness, _merge(candidates, cell, full[novel >= 0.5], 0.0)])
    loose, tight, novel_count = np.median(counts, axis=0).astype(int).clip(1).tolist()
    return loose, tight, novel_count


def _merge(candidates: Candidates, cell: np.ndarray, chosen: np.ndarray, least: float) -> int:
    """Number of groups after merging chosen cells (average linkage) while `least` alike or more."""
    size = np.array([(cell == c).sum() for c in chosen], dtype=float)
    total = group_sums(candidates.u, cell, int(cell.max()) + 1)[chosen]
    product = total @ total.T
    while len(size) > 1:
        alike = candidates.relative(product / np.outer(size, size))
        np.fill_diagonal(alike, -np.inf)
        a, b = divmod(int(alike.argmax()), len(size))
        if alike[a, b] < least:
            break
        product[a] += product[b]
        product[:, a] += product[:, b]
        size[a] += size[b]
        product = np.delete(np.delete(product, b, axis=0), b, axis=1)
        size = np.delete(size, b)
    return int((size >= max(MIN_SHARE * len(candidates.u), MIN_NODES)).sum())


def _path(
    points: np.ndarray, anchors: np.ndarray, rng: np.random.Generator
) -> dict[int, np.ndarray]:
    """Groupings into NUMBERS of new centers: the better of some more centers and a new start."""
    even, center = np.ones(len(points)), points[:0]
    groups = {}
    for step, k in enumerate(NUMBERS):
        report(step + 1, len(NUMBERS), "counting")
        if k:
            before = np.concatenate([anchors, center])
            more = kmeans_pp(points, before, k - len(center), rng, even, TRIED)
            fresh = kmeans_pp(points, anchors, k, rng, even, 3)
            starts = (np.concatenate([center, more]), fresh)
            results = [lloyd(points, anchors, start, even, STEPS) for start in starts]
            center = min(results, key=lambda result: result[1])[0]
        centers = np.concatenate([anchors, center])
        if not len(centers):
            centers = points.mean(axis=0, keepdims=True)
        groups[k] = squared_distances(points, centers).argmin(axis=1)
    return groups


def _scatters(rows: np.ndarray, groups: Mapping[int, np.ndarray], num_old: int) -> np.ndarray:
    """(candidates,) mean squared distance to the mean of the group; each group costs a node."""
    square = float((rows**2).sum())
    scatter = []
    for k, place in groups.items():
        size = np.bincount(place)
        total = group_sums(rows, place, len(size))
        between = ((total**2).sum(axis=1) / np.maximum(size, 1)).sum()
        scatter.append((square - float(between)) / max(len(rows) - num_old - k, 1))
    return np.array(scatter)


def _silhouettes(candidates: Candidates, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(T,) mean silhouettes of all nodes and of nodes in new groups."""
    rows = rng.permutation(len(candidates.u))[:COMPARED]
    points = candidates.space.points[rows]
    distance = np.sqrt(squared_distances(points, points))
    scored = NUMBERS[1:-1]
    every, new = np.full(len(scored), np.nan), np.full(len(scored), np.nan)
    for at, k in enumerate(scored):
        groups = candidates.groups[k][rows]
        value = silhouettes(distance, groups)
        if value is not None:
            is_new = groups >= candidates.num_old
            every[at] = value.mean()
            new[at] = value[is_new].mean() if is_new.any() else np.nan
    return _fill_missing(every), _fill_missing(new)


def _between_groups(candidates: Candidates) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(T + 1,) likeness of the closest two new groups, whitened too, and within the loosest."""
    closest, white, loosest = (np.full(len(NUMBERS) - 1, np.nan) for _ in range(3))
    for at, k in enumerate(NUMBERS[1:]):
        product = candidates.relative(candidates.group_likeness(candidates.u, k).product)
        if len(product):
            loosest[at] = product.diagonal().min()
        if len(product) > 1:
            pairs = np.triu_indices(len(product), 1)
            closest[at] = product[pairs].max()
            product = candidates.group_likeness(candidates.x, k).product
            root = np.sqrt(np.maximum(product.diagonal(), 1e-3 * candidates.own.mean()))
            white[at] = (product / np.outer(root, root))[pairs].max()
    return (
        np.clip(_fill_missing(closest), -3, 3),
        np.clip(_fill_missing(white), -2, 2),
        np.clip(_fill_missing(loosest), -3, 3),
    )
