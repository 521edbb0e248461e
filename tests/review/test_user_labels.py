"""The user's own labels beside what a model says of the same nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import nodenova as nova
from nodenova.model.info import ClassInfo
from nodenova.review.user_labels import (
    UserLabels,
    labels_against,
    labels_for_graph,
    labels_in_new_classes,
)
from nodenova.runs.predictions import Predictions


@pytest.fixture(scope="module")
def data() -> nova.LabelledGraph:
    return nova.synthetic(nodes=120, classes=4, words=80, seed=1)


@pytest.fixture(scope="module")
def model(data: nova.LabelledGraph) -> nova.Model:
    old, new, _ = nova.split(data, [0, 1])
    return nova.discover(nova.fit(old), new)


def test_a_labelled_node_keeps_its_label_and_the_table_says_that_the_model_differs(
    data: nova.LabelledGraph, model: nova.Model
) -> None:
    says = model.predict(data.graph)
    wrong = int(np.flatnonzero(says == 2)[0])
    right = int(np.flatnonzero(says == 1)[0])
    told = np.full(120, -1)
    told[[wrong, right]] = 1
    p = model.predict_proba(data.graph)
    found = Predictions.of(model, data.graph, 0.5, labels=UserLabels(told, ("a", "b")))
    table = found.columns()
    assert [table[key][wrong] for key in ("class", "kind", "label", "agrees")] == [
        1,
        "known",
        "b",
        "no",
    ]
    assert table["probability"][wrong] == round(float(p[wrong, 1]), 4)
    assert table["unsure"][wrong] == "yes"
    assert (table["class"][right], table["agrees"][right]) == (1, "yes")
    others = np.delete(np.arange(120), [wrong, right])
    assert {table["agrees"][i] for i in others} == {table["label"][i] for i in others} == {""}
    assert [table["class"][i] for i in others] == says[others].tolist()
    loose = UserLabels(told, ("a", "b"), keep=False)
    table = Predictions.of(model, data.graph, labels=loose).columns()
    assert table["class"] == says.tolist()
    assert (table["label"][wrong], table["agrees"][wrong]) == ("b", "no")


def test_without_labels_the_columns_are_empty(data: nova.LabelledGraph, model: nova.Model) -> None:
    table = Predictions.of(model, data.graph).columns()
    assert set(table["label"]) == set(table["agrees"]) == {""}
    assert table["class"] == model.predict(data.graph).tolist()


def test_a_label_stands_for_what_a_review_made_of_its_class(
    data: nova.LabelledGraph, model: nova.Model
) -> None:
    told = np.where(data.y < 2, data.y, -1)
    labels = UserLabels(told, ("a", "b"))
    merged = model.merge([1, 2]).rename(1, "both")
    p = merged.predict_proba(data.graph)
    rows = labels.rows(merged, p)
    assert {merged.classes[r].name for r in rows[told == 1]} == {"both"}
    split = model.split(0, data.graph, 2)
    p = split.predict_proba(data.graph)
    rows, agrees = labels.rows(split, p), labels.agrees(split, p)
    parts = {c.id for c in split.classes} - {1, 2, 3}
    assert {split.classes[r].id for r in rows[told == 0]} == parts
    mine = np.flatnonzero(told == 0)
    inside = [split.classes[r].id in parts for r in p[mine].argmax(axis=1)]
    assert [agrees[i] == "yes" for i in mine] == inside


def info(number: int, kind: str, labelled: int | None) -> ClassInfo:
    stage = int(kind == "discovered")
    return ClassInfo(number, f"c{number}", f"c{number}", kind, stage, size=99, labelled=labelled)


def test_labels_in_discovered_classes_are_said_above_one_in_twenty() -> None:
    few = [info(0, "known", 95), info(1, "discovered", 5)]
    assert labels_in_new_classes(few) == ""
    inside = {1: 10, 2: 83, 3: 7, 4: 0, 5: 1}
    many = [info(0, "known", 1023), *(info(c, "discovered", n) for c, n in inside.items())]
    warning = labels_in_new_classes(many)
    assert "101 of your 1,124 labelled nodes" in warning
    assert "'c2' (83), 'c1' (10), 'c3' (7)." in warning
    assert labels_in_new_classes([replace(each, labelled=None) for each in many]) == ""
    # Of classes that a person decided on there is no advice.
    assert labels_in_new_classes(many, {2}) == ""


def test_class_info_counts_labelled_nodes(data: nova.LabelledGraph, model: nova.Model) -> None:
    labelled = np.arange(120) < 50
    rows = model.predict_proba(data.graph).argmax(axis=1)
    infos = model.class_info(data.graph, labelled=labelled)
    assert [each.labelled for each in infos] == np.bincount(rows[:50], minlength=4).tolist()
    assert [each.labelled for each in model.class_info(data.graph)] == [None] * 4


def test_labels_as_texts_have_the_names_of_the_user_then_of_the_model(model: nova.Model) -> None:
    labels = UserLabels(np.array([0, -1, 2, 3, 1]), ("oak", "", "", "yew"))
    assert labels.texts() == ["oak", "", "", "yew", ""]
    assert labels.texts(model) == ["oak", "", "new-2", "yew", "class-1"]
    assert labels.texts(model, ["a", "b", "c", "d"]) == ["oak", "", "c", "yew", "b"]
    gone = model.reject(2)
    assert labels.texts(gone) == ["oak", "", "", "yew", "class-1"]
    assert labels.of_nodes(np.array([4, 0])).texts(model) == ["class-1", "oak"]


def test_the_row_of_a_label_is_that_of_its_likeliest_class(model: nova.Model) -> None:
    labels = UserLabels(np.array([0, 2, -1, 2]), ("a", "b", "c"))
    p = np.array([[0.1, 0.2, 0.3, 0.4]] * 4)
    assert labels.label_rows(model, p).tolist() == [0, 2, -1, 2]
    assert labels.rows(model, p).tolist() == [0, 2, 3, 2]
    gone = model.reject(2)
    three = np.array([[0.1, 0.2, 0.3]] * 4)
    assert labels.label_rows(gone, three).tolist() == [0, -1, -1, -1]
    assert labels.rows(gone, three).tolist() == [0, 2, 2, 2]
    merged = model.merge([1, 2])
    assert labels.label_rows(merged, three).tolist() == [0, 1, -1, 1]


def test_labels_of_a_later_graph_are_its_own_or_those_of_the_same_nodes(model: nova.Model) -> None:
    earlier = UserLabels(np.array([1, -1, 0]), ("oak", "elm"))
    nodes, texts = ["n1", "n2", 3, "n4", "n5"], ["", "shown-2", "oak", "new-3", "what"]
    shown = ["shown-0", "shown-1", "shown-2", "shown-3"]
    labels, notes = labels_for_graph(
        model, shown, nodes, texts, (["n1", "n2", "3"], earlier), keep=False
    )
    assert labels is not None
    assert labels.class_ids.tolist() == [1, 2, 0, 3, -1]
    assert list(labels.names) == ["oak", "elm", "", ""]
    assert not labels.keep
    assert notes == ["1 label is not a class of the model and is ignored: 'what'"]
    none, notes = labels_for_graph(model, shown, nodes, ["", "f", "e", "d", "c"])
    assert none is None
    assert notes == [
        "4 labels are not classes of the model and are ignored: 'c', 'd', 'e' and 1 more"
    ]
    assert labels_for_graph(model, shown, nodes[:1], [""])[1] == []
    three = labels_for_graph(model, shown, nodes[:3], ["c", "d", "e"])[1]
    assert three == ["3 labels are not classes of the model and are ignored: 'c', 'd', 'e'"]
    kept, _ = labels_for_graph(model, shown, nodes[:1], ["class-1"])
    assert kept is not None
    assert kept.keep
    assert kept.class_ids.tolist() == [1]


def test_a_tenth_of_the_labels_of_a_known_class_is_against_a_new_one() -> None:
    known = ClassInfo(0, "a", "a", "known", 0, size=100, labelled=50)
    for labelled, against in ((0, False), (4, False), (5, True), (6, True)):
        new = ClassInfo(1, "b", "b", "discovered", 1, size=100, labelled=labelled)
        assert bool(labels_against(new, [known, new])) == against
    assert labels_against(known, [known]) == ""
    alone = ClassInfo(1, "b", "b", "discovered", 1, size=100, labelled=3)
    assert labels_against(alone, [alone]).endswith("has about 0.")


def test_three_classes_are_listed_at_most() -> None:
    many = [info(0, "known", 0), *(info(c, "discovered", c) for c in (1, 2, 3, 4))]
    assert "most into 'c4' (4), 'c3' (3), 'c2' (2). Either" in labels_in_new_classes(many)
