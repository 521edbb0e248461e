"""Mixtures of old and new classes in a stated share."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import nodenova as nova
from nodenova.data.mixed_splits import open_world, split_mixed
from nodenova.data.protocols import Stages
from nodenova.errors import SettingError, SplitError


@pytest.fixture(scope="module")
def graph() -> nova.LabelledGraph:
    return nova.synthetic(nodes=900, classes=6)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.95, 1.0])
def test_the_mixture_has_the_stated_share_of_old_nodes(
    graph: nova.LabelledGraph, share: float
) -> None:
    world = split_mixed(graph, [0, 3, 5], share_old=share, seed=1)
    ids = world.tasks[0].ids
    old = np.isin(graph.y[ids], [0, 3, 5])
    assert abs(old.mean() - share) <= 0.5 / len(ids) + 1e-12
    assert ids[~old].tolist() == world.new_ids[0].tolist()
    assert world.tasks[0].mixed
    assert len(ids) > 100


def test_no_node_is_labelled_and_unlabelled_or_graded_too(graph: nova.LabelledGraph) -> None:
    world = split_mixed(graph, [0, 1], share_old=0.5)
    labelled, unlabelled, graded = (
        set(ids.tolist()) for ids in (world.old.train_ids, world.tasks[0].ids, world.exams[0].ids)
    )
    assert not labelled & unlabelled
    assert not graded & (labelled | unlabelled)
    assert np.bincount(world.old.train_y).tolist() == [20, 20]
    for c in range(6):
        rest = int((graph.y == c).sum()) - (20 if c < 2 else 0)
        assert int((graph.y[world.exams[0].ids] == c).sum()) == (rest + 1) // 2


def test_as_many_nodes_as_the_share_allows(graph: nova.LabelledGraph) -> None:
    world = split_mixed(graph, [0, 1, 2], share_old=0.3)
    count = np.bincount(graph.y).tolist()
    known, unknown = sum((n - 20) // 2 for n in count[:3]), sum(n // 2 for n in count[3:])
    size = min(known / 0.3, unknown / 0.7)
    old = int(np.isin(graph.y[world.tasks[0].ids], [0, 1, 2]).sum())
    assert (old, len(world.tasks[0].ids) - old) == (round(0.3 * size), round(0.7 * size))
    assert len(split_mixed(graph, [0, 1, 2], max_unlabelled=50).tasks[0].ids) == 50


def test_where_nothing_is_new_nothing_is_to_be_found(graph: nova.LabelledGraph) -> None:
    world = split_mixed(graph, [0, 1, 2], share_old=1.0)
    assert world.tasks[0].num_new is None
    assert world.exams[0].sizes == (3, 0)
    assert set(graph.y[world.exams[0].ids].tolist()) == {0, 1, 2}
    assert len(world.new_ids[0]) == 0


def test_classes_that_are_neither_old_nor_new_are_left_out(graph: nova.LabelledGraph) -> None:
    world = split_mixed(graph, [4, 2], [1], share_old=0.5)
    assert world.classes == ((2, 4), (1,))
    assert set(graph.y[world.tasks[0].ids].tolist()) == {1, 2, 4}
    assert world.exams[0].class_names == ("class-2", "class-4", "class-1")


def test_the_seed_draws_other_nodes(graph: nova.LabelledGraph) -> None:
    first, again, other = (
        split_mixed(graph, [0, 1], seed=seed).tasks[0].ids.tolist() for seed in (0, 0, 1)
    )
    assert first == again != other


def test_the_mixture_can_be_handed_over_in_three_ways(graph: nova.LabelledGraph) -> None:
    world = split_mixed(graph, [0, 1], share_old=0.6)
    mixed, told, all_new = (world.handed(0, how) for how in ("mixed", "told", "all-new"))
    assert mixed.mixed
    assert mixed.ids.tolist() == all_new.ids.tolist()
    assert not all_new.mixed
    assert not told.mixed
    assert told.ids.tolist() == world.new_ids[0].tolist()
    assert {task.num_new for task in (mixed, told, all_new)} == {4}
    with pytest.raises(SettingError, match="unknown way to hand over unlabelled nodes 'secretly'"):
        world.handed(0, "secretly")


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_an_impossible_share_is_said(graph: nova.LabelledGraph, share: float) -> None:
    with pytest.raises(SettingError, match=rf"share_old must be between 0 and 1, it is {share}"):
        split_mixed(graph, [0], share_old=share)


def test_bad_classes_and_sizes_are_said(graph: nova.LabelledGraph) -> None:
    with pytest.raises(SplitError, match="class 9 is not there"):
        split_mixed(graph, [9])
    with pytest.raises(SplitError, match="class 1 is given twice"):
        split_mixed(graph, [0, 1], [1, 2])
    with pytest.raises(SettingError, match="max_unlabelled must be at least 1"):
        split_mixed(graph, [0], max_unlabelled=0)
    with pytest.raises(SettingError, match="per_class must be at least 1"):
        split_mixed(graph, [0], per_class=0)


def test_nodes_in_the_wrong_place_are_named(graph: nova.LabelledGraph) -> None:
    ids = {c: np.flatnonzero(graph.y == c) for c in range(3)}

    def world(train: np.ndarray, unlabelled: np.ndarray, exam: np.ndarray) -> None:
        open_world(graph, [[0], [1]], train_ids=train, unlabelled=[unlabelled], exam_ids=exam)

    with pytest.raises(SplitError, match=rf"node {ids[1][0]} is labelled, but not of an old class"):
        world(ids[1], ids[0], ids[0])
    with pytest.raises(SplitError, match=rf"node {ids[0][0]} is both labelled and unlabelled"):
        world(ids[0], ids[0], ids[0])
    with pytest.raises(
        SplitError, match=rf"node {ids[2][0]} is graded, but its class is in no session"
    ):
        world(ids[0], ids[1], ids[2])


def by_name(graph: nova.Graph, ids: np.ndarray) -> set[int]:
    return set(graph.node_ids[ids].tolist())


def test_inductive_phases_see_no_node_of_a_later_session_or_class(
    graph: nova.LabelledGraph,
) -> None:
    whole, hidden = (
        split_mixed(graph, [0, 1], share_old=0.5, setting=setting, seed=3)
        for setting in ("transductive", "inductive")
    )
    shown = by_name(hidden.old.graph, np.arange(hidden.old.graph.num_nodes))
    mixture = by_name(whole.tasks[0].graph, whole.tasks[0].ids)
    assert not shown & mixture
    assert set(graph.y[sorted(shown)].tolist()) == {0, 1}
    assert hidden.tasks[0].graph.num_nodes > len(shown)
    # The same nodes under other numbers, for every task and exam.
    for world in (whole, hidden):
        assert world.old.train_ids.max() < world.old.graph.num_nodes
    pairs = [
        (whole.old.graph, whole.old.train_ids, hidden.old.graph, hidden.old.train_ids),
        (whole.tasks[0].graph, whole.tasks[0].ids, hidden.tasks[0].graph, hidden.tasks[0].ids),
        (whole.tasks[0].graph, whole.new_ids[0], hidden.tasks[0].graph, hidden.new_ids[0]),
        (whole.exams[0].graph, whole.exams[0].ids, hidden.exams[0].graph, hidden.exams[0].ids),
    ]
    for graph_1, ids_1, graph_2, ids_2 in pairs:
        assert by_name(graph_1, ids_1) == by_name(graph_2, ids_2)
    assert hidden.handed(0, "told").ids.tolist() == hidden.new_ids[0].tolist()


def test_sessions_of_an_inductive_world_grow(graph: nova.LabelledGraph) -> None:
    world = Stages(setting="inductive").world(graph, 0)
    graphs = [world.old.graph, *(task.graph for task in world.tasks)]
    names = [set(each.node_ids.tolist()) for each in graphs]
    assert all(a < b for a, b in pairwise(names))
    with pytest.raises(SettingError, match="unknown setting 'blind'"):
        Stages(setting="blind").world(graph, 0)
