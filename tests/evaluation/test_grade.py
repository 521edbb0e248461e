from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.evaluation.grade import Grade, forgetting, grade
from nodenova.nn.training import freeze


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
    assert graded.confusion_old is None
    scores = graded.scores()
    assert scores["new"] == 0.0
    assert scores["h"] == 0.0
    assert not {"old_n", "new_n", "all_n"} & set(scores)


def test_where_nothing_is_new_no_side_is_graded_apart(fitted, tasks) -> None:
    exam = tasks[2]
    old = exam.y < 2
    names = exam.class_names[:2]
    alone = replace(exam, ids=exam.ids[old], y=exam.y[old], sizes=(2,), class_names=names)
    graded = grade(fitted, alone)
    assert graded.confusion.shape == (2, 2)
    assert graded.confusion_new is None
    assert graded.confusion_old is None


def test_scores_by_hand() -> None:
    confusion = np.array([[8, 2, 0], [1, 0, 9], [0, 6, 4]])
    graded = Grade(confusion, np.array([[1, 9], [6, 4]]), (1, 2), (1, 2))
    scores = graded.scores("block")
    assert scores["old"] == 80.0
    assert scores["new"] == 75.0
    assert scores["all"] == pytest.approx(100 * 23 / 30)
    assert scores["h"] == pytest.approx(2 * 80 * 75 / 155)
    assert scores["old_new_accuracy"] == pytest.approx(100 * 27 / 30)
    assert scores["new_n"] == 75.0
    assert graded.scores("identity")["new"] == 20.0
    assert graded.scores("identity")["new_n"] == 25.0
    assert graded.matched().tolist() == [0, 2, 1]


def test_scores_when_old_and_new_are_told_by_hand() -> None:
    """Old nodes among old classes, new ones among new classes, all of them together.

    Labelled classes keep their ids.
    """
    old, new = np.array([[3, 7], [6, 4]]), np.array([[1, 9], [6, 4]])
    graded = Grade(np.ones((4, 4), dtype=int), new, (2, 2), (2, 2), old)
    told = {matching: graded.scores(matching) for matching in ("block", "identity", "global")}
    assert [told[m]["old_n"] for m in told] == pytest.approx([35.0, 35.0, 65.0])
    assert [told[m]["new_n"] for m in told] == pytest.approx([75.0, 25.0, 75.0])
    assert [told[m]["all_n"] for m in told] == pytest.approx(
        [100 * 22 / 40, 100 * 12 / 40, 100 * 28 / 40]
    )


def test_all_told_counts_nodes_and_is_not_the_mean_of_two_percentages() -> None:
    graded = Grade(np.ones((2, 2), dtype=int), np.array([[1]]), (1, 1), (1, 1), np.array([[9]]))
    assert graded.scores()["all_n"] == 100.0
    graded = Grade(
        np.ones((3, 3), dtype=int), np.array([[1]]), (2, 1), (2, 1), np.array([[0, 9], [0, 0]])
    )
    assert (graded.scores()["old_n"], graded.scores()["new_n"]) == (0.0, 100.0)
    assert graded.scores()["all_n"] == pytest.approx(10.0)


def test_classes_of_an_earlier_stage_are_old_and_matched_among_themselves() -> None:
    """Two stages behind: of three older classes the first has its id, the others were found."""
    old = np.array([[8, 1, 1], [0, 2, 8], [1, 9, 0]])
    graded = Grade(np.ones((4, 4), dtype=int), np.array([[5]]), (1, 2, 1), (1, 2, 1), old)
    assert graded.scores("block")["old_n"] == pytest.approx(100 * 25 / 30)
    assert graded.scores("identity")["old_n"] == pytest.approx(100 * 10 / 30)


def test_confusion_old_counts_old_nodes_among_old_classes(discovered, tasks) -> None:
    exam = tasks[2]
    graded = grade(discovered, exam)
    among_old = discovered.predict_proba(exam.graph)[exam.ids][:, :2].argmax(axis=1)
    assert graded.confusion_old.shape == (2, 2)
    for true in range(2):
        for p in range(2):
            assert graded.confusion_old[true, p] == ((exam.y == true) & (among_old == p)).sum()
    assert graded.confusion_old.sum() == (exam.y < 2).sum()


def test_old_classes_are_told_apart_where_a_new_one_has_all_the_probability(
    discovered, tasks
) -> None:
    """Its logit is a thousand above theirs: as probabilities both old classes are 0, and equal."""
    exam, head = tasks[2], discovered.head()
    with torch.no_grad():
        head.linear.bias[2] += 100.0  # over a temperature of 0.1
    loud = replace(discovered, _head=freeze(head))
    assert (loud.predict_proba(exam.graph)[:, :2] == 0).all()
    assert loud.predict(exam.graph).tolist() == [2] * 120
    assert len(np.unique(discovered.predict_proba(exam.graph)[exam.ids][:, :2].argmax(axis=1))) == 2
    assert (
        grade(loud, exam).confusion_old.tolist() == grade(discovered, exam).confusion_old.tolist()
    )


