from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import nodenova as nova
from nodenova.data.splits import resample_training_nodes, split, split_stages, with_split
from nodenova.errors import SettingError, SplitError


def test_the_published_masks_are_used(tiny) -> None:
    old, new, exam = split(tiny, [0, 1])
    assert old.train_ids.tolist() == [1, 2]
    assert old.train_y.tolist() == [0, 1]
    assert old.val_ids.tolist() == [4]
    assert old.val_y.tolist() == [0]
    assert old.class_names == ("a", "b")
    assert new.ids.tolist() == [0]
    assert new.num_new == 1
    assert exam.ids.tolist() == [5, 6, 7, 8]
    assert exam.y.tolist() == [1, 2, 0, 1]
    assert exam.sizes == (2, 1)
    assert exam.class_names == ("a", "b", "c")


def test_classes_are_numbered_old_first_whatever_their_ids(tiny) -> None:
    old, new, exam = split(tiny, [2])
    assert old.train_ids.tolist() == [0]
    assert old.train_y.tolist() == [0]
    assert new.ids.tolist() == [1, 2]
    assert exam.y.tolist() == [2, 0, 1, 2]
    assert exam.class_names == ("c", "a", "b")


def test_old_classes_in_any_order_are_the_same_split(labelled) -> None:
    for a, b in zip(split(labelled, [2, 0]), split(labelled, (0, 2)), strict=True):
        for field in dataclasses.fields(a):
            one, other = getattr(a, field.name), getattr(b, field.name)
            assert one is other or np.array_equal(one, other), field.name


@pytest.mark.parametrize("visibility", ["transductive", "inductive"])
def test_ids_are_ascending(labelled, visibility: str) -> None:
    old, new, exam = split(labelled, [1, 3], setting=visibility)
    for ids in (old.train_ids, old.val_ids, new.ids, exam.ids):
        assert len(ids) > 1
        assert (np.diff(ids) > 0).all()


def test_what_phase_2_is_given_holds_no_label(tasks) -> None:
    new = tasks[1]
    assert {field.name for field in dataclasses.fields(new)} == {"graph", "ids", "num_new", "mixed"}
    assert set(vars(new)) == {"graph", "ids", "num_new", "mixed"}
    assert set(vars(new.graph)) <= {
        "x",
        "edge_index",
        "node_ids",
        "feature_names",
        "edge_weight",
        "vectors",
        "recipe",
        "given_order",
        "adjacency",
        "cache",
    }
    for part in (new.graph.edge_index, new.graph.node_ids, new.ids):
        assert (
            part.base is None or part.base.size == part.size
        )  # no view into an array that knows more


def test_a_node_of_unknown_class_is_nowhere(tiny) -> None:
    assert tiny.train[9]
    assert tiny.test[9]
    for old_classes in ([0, 1], [0, 2], [2]):
        old, new, exam = split(tiny, old_classes)
        for ids in (old.train_ids, old.val_ids, new.ids, exam.ids):
            assert 9 not in ids
        induced = split(tiny, old_classes, setting="inductive")
        assert induced[1].graph.num_nodes == 9


def test_unknown_nodes_are_in_no_part_of_a_seeded_split(labelled) -> None:
    y = labelled.y.copy()
    y[::3] = -1
    drawn = with_split(dataclasses.replace(labelled, y=y))
    assert not (drawn.train | drawn.val | drawn.test)[::3].any()
    assert (drawn.train | drawn.val | drawn.test).sum() == (y >= 0).sum()


def test_transductive_shows_the_whole_graph_to_both_phases(labelled) -> None:
    old, new, exam = split(labelled, [0, 1])
    assert old.graph is labelled.graph
    assert new.graph is labelled.graph
    assert exam.graph is labelled.graph


def test_induced_shows_a_phase_only_the_classes_met_so_far(labelled) -> None:
    old, news, exams = split_stages(labelled, [0], [[1], [2, 3]], setting="inductive")
    for graph, known in [(old.graph, [0]), (news[0].graph, [0, 1]), (news[1].graph, [0, 1, 2, 3])]:
        kept = np.flatnonzero(np.isin(labelled.y, known))
        assert graph.node_ids.tolist() == labelled.graph.node_ids[kept].tolist()
        assert (
            graph.adjacency.toarray() == labelled.graph.adjacency.toarray()[np.ix_(kept, kept)]
        ).all()
        assert (graph.x.toarray() == labelled.graph.x.toarray()[kept]).all()
    assert exams[0].graph is news[0].graph


