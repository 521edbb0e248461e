from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from nodenova.errors import GraphError, NodenovaError, SettingError
from nodenova.graph import Graph, NewTask

GRAPH = Graph.of(np.ones((6, 2)), [[0, 1], [1, 2]])


def test_phase_2_is_given_a_graph_ids_a_number_and_whether_ids_are_mixed_and_nothing_else() -> None:
    names = [field.name for field in dataclasses.fields(NewTask)]
    assert names == ["graph", "ids", "num_new", "mixed"]


def test_nobody_need_say_how_many_but_a_method_is_told() -> None:
    assert NewTask(GRAPH, np.array([1, 3]), None).num_new is None
    assert NewTask(GRAPH, np.array([1, 3]), 2).number == 2
    with pytest.raises(SettingError, match="num_new must be a number here"):
        _ = NewTask(GRAPH, np.array([1, 3]), None).number


def test_ids_become_int64() -> None:
    assert NewTask(GRAPH, np.array([1, 3], dtype=np.int16), 2).ids.dtype == np.int64
    assert NewTask(GRAPH, [1, 3], 2).ids.tolist() == [1, 3]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ids", "num_new", "error", "sentence"),
    [
        ([1, 2], 0, SettingError, "num_new must be at least 1, it is 0"),
        (
            [1, 2],
            3,
            GraphError,
            "3 new classes need at least as many unlabelled nodes, there are 2",
        ),
        ([], 1, GraphError, "there are 0"),
        ([[1, 2]], 1, GraphError, "unlabelled nodes"),
        ([2, 1], 1, GraphError, "strictly ascending"),
        ([1, 1], 1, GraphError, "strictly ascending"),
        ([1, 6], 1, GraphError, r"must lie in 0..5, they span 1..6"),
        ([-1, 2], 1, GraphError, r"must lie in 0..5"),
    ],
)
def test_bad_tasks(ids: list[int], num_new: int, error: type[NodenovaError], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        NewTask(GRAPH, np.array(ids), num_new)
