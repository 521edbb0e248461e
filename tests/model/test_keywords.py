from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import nodenova as nova
from nodenova.model.info import (
    PRIOR_NODES,
    Feature,
    characteristic,
    log_odds,
    mean_difference,
    weights,
)


def log_odds_naive(has: np.ndarray, groups: np.ndarray, c: int, word: int) -> float:
    """Written out for one class and one word, from the nodes."""
    n, having = len(has), sum(has[:, word])
    prior_with = PRIOR_NODES * (having + 1) / (n + 2)
    prior_without = PRIOR_NODES - prior_with
    counts = [prior_with, prior_without, prior_with, prior_without]
    for node in range(n):
        counts[2 * (groups[node] != c) + (not has[node, word])] += 1
    a, b, rest_a, rest_b = counts
    return (math.log(a / b) - math.log(rest_a / rest_b)) / math.sqrt(
        1 / a + 1 / b + 1 / rest_a + 1 / rest_b
    )


def a_graph(x: object, names: list[str] | None = None) -> nova.Graph:
    return nova.Graph.of(x, np.empty((2, 0), dtype=int), feature_names=names)


@pytest.fixture
def words() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    groups = rng.integers(3, size=80)
    has = rng.random((80, 12)) < np.where(np.arange(12) % 3 == groups[:, None], 0.25, 0.1)
    has[:, 11] = False
    return has, groups


def test_log_odds_are_those_of_the_naive_twin(words) -> None:
    has, groups = words
    counts = np.stack([has[groups == c].sum(axis=0) for c in range(3)]).astype(float)
    found = log_odds(counts, np.bincount(groups).astype(float))
    expected = [[log_odds_naive(has, groups, c, w) for w in range(12)] for c in range(3)]
    assert np.allclose(found, expected)


def test_log_odds_of_a_word_that_all_or_none_have_are_finite_and_near_nothing() -> None:
    found = log_odds(np.array([[5.0, 0.0], [30.0, 0.0]]), np.array([5.0, 30.0]))
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 1


def test_a_word_seen_once_weighs_less_than_one_seen_often() -> None:
    found = log_odds(np.array([[1.0, 40.0], [0.0, 10.0]]), np.array([100.0, 900.0]))
    assert 0 < found[0, 0] < found[0, 1]


def test_mean_difference_is_welchs_t() -> None:
    rng = np.random.default_rng(1)
    x, groups = rng.normal(3, 2, (50, 4)), rng.integers(3, size=50)
    parts = [x[groups == c] for c in range(3)]
    found = mean_difference(
        np.stack([p.sum(0) for p in parts]),
        np.stack([(p**2).sum(0) for p in parts]),
        np.bincount(groups),
    )
    expected = [
        stats.ttest_ind(x[groups == c], x[groups != c], equal_var=False).statistic for c in range(3)
    ]
    assert np.allclose(found, expected)


def test_mean_difference_without_variance_or_without_nodes_is_zero() -> None:
    sums = np.array([[4.0, 1e6], [6.0, 2e6], [0.0, 0.0]])
    squares = np.array([[8.0, 1e12], [12.0, 2e12], [0, 0]])
    found = mean_difference(sums, squares, np.array([2, 3, 0]))
    assert found[:, 0].tolist() == [0, 0, 0]
    assert (found[2] == 0).all()
    assert np.isfinite(found).all()


@pytest.mark.parametrize("form", ["sparse counts", "dense binary"])
def test_words_are_weighed_by_who_has_them(words, form: str) -> None:
    has, groups = words
    x = sp.csr_array(has * 3.5) if form == "sparse counts" else np.hstack([has, np.ones((80, 12))])
    graph = a_graph(x)
    assert sp.issparse(graph.x) == (form == "sparse counts")
    found, is_word = weights(graph, groups, 3)
    assert is_word.all()
    assert found[1, 4] == pytest.approx(log_odds_naive(has, groups, 1, 4))


def test_measurements_among_sparse_words_are_weighed_by_their_means(words) -> None:
    has, groups = words
    x = np.zeros((80, 40))
    x[:, :12] = has
    x[:, 12] = np.linspace(1, 9, 80) + 5 * (groups == 2)
    x[0, 13] = -1.0
    graph = a_graph(x)
    assert sp.issparse(graph.x)
    found, is_word = weights(graph, groups, 3)
    assert np.flatnonzero(~is_word).tolist() == [12, 13]
    values = graph.x.toarray().astype(float)[:, 12]
    assert found[2, 12] == pytest.approx(
        stats.ttest_ind(values[groups == 2], values[groups != 2], equal_var=False).statistic
    )


def test_characteristic_words_name_the_group() -> None:
    groups = np.repeat([0, 1], 50)
    x = np.zeros((100, 20))
    x[:40, 3] = x[:35, 4] = x[:30, 5] = x[50:90, 7] = 1
    x[:50:2, 6] = x[50::2, 6] = 1
    names = [f"w{j}" for j in range(20)]
    names[3:8] = ["plant", "plants", "flower", "the", "dog"]
    features, auto = characteristic(a_graph(x, names), groups, 2, 10)
    assert [f.name for f in features[0]][:3] == ["plant", "plants", "flower"]
    assert auto == ["plant, flower", "dog"]  # one word of a stem; what says nothing is not said
    assert all(f.weight > 0 for f in features[0])
    assert isinstance(features[0][0], Feature)


def test_characteristic_measurements_are_high_or_low() -> None:
    groups = np.repeat([0, 1], 20)
    x = np.random.default_rng(0).normal(size=(40, 3))
    x[:20, 0] += 5
    x[20:, 1] += 3
    features, auto = characteristic(a_graph(x, ["age", "income", "noise"]), groups, 2, 2)
    assert auto == ["high age, low income", "low age, high income"]
    assert features[0][1].name == "income"
    assert features[0][1].weight < 0


def test_names_are_unique_and_unnamed_features_are_numbered() -> None:
    groups = np.repeat([0, 1, 2], 30)
    x = np.zeros((90, 12))
    x[:60, :3] = 1
    x[:30, 3] = 1
    _, auto = characteristic(a_graph(x), groups, 3, 3)
    assert auto[0].startswith("feature ")
    assert len(set(auto[:2])) == 2
    assert auto[2] == ""
