"""Published protocols: which nodes are for what, against twins written from their text."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

import nodenova as nova
from nodenova.data.protocols import (
    CFC,
    OPENIMA_SEEDS,
    POWN_FOLDS,
    STAGES,
    ClosedSet,
    Clusters,
    GNNSafe,
    Hope,
    OpenIMA,
    Pown,
    Stages,
    classes_to_count,
)
from nodenova.errors import SettingError, SplitError


@pytest.fixture(scope="module")
def citeseer() -> nova.LabelledGraph:
    return nova.load_dataset("citeseer")


@pytest.fixture(scope="module")
def photo() -> nova.LabelledGraph:
    """A graph of eight classes without a split that is called like Amazon's."""
    return replace(nova.synthetic(nodes=1600, classes=8), name="photo")


def names_of(labelled: nova.LabelledGraph, classes: list[int]) -> tuple[str, ...]:
    return tuple(labelled.class_names[c] for c in sorted(classes))


def test_every_class_is_in_one_fold_of_pown() -> None:
    classes = {"cora": 7, "citeseer": 6, "photo": 8, "computers": 10}
    for name, folds in POWN_FOLDS.items():
        assert sorted(c for fold in folds for c in fold) == list(range(classes[name]))
    assert POWN_FOLDS["cora"] == ((5, 3), (2, 0), (4, 1, 6))
    assert POWN_FOLDS["citeseer"] == ((0, 5), (4, 1), (2, 3))


@pytest.mark.parametrize(("fold", "before"), [(0, 2), (1, 0), (2, 1)])
def test_pown_on_the_published_split(citeseer: nova.LabelledGraph, fold: int, before: int) -> None:
    folds = [[0, 5], [4, 1], [2, 3]]
    known = [c for i in range(3) if i not in (fold, before) for c in folds[i]]
    world = Pown(fold).world(citeseer, 0)
    labelled_ids = [i for i in range(3327) if citeseer.train[i] and citeseer.y[i] in known]
    graded = [i for i in range(3327) if citeseer.test[i] and citeseer.y[i] in known + folds[fold]]
    (task,), (exam,) = world.tasks, world.exams
    assert world.old.train_ids.tolist() == labelled_ids
    assert len(labelled_ids) == 40
    assert len(world.old.val_ids) == 0
    assert task.ids.tolist() == sorted(set(range(3327)) - set(labelled_ids))
    assert task.mixed
    assert task.num_new == 4  # of the test fold and of the validation fold: the total is given
    assert exam.ids.tolist() == graded
    assert exam.sizes == (2, 2)
    assert exam.class_names == names_of(citeseer, known) + names_of(citeseer, folds[fold])
    assert [exam.class_names[c] for c in exam.y] == [
        citeseer.class_names[citeseer.y[i]] for i in graded
    ]
    hidden = [i for i in range(3327) if citeseer.y[i] in folds[fold] + folds[before]]
    assert world.new_ids[0].tolist() == hidden


def test_pown_draws_where_there_is_no_split(photo: nova.LabelledGraph) -> None:
    rng, train, test = np.random.default_rng(0), [], []
    for c in range(8):
        t = np.argwhere(photo.y == c)
        rng.shuffle(t)
        members = [int(node) for (node,) in t]
        train += members[:20]
        test += members[50:]
    world = Pown(1).world(photo, 0)  # to be found: 1, 2; aside: 0, 4
    known = [7, 3, 5, 6]
    assert world.old.train_ids.tolist() == sorted(i for i in train if photo.y[i] in known)
    assert world.exams[0].ids.tolist() == sorted(i for i in test if photo.y[i] in [*known, 1, 2])
    assert world.tasks[0].num_new == 4
    assert len(world.tasks[0].ids) == 1600 - 80


def test_pown_knows_its_graphs_and_folds(citeseer: nova.LabelledGraph) -> None:
    with pytest.raises(
        SettingError, match="POWN's graphs are cora, citeseer, photo, computers, not mine"
    ):
        Pown(0).world(replace(citeseer, name="mine"), 0)
    with pytest.raises(SettingError, match=r"citeseer: POWN's folds are 0\.\.2, not 3"):
        Pown(3).world(citeseer, 0)


@pytest.mark.parametrize("number", [0, 9])
def test_openima_draws_as_its_code_does(citeseer: nova.LabelledGraph, number: int) -> None:
    state = random.getstate()
    random.seed([2406525885, 2492579272][number == 9])
    cl = list(range(6))
    random.shuffle(cl)
    seen, train, val = cl[:3], [], []
    for c in seen:
        cand = np.where(citeseer.y == c)[0]
        random.shuffle(cand)
        train += cand[:50].tolist()
        val += cand[50:100].tolist()
    random.setstate(state)
    world = OpenIMA(number).world(citeseer, 0)
    rest = sorted(set(range(3327)) - set(train) - set(val))
    assert world.old.train_ids.tolist() == sorted(train)
    assert world.old.val_ids.tolist() == sorted(val)
    assert world.tasks[0].ids.tolist() == rest
    assert world.exams[0].ids.tolist() == rest
    assert world.tasks[0].num_new == 3
    assert world.exams[0].class_names == names_of(citeseer, seen) + names_of(citeseer, cl[3:])