def test_induced_and_transductive_are_about_the_same_nodes(labelled) -> None:
    whole, part = split(labelled, [0, 1]), split(labelled, [0, 1], setting="inductive")
    for task, other, ids in [(0, 0, "train_ids"), (0, 0, "val_ids"), (1, 1, "ids"), (2, 2, "ids")]:
        names = whole[task].graph.node_ids[getattr(whole[task], ids)]
        assert part[other].graph.node_ids[getattr(part[other], ids)].tolist() == names.tolist()
    assert whole[0].train_y.tolist() == part[0].train_y.tolist()
    assert whole[2].y.tolist() == part[2].y.tolist()


def test_train_validation_and_test_are_disjoint_and_of_the_right_classes(labelled) -> None:
    old, new, exam = split(labelled, [0, 2])
    assert set(labelled.y[old.train_ids]) == {0, 2}
    assert set(labelled.y[old.val_ids]) <= {0, 2}
    assert set(labelled.y[new.ids]) == {1, 3}
    parts = [set(ids.tolist()) for ids in (old.train_ids, old.val_ids, new.ids, exam.ids)]
    assert sum(map(len, parts)) == len(set.union(*parts))


def test_two_stages_are_numbered_consistently(labelled) -> None:
    old, news, exams = split_stages(labelled, [3], [[2, 0], [1]])
    order = np.array([3, 0, 2, 1])  # old first, then stage by stage, ascending within each
    assert exams[0].sizes == (1, 2)
    assert exams[1].sizes == (1, 2, 1)
    assert exams[1].class_names == ("class-3", "class-0", "class-2", "class-1")
    assert exams[0].class_names == exams[1].class_names[:3]
    assert set(old.train_y) == {0}
    for exam in exams:
        assert (order[exam.y] == labelled.y[exam.ids]).all()
    assert set(labelled.y[exams[0].ids]) == {0, 2, 3}
    assert set(labelled.y[news[0].ids]) == {0, 2}
    assert set(labelled.y[news[1].ids]) == {1}
    assert [task.num_new for task in news] == [2, 1]


def test_one_stage_is_split(labelled) -> None:
    _, news, exams = split_stages(labelled, [0, 1], [[2, 3]])
    _, new, exam = split(labelled, [0, 1])
    assert news[0].ids.tolist() == new.ids.tolist()
    assert exams[0].y.tolist() == exam.y.tolist()


def test_phase_2_can_be_told_another_number_of_classes(labelled) -> None:
    assert split(labelled, [0, 1], num_new=5)[1].num_new == 5
    assert split(labelled, [0, 1], num_new=5)[2].sizes == (2, 2)


def test_num_new_zero_is_refused_not_replaced_by_the_truth(labelled) -> None:
    with pytest.raises(SettingError, match="num_new must be at least 1, it is 0"):
        split(labelled, [0, 1], num_new=0)


def test_a_seeded_split_is_a_function_of_the_seed(labelled) -> None:
    a, b, c = (
        with_split(labelled, seed=1),
        with_split(labelled, seed=1),
        with_split(labelled, seed=2),
    )
    for mask in ("train", "val", "test"):
        assert (getattr(a, mask) == getattr(b, mask)).all()
    assert (a.train != c.train).any()
    assert (a.test != c.test).any()