def test_an_old_class_of_several_columns_has_their_sum(discovered, tasks) -> None:
    exam = tasks[2]
    for edited in (discovered.merge([1, 2]), discovered.split(0, exam.graph)):
        graded = grade(edited, exam)
        ids = [c.id for c in edited.classes if not c.is_new]
        among_old = edited.predict_proba(exam.graph)[exam.ids][:, : len(ids)].argmax(axis=1)
        places = [0 if edited.class_of(i).name.startswith("class-0") else 1 for i in ids]
        said = np.array(places)[among_old]
        expected = [[int(((exam.y == t) & (said == p)).sum()) for p in range(2)] for t in range(2)]
        assert graded.confusion_old.tolist() == expected


def test_collapse_of_a_grade_by_hand() -> None:
    confusion = np.array([[5, 0, 2, 0], [0, 5, 0, 1], [1, 0, 4, 2], [0, 0, 3, 0]])
    assert Grade(confusion, None, (2, 2), (2, 2)).collapse == {
        "new_used": 2,
        "new_largest": pytest.approx(75.0),
    }
    # More classes discovered than there are, and a stage in between: what came before the newest
    # stage is old.
    wide = np.array([[5, 0, 0, 0], [0, 0, 7, 0]])
    assert Grade(wide, None, (1, 1), (1, 3)).collapse == {"new_used": 1, "new_largest": 100.0}
    three = np.array([[5, 0, 0, 0], [0, 5, 0, 0], [0, 3, 1, 1]])
    assert Grade(three, None, (1, 1, 1), (1, 1, 2)).collapse == {"new_used": 2, "new_largest": 50.0}


def test_a_model_that_never_says_new_uses_none_of_its_classes(fitted, tasks) -> None:
    graded = grade(nova.discover(fitted, tasks[1], nova.NeverNew()), tasks[2])
    assert graded.collapse["new_used"] == 0
    assert np.isnan(graded.collapse["new_largest"])
    assert graded.scores()["old_n"] == grade(fitted, tasks[2]).scores()["old"]


def test_phase_row_by_hand() -> None:
    graded = Grade(np.array([[8, 2, 0], [1, 0, 9], [0, 6, 4]]), None, (1, 2), (1, 2))
    assert graded.phase_row("block") == [80.0, 75.0]
    assert graded.phase_row("identity") == [80.0, 20.0]


def test_phase_row_does_not_count_one_phases_node_as_another_phases_class() -> None:
    """Under block, old nodes that are called new are wrong in the old column of the row."""
    graded = Grade(np.array([[2, 8], [0, 10]]), None, (1, 1), (1, 1))
    assert graded.phase_row() == [20.0, 100.0]


def test_a_perfect_model_of_three_phases_is_perfect_whatever_the_numbers_of_its_classes() -> None:
    """Two stages of discovery, each with its two classes in the other order.

    All numbers but the old ones are arbitrary.
    """
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
    first = Grade(
        np.array([[9, 0], [10, 0]]) + np.array([[0, 1], [0, 0]]), None, (1, 1), (1, 1)
    )  # M = [90]
    second = Grade(np.array([[8, 2], [4, 6]]), None, (1, 1), (1, 1))  # M = [80, 60]
    third = Grade(
        np.array([[5, 5, 0], [0, 7, 3], [9, 0, 1]]), None, (1, 1, 1), (1, 1, 1)
    )  # M = [50, 70, 10]
    aa, af = forgetting([first, second, third])
    assert aa == pytest.approx((50 + 70 + 10) / 3)
    assert af == pytest.approx(((50 - 90) + (70 - 60)) / 2)


def test_unknown_matching_lists_the_known_ones() -> None:
    with pytest.raises(
        SettingError, match="unknown matching 'hungarian'; known: block, global, identity"
    ):
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


def test_a_model_with_edited_classes_is_graded_where_its_classes_came_from(
    discovered, tasks
) -> None:
    """Labelled classes count at their own places, however merged; parts of one count for it."""
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


def test_phases_of_different_sizes_are_counted_by_their_own_classes() -> None:
    """Three labelled classes, then two new ones, then one: every phase has a size of its own."""
    labelled = nova.synthetic(nodes=240, classes=6, words=80, words_per_node=8)
    old, stages, (*_, exam) = nova.split_stages(labelled, [0, 1, 2], [[3, 4], [5]])
    model = nova.fit(old)
    for stage in stages:
        model = nova.discover(model, stage, nova.Prism(n_resamples=0))
    graded, predicted = grade(model, exam), model.predict(exam.graph)[exam.ids]
    assert graded.sizes == graded.predicted == (3, 2, 1)
    assert graded.confusion.tolist() == [
        [int(((exam.y == true) & (predicted == p)).sum()) for p in range(6)] for true in range(6)
    ]
    assert graded.confusion_new.tolist() == [[int((exam.y == 5).sum())]]
    assert graded.confusion_old.shape == (5, 5)
    among_old = model.predict_proba(exam.graph)[exam.ids][:, :5].argmax(axis=1)
    assert graded.confusion_old.tolist() == [
        [int(((exam.y == true) & (among_old == p)).sum()) for p in range(5)] for true in range(5)
    ]
    right = [graded.confusion[t, graded.matched().tolist().index(t)] for t in range(6)]
    assert graded.scores()["old"] == pytest.approx(100 * sum(right[:5]) / (exam.y < 5).sum())
    first = grade(nova.fit(old), exam)
    assert first.predicted == (3, 2, 1)
    assert first.confusion.shape == (6, 6)
