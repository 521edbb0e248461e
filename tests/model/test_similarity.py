"""Which classes look like one, and which like two."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import nodenova as nova
from nodenova.model.similarity import MergeSplit, estimate_merge_split, evidence


class Made(NamedTuple):
    data: nova.LabelledGraph
    known: nova.Model  # of classes 0, 1, 2
    task: nova.NewTask  # nodes of classes 3 and 4


@pytest.fixture(scope="module")
def made() -> Made:
    data = nova.synthetic(nodes=400, classes=5, words=120, seed=2)
    old, task, _ = nova.split(data, [0, 1, 2])
    return Made(data, nova.fit(old), task)


def likeness(model: nova.Model, graph: nova.Graph) -> MergeSplit:
    found = estimate_merge_split(model, *model.embed_and_predict(graph))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def found(made: Made) -> nova.Model:
    return nova.discover(made.known, made.task)


def test_the_halves_of_a_class_look_like_one_and_other_classes_do_not(
    made: Made, found: nova.Model
) -> None:
    apart = likeness(found, made.data.graph).together
    assert np.nanmax(apart) < 0.1
    halved = found.split(3, made.data.graph)
    together = likeness(halved, made.data.graph).together
    assert [c.id for c in halved.classes[-2:]] == [5, 6]
    assert together[-1, -2] == together[-2, -1] > 0.5
    together[-2:, -2:] = np.nan
    assert np.nanmax(together) < 0.1


def test_known_classes_are_not_compared_with_each_other_or_themselves(
    made: Made, found: nova.Model
) -> None:
    together = likeness(found, made.data.graph).together
    assert np.isnan(together[:3, :3]).all()
    assert np.isnan(together.diagonal()).all()
    assert not np.isnan(together[3:, :3]).any()


def test_a_class_made_of_two_looks_more_like_two_than_others_of_its_size(
    made: Made, found: nova.Model
) -> None:
    graph = made.data.graph
    plain = likeness(found, graph).two
    one = nova.discover(made.known, nova.NewTask(graph, made.task.ids, 1))
    merged = found.merge([3, 4])  # a class of two columns
    for two in (likeness(one, graph).two, likeness(merged, graph).two):
        assert two[3] > 1.5 * plain[3:].max()
        assert two[:3] == pytest.approx(plain[:3], abs=0.03)
    alike = evidence(merged, *merged.embed_and_predict(graph)).halves[:, 0]
    assert alike[3] < 0.25  # as two known classes are, which is 0
    assert alike[:3].min() > 0.9  # as one class is, which is 1


def test_a_class_without_nodes_is_compared_with_nothing(made: Made) -> None:
    four = nova.discover(made.known, nova.NewTask(made.data.graph, made.task.ids, 4))
    sizes = [info.size for info in four.class_info(made.data.graph)]
    assert 0 in sizes
    empty = sizes.index(0)
    told = likeness(four, made.data.graph)
    assert np.isnan(told.together[empty]).all()
    assert np.isnan(told.two[empty])
    assert four.class_info(made.data.graph)[empty].same_as is None


def test_it_is_the_same_each_time_whatever_was_drawn_before(made: Made, found: nova.Model) -> None:
    first = likeness(found, made.data.graph)
    np.random.seed(5)
    again = likeness(found, made.data.graph)
    assert np.array_equal(first.together, again.together, equal_nan=True)
    assert np.array_equal(first.two, again.two, equal_nan=True)


def test_trained_encoders_are_not_judged(
    discovered: nova.Model, labelled: nova.LabelledGraph
) -> None:
    assert estimate_merge_split(discovered, *discovered.embed_and_predict(labelled.graph)) is None
    assert {info.two for info in discovered.class_info(labelled.graph)} == {None}


def test_class_info_tells_each_class_what_it_is_likest(made: Made, found: nova.Model) -> None:
    halved = found.split(3, made.data.graph)
    told = likeness(halved, made.data.graph)
    infos = {info.id: info for info in halved.class_info(made.data.graph)}
    assert (infos[5].same_as, infos[6].same_as) == (6, 5)
    assert infos[5].same_as_probability == told.together[-1, -2]
    assert [info.two for info in infos.values()] == told.two.tolist()
    assert {"same_as", "same_as_probability", "two"} <= set(
        halved.class_info(made.data.graph).to_frame().columns
    )
