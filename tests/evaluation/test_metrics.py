"""Every score against scikit-learn on random labels, against brute force, and by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn import metrics as sk

from nodenova.errors import SettingError
from nodenova.evaluation import metrics
from nodenova.evaluation.metrics import (
    accuracies,
    ari,
    average_accuracy,
    average_forgetting,
    confusion_matrix,
    harmonic_mean,
    match_block,
    match_global,
    match_identity,
    matched_confusion,
    new_alone,
    nmi,
    old_new_accuracy,
    percentage,
)

SEEDS = range(5)


def sides(confusion: np.ndarray, n_old: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """How many classes each phase brought, true and predicted.

    `n_old` are labelled and the rest is one stage.
    """
    n_true, n_predicted = confusion.shape
    return (n_old, n_true - n_old), (n_old, n_predicted - n_old)


def labels(
    seed: int, n: int = 60, true: int = 5, predicted: int = 5
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(true, size=n), rng.integers(predicted, size=n)


@pytest.mark.parametrize("seed", SEEDS)
def test_confusion_matrix_is_scikit_learns(seed: int) -> None:
    y, p = labels(seed)
    assert (confusion_matrix(y, p, 5, 5) == sk.confusion_matrix(y, p, labels=range(5))).all()


def test_confusion_matrix_keeps_rows_and_columns_nobody_has() -> None:
    assert confusion_matrix(np.array([0, 0]), np.array([1, 1]), 2, 4).tolist() == [
        [0, 2, 0, 0],
        [0, 0, 0, 0],
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_identity_accuracy_is_scikit_learns(seed: int) -> None:
    y, p = labels(seed)
    confusion = confusion_matrix(y, p, 5, 5)
    scores = accuracies(confusion, 3, match_identity(confusion, *sides(confusion, 3)))
    assert scores["all"] == pytest.approx(100 * sk.accuracy_score(y, p))
    assert scores["old"] == pytest.approx(100 * sk.accuracy_score(y[y < 3], p[y < 3]))
    assert scores["new"] == pytest.approx(100 * sk.accuracy_score(y[y >= 3], p[y >= 3]))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("true", "predicted"), [(5, 5), (3, 6), (6, 2), (1, 4), (4, 1)])
def test_nmi_and_ari_are_scikit_learns(seed: int, true: int, predicted: int) -> None:
    y, p = labels(seed, true=true, predicted=predicted)
    confusion = confusion_matrix(y, p, true, predicted)
    expected = sk.normalized_mutual_info_score(y, p, average_method="arithmetic")
    assert nmi(confusion) == pytest.approx(100 * expected, abs=1e-6)
    assert ari(confusion) == pytest.approx(100 * sk.adjusted_rand_score(y, p), abs=1e-6)


def test_nmi_and_ari_by_hand() -> None:
    assert nmi(np.array([[0, 4], [4, 0]])) == pytest.approx(100)
    assert ari(np.array([[0, 4], [4, 0]])) == pytest.approx(100)
    assert nmi(np.array([[2, 2], [2, 2]])) == pytest.approx(0)
    # 4 pairs agree within (2,2 split twice), 12 pairs a side of 28:
    # (4 - 12*12/28) / (12 - 12*12/28).
    assert ari(np.array([[2, 2], [2, 2]])) == pytest.approx(100 * (4 - 144 / 28) / (12 - 144 / 28))


def test_nmi_and_ari_do_not_depend_on_the_numbers_of_the_classes() -> None:
    rng = np.random.default_rng(0)
    confusion = rng.integers(9, size=(4, 5))
    shuffled = confusion[rng.permutation(4)][:, rng.permutation(5)]
    assert nmi(shuffled) == pytest.approx(nmi(confusion))
    assert ari(shuffled) == pytest.approx(ari(confusion))


def brute_force(confusion: np.ndarray) -> int:
    """The most right answers any one-to-one matching of rows and columns gives."""
    a = confusion if confusion.shape[0] <= confusion.shape[1] else confusion.T
    rows = range(a.shape[0])
    return max(
        sum(a[r, c] for r, c in zip(rows, pick, strict=True))
        for pick in itertools.permutations(range(a.shape[1]), len(rows))
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (1, 4), (4, 1)])
def test_hungarian_is_brute_force_over_permutations(seed: int, shape: tuple[int, int]) -> None:
    confusion = np.random.default_rng(seed).integers(20, size=shape)
    matched = match_global(confusion, *sides(confusion, 0))
    right = sum(confusion[true, predicted] for predicted, true in enumerate(matched) if true >= 0)
    assert right == brute_force(confusion)
    assert right == accuracies_right(confusion, match_block(confusion, *sides(confusion, 0)))
    used = matched[matched >= 0]
    assert len(used) == min(shape)
    assert len(set(used.tolist())) == len(used)


def accuracies_right(confusion: np.ndarray, matched: np.ndarray) -> int:
    return sum(confusion[true, predicted] for predicted, true in enumerate(matched) if true >= 0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("predicted", [5, 6, 7])
def test_block_is_brute_force_among_the_new_classes_only(seed: int, predicted: int) -> None:
    confusion = np.random.default_rng(seed).integers(20, size=(5, predicted))
    matched = match_block(confusion, *sides(confusion, 2))
    assert matched[:2].tolist() == [0, 1]
    assert accuracies_right(confusion, matched) == confusion[0, 0] + confusion[1, 1] + brute_force(
        confusion[2:, 2:]
    )


# Old classes 0 and 1, new classes 2 and 3; the two discovered classes came out in the other order.
SWAPPED = np.array([[8, 1, 1, 0], [0, 9, 0, 1], [1, 0, 2, 7], [0, 2, 6, 2]])


def test_three_matchings_by_hand() -> None:
    block, identity = (
        match_block(SWAPPED, *sides(SWAPPED, 2)),
        match_identity(SWAPPED, *sides(SWAPPED, 2)),
    )
    assert block.tolist() == [0, 1, 3, 2]
    assert identity.tolist() == [0, 1, 2, 3]
    assert match_global(SWAPPED, *sides(SWAPPED, 2)).tolist() == [0, 1, 3, 2]
    assert accuracies(SWAPPED, 2, block) == {
        "old": 85.0,
        "new": 65.0,
        "all": 75.0,
        "h": pytest.approx(2 * 85 * 65 / 150),
    }
    assert accuracies(SWAPPED, 2, identity)["new"] == 20.0


def test_a_new_node_called_old_is_wrong_under_block_even_where_global_would_match_it() -> None:
    # Everybody of the new class 2 is called old class 1, and everybody of class 1 is called the
    # discovered class.
    confusion = np.array([[5, 0, 0], [0, 0, 5], [0, 5, 0]])
    assert accuracies(confusion, 2, match_block(confusion, *sides(confusion, 2))) == {
        "old": 50.0,
        "new": 0.0,
        "all": pytest.approx(100 / 3),
        "h": 0.0,
    }
    assert match_global(confusion, *sides(confusion, 2)).tolist() == [0, 2, 1]
    assert accuracies(confusion, 2, match_global(confusion, *sides(confusion, 2)))["all"] == 100.0


def test_more_predicted_than_true_new_classes() -> None:
    """Class 1 is new and was found in three pieces: one counts, the others are wrong."""
    confusion = np.array([[10, 0, 0, 0], [0, 2, 5, 3]])
    assert match_block(confusion, *sides(confusion, 1)).tolist() == [0, -1, 1, -1]
    assert accuracies(confusion, 1, match_block(confusion, *sides(confusion, 1)))["new"] == 50.0
    assert match_identity(confusion, *sides(confusion, 1)).tolist() == [0, 1, -1, -1]
    assert accuracies(confusion, 1, match_identity(confusion, *sides(confusion, 1)))["new"] == 20.0
    moved = matched_confusion(confusion, match_block(confusion, *sides(confusion, 1)))
    assert moved.tolist() == [[10, 0, 0, 0], [0, 5, 2, 3]]


def test_fewer_predicted_than_true_new_classes() -> None:
    """Classes 1 and 2 are new and lie in one discovered class: the bigger one counts."""
    confusion = np.array([[10, 0, 0], [0, 4, 0], [0, 6, 0]])
    assert accuracies(confusion, 1, match_block(confusion, *sides(confusion, 1)))["new"] == 60.0
    narrow = confusion[:, :2]  # the same without the column that nobody was put into
    assert accuracies(narrow, 1, match_block(narrow, *sides(narrow, 1)))["new"] == 60.0
    assert accuracies(narrow, 1, match_identity(narrow, *sides(narrow, 1)))["new"] == 40.0
    assert matched_confusion(narrow, match_block(narrow, *sides(narrow, 1))).tolist() == [
        [10, 0, 0],
        [0, 0, 4],
        [0, 0, 6],
    ]


def test_one_new_class_leaves_nothing_to_match() -> None:
    confusion = np.array([[5, 0, 5], [0, 10, 0], [3, 0, 7]])
    assert match_block(confusion, *sides(confusion, 2)).tolist() == [0, 1, 2]
    same = match_identity(confusion, *sides(confusion, 2))
    assert match_block(confusion, *sides(confusion, 2)).tolist() == same.tolist()


def test_nothing_out_of_nothing_is_nan_not_zero() -> None:
    confusion = np.array([[5, 0], [0, 0]])
    scores = accuracies(confusion, 1, match_block(confusion, *sides(confusion, 1)))
    assert scores["old"] == 100.0
    assert math.isnan(scores["new"])
    assert math.isnan(scores["h"])
    assert scores["all"] == 100.0
    assert math.isnan(percentage(0, 0))
    assert percentage(0, 3) == 0


def test_scores_of_no_test_node_at_all_are_nan_without_a_warning() -> None:
    empty = np.zeros((2, 2), dtype=int)
    assert math.isnan(old_new_accuracy(empty, 1, 1))
    assert math.isnan(nmi(empty))


def test_matched_confusion_keeps_every_count_in_its_row() -> None:
    confusion = np.random.default_rng(0).integers(20, size=(4, 7))
    for match in metrics.MATCHINGS.values():
        moved = matched_confusion(confusion, match(confusion, *sides(confusion, 2)))
        assert (moved.sum(axis=1) == confusion.sum(axis=1)).all()


def test_harmonic_mean() -> None:
    assert harmonic_mean(50.0, 100.0) == pytest.approx(200 / 3)
    assert harmonic_mean(100.0, 0.0) == 0.0
    assert harmonic_mean(0.0, 0.0) == 0.0
    assert math.isnan(harmonic_mean(float("nan"), 50.0))


def test_gate_asks_only_for_the_side() -> None:
    assert old_new_accuracy(SWAPPED, 2, 2) == pytest.approx(100 * (18 + 17) / 40)
    assert old_new_accuracy(np.array([[0, 5, 0], [5, 0, 0], [0, 0, 5]]), 2, 2) == 100.0


def test_collapse_by_hand() -> None:
    """Two old classes, three discovered ones.

    12 test nodes are called new, 9 of them in one class, none in another.
    """
    confusion = np.array([[5, 0, 2, 0, 0], [0, 5, 0, 0, 1], [1, 0, 4, 0, 2], [0, 0, 3, 0, 0]])
    assert metrics.new_used(confusion, 2) == 2
    assert metrics.new_largest(confusion, 2) == pytest.approx(100 * 9 / 12)
    assert metrics.new_used(confusion, 4) == 1
    assert metrics.new_largest(confusion, 4) == 100.0
    assert set(metrics.COLLAPSE) == {"new_used", "new_largest"}


def test_collapse_where_nobody_is_called_new_or_there_is_no_new_class() -> None:
    for confusion, n_old in (
        (np.array([[5, 1, 0, 0], [2, 3, 0, 0]]), 2),
        (np.eye(2, dtype=int), 2),
    ):
        assert metrics.new_used(confusion, n_old) == 0
        assert math.isnan(metrics.new_largest(confusion, n_old))


def test_right_of_counts_matched_nodes_among_all() -> None:
    confusion = np.array([[1, 9, 0], [6, 4, 2]])
    assert metrics.count_right(confusion, np.array([1, 0, -1])) == (15, 22)
    assert metrics.count_right(confusion, np.array([-1, -1, -1])) == (0, 22)


def test_average_accuracy_and_forgetting_by_hand() -> None:
    assert average_accuracy([[90.0], [70.0, 50.0]]) == 60.0
    assert average_forgetting([[90.0], [70.0, 50.0]]) == -20.0
    assert average_forgetting([[90.0]]) == 0.0
    assert average_accuracy([[90.0]]) == 90.0


def test_average_accuracy_and_forgetting_of_three_phases_by_hand() -> None:
    phases = [[90.0], [70.0, 60.0], [50.0, 65.0, 20.0]]
    assert average_accuracy(phases) == 45.0
    assert average_forgetting(phases) == ((50 - 90) + (65 - 60)) / 2


def test_block_matches_each_stage_by_itself() -> None:
    """Labelled class 0, stage 1 brings classes 1 and 2, stage 2 classes 3 and 4.

    The model has three for stage 1.
    """
    confusion = np.zeros((5, 6), dtype=int)
    for true, predicted in [(0, 0), (1, 2), (2, 3), (3, 5), (4, 4)]:
        confusion[true, predicted] = 10
    matched = match_block(confusion, (1, 2, 2), (1, 3, 2))
    assert matched.tolist() == [0, -1, 1, 2, 4, 3]
    assert accuracies(confusion, 3, matched)["all"] == 100.0
    assert match_identity(confusion, (1, 2, 2), (1, 3, 2)).tolist() == [0, 1, 2, -1, 3, 4]
    assert old_new_accuracy(confusion, 3, 4) == 100.0


def test_expected_calibration_error_by_hand() -> None:
    confidence, right = np.array([0.95, 0.95, 0.55, 0.55]), np.array([True, False, True, False])
    # Two bins hold two nodes each: |0.95 - 0.5| and |0.55 - 0.5|, half the nodes each.
    assert metrics.expected_calibration_error(confidence, right, bins=10) == pytest.approx(
        100 * (0.45 + 0.05) / 2
    )
    assert metrics.expected_calibration_error(np.ones(3), np.ones(3, dtype=bool)) == 0.0


@pytest.mark.parametrize("n", [9, 300])
def test_expected_calibration_error_is_the_loop_over_bins(n: int) -> None:
    """With nine nodes most bins hold a single one; the highest confidence is 1."""
    rng = np.random.default_rng(n)
    confidence, right = rng.random(n), rng.random(n) < 0.7
    confidence[:3], right[:3] = (1.0, 0.95, 0.96), (False, True, True)
    total = 0.0
    for low in range(15):
        last = low == 14
        inside = (confidence >= low / 15) & ((confidence < (low + 1) / 15) | last)
        if inside.any():
            total += inside.sum() * abs(confidence[inside].mean() - right[inside].mean())
    found = metrics.expected_calibration_error(confidence, right)
    assert found == pytest.approx(100 * total / n)


def test_the_harmonic_mean_of_small_numbers() -> None:
    assert harmonic_mean(0.25, 0.25) == 0.25
    assert harmonic_mean(0.0, 0.0) == 0.0


def test_one_class_that_is_predicted_as_one_class_agrees_fully() -> None:
    assert nmi(np.array([[7]])) == 100.0
    assert ari(np.array([[7]])) == 100.0


def test_stages_that_the_model_has_not_reached_are_not_matched() -> None:
    confusion = np.array([[5, 0, 0], [0, 1, 4], [0, 3, 2], [1, 1, 1]])
    assert match_identity(confusion, (1, 2, 1), (1, 2)).tolist() == [0, 1, 2]
    assert match_block(confusion, (1, 2, 1), (1, 2)).tolist() == [0, 2, 1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("outputs", [3, 5, 6])
def test_new_classes_alone_are_matched_to_any_output_as_well_as_possible(
    seed: int, outputs: int
) -> None:
    y, p = labels(seed, predicted=outputs)
    new = [(t, o) for t, o in zip(y.tolist(), p.tolist(), strict=True) if t >= 3]
    best = max(
        sum((t, o) in {(3, first), (4, second)} for t, o in new)
        for first, second in itertools.permutations(range(outputs), 2)
    )
    assert new_alone(confusion_matrix(y, p, 5, outputs), 3) == pytest.approx(100 * best / len(new))


def test_new_classes_alone_without_nodes_have_no_score() -> None:
    assert math.isnan(new_alone(np.array([[3, 1], [0, 0]]), 1))


def test_calibration_scores_are_the_loop_over_nodes_and_classes() -> None:
    rng = np.random.default_rng(4)
    p, y = rng.dirichlet(np.ones(5), size=40), rng.integers(0, 4, 40)
    matches = np.array([0, 2, -1, 1, -1])  # class 3 has no partner
    total = 0.0
    for row, true in zip(p, y, strict=True):
        for c in range(5):
            total += (row[c] - (matches[c] == true)) ** 2
        total += true not in matches  # nothing was given to the true class
    found = metrics.calibration_scores(p, y, matches)
    assert found["brier"] == pytest.approx(100 * total / 40)
    right = matches[p.argmax(axis=1)] == y
    assert found["ece"] == metrics.expected_calibration_error(p.max(axis=1), right)
    sure = metrics.calibration_scores(np.eye(3), np.arange(3), np.arange(3))
    assert sure == {"brier": 0.0, "ece": 0.0}
    with pytest.raises(SettingError, match="at least one node"):
        metrics.calibration_scores(p[:0], y[:0], matches)
