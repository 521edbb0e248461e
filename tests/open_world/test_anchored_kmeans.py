"""K-means with centers that do not move."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch

from nodenova.open_world.anchored_kmeans import (
    Directions,
    anchored_kmeans,
    assign_new,
    group_sums,
    kmeans_pp,
    lloyd,
    match_numbers,
    squared_distances,
    whitening,
)


def blobs(at: list[float], size: int = 40) -> np.ndarray:
    """Points around places on a line."""
    rng = np.random.default_rng(0)
    return np.concatenate([[x, 0.0] + 0.3 * rng.standard_normal((size, 2)) for x in at])


def distances(points: np.ndarray, anchors: np.ndarray, center: np.ndarray) -> np.ndarray:
    return squared_distances(points, np.concatenate([anchors, center]))


def test_new_centers_go_where_no_anchor_is_and_anchors_do_not_move() -> None:
    points, anchors = blobs([0, 5, 10, 15]), np.array([[0.0, 0.0], [10.0, 0.0]])
    before = anchors.copy()
    center = anchored_kmeans(points, anchors, 2, 4, np.random.default_rng(0))
    assert np.array_equal(anchors, before)
    assert np.abs(np.sort(center[:, 0]) - [5, 15]).max() < 0.3
    groups = assign_new(distances(points, anchors, center), 2)
    assert (groups[:40] == -1).all()
    assert (groups[80:120] == -1).all()
    assert len(set(groups[40:80])) == 1


def test_a_large_crowd_that_counts_little_does_not_draw_a_center() -> None:
    points = np.concatenate([blobs([0]), blobs([6], 400), blobs([12], 20)])
    anchors = np.array([[0.0, 0.0]])
    weight = np.where(points[:, 0] > 9, 3.0, 0.001)
    heavy = anchored_kmeans(points, anchors, 1, 4, np.random.default_rng(0), weight)
    even = anchored_kmeans(points, anchors, 1, 4, np.random.default_rng(0))
    assert abs(heavy[0, 0] - 12) < 0.6
    assert abs(even[0, 0] - 6) < 1.0


def test_lloyd_never_raises_the_inertia_and_fills_empty_centers() -> None:
    points, anchors = blobs([0, 5, 10]), np.array([[0.0, 0.0]])
    start, even = np.array([[5.0, 0.0], [1000.0, 1000.0]]), np.ones(len(points))
    center, inertia = lloyd(points, anchors, start, even)
    assert inertia < lloyd(points, anchors, start, even, steps=1)[1]
    assert np.abs(center).max() < 20


def test_every_new_center_has_a_point_even_if_all_are_alike() -> None:
    points = np.zeros((5, 2))
    groups = assign_new(distances(points, np.zeros((1, 2)), np.ones((3, 2))), 3)
    assert sorted(groups[groups >= 0]) == [0, 1, 2]


@pytest.mark.parametrize("number", list(permutations(range(3))))
def test_other_groupings_are_numbered_like_the_first(number: tuple[int, ...]) -> None:
    groups = np.array([0, 0, 0, 1, 1, 2, -1])
    other = np.append(number, -1)[groups]
    assert np.array_equal(match_numbers(other, groups, 3), groups)


def test_all_groups_count_when_numbers_are_matched() -> None:
    groups = np.array([1] * 5 + [0, 0, 1, 1, 1])
    other = np.array([0] * 5 + [1] * 5)  # alone, 1 would be called 1: three of its five nodes are
    assert match_numbers(other, groups, 2).tolist() == [1] * 5 + [0] * 5


def test_whitened_rows_have_the_identity_as_covariance() -> None:
    torch.manual_seed(0)
    rows = torch.randn(2000, 4, dtype=torch.float64) @ torch.randn(4, 4, dtype=torch.float64)
    covariance = rows.T @ rows / len(rows)
    x = rows @ whitening(covariance)
    assert torch.allclose(x.T @ x / len(rows), torch.eye(4, dtype=torch.float64), atol=1e-8)


def test_directions_are_those_of_plain_principal_components() -> None:
    torch.manual_seed(0)
    rows = torch.randn(300, 30) * torch.linspace(3, 0.1, 30)
    directions = Directions.of(rows, torch.eye(30, dtype=torch.float64), 3)
    centered = (rows - rows.mean(0)).double()
    plain = centered @ torch.linalg.svd(centered, full_matrices=False)[2][:3].T
    plain = torch.nn.functional.normalize(plain, dim=1)
    found = directions(rows).double()
    assert torch.allclose(found.abs(), plain.abs(), atol=1e-3)


def test_a_row_that_counts_thrice_is_three_rows() -> None:
    torch.manual_seed(0)
    rows, white = torch.randn(20, 5), torch.eye(5, dtype=torch.float64)
    times = torch.ones(20, dtype=torch.int64)
    times[:4] = 3
    weighted = Directions.of(rows, white, 2, times.double())
    repeated = Directions.of(rows.repeat_interleave(times, dim=0), white, 2)
    assert torch.allclose(weighted(rows).abs(), repeated(rows).abs(), atol=1e-5)
    assert not torch.allclose(weighted(rows).abs(), Directions.of(rows, white, 2)(rows).abs())


def test_sums_and_distances_are_the_loops() -> None:
    rng = np.random.default_rng(0)
    rows, groups = rng.random((9, 3)), np.array([0, 2, 2, -1, 0, 2, 0, -1, 2])
    sums = group_sums(rows, groups, 3)
    for g in range(3):
        assert np.allclose(sums[g], rows[groups == g].sum(axis=0))
    centers = rng.random((2, 3))
    expected = [[((row - c) ** 2).sum() for c in centers] for row in rows]
    assert np.allclose(squared_distances(rows, centers), expected)


def test_an_empty_center_takes_the_nearest_point_that_leaves_no_other_center_empty() -> None:
    points, anchors = np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([[9.0]])
    # The third center is empty. The point at 2 is nearest to it, but alone with the second one.
    groups = assign_new(distances(points, anchors, np.array([[0.4], [2.2], [4.5]])), 3)
    assert groups.tolist() == [0, 2, 1, -1]
    groups = assign_new(distances(points, anchors, np.array([[2.2], [0.4], [4.5]])), 3)
    assert groups.tolist() == [1, 2, 0, -1]
    # A point of an anchor is free; each point is taken once.
    groups = assign_new(distances(points, anchors, np.array([[0.5], [40.0], [41.0]])), 3)
    assert groups.tolist() == [0, 0, 2, 1]


def test_seeds_are_far_from_the_anchors_and_heavy_points_come_first() -> None:
    points, rng = np.array([[0.0], [1.0], [2.0]]), np.random.default_rng(0)
    anchors = np.array([[0.0], [1.0]])
    assert kmeans_pp(points, anchors, 1, rng, np.ones(3)).tolist() == [[2.0]]
    weight = np.array([0.0, 1.0, 0.0])
    assert kmeans_pp(points, points[:0], 1, rng, weight).tolist() == [[1.0]]
    # Where all points lie on anchors, any may be drawn.
    assert kmeans_pp(points, points, 2, rng, np.ones(3)).shape == (2, 1)


def test_seeds_are_drawn_as_before() -> None:
    """The draws decide every grouping: another number of tries changes all results."""
    points = np.random.default_rng(1).standard_normal((50, 2))
    seeds = kmeans_pp(points, points[:0], 4, np.random.default_rng(0), np.ones(50))
    place = [int(np.flatnonzero((points == seed).all(axis=1))[0]) for seed in seeds]
    assert place == [13, 40, 29, 0]


def test_the_best_of_several_starts_is_kept() -> None:
    points = np.random.default_rng(3).random((60, 2))
    even, none = np.ones(len(points)), points[:0]
    rng = np.random.default_rng(0)
    starts = [lloyd(points, none, kmeans_pp(points, none, 7, rng, even), even) for _ in range(6)]
    best = min(starts, key=lambda start: start[1])
    found = anchored_kmeans(points, none, 7, 6, np.random.default_rng(0))
    assert len({round(inertia, 6) for _, inertia in starts}) > 1
    assert np.array_equal(found, best[0])


def test_few_rows_have_fewer_directions() -> None:
    torch.manual_seed(0)
    rows = torch.randn(4, 10)
    directions = Directions.of(rows, torch.eye(10, dtype=torch.float64), 6)
    assert directions.basis.shape == (10, 4)
    centered = rows - rows.mean(0)
    expected = torch.nn.functional.normalize(centered, dim=1)
    # Four centered rows have three directions, which hold all of them.
    found = directions(rows)
    assert torch.allclose(found @ found.T, expected @ expected.T, atol=1e-5)
    assert found[:, 3].abs().max() < 1e-5