def test_openima_leaves_the_callers_random_state_alone(citeseer: nova.LabelledGraph) -> None:
    random.seed(5)
    before = random.getstate()
    OpenIMA(3).world(citeseer, 0)
    assert random.getstate() == before


@pytest.mark.parametrize(("classes", "seen"), [(5, 2), (7, 4), (8, 4), (15, 8)])
def test_openima_rounds_halves_to_even(classes: int, seen: int) -> None:
    labelled = nova.synthetic(nodes=classes * 160, classes=classes)
    assert OpenIMA(0).world(labelled, 0).exams[0].sizes == (seen, classes - seen)


def test_openima_has_ten_splits_and_needs_large_classes(citeseer: nova.LabelledGraph) -> None:
    assert len(set(OPENIMA_SEEDS)) == 10
    with pytest.raises(SettingError, match=r"OpenIMA's splits are 0\.\.9, not 10"):
        OpenIMA(10).world(citeseer, 0)
    with pytest.raises(SplitError, match=r"class 'class-\d' has \d+ nodes; OpenIMA takes 100"):
        OpenIMA(0).world(nova.synthetic(nodes=300, classes=4), 0)


def test_gnnsafe_asks_about_test_nodes_of_old_and_all_nodes_of_new_classes(
    photo: nova.LabelledGraph,
) -> None:
    cora = nova.synthetic(nodes=400, classes=7)
    masks = np.arange(400) % 3
    cora = replace(cora, name="cora", train=masks == 0, val=masks == 2, test=masks == 1)
    world = GNNSafe().world(cora, 0)
    labelled_ids = [i for i in range(400) if i % 3 == 0 and cora.y[i] in (4, 5, 6)]
    assert world.old.train_ids.tolist() == labelled_ids
    assert world.tasks[0].ids.tolist() == sorted(set(range(400)) - set(labelled_ids))
    assert world.tasks[0].num_new == 4  # with class 3, which nobody is asked about
    asked = [i for i in range(400) if (i % 3 == 1 and cora.y[i] in (4, 5, 6)) or cora.y[i] < 3]
    assert world.exams[0].ids.tolist() == asked
    assert world.exams[0].sizes == (3, 3)
    with pytest.raises(SettingError, match="are of cora, photo, cs, not of mine"):
        GNNSafe().world(replace(photo, name="mine"), 0)


def test_gnnsafe_draws_a_tenth_of_the_known_nodes_where_there_is_no_split(
    photo: nova.LabelledGraph,
) -> None:
    world = GNNSafe().world(photo, 3)
    known = np.flatnonzero(photo.y > 4)
    train, exam = world.old.train_ids, world.exams[0].ids
    assert len(train) == round(0.1 * len(known))
    assert set(train.tolist()) <= set(known.tolist())
    graded_old = exam[photo.y[exam] > 4]
    assert len(graded_old) == len(known) - round(0.2 * len(known))
    assert not set(train.tolist()) & set(graded_old.tolist())
    assert np.array_equal(exam[photo.y[exam] < 4], np.flatnonzero(photo.y < 4))
    assert not (photo.y[exam] == 4).any()  # the exposed class is not graded
    assert world.tasks[0].num_new == 5
    assert not np.array_equal(train, GNNSafe().world(photo, 4).old.train_ids)
    assert np.array_equal(train, GNNSafe().world(photo, 3).old.train_ids)


def test_cfc_draws_as_its_code_does_and_the_same_for_every_seed(
    staged: nova.LabelledGraph,
) -> None:
    unknown = np.concatenate([np.where(staged.y == c)[0] for c in (1, 4, 6)])
    seen = np.setdiff1d(np.arange(1400), unknown)
    train, rest = train_test_split(seen, test_size=0.5, random_state=100)
    _, test = train_test_split(
        np.concatenate([rest, unknown]), test_size=0.3 / 0.5, random_state=100
    )
    world = CFC().world(staged, 7)
    assert np.array_equal(world.old.train_ids, np.sort(train))
    assert np.array_equal(world.exams[0].ids, np.sort(test))
    assert world.exams[0].sizes == (4, 3)
    assert world.tasks[0].num_new is None  # the number is not given
    assert np.array_equal(world.tasks[0].ids, np.setdiff1d(np.arange(1400), train))
    assert np.array_equal(CFC().world(staged, 8).exams[0].ids, world.exams[0].ids)
    with pytest.raises(SettingError, match="CFC's split is of cora, not of mine"):
        CFC().world(replace(staged, name="mine"), 0)


