"""The entrance for methods that are given labels.

It hands over what is asked for, takes out the rest, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.data.labels import LabelledNewTask
from nodenova.data.splits import labelled_new_task, with_split
from nodenova.errors import GraphError, SettingError
from nodenova.methods import METHODS, choose_encoder, get_method
from nodenova.nn.class_memory import Memory
from nodenova.nn.heads import grow
from nodenova.nn.multirank import MultiRank
from nodenova.supervised import LABELLED, NEEDS
from nodenova.supervised.entrance import discover_supervised

SEEN: list[LabelledNewTask] = []


def bystander(*needs: str, classes: int = 2) -> Any:
    """A method with these needs that notes what it was given and learns nothing."""

    @dataclass(frozen=True)
    class Bystander:
        needs: ClassVar[tuple[str, ...]]

        def learn(self, model: nova.Model, given: LabelledNewTask) -> nova.Model:
            SEEN.append(given)
            g, p = model.encoder(), model.memory
            nobody = torch.zeros(1, dtype=torch.long)
            more = Memory.of(p.replay.mean[:1], nobody, classes, MultiRank.whole(16))
            return model.grown(encoder=g, head=grow(model.head(), classes), memory=p.append(more))

    Bystander.needs = needs
    return Bystander()


@pytest.fixture(scope="module")
def given(labelled) -> LabelledNewTask:
    return labelled_new_task(labelled, [0, 1])


FIELDS = {
    "y": "new_labels",
    "old_ids": "old_nodes",
    "old_y": "old_labels",
    "val_ids": "validation",
    "val_y": "validation",
}


@pytest.mark.parametrize(
    "needs",
    [(), ("new_labels",), ("old_nodes",), ("old_nodes", "old_labels"), ("validation",), NEEDS],
)
def test_a_method_gets_what_it_needs_and_nothing_else(
    needs: tuple[str, ...], fitted, given
) -> None:
    model = discover_supervised(fitted, given, bystander(*needs), seed=4)
    for field, need in FIELDS.items():
        handed, there = getattr(SEEN[-1], field), getattr(given, field)
        assert there is not None
        assert np.array_equal(handed, there) if need in needs else handed is None
    stage = model.stages[-1]
    assert stage.sees == ("graph", "new_ids", *needs)
    assert (stage.method, stage.seed) == ("Bystander", 4)


def test_what_is_needed_must_be_there(fitted, given) -> None:
    bare = LabelledNewTask(given.graph, given.ids, 2)
    words_for = {
        "new_labels": "the labels of the new nodes",
        "old_nodes": "old nodes",
        "validation": "validation nodes of old and new classes with their labels",
    }
    for need, words in words_for.items():
        with pytest.raises(
            SettingError, match=f"Bystander needs {words}, which the task does not have"
        ):
            discover_supervised(fitted, bare, bystander(need))
    with pytest.raises(SettingError, match="must then need old_nodes too"):
        discover_supervised(fitted, given, bystander("old_labels"))
    with pytest.raises(
        SettingError, match="unknown need of Bystander 'test_labels'; known: new_labels"
    ):
        discover_supervised(fitted, given, bystander("test_labels"))


def test_num_new_and_the_labels_must_agree(fitted, given, labelled) -> None:
    for num_new in (1, 3):
        with pytest.raises(
            SettingError,
            match=f"num_new is {num_new}, but the labels of the new nodes name 2 classes",
        ):
            discover_supervised(
                fitted,
                labelled_new_task(labelled, [0, 1], num_new=num_new),
                bystander("new_labels"),
            )
    with pytest.raises(
        SettingError, match="an old node has class 7, but the model knows 2 classes"
    ):
        discover_supervised(
            fitted, replace(given, old_y=given.old_y + 6), bystander("old_nodes", "old_labels")
        )


def test_other_things_the_door_refuses(fitted, given) -> None:
    for method in (nova.Sword(), LABELLED["gem"], "gem"):
        with pytest.raises(SettingError, match="a dataclass instance with needs and learn"):
            discover_supervised(fitted, given, method)
    with pytest.raises(SettingError, match="returned 3 classes for 2"):
        discover_supervised(fitted, given, bystander(classes=1))
    other = nova.synthetic(nodes=40, classes=4, words=9)
    other = replace(other, graph=replace(other.graph, feature_names=None))
    with pytest.raises(GraphError, match="9 features, the model was trained on 60"):
        discover_supervised(fitted, labelled_new_task(other, [0, 1]), bystander())
    # and the entrance without labels does not open for a method with them
    with pytest.raises(SettingError, match="with a discover function"):
        nova.discover(fitted, nova.NewTask(given.graph, given.ids, 2), LABELLED["gem"]())


def test_a_task_that_contradicts_itself_is_refused(given) -> None:
    with pytest.raises(GraphError, match="labels of old nodes are given without the nodes"):
        replace(given, old_ids=None)
    with pytest.raises(GraphError, match="labels of validation nodes are given without the nodes"):
        replace(given, val_ids=None)
    with pytest.raises(GraphError, match="validation nodes need as many labels"):
        replace(given, val_y=given.val_y[:-1])
    with pytest.raises(GraphError, match="old nodes need as many labels"):
        replace(given, old_y=given.old_y[:-1])
    with pytest.raises(GraphError, match="new nodes need as many labels, numbered from 0"):
        replace(given, y=given.y - 1)
    with pytest.raises(GraphError, match="strictly ascending"):
        replace(given, old_ids=given.old_ids[::-1])


@pytest.mark.parametrize("visibility", ["transductive", "inductive"])
@pytest.mark.parametrize("old", [[0, 1], [3, 1]])
def test_the_task_is_that_of_split_with_the_true_labels(
    old: list[int], visibility: str, labelled, tiny
) -> None:
    for data, classes in ((labelled, old), (tiny, [2, 0])):
        first, new, exam = nova.split(data, classes, setting=visibility, seed=5)
        given = labelled_new_task(data, classes, setting=visibility, seed=5)
        assert np.array_equal(given.ids, new.ids)
        assert given.num_new == new.num_new
        names = new.graph.node_ids
        y_of = dict(zip(data.graph.node_ids.tolist(), data.y.tolist(), strict=True))
        # By name: phase 1 may number its nodes differently.
        assert names[given.old_ids].tolist() == first.graph.node_ids[first.train_ids].tolist()
        assert np.array_equal(given.old_y, first.train_y)
        said = [exam.class_names[len(classes) + k] for k in given.y]
        assert said == [data.class_names[y_of[name]] for name in names[given.ids].tolist()]
        # Validation nodes of old and new classes, numbered as the joint head will number them.
        drawn = with_split(data, seed=5)
        assert (
            names[given.val_ids].tolist() == data.graph.node_ids[drawn.val & (data.y >= 0)].tolist()
        )
        said = [exam.class_names[k] for k in given.val_y]
        assert said == [data.class_names[y_of[name]] for name in names[given.val_ids].tolist()]


def test_the_two_rooms_share_no_name_and_both_are_made_from_text(given) -> None:
    assert not set(LABELLED) & set(METHODS)
    assert get_method("gem", {"memory": "3"}, LABELLED) == LABELLED["gem"](memory=3)
    assert choose_encoder("gem", None, LABELLED) == "gcn"
    with pytest.raises(SettingError, match="unknown method 'gem'"):
        get_method("gem", {})
    with pytest.raises(
        SettingError,
        match="unknown method 'sword'; known: autonovel_ncd, cpca, dtc_ncd, er_gnn, gem",
    ):
        get_method("sword", {}, LABELLED)
    with pytest.raises(SettingError, match="gem needs an encoder that can be trained"):
        choose_encoder("gem", "prism", LABELLED)
