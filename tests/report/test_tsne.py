"""Places on the map: the fast way does what the slow, plain way does, and the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from nodenova.report import tsne


def groups(n: int, d: int = 12, k: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return 6 * rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), y


@pytest.mark.parametrize(("spacing", "most"), [(0.5, 0.2), (0.25, 0.06)])
def test_repulsion_is_that_of_all_pairs(
    monkeypatch: pytest.MonkeyPatch, spacing: float, most: float
) -> None:
    monkeypatch.setattr(tsne, "SPACING", spacing)
    y = np.random.default_rng(0).normal(scale=8, size=(300, 2))
    away = y[:, None] - y[None]
    close = 1 / (1 + (away**2).sum(axis=2))
    plain = (away * close[..., None] ** 2).sum(axis=1) / (close.sum() - len(y))
    fast = tsne._repulsion(y, {})
    assert np.linalg.norm(fast - plain) < most * np.linalg.norm(plain)


def test_nearest_are_the_nearest() -> None:
    z = groups(500)[0].astype(np.float32)
    distance = ((z[:, None] - z[None]) ** 2).sum(axis=2) + np.diag(np.full(500, np.inf))
    plain = np.sort(np.argsort(distance, axis=1)[:, :15], axis=1)
    assert (np.sort(tsne._nearest(z, 15), axis=1) == plain).mean() > 0.999


def test_nearest_of_many_are_nearly_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tsne, "BLOCK", 200)
    z = groups(1500, d=4)[0].astype(np.float32)
    distance = ((z[:, None] - z[None]) ** 2).sum(axis=2) + np.diag(np.full(1500, np.inf))
    plain = np.argsort(distance, axis=1)[:, :15]
    found = tsne._nearest(z, 15)
    assert not (found == np.arange(1500)[:, None]).any()
    assert (
        np.mean([len(np.intersect1d(a, b)) / 15 for a, b in zip(plain, found, strict=True)]) > 0.9
    )


def test_groups_stay_together_and_the_map_is_the_same_every_time() -> None:
    z, y = groups(400)
    steps: list[tuple[int, int]] = []
    xy = tsne.positions(z, lambda phase, done, total: steps.append((done, total)))
    assert steps[-1] == (tsne.ITERATIONS, tsne.ITERATIONS)
    assert xy.min() >= 0
    assert xy.max() <= 1
    assert (xy == tsne.positions(z)).all()
    distance = ((xy[:, None] - xy[None]) ** 2).sum(axis=2) + np.diag(np.full(400, np.inf))
    assert (y[distance.argmin(axis=1)] == y).mean() > 0.98


def test_of_many_nodes_a_sample_is_laid_out_and_the_others_are_put_beside_their_like(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z, y = groups(900)
    monkeypatch.setattr(tsne, "MAX_LAID_OUT", 150)
    xy = tsne.positions(z)
    assert xy.shape == (900, 2)
    assert xy.min() >= 0
    assert xy.max() <= 1
    assert (xy == tsne.positions(z)).all()
    assert len(np.unique(xy, axis=0)) == 900  # no two on one point
    distance = ((xy[:, None] - xy[None]) ** 2).sum(axis=2) + np.diag(np.full(900, np.inf))
    assert (y[distance.argmin(axis=1)] == y).mean() > 0.98


def test_directions_found_on_some_nodes_are_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    z = groups(900)[0]
    plain = tsne._strongest(z)
    monkeypatch.setattr(tsne, "MAX_FOR_DIRECTIONS", 300)
    some = tsne._strongest(z)
    assert some[:, :3].var(axis=0).sum() > 0.98 * plain[:, :3].var(axis=0).sum()


@pytest.mark.parametrize(
    "z",
    [
        np.ones((1, 3)),
        np.ones((50, 3)),
        np.arange(6.0)[:, None],
        np.full((40, 2), np.nan),
        groups(33)[0],
    ],
    ids=["one", "equal", "few, one column", "nan", "33"],
)
def test_anything_gets_a_place(z: np.ndarray) -> None:
    xy = tsne.positions(z)
    assert xy.shape == (len(z), 2)
    assert np.isfinite(xy).all()
    assert not len(z) or (xy.min() >= 0 and xy.max() <= 1)