def test_hope_takes_the_smallest_class_for_new(staged: nova.LabelledGraph) -> None:
    y = staged.y.copy()
    y[np.flatnonzero(y == 5)[10:]] = 2
    world = Hope().world(replace(staged, y=y), 1)
    assert world.classes == ((0, 1, 2, 3, 4, 6), (5,))
    assert world.tasks[0].num_new == 1
    for c in range(7):
        members = np.flatnonzero(y == c)
        graded, labelled = (
            np.isin(members, world.exams[0].ids),
            np.isin(members, world.old.train_ids),
        )
        assert graded.sum() == len(members) - round(0.8 * len(members))
        assert labelled.sum() == (0 if c == 5 else round(0.6 * len(members)))
        assert not (graded & labelled).any()


def test_a_closed_set_has_no_new_class_and_needs_a_split(citeseer: nova.LabelledGraph) -> None:
    world = ClosedSet().world(citeseer, 0)
    assert world.classes[1] == ()
    assert world.exams[0].sizes == (6, 0)
    assert np.array_equal(world.old.train_ids, np.flatnonzero(citeseer.train))
    assert np.array_equal(world.exams[0].ids, np.flatnonzero(citeseer.test))
    with pytest.raises(SettingError, match="mine has no published split"):
        ClosedSet().world(replace(nova.synthetic(nodes=200, classes=4), name="mine"), 0)


def test_clusters_grade_every_node_without_a_label(staged: nova.LabelledGraph) -> None:
    world = Clusters(2).world(staged, 2)
    assert world.exams[0].sizes == (4, 3)
    assert len(world.old.train_ids) == 4 * 20
    rest = np.setdiff1d(np.arange(1400), world.old.train_ids)
    assert np.array_equal(world.tasks[0].ids, rest)
    assert np.array_equal(world.exams[0].ids, rest)
    assert world.tasks[0].num_new is None


@pytest.fixture(scope="module")
def staged() -> nova.LabelledGraph:
    return replace(nova.synthetic(nodes=1400, classes=7), name="cora")


def test_sessions_bring_new_classes_and_some_of_every_class_met_before(
    staged: nova.LabelledGraph,
) -> None:
    world = Stages().world(staged, 3)
    groups = world.classes
    assert tuple(map(len, groups)) == STAGES["cora"] == (3, 2, 2)
    assert sorted(c for group in groups for c in group) == list(range(7))
    for session, (task, exam) in enumerate(zip(world.tasks, world.exams, strict=True), start=1):
        met = {c for group in groups[: session + 1] for c in group}
        assert set(staged.y[task.ids].tolist()) == met
        assert set(staged.y[exam.ids].tolist()) == met
        assert task.num_new == 2
        assert set(staged.y[world.new_ids[session - 1]].tolist()) == set(groups[session])
        assert exam.sizes == (3, 2, 2)[: session + 1]


def test_the_nodes_of_a_class_are_dealt_out_as_stated(staged: nova.LabelledGraph) -> None:
    world = Stages().world(staged, 3)
    for home, group in enumerate(world.classes):
        for c in group:
            total = int((staged.y == c).sum())
            asked = int((staged.y[world.exams[-1].ids] == c).sum())
            assert asked == round(0.3 * total)
            comes = [int((staged.y[task.ids] == c).sum()) for task in world.tasks]
            rest = total - asked
            if home == 0:
                assert int((world.old.train_y == world.classes[0].index(c)).sum()) == 20
                assert comes == [(rest - 20 + 1) // 2, (rest - 20) // 2]
            else:
                assert comes == (
                    [round(0.6 * rest), rest - round(0.6 * rest)] if home == 1 else [0, rest]
                )


def test_no_node_comes_twice_and_none_that_comes_is_graded(staged: nova.LabelledGraph) -> None:
    world = Stages().world(staged, 0)
    come = np.concatenate([world.old.train_ids, *(task.ids for task in world.tasks)])
    assert len(set(come.tolist())) == len(come)
    assert not set(come.tolist()) & set(world.exams[-1].ids.tolist())
    assert set(world.exams[0].ids.tolist()) < set(world.exams[1].ids.tolist())


def test_the_order_of_the_classes_is_drawn(staged: nova.LabelledGraph) -> None:
    assert len({Stages().world(staged, seed).classes for seed in range(5)}) > 1
    assert Stages().world(staged, 2).classes == Stages().world(staged, 2).classes


def test_classes_to_count_are_of_every_number() -> None:
    drawn = [classes_to_count(10, seed) for seed in range(300)]
    assert {len(new) for _, new in drawn} == set(range(1, 9))
    assert {len(old) for old, _ in drawn} == set(range(2, 10))
    assert all(not set(old) & set(new) for old, new in drawn)
    assert max(len(new) for _, new in (classes_to_count(40, seed) for seed in range(50))) <= 8
