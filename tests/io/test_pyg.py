from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from nodenova.errors import GraphError
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
