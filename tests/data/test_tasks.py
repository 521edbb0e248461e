from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import nodenova as nova
from nodenova.data.tasks import number_labels, tasks_from_labels
from nodenova.errors import GraphError, SplitError


@pytest.fixture(scope="module")
def own() -> nova.UserGraph:
    """Four classes of 120 nodes; the last two are known only among the new nodes."""
    data = nova.synthetic(nodes=120, classes=4, words=60, words_per_node=8)
    graph = nx.Graph()
    for node in range(120):
        graph.add_node(
            node,
            label=data.class_names[data.y[node]],
            words=" ".join(f"w{w}" for w in data.graph.x[[node]].indices),
        )
    graph.add_edges_from(data.graph.edge_index.T.tolist())
    new = np.flatnonzero(data.y >= 2)
    return nova.load_graph(graph, text_columns=["words"], features=[], new_nodes=new.tolist())


def test_a_users_graph_becomes_tasks(own: nova.UserGraph) -> None:
    old, new, exam = tasks_from_labels(own, 2)
    assert old.class_names == ("class-0", "class-1")
    assert not np.isin(np.concatenate([old.train_ids, old.val_ids]), own.new_ids).any()
    assert not np.isin(old.train_ids, old.val_ids).any()
    assert len(old.train_ids) + len(old.val_ids) == (~own.is_new).sum()
    assert (new.ids == own.new_ids).all()
    assert exam.sizes == (2, 2)
    model = nova.discover(nova.fit(old, "prism"), new, nova.Prism())
    assert nova.grade(model, exam).scores("block")["new"] > 60


def test_the_task_is_mixed_unless_somebody_named_the_new_nodes(own: nova.UserGraph) -> None:
    y = np.where(np.arange(120) % 2, own.y, -1)
    unnamed = nova.load_graph(nova.LabelledGraph(own.graph, y, own.class_names))
    assert (unnamed.new_named, own.new_named) == (False, True)
    _, new, exam = tasks_from_labels(unnamed)
    assert (new.mixed, new.num_new, exam) == (True, None, None)
    assert (new.ids == np.flatnonzero(y < 0)).all()
    assert tasks_from_labels(unnamed, 3)[1].num_new == 3
    assert not tasks_from_labels(unnamed, mixed=False)[1].mixed
    assert not tasks_from_labels(own)[1].mixed
    assert tasks_from_labels(own, mixed=True)[1].mixed
    assert (tasks_from_labels(own, mixed=True)[1].ids == own.new_ids).all()


def test_labels_of_new_nodes_do_not_reach_the_tasks(own: nova.UserGraph) -> None:
    scrambled = own.y.copy()
    scrambled[own.new_ids] = np.random.default_rng(0).permutation(scrambled[own.new_ids])
    for a, b in zip(
        tasks_from_labels(own, 2)[:2],
        tasks_from_labels(replace(own, y=scrambled), 2)[:2],
        strict=True,
    ):
        for field in ("train_ids", "train_y", "val_ids", "val_y", "ids"):
            assert not hasattr(a, field) or (getattr(a, field) == getattr(b, field)).all()


@pytest.mark.parametrize(("labels", "expected"), [
    (["", "", "", "", ""], "no labelled nodes"),
    (["red", "red", "", "", ""], "all labelled nodes are of one class, 'red'"),
    (["red", "red", "blue", "blue", "blue"], "none is marked as new"),
])  # fmt: skip
def test_a_graph_that_gives_no_task(tmp_path: Path, labels: list[str], expected: str) -> None:
    (tmp_path / "nodes.csv").write_text(
        "id,label\n" + "".join(f"n{i},{label}\n" for i, label in enumerate(labels))
    )
    with pytest.raises(SplitError, match=expected):
        tasks_from_labels(nova.load_graph(nodes=tmp_path / "nodes.csv"), 1)


def test_classes_that_no_node_has_are_left_out() -> None:
    """A file may name more classes than its nodes have; numbers of classes may have gaps."""
    data = nova.synthetic(nodes=60, classes=4, words=40)
    y = np.array([4, 7, -1, -1])[data.y]
    loaded = nova.load_graph(nova.LabelledGraph(data.graph, y, tuple("abcdefghij")))
    old, new, exam = tasks_from_labels(loaded, 2)
    assert old.class_names == ("e", "h")
    assert set(old.train_y) == {0, 1}
    assert (y[old.train_ids] == np.array([4, 7])[old.train_y]).all()
    assert exam is None
    assert len(new.ids) == (y < 0).sum()


def test_labels_are_numbered_in_their_order_and_what_is_unknown_is_minus_one() -> None:
    assert number_labels(["b", "", "a", None], 4)[1] == ("a", "b")
    assert number_labels(["b", "", "a", None], 4)[0].tolist() == [1, -1, 0, -1]
    assert number_labels(np.array([10, -1, 9]), 3)[1] == (9, 10)
    assert number_labels([2.5, float("nan"), -1.0], 3)[0].tolist() == [0, -1, -1]
    assert number_labels(["a", 1, (2, 3)], 3)[1] == (1, "a", (2, 3))
    with pytest.raises(GraphError, match="y has 2 labels, but the graph has 3 nodes"):
        number_labels(["a", "b"], 3)
