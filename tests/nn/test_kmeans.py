from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from nodenova.nn import kmeans
from nodenova.nn.kmeans import cluster, fit_mixture, spherical_kmeans


def test_planted_groups_are_found() -> None:
    y = torch.arange(90) % 3
    rows = 5 * torch.eye(3).repeat(1, 10)[y] + torch.randn(
        90, 30, generator=torch.Generator().manual_seed(0)
    )
    assert adjusted_rand_score(y, cluster(rows, 3)) == 1.0


def test_one_group_and_as_many_groups_as_rows() -> None:
    rows = torch.randn(4, 10)
    assert cluster(rows, 1).tolist() == [0, 0, 0, 0]
    assert sorted(cluster(rows, 4).tolist()) == [0, 1, 2, 3]


def test_seeded_by_torchs_generator() -> None:
    rows = torch.randn(60, 5, generator=torch.Generator().manual_seed(3))
    found = []
    for _ in range(2):
        torch.manual_seed(7)
        found.append(cluster(rows, 6).tolist())
    assert found[0] == found[1]


def test_many_short_rows_and_few_long_ones_have_the_same_components() -> None:
    """The two ways of finding principal components agree: columns of zeros change nothing."""
    rows = torch.randn(50, 20, generator=torch.Generator().manual_seed(1))
    longer = torch.cat([rows, torch.zeros(50, 40)], dim=1)
    found = []
    for table in (rows, longer):
        torch.manual_seed(0)
        found.append(cluster(table, 4))
    assert adjusted_rand_score(*found) == 1.0


def test_directions_hold_together_what_lengths_would_part() -> None:
    """Three classes, one of them wide along its own direction.

    k-means by distance halves it, by direction it does not.
    """
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(120) % 3
    rows = torch.eye(3).repeat(1, 10)[y] + 0.05 * torch.randn(120, 30, generator=generator)
    rows[y == 0] *= torch.linspace(1, 9, 40)[:, None]
    rows -= rows.mean(0)  # directions are taken from the mean of all
    torch.manual_seed(0)
    assert adjusted_rand_score(y, cluster(rows, 3)) < 0.8
    assert adjusted_rand_score(y, spherical_kmeans(rows, 3)) > 0.8


def test_directions_of_few_kinds_do_not_do() -> None:
    """On a line there are two directions; three groups are told apart by length."""
    rows = torch.tensor([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]])
    assert adjusted_rand_score([0, 0, 1, 1, 2, 2], spherical_kmeans(rows, 3)) == 1.0
    assert spherical_kmeans(rows, 1).tolist() == [0] * 6


def test_equal_rows_are_one_group_without_a_warning() -> None:
    for group in (cluster, spherical_kmeans):
        assert group(torch.ones(9, 4), 3).unique().tolist() == [0]
        two = group(torch.eye(2).repeat_interleave(5, dim=0), 3)
        assert len(two.unique()) == 2
        assert len(two[:5].unique()) == len(two[5:].unique()) == 1


def uneven_clouds(large: int = 600, small: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Points of a large and a small round class, and which are of the small one."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [large, small])
    return rng.standard_normal((large + small, 3)) + 5.0 * y[:, None] * np.eye(3)[0], y


def test_a_mixture_leaves_a_large_class_whole_where_k_means_cuts_it() -> None:
    points, y = uneven_clouds()
    cut = KMeans(2, n_init=10, random_state=0).fit(points)
    assert adjusted_rand_score(y, cut.labels_) < 0.2
    whole = fit_mixture(points, points[:0], cut.cluster_centers_, np.ones(len(points)))
    assert adjusted_rand_score(y, whole.distances(points).argmin(axis=1)) > 0.9
    assert whole.penalty.min() < 0 < whole.penalty.max()


def test_equal_classes_have_no_penalty_and_no_step_is_k_means(monkeypatch) -> None:
    rng = np.random.default_rng(1)
    points = np.repeat(10 * np.eye(3), 50, axis=0) + rng.standard_normal((150, 3))
    found = fit_mixture(points, points[:0], points[[0, 50, 100]], np.ones(150))
    assert np.abs(found.penalty).max() < 1e-6
    assert found.distances(points).argmin(axis=1).tolist() == np.repeat([0, 1, 2], 50).tolist()
    monkeypatch.setattr(kmeans, "MIXTURE_STEPS", 0)
    plain = fit_mixture(points, points[:0], points[[0, 50, 100]], np.ones(150))
    assert np.array_equal(plain.center, points[[0, 50, 100]])
    assert not plain.penalty.any()


def test_anchors_keep_their_direction_and_take_the_length_of_their_points() -> None:
    rng = np.random.default_rng(2)
    points = np.repeat(np.eye(3), 100, axis=0) + 0.3 * rng.standard_normal((300, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    anchors = np.eye(3)[:2]
    found = fit_mixture(points, anchors, np.eye(3)[2:], np.ones(300))
    length = np.linalg.norm(found.center[:2], axis=1)
    assert np.allclose(found.center[:2] / length[:, None], anchors)
    assert np.allclose(length, [points[:100, 0].mean(), points[100:200, 1].mean()], atol=0.03)
    assert not found.penalty[:2].any()


def test_weights_decide_the_shares_of_a_mixture() -> None:
    points, y = uneven_clouds(200, 200)
    start = np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0]])
    found = fit_mixture(points, points[:0], start, np.where(y == 1, 0.1, 1.0))
    assert found.penalty[0] < 0 < found.penalty[1]


@pytest.mark.parametrize("steps", [0, 15])
def test_no_group_is_empty_after_a_mixture(steps: int, monkeypatch) -> None:
    monkeypatch.setattr(kmeans, "MIXTURE_STEPS", steps)
    torch.manual_seed(0)
    rows = torch.randn(80, 12)
    assert len(set(spherical_kmeans(rows, 9).tolist())) == 9
