"""Anchor nodes by hand: a model whose logits are given, of two classes with three columns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.growth import (
    Change,
    _classes_of_labels,
    change_of,
    find_anchor_nodes,
    masses,
    unknown_shares,
)
from nodenova.model.classes import NodeClass
from nodenova.model.model import FitSignature
from tests.growth.seasons import seasons

OWNER = (0, 1, 1)  # class 1 has two columns


def by_class(logits: Tensor) -> Tensor:
    return torch.stack([logits[:, 0], logits[:, 1:].logsumexp(dim=1)], dim=1)


def model_of(probability: list[float], column: list[int]) -> Any:
    """A model that gives each node a column with some probability; the others share the rest."""
    logits = np.full((len(column), 3), -np.inf)
    for node, (p, j) in enumerate(zip(probability, column, strict=True)):
        rest = [1, 2] if j == 0 else [0]
        logits[node, rest] = np.log((1 - p) / len(rest))
        logits[node, j] = np.log(p)
    return SimpleNamespace(
        classes=(NodeClass(0, "oak", 0), NodeClass(1, "elm", 0)),
        column_class_ids=OWNER,
        num_columns=3,
        fit_signature=None,
        cells=None,
        memory=SimpleNamespace(classes=None),
        _run_head=lambda graph, read: logits,
        _by_class=by_class,
    )


def graph_of(n: int) -> nova.Graph:
    return nova.Graph.of(np.ones((n, 1)), np.zeros((2, 0), dtype=int))


SURE = [0.9] * 12
COLUMN = [0] * 6 + [1] * 3 + [2] * 3


def test_sure_nodes_stand_for_their_columns() -> None:
    anchors = find_anchor_nodes(model_of(SURE, COLUMN), graph_of(12))
    assert anchors.ids.tolist() == list(range(12))
    assert anchors.columns.tolist() == anchors.sample_columns.tolist() == COLUMN
    assert anchors.counts.tolist() == [6, 3, 3]
    assert (anchors.num_columns, anchors.notes) == (3, ())


def test_five_sure_nodes_are_enough_and_0_7_is_sure() -> None:
    probability = [0.71] * 5 + [0.69] + [0.9] * 6
    anchors = find_anchor_nodes(model_of(probability, COLUMN), graph_of(12))
    assert anchors.ids.tolist() == [0, 1, 2, 3, 4, *range(6, 12)]
    assert anchors.sample.tolist() == list(range(12))  # sure or not
    assert anchors.notes == ()


def test_where_fewer_are_sure_the_likeliest_others_are_taken() -> None:
    probability = [0.9, 0.6, 0.55, 0.9, 0.65, 0.58, *[0.9] * 6]
    anchors = find_anchor_nodes(model_of(probability, COLUMN), graph_of(12))
    assert anchors.ids.tolist() == [0, 1, 3, 4, 5, *range(6, 12)]
    assert anchors.notes == (
        "class 0 (oak): the grown graph has only 5 nodes of it, and not all of them are sure",
    )


def test_a_class_without_nodes_is_noted() -> None:
    for there, text in ((1, "has no node of it, so"), (2, "has only 2 nodes of it")):
        column = [0] * there + [1] * 6
        anchors = find_anchor_nodes(model_of([0.9] * len(column), column), graph_of(len(column)))
        assert len(anchors.notes) == 1
        assert f"class 0 (oak): the grown graph {text}" in anchors.notes[0]


def test_nodes_that_came_or_are_new_carry_nothing() -> None:
    met = np.arange(12) % 6 != 0
    model = model_of(SURE, COLUMN)
    anchors = find_anchor_nodes(model, graph_of(12), met=met, all_new=np.array([11]))
    expected = [1, 2, 3, 4, 5, 7, 8, 9, 10]
    assert anchors.ids.tolist() == anchors.sample.tolist() == expected
    assert met[11]  # the caller's mask stays
    # Class 1 has four of them, and no other node may carry it.
    assert len(anchors.notes) == 1
    assert "only 4 nodes" in anchors.notes[0]


def test_labels_decide_the_class_and_the_head_the_column_within_it() -> None:
    label_ids = np.full(12, -1)
    label_ids[[0, 6]] = 1, 0
    model = model_of([0.3, *SURE[1:]], COLUMN)
    anchors = find_anchor_nodes(model, graph_of(12), label_ids=label_ids)
    assert 0 in anchors.ids  # labelled nodes are sure
    columns = dict(zip(anchors.ids.tolist(), anchors.columns.tolist(), strict=True))
    assert (columns[0], columns[6]) == (1, 0)
    assert columns[9] == 2


def test_classes_that_come_with_labels_have_columns_in_the_order_of_their_ids() -> None:
    label_ids = np.full(12, -1)
    label_ids[[1, 2]], label_ids[[7, 8]] = 9, 5
    met = np.arange(12) != 2
    anchors = find_anchor_nodes(model_of(SURE, COLUMN), graph_of(12), met=met, label_ids=label_ids)
    columns = dict(zip(anchors.ids.tolist(), anchors.columns.tolist(), strict=True))
    assert [columns[node] for node in (1, 2, 7, 8)] == [4, 4, 3, 3]
    assert anchors.num_columns == 5
    assert anchors.counts.tolist() == [4, 1, 3, 2, 2]
    further = _classes_of_labels(model_of(SURE, COLUMN), label_ids, {5: "ash", 9: "yew"})
    assert further == [NodeClass(5, "ash", 0), NodeClass(9, "yew", 0)]
    assert _classes_of_labels(model_of(SURE, COLUMN), None, {}) == []


def test_nodes_with_more_unknown_features_than_others_carry_nothing() -> None:
    x = np.array([[1, 0], [1, 0], [1, 0], [1, 3], [2, 1], [1, 0]])
    graph = nova.Graph.of(x, np.zeros((2, 0), dtype=int), feature_names=["oak", "ash"])
    model = model_of([0.9] * 6, [0] * 6)
    model.fit_signature = FitSignature.of(
        nova.Graph.of(np.ones((2, 1)), np.zeros((2, 0), dtype=int), feature_names=["oak"])
    )
    assert masses(graph).tolist() == [1, 1, 1, 4, 3, 1]
    shares = unknown_shares(model.fit_signature, graph)
    assert shares.tolist() == pytest.approx([0, 0, 0, 3 / 4, 1 / 3, 0])
    assert find_anchor_nodes(model, graph).sample.tolist() == [0, 1, 2, 5]
    assert change_of(model.fit_signature, graph).unknown == pytest.approx(4 / 11)


def test_a_graph_without_features_or_edges_has_not_changed_by_them() -> None:
    empty = nova.Graph.of(np.zeros((3, 1)), np.zeros((2, 0), dtype=int), feature_names=["oak"])
    change = change_of(FitSignature.of(empty), empty, empty)
    assert change == Change(unknown=0.0, nodes=0.0, edges=0.0, matched=True)
    assert change_of(FitSignature.of(empty), empty) == Change(0.0, 0.0, 0.0, matched=False)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (Change(0.0, 0.5, 0.4, True), "50% of the nodes are new"),
        (Change(0.0, 0.4, 0.5, True), "50% of the edges are new"),
        (Change(0.0, 0.5, 0.0, False), "the graph has 100% more nodes"),
        (Change(0.0, 0.0, 1.0, False), "the graph has edges now"),
        (
            Change(0.01, 0.2, 0.1, True),
            "it was requested (1% of what the nodes have is in features the model did not know, "
            "20% of the nodes are new)",
        ),
    ],
)
def test_a_change_in_words(change: Change, why: str) -> None:
    assert change.why() == why


def test_a_graph_with_one_class_only_carries_nothing_over() -> None:
    grown = seasons()
    alone = np.flatnonzero(grown.y == 0)
    with pytest.raises(SettingError, match="sure of no node of two classes"):
        nova.discover(
            grown.model,
            nova.NewTask(grown.autumn.subgraph(alone), np.arange(3), 1, mixed=True),
            refresh=True,
        )
