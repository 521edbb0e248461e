"""The figures of a report: looks that differ, and what cannot be drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nodenova.report import figures


def test_many_classes_look_different() -> None:
    n, n_old = 30, 20
    y = np.arange(n)
    figure = figures.node_map(np.zeros((n, 2)), list(range(n)), y, y, [f"c{i}" for i in range(n)], n_old, y)
    looks = {(t.marker.color, t.marker.symbol) for t in figure.data if t.meta == "true"}
    assert len(looks) == n
    assert all(t.marker.symbol.startswith("circle" if i < n_old else "diamond") for i, t in enumerate(figure.data[:n]))


@pytest.mark.parametrize("z", [np.zeros((3, 4)), np.ones((50, 4)), np.full((50, 4), np.nan)])
def test_nothing_to_lay_out(z: np.ndarray) -> None:
    assert figures.positions(z) is None


def test_embeddings_of_one_dimension_can_be_laid_out() -> None:
    xy = figures.positions(np.random.default_rng(0).normal(size=(12, 1)))
    assert xy is not None
    assert xy.shape == (12, 2)
    assert np.isfinite(xy).all()


def test_losses_that_break_off_leave_gaps() -> None:
    figure = figures.loss_curves({"a": [100.0, math.nan, 0.0, 1.0], "<b>": [math.inf]})
    assert figure.data[0].y == (100.0, None, None, 1.0)
    assert figure.data[1].name == "&lt;b&gt;"
    assert figure.layout.yaxis.type == "log"
    assert figures.loss_curves({"a": [1.0, -1.0]}).layout.yaxis.type == "linear"
