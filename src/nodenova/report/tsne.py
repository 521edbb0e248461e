"""Places of nodes on a flat map: a deterministic t-SNE of their embeddings in linear time.

t-SNE (van der Maaten and Hinton) with two shortcuts from the literature: uniform affinities to the
nearest neighbors (Böhm, Berens and Kobak 2022), and repulsion as a convolution on a grid (FFT;
Linderman et al. 2019). Of very many nodes a sample is laid out, and every other node is placed
between its nearest nodes of the sample.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.fft import irfft2, next_fast_len, rfft2
from scipy.linalg import eigh

from nodenova.nn.seeding import fixed_threads
from nodenova.progress import Progress, no_progress

DIMENSIONS = 32  # of the embeddings, the strongest directions
MAX_FOR_DIRECTIONS = 4000  # nodes from which these are computed
NEIGHBORS = 15
MAX_LAID_OUT = 20_000  # nodes; a sample of larger graphs
NEAREST_LAID_OUT = 3  # nodes of the sample between which another node is placed
# Smaller graphs are shown by their two strongest directions.
MIN_NODES = 32
EXAGGERATED = 100  # first iterations, with 12-fold attraction to form groups
ITERATIONS = 300  # 500 keep no more neighbors together: 46% of the 15 nearest on WordNet, as here
SPACING = 0.5  # of the grid; the repulsion changes over distances of about 1
MAX_CELLS = 512  # of the grid, along one side
BLOCK = 4000  # nodes among which neighbors are searched by brute force


def positions(z: np.ndarray, progress: Progress = no_progress) -> np.ndarray:
    """(n, 2) places in [0, 1] x [0, 1] of (n, d) embeddings, like ones near each other."""
    with fixed_threads():
        z = _strongest(np.asarray(z))
        n = len(z)
        rng = np.random.default_rng(0)
        laid_out = np.arange(n)
        if n > MAX_LAID_OUT:
            laid_out = np.sort(rng.choice(n, MAX_LAID_OUT, replace=False))
        some = z[laid_out]
        # Without noise, equal embeddings would stay on one point forever.
        y = some[:, :2] / (some[:, 0].std() or 1.0) + rng.normal(scale=1e-2, size=(len(some), 2))
        if n >= MIN_NODES:
            y = _descend(1e-4 * y, _affinities(some, NEIGHBORS), progress)
        if n > len(laid_out):
            y = _beside(z, laid_out, y, rng)
    # The long side of the map lies across: screens are wider than high.
    y = (y - y.mean(axis=0)) @ np.linalg.eigh(np.cov(y.T))[1][:, ::-1] if n > 1 else y
    low, span = y.min(axis=0), np.ptp(y, axis=0).max() or 1.0
    return (y - low) / span + (1 - np.ptp(y, axis=0) / span) / 2


def differ(z: np.ndarray) -> bool:
    """Whether there is a layout: at least four nodes with finite embeddings that differ."""
    z = np.asarray(z, dtype=np.float64)
    return len(z) >= 4 and bool(np.isfinite(z).all() and np.ptp(z, axis=0).any())


def _strongest(z: np.ndarray) -> np.ndarray:
    """(n, 2..32) principal components, found on some of the nodes."""
    some = z[:: -(-len(z) // MAX_FOR_DIRECTIONS)].astype(np.float64)
    center = some.mean(axis=0)
    some = np.nan_to_num(some - center)
    size = z.shape[1]
    found = (max(size - DIMENSIONS, 0), size - 1)
    vectors = eigh(some.T @ some, subset_by_index=found, check_finite=False)[1][:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])
    blocks = np.array_split(z, 1 + len(z) // BLOCK)
    parts = [np.nan_to_num(block.astype(np.float64) - center) @ vectors for block in blocks]
    return np.pad(np.concatenate(parts), ((0, 0), (0, max(0, 2 - vectors.shape[1]))))


def _beside(
    z: np.ndarray, laid_out: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(n, 2) places of all nodes `z`, given (m, 2) places `y` of the nodes `laid_out`."""
    placed = np.empty((len(z), 2))
    others = np.setdiff1d(np.arange(len(z)), laid_out, assume_unique=True)
    # (others, 3) numbers in `laid_out`
    nearest = _nearest(z[laid_out].astype(np.float32), NEAREST_LAID_OUT, z[others].astype("f4"))
    placed[others] = y[nearest].mean(axis=1)
    # About the distance between neighbors in the sample.
    apart = np.median(np.abs(y[nearest[:, 0]] - y[nearest[:, 1]])) if len(others) else 0.0
    placed[others] += rng.normal(scale=apart, size=(len(others), 2))
    placed[laid_out] = y
    return placed


