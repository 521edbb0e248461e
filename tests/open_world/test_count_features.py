"""Features of counting: the values that the shipped weights were learned for, and each by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.nn.encode_cache import encode
from nodenova.nn.seeding import repeatable
from nodenova.open_world import (
    anchored_kmeans,
    count,
    count_features,
    count_weights,
    mixed,
    novelty,
)
from nodenova.open_world.count import Evidence, collect_evidence
from nodenova.open_world.count_features import (
    MAX_NEW,
    NOVELTY_FEATURES,
    NUMBER_FEATURES,
    NUMBERS,
    STRICT_FEATURES,
    Candidates,
    Measures,
    _between_groups,
    _fill_missing,
    _mean_nearest,
    _merge,
    _scatters,
    _silhouettes,
    compute,
    count_by_size,
)
from nodenova.open_world.mixed import WhitenedSpace

# Of three planted new classes: values for 1, 2, 3, 4 and 14 new classes.
MIXED = {
    "log_k": (0.0, 0.6931, 1.0986, 1.3863, 2.6391),
    "k": (0.1, 0.2, 0.3, 0.4, 1.4),
    "is_one": (1.0, 0.0, 0.0, 0.0, 0.0),
    "excess_scatter": (0.3822, 0.1758, 0.0, 0.0, 0.0),
    "off_scatter_count": (0.8473, 0.3365, 0.0, 0.2513, 1.4214),
    "silhouette": (-0.4308, -0.2, 0.0, -0.1509, -0.4881),
    "off_silhouette_count": (0.8473, 0.3365, 0.0, 0.2513, 1.4214),
    "closest_pair": (-0.013, -0.013, 0.0153, 0.9341, 1.0479),
    "closest_pair_excess": (0.0, 0.0, 0.0153, 0.9341, 1.0479),
    "next_closest_pair": (0.0089, -0.0319, 0.4263, 0.4276, 0.4307),
    "loosest_group": (0.3239, 0.4873, 0.9479, 0.9283, 0.7766),
    "smallest_group": (-0.6454, -1.6612, -1.8096, -2.5568, -4.9331),
    "off_loose_cell_count": (0.0, 0.5108, 0.8473, 1.0986, 2.2687),
    "off_tight_cell_count": (0.8473, 0.3365, 0.0, 0.2513, 1.4214),
    "off_novel_cell_count": (0.5108, 0.0, 0.3365, 0.5878, 1.7579),
    "off_size_count": (0.4504, 0.0257, 0.031, 0.1828, 2.5523),
}
STRICT = {
    "log_k": (0.0, 0.6931, 1.0986, 1.3863, 2.6391),
    "k": (0.1, 0.2, 0.3, 0.4, 1.4),
    "is_one": (1.0, 0.0, 0.0, 0.0, 0.0),
    "excess_scatter": (0.6323, 0.3105, 0.0, 0.0, 0.0),
    "off_scatter_count": (0.8473, 0.3365, 0.0, 0.2513, 1.4214),
    "silhouette": (-0.1638, -0.1638, 0.0, -0.1617, -0.4756),
    "off_silhouette_count": (0.8473, 0.3365, 0.0, 0.2513, 1.4214),
    "closest_pair": (-0.0172, -0.0172, 0.0135, 0.9438, 1.0613),
    "closest_pair_excess": (0.0, 0.0, 0.0135, 0.9438, 1.0613),
    "next_closest_pair": (0.0098, -0.0322, 0.4267, 0.4308, 0.4311),
    "loosest_group": (0.3179, 0.481, 0.9431, 0.9307, 0.6193),
    "smallest_group": (0.003, -1.0204, -1.1763, -1.8551, -4.8647),
    "off_loose_cell_count": (0.0, 0.5108, 0.8473, 1.0986, 2.2687),
    "off_tight_cell_count": (0.8473, 0.3365, 0.0, 0.2513, 1.4214),
    "excess_plain_scatter": (0.6323, 0.3105, 0.0, 0.0, 0.0),
}
NOVELTY = {
    "known_likeness_1": 0.6504,
    "known_likeness_2": 0.5843,
    "known_likeness_4": 0.5324,
    "new_share_4": 0.525,
    "scatter_without_new": 0.7477,
    "log_p_simes": -1.9997,
    "log_p_bonferroni": -1.8785,
    "log_p_pooled": -8.0,
    "novel_share": 0.48,
    "surely_novel_share": 0.4726,
}
# Signs that a weight may not change when it is learned; the other features may have either.
SIGNS = {
    "excess_scatter": -1,
    "off_scatter_count": -1,
    "silhouette": 1,
    "off_silhouette_count": -1,
    "closest_pair": -1,
    "closest_pair_excess": -1,
    "next_closest_pair": 1,
    "loosest_group": 1,
    "smallest_group": 1,
    "off_loose_cell_count": -1,
    "off_tight_cell_count": -1,
    "off_novel_cell_count": -1,
    "off_size_count": -1,
    "excess_plain_scatter": -1,
    "known_likeness_1": -1,
    "known_likeness_2": -1,
    "known_likeness_4": -1,
    "new_share_4": 1,
    "scatter_without_new": 1,
    "log_p_simes": -1,
    "log_p_bonferroni": -1,
    "log_p_pooled": -1,
    "novel_share": 1,
    "surely_novel_share": 1,
}


@pytest.fixture(scope="module")
def evidence() -> tuple[Evidence, Evidence]:
    """Evidence on three of six planted classes, known ones among them and alone."""
    data = nova.synthetic(nodes=900, classes=6, words=300, seed=1)
    old, _, _ = nova.split(data, old=[0, 1, 2])
    model = nova.fit(old)
    encoder, known = model.frozen_encoder(), model.memory.classes
    rest = np.setdiff1d(np.arange(900), old.train_ids)
    z = encode(encoder, data.graph)

    def collect(ids: np.ndarray, mixed: bool) -> Evidence:
        some = z[torch.from_numpy(ids)]
        with repeatable(0, "test"):
            return collect_evidence(
                encoder.spec.multirank, known, model.cells, some, mixed, model.lda
            )

    return collect(rest, True), collect(rest[data.y[rest] >= 3], False)


def test_features_have_the_values_that_the_weights_were_learned_for(evidence) -> None:
    for found, expected in zip(evidence, (MIXED, STRICT), strict=True):
        at_five = {name: values[[0, 1, 2, 3, 13]].tolist() for name, values in found.number.items()}
        assert at_five == {name: pytest.approx(v, abs=5e-3) for name, v in expected.items()}
    mixture, strict = evidence
    found = {name: float(value) for name, value in mixture.novelty.items()}
    assert found == pytest.approx(NOVELTY, abs=5e-3)
    assert mixture.p_value == pytest.approx(0.01323, rel=0.01)
    assert mixture.share == pytest.approx(0.48, abs=5e-3)
    assert (strict.novelty, strict.p_value, strict.share) == ({}, None, 1.0)
    assert (mixture.nodes, strict.nodes) == (840, 442)


def test_weights_have_the_signs_that_features_allow() -> None:
    groups = (
        (NUMBER_FEATURES, count_weights.MIXED),
        (STRICT_FEATURES, count_weights.STRICT),
        (NOVELTY_FEATURES, count_weights.NEW),
    )
    for features, weights in groups:
        signs = {feature.name: feature.sign for feature in features}
        assert signs == {name: SIGNS.get(name, 0) for name in signs}
        assert set(weights) <= set(signs)
        for name, (_, spread, weight) in weights.items():
            assert spread > 0
            assert weight * signs[name] >= 0


def planted(groups: dict[int, np.ndarray], rows: np.ndarray, **parts: object) -> Candidates:
    """Candidates with given groupings and features, one known class, and plain likeness."""
    space = WhitenedSpace(None, None, torch.from_numpy(rows), rows, rows[:0], None)  # type: ignore[arg-type]
    settings: dict[str, object] = {
        "space": space,
        "num_old": 1,
        "groups": groups,
        "scatter": np.ones(len(NUMBERS)),
        "plain_scatter": None,
        "u": rows,
        "x": 2 * rows,
        "mean": rows[:1],
        "own": np.array([1.0]),
        "within": 1.0,
        "nearest": 0.0,
        "nearest_white": 0.25,
        "known_scatter": 1.0,
    }
    return Candidates(**{**settings, **parts})  # type: ignore[arg-type]


def groupings(n: int, seed: int = 0) -> dict[int, np.ndarray]:
    """Random groupings of n nodes into each of NUMBERS of new classes beside one known class."""
    rng = np.random.default_rng(seed)
    return {k: rng.integers(k + 1, size=n) for k in NUMBERS}


def test_a_likeness_is_relative_to_known_classes() -> None:
    candidates = planted(groupings(9), np.eye(9), within=3.0, nearest=1.0)
    assert candidates.relative(np.array([1.0, 3.0, 2.0])).tolist() == [0.0, 1.0, 0.5]


def test_groups_correlate_with_the_most_alike_of_the_known_classes() -> None:
    mean = np.array([[2.0, 0.0], [0.0, 3.0]])
    candidates = planted(groupings(9), np.eye(9), mean=mean, own=np.array([4.0, 9.0]))
    found = candidates.known_correlation(np.array([1.0, 1e-9]), np.array([[1.0, 0.2], [0.0, 0.1]]))
    # The second group's own likeness is below the floor, a thousandth of the classes' mean 6.5.
    assert found.tolist() == pytest.approx([1.0, 0.3 / np.sqrt(6.5e-3 * 9)])


def test_likeness_of_groups_is_the_loops() -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((60, 4))
    candidates = planted(groupings(60), rows)
    closest, white, loosest = _between_groups(candidates)
    product = rows @ rows.T
    for k in (2, 3, 4):
        members = [np.flatnonzero(candidates.groups[k] == 1 + c) for c in range(k)]
        assert min(map(len, members)) >= 5
        within = [product[np.ix_(m, m)][~np.eye(len(m), dtype=bool)].mean() for m in members]
        pairs = [(a, b) for a in range(k) for b in range(a)]
        between = [product[np.ix_(members[a], members[b])].mean() for a, b in pairs]
        root = np.sqrt(np.maximum(4 * np.array(within), 1e-3))
        cosine = [4 * v / (root[a] * root[b]) for v, (a, b) in zip(between, pairs, strict=True)]
        assert closest[k - 1] == pytest.approx(max(between))
        assert white[k - 1] == pytest.approx(np.clip(max(cosine), -2, 2))
        assert loosest[k - 1] == pytest.approx(min(within))
    assert closest[0] == closest[1]  # one new class has no pair


def test_scatters_are_the_loops() -> None:
    rows, groups = np.random.default_rng(1).standard_normal((40, 3)), groupings(40)
    expected = []
    for k, place in groups.items():
        mean = {c: rows[place == c].mean(axis=0) for c in set(place.tolist())}
        squares = [((row - mean[c]) ** 2).sum() for row, c in zip(rows, place, strict=True)]
        expected.append(sum(squares) / max(40 - 2 - k, 1))
    assert _scatters(rows, groups, 2).tolist() == pytest.approx(expected)
    assert _scatters(rows[:2], {0: groups[0][:2]}, 5).tolist() == pytest.approx(
        [((rows[0] - rows[1]) ** 2).sum() / 2]
    )


def test_silhouettes_are_means_over_all_nodes_and_over_those_in_new_groups() -> None:
    rows, groups = np.random.default_rng(1).standard_normal((50, 3)), groupings(50)
    candidates = planted(groups, rows)
    every, new = _silhouettes(candidates, np.random.default_rng(2))
    distance = np.linalg.norm(rows[:, None] - rows, axis=2)
    for at, k in enumerate(NUMBERS[1:-1]):
        value = count_features.silhouettes(distance, groups[k])
        assert value is not None
        assert every[at] == pytest.approx(value.mean(), abs=1e-6)
        assert new[at] == pytest.approx(value[groups[k] >= 1].mean(), abs=1e-6)


def test_a_lone_pair_has_silhouettes_too() -> None:
    distance = np.abs(np.subtract.outer([0.0, 1.0, 5.0], [0.0, 1.0, 5.0]))
    found = count_features.silhouettes(distance, np.array([0, 0, 1]))
    assert found is not None
    assert found.tolist() == pytest.approx([4 / 5, 3 / 4, 0.0])


def test_missing_values_are_those_of_the_nearest_entry() -> None:
    nan = np.nan
    assert _fill_missing(np.array([nan, 2.0, nan, nan, 5.0])).tolist() == [2, 2, 2, 5, 5]
    assert _fill_missing(np.array([nan, nan])).tolist() == [0, 0]


def test_the_nearest_other_class_is_never_the_class_itself() -> None:
    assert _mean_nearest(np.array([[9.0, 0.5], [0.7, 9.0]])) == pytest.approx(0.6)
    assert _mean_nearest(np.array([[9.0]])) == 0.0


def merged(sizes: list[int], least: float, at: list[float]) -> int:
    """Number of groups that cells at angles `at` (degrees) merge into."""
    angle = np.radians(np.repeat(at, sizes))
    rows = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    cell = np.repeat(np.arange(len(sizes)), sizes)
    return _merge(planted({}, rows), cell, np.arange(len(sizes)), least)


def test_alike_cells_are_merged_and_small_groups_do_not_count() -> None:
    assert merged([10, 10, 10], 0.5, [0, 10, 90]) == 2
    assert merged([10, 10, 10], 1.1, [0, 10, 90]) == 3
    assert merged([10, 10, 10], -2.0, [0, 10, 90]) == 1
    assert merged([8, 7], 0.5, [0, 90]) == 1  # 8 nodes are enough, 7 are not
    assert merged([4, 4, 10], 0.5, [0, 0, 90]) == 2  # together they are
    assert merged([2000, 20, 19], 0.5, [0, 90, 180]) == 1  # 1% of 2,039 nodes is above 20
    assert merged([10], 0.5, [0]) == 1


def test_merged_cells_are_alike_by_the_mean_over_their_nodes() -> None:
    # The cells at 0 and 40 degrees are merged first; what they share with the third is a mean over
    # nodes, and nine of ten nodes are at 0 degrees.
    mean = (90 * np.cos(np.radians(80)) + 10 * np.cos(np.radians(40))) / 100
    assert merged([90, 10, 50], mean - 0.01, [0, 40, 80]) == 1
    assert merged([90, 10, 50], mean + 0.01, [0, 40, 80]) == 2


def test_measures_are_cut_to_the_candidates() -> None:
    rows, groups = np.random.default_rng(1).standard_normal((80, 3)), groupings(80)
    scatter, scored = np.exp(-np.array(NUMBERS) / 10), NUMBERS[1:-1]
    candidates = planted(groups, rows, scatter=scatter, plain_scatter=scatter**2)
    found = Measures.of(candidates, None, 3.0, np.random.default_rng(0))
    assert found.k.tolist() == list(scored)
    assert scored[-1] == MAX_NEW
    assert found.scatter.tolist() == pytest.approx([-k / 10 for k in scored])
    assert found.plain_scatter is not None
    assert found.plain_scatter.tolist() == pytest.approx([-k / 5 for k in scored])
    least = [min((groups[k] == 1 + c).sum() for c in range(k)) / 80 for k in scored]
    assert found.smallest.tolist() == pytest.approx(least)
    num_pairs = (len(scored) + 1,)
    assert found.closest.shape == found.closest_white.shape == found.loosest.shape == num_pairs
    white = _between_groups(candidates)[1]
    assert found.closest_white.tolist() == pytest.approx((white - 0.25).tolist())
    assert found.scatter_count() == 1
    assert found._replace(scatter=np.full(len(scored), 0.15)).scatter_count() == MAX_NEW
    assert found._replace(scatter=np.where(found.k >= 4, 0.14, 0.2)).scatter_count() == 4
    assert found.off(2)[[0, 1, 4]].tolist() == pytest.approx([np.log(5 / 3), 0, np.log(2.2)])


def test_features_between_the_numbers_tried_are_interpolated() -> None:
    measures = Measures.of(
        planted(groupings(80), np.random.default_rng(1).standard_normal((80, 3))),
        None, 3.0, np.random.default_rng(0),
    )  # fmt: skip
    values = compute(NUMBER_FEATURES, measures)
    assert {value.shape for value in values.values()} == {(MAX_NEW,)}
    assert values["log_k"].tolist() == pytest.approx(np.log(np.arange(1, MAX_NEW + 1)).tolist())
    for name in ("silhouette", "loosest_group"):
        (feature,) = (one for one in NUMBER_FEATURES if one.name == name)
        assert values[name][np.array(measures.k) - 1].tolist() == pytest.approx(
            np.asarray(feature.value(measures)).tolist()
        )


def test_the_number_by_size_is_the_new_nodes_over_the_mean_size_of_known_classes() -> None:
    # 600 of 1,000 nodes are new; 400 and 100 labelled ones are of five classes of 100.
    assert count_by_size(0.6, 1000, 100, 5) == pytest.approx(6)
    assert count_by_size(0.0, 1000, 100, 5) == 0.25
    assert count_by_size(1.0, 1000, 0, 5) == 2 * MAX_NEW


def test_the_share_of_new_nodes_and_their_likeness_to_known_classes() -> None:
    rows = np.repeat([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], [6, 6, 4], axis=0)
    place = np.repeat([1, 2, 0], [6, 6, 4])
    candidates = planted(dict.fromkeys(range(3), place), rows, x=rows, mean=np.array([[0.8, 0.6]]))
    assert candidates.share_of_new(2) == 12 / 16
    assert candidates.known_likeness(2) == pytest.approx((0.8 + 0.6) / 2)
    near = planted(dict.fromkeys(range(3), place), rows, x=rows, mean=np.array([[30.0, 40.0]]))
    assert near.known_likeness(2) == 2.0  # likeness is cut off there
    far = planted(dict.fromkeys(range(3), place), rows, x=rows, mean=np.array([[-30.0, -40.0]]))
    assert far.known_likeness(2) == -2.0
    few = planted(dict.fromkeys(range(3), np.zeros(16, dtype=int)), rows)
    assert few.known_likeness(2) == 1.0  # no new group at all


@pytest.mark.parametrize(
    ("classes", "size_count", "cells"), [(1, 1, 16), (3, 1, 18), (3, 9, 42), (18, 9, 96)]
)
def test_cells_are_five_to_seven_per_class_within_bounds(
    monkeypatch: pytest.MonkeyPatch, classes: int, size_count: int, cells: int
) -> None:
    counts: list[int] = []

    def record(points: np.ndarray, anchors: np.ndarray, count: int, *rest: object) -> np.ndarray:
        counts.append(count)
        return points[:count]

    monkeypatch.setattr(count_features, "kmeans_pp", record)
    rows = np.random.default_rng(0).standard_normal((200, 3))
    candidates = planted({}, rows, mean=np.ones((classes, 3)), own=np.ones(classes))
    rng = np.random.default_rng(0)
    found = count_features.cell_counts(candidates, None, float(size_count), rng)
    assert counts == {16: [16] * 3, 18: [16, 18, 21], 42: [30, 36, 42], 96: [90, 96, 96]}[cells]
    assert min(found) >= 1
    few = planted({}, rows[:9], mean=np.ones((classes, 3)), own=np.ones(classes))
    assert min(count_features.cell_counts(few, np.zeros(9), 1.0, rng)) == 1
    assert counts[-1] == 5  # half of nine nodes, rounded up


def test_numbers_that_results_depend_on_are_those_of_the_published_ones() -> None:
    """Another number changes every result a little: that is a decision, and no edit."""
    assert (mixed.RESTARTS, mixed.RESAMPLE_RESTARTS, anchored_kmeans.MAX_STEPS) == (8, 2, 50)
    assert anchored_kmeans.TOLERANCE == 1e-6
    assert (count.SET_SHARE, count.VAGUE, count.CLIP, len(count.PATHS)) == (0.8, 0.25, 4.0, 3)
    assert (count.MAX_SAMPLED, count.MAX_GROUPED) == (20_000, 1_500)
    features = count_features
    path = (features.MAX_NEW, features.STEPS, features.TRIED, features.COMPARED)
    assert path == (40, 12, 10, 400)
    assert (features.MIN_GROUP, features.SPARE_SCATTER, features.SURE) == (5, 0.14, 0.7)
    assert (features.LOOSE, features.TIGHT) == ((0.70, -0.1), (0.60, 0.1))
    assert (novelty.REPETITIONS, novelty.MAX_NODES, novelty.PARTITION_STEPS) == (3, 20_000, 30)
    cells = (novelty.CELLS_PER_CLASS, novelty.MIN_CELLS, novelty.MAX_CELLS)
    assert (cells, novelty.MIN_NODES_PER_CELL) == ((8, 20, 64), 8)
    assert (novelty.RATE_STEPS, novelty.MAX_EXCESS, novelty.MIN_SELF) == (60, 1.5, 1e-3)
    assert (novelty.FLOOR, novelty.NODE_LIKENESS, novelty.POOLED) == (1e-8, 0.7, 0.75)
