"""Data and HeteroData of PyTorch Geometric."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

import nodenova as nova
from nodenova.errors import GraphError, SettingError
from nodenova.io import pyg
from nodenova.io.pyg import from_pyg

X = torch.rand(5, 3) + 0.1
EDGES = torch.tensor([[0, 1, 2], [1, 2, 3]])


def data(**parts: object) -> Data:
    return Data(**{"x": X, "edge_index": EDGES, "y": torch.tensor([0, 1, 2, 0, -1]), **parts})


def test_a_data_object_becomes_a_labelled_graph() -> None:
    masks = {
        name: torch.tensor([i == at for i in range(5)])
        for at, name in enumerate(["train_mask", "val_mask", "test_mask"])
    }
    labelled = from_pyg(data(**masks), name="mine")
    assert np.allclose(labelled.graph.x, X.numpy())
    assert labelled.graph.num_edges == 6
    assert labelled.y.tolist() == [0, 1, 2, 0, -1]
    assert labelled.class_names == ("0", "1", "2")
    assert np.flatnonzero(labelled.train).tolist() == [0]
    assert np.flatnonzero(labelled.val).tolist() == [1]
    assert np.flatnonzero(labelled.test).tolist() == [2]
    assert labelled.name == "mine"


def test_without_y_and_masks() -> None:
    labelled = from_pyg(Data(x=X, edge_index=EDGES))
    assert labelled.y.tolist() == [-1] * 5
    assert labelled.train is None
    assert not labelled.has_split


def test_class_names_and_a_column_of_labels() -> None:
    labelled = from_pyg(
        data(y=torch.tensor([[0], [1], [1], [0], [1]])), class_names=["cat", "dog", "fox"]
    )
    assert labelled.y.tolist() == [0, 1, 1, 0, 1]
    assert labelled.class_names == ("cat", "dog", "fox")


def test_one_of_several_published_splits() -> None:
    masks = torch.tensor([[1, 0], [0, 1], [0, 0], [0, 0], [0, 0]]).bool()
    both = data(train_mask=masks, test_mask=torch.tensor([0, 0, 1, 1, 1]).bool())
    assert from_pyg(both, split=0).train.tolist() == [True, False, False, False, False]
    assert from_pyg(both, split=1).train.tolist() == [False, True, False, False, False]
    assert from_pyg(both, split=1).test.sum() == 3
    for split in (2, -1):
        with pytest.raises(GraphError, match=rf"mine: split {split} is not there, splits are 0..1"):
            from_pyg(both, split=split, name="mine")


def test_nodes_that_are_set_apart_for_stopping_stand_for_validation() -> None:
    masks = {
        name: torch.tensor([i == at for i in range(5)])
        for at, name in enumerate(["train_mask", "val_mask", "test_mask"])
    }
    stopping = torch.tensor([[0, 0], [0, 0], [0, 0], [1, 0], [0, 1]]).bool()
    assert np.flatnonzero(from_pyg(data(**masks)).val).tolist() == [1]
    for split, expected in ((0, [3]), (1, [4])):
        labelled = from_pyg(data(**masks, stopping_mask=stopping), split=split)
        assert np.flatnonzero(labelled.val).tolist() == expected
        assert np.flatnonzero(labelled.train).tolist() == [0]
        assert np.flatnonzero(labelled.test).tolist() == [2]
    with pytest.raises(GraphError, match=r"mine: split 2 is not there, splits are 0..1"):
        from_pyg(data(**masks, stopping_mask=stopping), split=2, name="mine")


@pytest.mark.parametrize(
    "parts",
    [
        {"x": None},
        {"edge_index": None},
        {"edge_index": torch.tensor([[0], [9]])},
        {"x": torch.full((5, 3), float("nan"))},
        {"y": torch.tensor([0, 1])},
        {"y": torch.rand(5)},
        {"train_mask": torch.ones(4).bool(), "test_mask": torch.ones(5).bool()},
    ],
)
def test_bad_data_is_refused_by_name(parts: dict[str, object]) -> None:
    with pytest.raises(GraphError, match="mine"):
        from_pyg(data(**parts), name="mine")


WRITES = torch.tensor([[0, 0, 0, 1, 1, 2], [0, 1, 2, 2, 3, 4]])  # author -> paper


def library(**more: Any) -> HeteroData:
    data = HeteroData()
    data["paper"].x = torch.eye(5)
    data["paper"].y = torch.tensor([0, 0, 1, 1, -1])
    data["author"].num_nodes = 3
    data["author", "writes", "paper"].edge_index = WRITES
    for triple, edge_index in more.items():
        data[tuple(triple.split("__"))].edge_index = edge_index
    return data


def weights(graph: nova.Graph) -> dict[tuple[int, int], float]:
    weight = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    pairs = zip(*graph.edge_index.tolist(), weight.tolist(), strict=True)
    return {(a, b): w for a, b, w in pairs if a < b}


def test_papers_of_the_same_author_are_linked() -> None:
    loaded = nova.load_graph(library())
    found = weights(loaded.graph)
    # author 0 has three papers, author 1 two, author 2 one
    assert {*found} == {(0, 1), (0, 2), (1, 2), (2, 3)}
    assert found[0, 1] == found[0, 2] == found[1, 2]
    assert found[2, 3] / found[0, 1] == pytest.approx(3 / 2)
    assert loaded.y.tolist() == [0, 0, 1, 1, -1]
    assert any("'paper' that share one of type 'author'" in note for note in loaded.notes)


def test_direct_edges_and_those_through_others_are_two_types() -> None:
    cites = torch.tensor([[0, 3], [4, 4]])
    loaded = nova.load_graph(library(paper__cites__paper=cites))
    assert {(0, 4), (3, 4), (0, 1)} <= {*weights(loaded.graph)}
    assert any("edge types are writes 4, cites 2;" in note for note in loaded.notes)
    only = nova.load_graph(library(paper__cites__paper=cites), edge_types="cites")
    assert weights(only.graph) == {(0, 4): 1.0, (3, 4): 1.0}


def test_reversed_edges_count_once() -> None:
    one = nova.load_graph(library())
    both = nova.load_graph(library(paper__rev_writes__author=WRITES.flip(0)))
    assert one.fingerprint() == both.fingerprint()
    assert any("'rev_writes' are edges 'writes' reversed" in note for note in both.notes)


def test_types_of_the_same_name_are_told_apart() -> None:
    data = library(paper__links__paper=torch.tensor([[0], [4]]),
                   author__links__paper=torch.tensor([[2, 2], [0, 3]]))  # fmt: skip
    notes = " ".join(nova.load_graph(data).notes)
    assert "paper links paper 1" in notes
    assert "author links paper 1" in notes


def test_edges_that_reach_no_node_of_the_type_are_not_used_and_it_is_said() -> None:
    data = library(author__knows__author=torch.tensor([[0], [1]]))
    assert any("not used: author knows author" in note for note in nova.load_graph(data).notes)


def test_a_node_that_links_everything_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyg, "MAX_SHARED", 2)
    loaded = nova.load_graph(library())
    assert {*weights(loaded.graph)} == {(2, 3)}
    assert any("1 node of type 'author' links more than 2 nodes" in note for note in loaded.notes)


def test_the_type_of_nodes_is_told_where_it_is_not_clear() -> None:
    data = library()
    data["author"].x, data["author"].y = torch.eye(3), torch.tensor([0, 1, -1])
    with pytest.raises(GraphError, match="2 types of nodes have y; give node_type, one of: paper"):
        nova.load_graph(data)
    authors = nova.load_graph(data, node_type="author")
    assert authors.graph.num_nodes == 3
    assert {*weights(authors.graph)} == {(0, 1)}
    with pytest.raises(GraphError, match="no nodes are of type 'venue'; types: paper, author"):
        nova.load_graph(data, node_type="venue")


def test_what_is_missing_is_named() -> None:
    data = library()
    del data["paper"].x
    with pytest.raises(GraphError, match="nodes of type 'paper' need x"):
        nova.load_graph(data)
    with pytest.raises(GraphError, match="no edge is of type 'cites'; types: writes"):
        nova.load_graph(library(), edge_types="cites")
    with pytest.raises(GraphError, match="HeteroData has several types of nodes; load_graph"):
        nova.from_pyg(library())
    with pytest.raises(SettingError, match="node_type is for"):
        nova.load_graph(nova.synthetic(nodes=50, classes=2).graph, node_type="paper")


def test_the_estimator_takes_one() -> None:
    whole = nova.synthetic(nodes=120, classes=4, words=60, seed=0)
    data = HeteroData()
    data["paper"].x = torch.from_numpy(np.asarray(whole.graph.x))
    data["paper"].y = torch.from_numpy(np.where(whole.y < 2, whole.y, -1))
    data["paper", "cites", "paper"].edge_index = torch.from_numpy(whole.graph.edge_index)
    found = nova.NodeDiscoverer(num_new=2, method=nova.Prism(n_resamples=0)).fit(data)
    plain = nova.NodeDiscoverer(num_new=2, method=nova.Prism(n_resamples=0)).fit(
        whole.graph, np.where(whole.y < 2, whole.y, -1)
    )
    assert np.array_equal(found.predict_proba(), plain.predict_proba())


@pytest.mark.parametrize("key", ["x", "edge_index", "y", "train_mask", "edge_weight"])
@pytest.mark.parametrize("odd", [b"bytes", (), 3, torch.eye(3).to_sparse()])
def test_what_is_no_tensor_is_named(key: str, odd: object) -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))
    data[key] = odd
    with pytest.raises(GraphError, match=f"{key} must be a dense tensor of numbers"):
        nova.load_graph(data)


def two_types(**changes: object) -> HeteroData:
    data = HeteroData()
    data["paper"].x, data["paper"].y = torch.eye(3), torch.tensor([0, 1, -1])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [1, 2]])
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 0], [1, 2]])
    for key, value in changes.items():
        store = data["paper"] if key == "x" else data["author", "writes", "paper"]
        store[key] = value
    return data


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.zeros(0, 3)}, "need x"),
        ({"x": torch.zeros(3)}, "need x"),
        ({"edge_index": torch.tensor([0, 1])}, "must have shape"),
        ({"edge_index": torch.tensor([[0.5], [1.0]])}, "whole numbers"),
        ({"edge_index": torch.tensor([[0], [-1]])}, "names a node not in"),
        ({"edge_index": torch.tensor([[0], [3]])}, r"name node 3, nodes are 0\.\.2"),
        ({"edge_weight": torch.tensor([1.0, float("nan")])}, "positive numbers"),
        ({"edge_weight": torch.tensor([1.0])}, "edge_weight has shape"),
    ],
)
def test_a_relation_that_does_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    nova.load_graph(two_types())
    with pytest.raises(GraphError, match=message):
        nova.load_graph(two_types(**changes))


def test_numbers_of_other_nodes_may_be_far_apart() -> None:
    far = two_types(edge_index=torch.tensor([[2**30, 2**30], [1, 2]]))
    assert (
        nova.load_graph(far).graph.edge_index.tolist()
        == nova.load_graph(two_types()).graph.edge_index.tolist()
    )


def test_a_relation_without_edges_has_no_weight() -> None:
    none = torch.zeros((2, 0), dtype=torch.long)
    graph = nova.load_graph(two_types(edge_index=none, edge_weight=torch.zeros(0))).graph
    assert graph.num_edges > 0
