"""Labels become tasks in one place, whoever divides them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import nodenova as nova
from nodenova.data.division import Division
from nodenova.data.splits import labelled_new_task, split, split_stages
from nodenova.data.tasks import tasks_from_labels
from nodenova.errors import GraphError


@pytest.fixture
def divided(tiny: nova.LabelledGraph) -> Division:
    """Ten nodes by hand: classes a and b are old, c is new, node 9 is of no known class."""
    ids = np.arange(10)
    return Division(
        graph=tiny.graph,
        y=np.array([2, 0, 1, 2, 0, 1, 2, 0, 1, -1]),
        class_names=("a", "b", "c"),
        sizes=(2, 1),
        train=np.isin(ids, [1, 2]),
        val=np.isin(ids, [3, 4, 9]),
        new=[np.isin(ids, [0, 9])],
        test=ids > 4,
    )


def test_phase_1_gets_labels_of_old_classes_alone(divided: Division) -> None:
    old = divided.old_task()
    assert (old.train_ids.tolist(), old.train_y.tolist()) == ([1, 2], [0, 1])
    assert (old.val_ids.tolist(), old.val_y.tolist()) == ([4], [0])
    assert old.class_names == ("a", "b")


def test_phase_2_gets_ids_and_the_exam_asks_for_nodes_whose_class_is_known(
    divided: Division,
) -> None:
    new, exam = divided.new_task(), divided.exam()
    assert (new.ids.tolist(), new.num_new) == ([0, 9], 1)
    assert divided.new_task(1, 2).num_new == 2
    assert (exam.ids.tolist(), exam.y.tolist()) == ([5, 6, 7, 8], [1, 2, 0, 1])
    assert (exam.sizes, exam.class_names) == ((2, 1), ("a", "b", "c"))


def test_the_other_door_gives_the_labels_of_the_same_nodes(divided: Division) -> None:
    known = replace(divided, new=[np.arange(10) == 0])
    given = known.labelled_new_task()
    assert (given.ids.tolist(), given.y.tolist()) == ([0], [0])  # numbered among the new classes
    assert (given.old_ids.tolist(), given.old_y.tolist()) == ([1, 2], [0, 1])
    assert (given.val_ids.tolist(), given.val_y.tolist()) == ([3, 4], [2, 0])
    with pytest.raises(GraphError, match="need as many labels, numbered from 0"):
        divided.labelled_new_task()  # node 9 has none to give


def test_a_phase_that_sees_less_has_one_graph_for_task_and_exam(divided: Division) -> None:
    met = [(divided.y >= 0) & (divided.y < end) for end in (2, 3)]
    induced = replace(divided, seen=met, new=[np.arange(10) == 0])
    assert induced.old_task().graph.num_nodes == 6
    new, exam = induced.new_task(), induced.exam()
    assert new.graph is exam.graph
    assert new.graph.num_nodes == 9
    # Numbers are those of the smaller graph: the answers are still of the same nodes.
    names = exam.graph.node_ids[exam.ids]
    assert (divided.y[[int(name) for name in names]] == exam.y).all()


def test_all_splitters_go_through_it(
    tiny: nova.LabelledGraph, divided: Division, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change there is a change of every task."""
    monkeypatch.setattr(Division, "new_task", lambda self, *told, **more: "changed")
    assert split(tiny, [0, 1])[1] == "changed"
    assert split_stages(tiny, [0], [[1], [2]])[1] == ["changed", "changed"]
    loaded = nova.UserGraph(tiny.graph, divided.y, ("a", "b", "c"), new_ids=np.array([0, 3, 6, 9]))
    assert tasks_from_labels(loaded, 1)[1] == "changed"
    with pytest.raises(AttributeError):
        labelled_new_task(tiny, [0, 1])  # it takes graph and ids of the same new task