@pytest.mark.parametrize("per_class", [1, 5, 1000])
def test_per_class_is_respected_and_at_most_half(labelled, per_class: int) -> None:
    drawn = with_split(labelled, per_class=per_class)
    for c in range(4):
        size = (labelled.y == c).sum()
        assert (drawn.train & (labelled.y == c)).sum() == min(per_class, size // 2)
    assert not (drawn.train & drawn.val).any()
    assert not (drawn.test & (drawn.train | drawn.val)).any()
    rest = (~drawn.train).sum()
    assert drawn.val.sum() == rest // 4
    assert drawn.test.sum() == rest - rest // 4


def test_a_published_split_is_not_replaced(tiny) -> None:
    assert with_split(tiny, seed=5) is tiny


def test_a_split_without_validation_nodes(tiny) -> None:
    old, _, _ = split(dataclasses.replace(tiny, val=None), [0, 1])
    assert len(old.val_ids) == 0


def lonely() -> nova.LabelledGraph:
    graph = nova.Graph.of(np.ones((7, 2)), [[0], [1]])
    return nova.LabelledGraph(
        graph, np.array([0, 0, 1, 1, 2, -1, -1]), ("a", "b", "rare", "none"), name="lonely"
    )


@pytest.mark.parametrize(
    ("old", "sentence"),
    [
        ([0, 4], "class 4 is not there, classes are 0..3"),
        ([-1], "class -1 is not there"),
        ([0, 1, 0], "class 0 is given twice"),
        ([0, 1, 2, 3], "4 old classes of 4 leave no new class"),
        ([], "at least one old class"),
    ],
)
def test_classes_that_cannot_be_told_apart(labelled, old: list[int], sentence: str) -> None:
    with pytest.raises(SplitError, match=f"synthetic: .*{sentence}"):
        split(labelled, old)


def test_a_class_in_two_stages(labelled) -> None:
    with pytest.raises(SplitError, match="class 2 is given twice"):
        split_stages(labelled, [0], [[1, 2], [2]])


def test_an_empty_stage(labelled) -> None:
    with pytest.raises(SplitError, match="no new class"):
        split_stages(labelled, [0], [[1, 2], []])


def test_a_class_with_one_node_is_named() -> None:
    with pytest.raises(
        SplitError, match="lonely: class 'rare' has 1 labelled node; each class needs at least 2"
    ):
        split_stages(lonely(), [0], [[1, 2]])


def test_a_class_with_no_node_is_named() -> None:
    with pytest.raises(SplitError, match="class 'none' has 0 labelled nodes"):
        split_stages(lonely(), [0], [[1, 3]])


def test_a_lonely_class_that_is_not_asked_for_does_not_matter() -> None:
    _, news, _ = split_stages(lonely(), [0], [[1]])
    assert len(news[0].ids) == 1


def test_an_old_class_without_training_node_is_named(tiny) -> None:
    train = tiny.train.copy()
    train[2] = False
    with pytest.raises(SplitError, match="tiny: old class 'b' has no training node"):
        split(dataclasses.replace(tiny, train=train), [0, 1])


def test_new_classes_without_training_node(tiny) -> None:
    train = tiny.train.copy()
    train[0] = False
    with pytest.raises(
        SplitError, match=r"tiny: none of the new classes .* has a node in train_mask"
    ):
        split(dataclasses.replace(tiny, train=train), [0, 1])


def test_a_later_stage_without_training_node_is_a_split_error(labelled) -> None:
    drawn = with_split(labelled)
    with pytest.raises(SplitError):
        split_stages(
            dataclasses.replace(drawn, train=drawn.train & (labelled.y != 3)), [0], [[1, 2], [3]]
        )


@pytest.mark.parametrize("settings", [{"setting": "blind"}, {"per_class": 0}])
def test_impossible_settings(labelled, settings: dict[str, object]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        split(labelled, [0, 1], **settings)


def test_redrawn_keeps_the_test_and_draws_other_training_nodes(labelled) -> None:
    published = with_split(labelled)
    for balanced in (True, False):
        a = resample_training_nodes(published, [0, 1], per_class=5, seed=1, balanced=balanced)
        b = resample_training_nodes(published, [0, 1], per_class=5, seed=2, balanced=balanced)
        assert (a.test == published.test).all()
        assert (a.train != b.train).any()
        assert not (a.train & (a.val | a.test)).any()
        sizes = np.bincount(labelled.y[a.train], minlength=labelled.num_classes)
        assert sizes[:2].tolist() == [5, 5]
        assert sizes[2:].sum() == 5 * (labelled.num_classes - 2)
        assert not balanced or set(sizes) == {5}


@pytest.mark.parametrize("balanced", [True, False])
def test_redrawn_from_a_graph_without_a_test_draws_from_all_of_it(balanced: bool) -> None:
    sizes = [40] * 30 + [400, 10]
    y = np.repeat(np.arange(len(sizes)), sizes)
    labelled = nova.LabelledGraph(
        nova.Graph.of(np.ones((len(y), 1)), np.zeros((2, 0), int)),
        y,
        tuple(map(str, range(len(sizes)))),
    )
    drawn = resample_training_nodes(labelled, list(range(20)), seed=3, balanced=balanced)
    got = np.bincount(y[drawn.train], minlength=len(sizes))
    assert got[:20].tolist() == [20] * 20  # not the half of what a test had left
    assert got[20:].sum() == 20 * 11 + 5
    assert (
        got[30] == 20 if balanced else got[30] > 70
    )  # as they come: half of all new nodes are of that class
    assert drawn.test is not None
    assert drawn.val is not None
    assert not (drawn.train & (drawn.val | drawn.test)).any()
    assert (drawn.train | drawn.val | drawn.test).all()


def test_redrawn_wants_training_nodes(labelled) -> None:
    with pytest.raises(SettingError, match="per_class must be at least 1, it is 0"):
        resample_training_nodes(labelled, [0, 1], per_class=0)
