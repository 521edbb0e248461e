from __future__ import annotations

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.evaluation.grade import Grade, forgetting, grade


def test_confusion_counts_what_predict_says(discovered, tasks) -> None:
    exam = tasks[2]
    graded = grade(discovered, exam)
    predicted = discovered.predict(exam.graph)[exam.ids]
    assert graded.confusion.shape == (4, 4)
    assert graded.confusion.sum() == len(exam.ids)
    for true in range(4):
        for p in range(4):
            assert graded.confusion[true, p] == ((exam.y == true) & (predicted == p)).sum()


def test_confusion_new_counts_new_nodes_by_the_head_for_new_classes(discovered, tasks) -> None:
    exam = tasks[2]
    graded = grade(discovered, exam)
    by_h_u = discovered.predict_new(exam.graph)[exam.ids] - 2
    for true in range(2):
        for p in range(2):
            assert graded.confusion_new[true, p] == ((exam.y == 2 + true) & (by_h_u == p)).sum()
    assert graded.confusion_new.sum() == (exam.y >= 2).sum()


def test_a_fitted_model_never_says_new(fitted, tasks) -> None:
    graded = grade(fitted, tasks[2])
    assert graded.confusion.shape == (4, 4)
    assert graded.confusion[:, 2:].sum() == 0
    assert graded.confusion_new is None
    scores = graded.scores()
    assert scores["new"] == 0.0
    assert scores["h"] == 0.0
    assert "new_n" not in scores


def test_scores_by_hand() -> None:
    confusion = np.array([[8, 2, 0], [1, 0, 9], [0, 6, 4]])
    graded = Grade(confusion, np.array([[1, 9], [6, 4]]), (1, 2), (1, 2))
    scores = graded.scores("block")
    assert scores["old"] == 80.0
    assert scores["new"] == 75.0
    assert scores["all"] == pytest.approx(100 * 23 / 30)
    assert scores["h"] == pytest.approx(2 * 80 * 75 / 155)
    assert scores["gate"] == pytest.approx(100 * 27 / 30)
    assert scores["new_n"] == 75.0
    assert graded.scores("identity")["new"] == 20.0
    assert graded.scores("identity")["new_n"] == 25.0
    assert graded.matched().tolist() == [0, 2, 1]


def test_phase_row_by_hand() -> None:
    graded = Grade(np.array([[8, 2, 0], [1, 0, 9], [0, 6, 4]]), None, (1, 2), (1, 2))
    assert graded.phase_row("block") == [80.0, 75.0]
    assert graded.phase_row("identity") == [80.0, 20.0]


def test_phase_row_does_not_count_one_phases_node_as_another_phases_class() -> None:
    """Under block, old nodes that are called new are wrong in the old column of the row."""
    graded = Grade(np.array([[2, 8], [0, 10]]), None, (1, 1), (1, 1))
    assert graded.phase_row() == [20.0, 100.0]


def test_a_perfect_model_of_three_phases_is_perfect_whatever_the_numbers_of_its_classes() -> None:
    """Two stages of discovery, each with its two classes in the other order: all numbers but the old ones are arbitrary."""
    confusion = np.zeros((6, 6), dtype=int)
    confusion[range(6), [0, 1, 3, 2, 5, 4]] = 5
    graded = Grade(confusion, None, (2, 2, 2), (2, 2, 2))
    assert graded.phase_row("block") == [100.0, 100.0, 100.0]
    assert graded.scores("block")["all"] == 100.0


def test_forgetting_of_two_phases_by_hand() -> None:
    before = Grade(np.array([[9, 1, 0], [1, 9, 0], [5, 5, 0]]), None, (2, 1), (2, 1))
    after = Grade(np.array([[7, 1, 2], [1, 7, 2], [2, 2, 6]]), None, (2, 1), (2, 1))
    assert forgetting([before, after]) == (pytest.approx((70 + 60) / 2), pytest.approx(70 - 90))


def test_forgetting_of_three_phases_by_hand() -> None:
    first = Grade(np.array([[9, 0], [10, 0]]) + np.array([[0, 1], [0, 0]]), None, (1, 1), (1, 1))  # M = [90]
    second = Grade(np.array([[8, 2], [4, 6]]), None, (1, 1), (1, 1))  # M = [80, 60]
    third = Grade(np.array([[5, 5, 0], [0, 7, 3], [9, 0, 1]]), None, (1, 1, 1), (1, 1, 1))  # M = [50, 70, 10]
    aa, af = forgetting([first, second, third])
    assert aa == pytest.approx((50 + 70 + 10) / 3)
    assert af == pytest.approx(((50 - 90) + (70 - 60)) / 2)


def test_unknown_matching_lists_the_known_ones() -> None:
    with pytest.raises(SettingError, match="unknown matching 'hungarian'; known: block, global, identity"):
        Grade(np.eye(2, dtype=int), None, (1, 1), (1, 1)).scores("hungarian")


def test_a_model_that_was_told_to_find_more_classes_than_there_are(labelled, fitted) -> None:
    _, new, exam = nova.split(labelled, [0, 1], num_new=4)
    graded = grade(nova.discover(fitted, new, nova.Sword(epochs=3)), exam)
    assert graded.confusion.shape == (4, 6)
    assert graded.confusion_new.shape == (2, 4)
    assert graded.confusion.sum() == len(exam.ids)


def test_a_model_that_was_told_to_find_fewer_classes_than_there_are(labelled, fitted) -> None:
    _, new, exam = nova.split(labelled, [0, 1], num_new=1)
    graded = grade(nova.discover(fitted, new, nova.Sword(epochs=3)), exam)
    assert graded.confusion.shape == (4, 3)
    assert graded.confusion_new.shape == (2, 1)


def test_a_model_with_edited_classes_is_graded_where_its_classes_came_from(discovered, tasks) -> None:
    """Labelled classes count at their own places, however they were merged; parts of one count for it."""
    exam = tasks[2]
    whole = grade(discovered, exam)
    old_merged = grade(discovered.merge([0, 1]), exam)
    assert old_merged.confusion.shape == (4, 4)
    assert old_merged.confusion[:, 1].sum() == 0
    assert old_merged.predicted == (2, 2)
    new_rejected = grade(discovered.reject(2), exam)
    assert new_rejected.confusion.shape == (4, 3)
    assert new_rejected.confusion_new.shape == (2, 1)
    assert new_rejected.confusion.sum() == whole.confusion.sum()
    split = discovered.split(0, exam.graph)
    parts = grade(split, exam)
    assert parts.confusion.shape == (4, 4)
    assert parts.confusion[:, 0].sum() == np.isin(split.predict(exam.graph)[exam.ids], [4, 5]).sum()
    all_rejected = grade(discovered.reject(2).reject(3), exam)
    assert all_rejected.confusion_new is None
    assert all_rejected.scores()["new"] == 0.0
