"""How much a graph has changed since a representation was fitted on it."""

from __future__ import annotations

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.growth import MAX_NEW, MAX_UNKNOWN, Change, change_of, check_refresh
from nodenova.model.model import FitSignature


def graph(nodes: str, edges: list[tuple[str, str]], words: str, x: object) -> nova.Graph:
    ids = nodes.split()
    ends = np.array([[ids.index(a), ids.index(b)] for a, b in edges]).T
    return nova.Graph.of(x, ends, node_ids=ids, feature_names=words.split())


@pytest.fixture
def before() -> nova.Graph:
    return graph("a b c", [("a", "b"), ("b", "c")], "oak elm", [[1, 0], [1, 1], [0, 1]])


def test_shares_of_features_nodes_and_edges_are_counted(before: nova.Graph) -> None:
    edges = [("c", "b"), ("a", "b"), ("a", "c"), ("d", "a")]
    now = graph("d c b a", edges, "ash elm oak", [[3, 0, 1], [0, 2, 0], [0, 1, 1], [1, 0, 1]])
    change = change_of(FitSignature.of(before), now, before)
    assert change == Change(unknown=4 / 10, nodes=1 / 4, edges=2 / 4, matched=True)
    assert change.is_much
    assert change.why() == "40% of what the nodes have is in features the model did not know"


def test_without_the_earlier_graph_growth_is_by_size(before: nova.Graph) -> None:
    edges = [("a", "b"), ("b", "c"), ("d", "a"), ("d", "b"), ("d", "c"), ("e", "a")]
    now = graph("a b c d e f", edges, "oak elm", np.ones((6, 2)))
    change = change_of(FitSignature.of(before), now)
    assert change == Change(unknown=0.0, nodes=0.5, edges=1 - 4 / 12, matched=False)
    assert change.why() == "the graph has 200% more edges"
    other = graph("x y", [("x", "y")], "oak elm", np.ones((2, 2)))
    smaller = change_of(FitSignature.of(before), other, before)  # no id in common
    assert smaller == Change(unknown=0.0, nodes=0.0, edges=0.0, matched=False)


def test_features_without_names_are_all_known(before: nova.Graph) -> None:
    nameless = nova.Graph.of(np.ones((3, 2)), [[0], [1]])
    assert change_of(FitSignature.of(nameless), before).unknown == 0
    assert change_of(FitSignature.of(before), nameless).unknown == 0


@pytest.mark.parametrize(
    ("change", "much"),
    [
        (Change(MAX_UNKNOWN, MAX_NEW, MAX_NEW, True), False),
        (Change(MAX_UNKNOWN + 0.01, 0, 0, True), True),
        (Change(0, MAX_NEW + 0.01, 0, True), True),
        (Change(0, 0, MAX_NEW + 0.01, False), True),
    ],
)
def test_either_share_alone_is_a_reason(change: Change, much: bool) -> None:
    assert change.is_much == much
    assert change.why().startswith("it was requested") == (not much)


@pytest.mark.parametrize(
    ("change", "much"),
    [
        (Change(0.04, 0.32, 0.32, True), False),
        (Change(0.06, 0, 0, True), True),
        (Change(0, 0.35, 0, True), True),
        (Change(0, 0, 0.35, True), True),
    ],
)
def test_a_third_of_the_nodes_or_edges_or_a_twentieth_of_the_features_is_much(
    change: Change, much: bool
) -> None:
    assert change.is_much == much


def test_refresh_is_one_of_three() -> None:
    for right in ("auto", True, False):
        check_refresh(right)
    for wrong in ("always", 1, None):
        with pytest.raises(SettingError, match='refresh is "auto", True or False, not '):
            check_refresh(wrong)