def _affinities(z: np.ndarray, k: int) -> sp.csr_array:
    """(n, n) P: symmetric, 1 / (2 k n) for either node being among the k nearest of the other."""
    n = len(z)
    nearest = _nearest(z.astype(np.float32), k)
    p = sp.csr_array((np.ones(n * k), nearest.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    p = sp.csr_array(p + p.T)
    p.sort_indices()
    return p / (2 * k * n)


def _nearest(z: np.ndarray, k: int, of: np.ndarray | None = None) -> np.ndarray:
    """(n, k) nearest nodes in `z` of each node, or of each (m, d) row in `of`.

    Exact for few nodes, otherwise searched in the cells around the node's own.
    """
    n = len(z)
    rng = np.random.default_rng(0)
    pivots = z[np.sort(rng.choice(n, 1 if n <= BLOCK else int(np.sqrt(n)), replace=False))]
    members = _cells(z, pivots)
    around = np.argsort(_distances(pivots, pivots), axis=1, kind="stable")
    queries = z if of is None else of
    found = np.zeros((len(queries), k), dtype=np.int64)
    for c, mine in enumerate(members if of is None else _cells(of, pivots)):
        near: list[np.ndarray] = []
        # Its own cell, then the nearest ones, until there are enough to choose from.
        for other in around[c]:
            near.append(members[other])
            if len(near) >= 6 and sum(map(len, near)) > 4 * k:
                break
        candidates = np.concatenate(near)
        if len(candidates) > 2 * BLOCK:  # a crowded place: a sample is enough
            candidates = np.sort(rng.choice(candidates, 2 * BLOCK, replace=False))
        for part in np.array_split(mine, 1 + len(mine) // 1000):
            distances = _distances(queries[part], z[candidates])
            if of is None:
                distances[part[:, None] == candidates] = np.inf
            found[part] = candidates[np.argpartition(distances, k - 1, axis=1)[:, :k]]
    return found


def _cells(z: np.ndarray, pivots: np.ndarray) -> list[np.ndarray]:
    """Numbers of the nodes in the cell of each pivot."""
    parts = np.array_split(z, 1 + len(z) // BLOCK)
    cell = np.concatenate([_distances(part, pivots).argmin(axis=1) for part in parts])
    order = np.argsort(cell, kind="stable")
    return np.split(order, np.searchsorted(cell[order], np.arange(1, len(pivots))))


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(len(a), len(b)) squared distances, up to a constant for each row."""
    return (b * b).sum(axis=1) - 2 * a @ b.T


def _descend(y: np.ndarray, p: sp.csr_array, progress: Progress) -> np.ndarray:
    n = len(y)
    y = np.asfortranarray(y)  # contiguous coordinates make sums fast
    degree, begin = np.diff(p.indptr), p.indptr[:-1]  # every node has neighbors
    velocity, gains = np.zeros_like(y), np.ones_like(y)
    rate = max(10.0, n / 12)
    kernels: dict[tuple[int, float], tuple[np.ndarray, ...]] = {}
    for i in range(ITERATIONS):
        early = i < EXAGGERATED
        # (edges,)
        across, along = (np.repeat(of, degree) - of[p.indices] for of in y.T)
        pull = p.data / (1 + across * across + along * along)
        attraction = np.array([np.add.reduceat(pull * part, begin) for part in (across, along)]).T
        gradient = 4 * ((12.0 if early else 1.0) * attraction - _repulsion(y, kernels))
        gains = np.maximum(np.where(gradient * velocity < 0, gains + 0.2, gains * 0.8), 0.01)
        velocity = (0.5 if early else 0.8) * velocity - rate * gains * gradient
        y = y + velocity
        y -= y.mean(axis=0)
        progress("drawing the map", i + 1, ITERATIONS)
    return y


def _repulsion(
    y: np.ndarray, kernels: dict[tuple[int, float], tuple[np.ndarray, ...]]
) -> np.ndarray:
    """(n, 2) sum over j of (y_i - y_j) / (1 + d_ij^2)^2, divided by Z.

    Z is the sum of 1 / (1 + d_ij^2) over all pairs.
    """
    low = y.min(axis=0)
    extent = float(np.ptp(y, axis=0).max())
    spacing = SPACING
    while extent / spacing > MAX_CELLS - 2:
        spacing *= 2
    side = next_fast_len(2 * max(32, 1 << int(np.ceil(np.log2(extent / spacing + 2)))), real=True)
    if (side, spacing) not in kernels:
        kernels.clear()
        kernels[side, spacing] = _kernels(side, spacing)
    force_x, force_y, closeness = kernels[side, spacing]
    place = (y - low) / spacing
    corner = place.astype(np.int64)
    part = place - corner
    flat, weights = [], []
    for a in (0, 1):
        for b in (0, 1):
            flat.append((corner[:, 0] + a) * side + corner[:, 1] + b)
            weights.append(np.abs(1 - a - part[:, 0]) * np.abs(1 - b - part[:, 1]))
    density = np.bincount(np.concatenate(flat), np.concatenate(weights), side * side)
    density = density.reshape(side, side)
    spectrum = rfft2(density.astype(np.float32), workers=1)
    # the interaction of a node's own corners
    beside = 2 * part * (1 - part)
    same = 1 - beside
    itself = same.prod(axis=1) + (beside * same[:, ::-1]).sum(axis=1) / (1 + spacing**2)
    itself += beside.prod(axis=1) / (1 + 2 * spacing**2)
    near = irfft2(spectrum * closeness, (side, side), workers=1)
    total = float((density * near).sum() - itself.sum())
    forces = []
    for kernel in (force_x, force_y):
        field = irfft2(spectrum * kernel, (side, side), workers=1).ravel()
        forces.append(sum(w * field[at] for at, w in zip(flat, weights, strict=True)))
    return np.array(forces).T / max(total, 1e-12)


def _kernels(side: int, spacing: float) -> tuple[np.ndarray, ...]:
    """Spectra of r_x / (1 + r^2)^2, r_y / (1 + r^2)^2 and 1 / (1 + r^2) on a grid that wraps."""
    offset = np.fft.fftfreq(side, 1 / side) * spacing
    x, y = np.meshgrid(offset, offset, indexing="ij")
    close = 1 / (1 + x * x + y * y)
    kernels = (x * close**2, y * close**2, close)
    return tuple(rfft2(kernel.astype(np.float32), workers=1) for kernel in kernels)
