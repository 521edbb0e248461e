"""How much there is of a node and around it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import nodenova as nova
from nodenova.encoders.prism.degree import COLUMNS, RBF_CENTERS, STEPS, DegreeFeatures

CPU = torch.device("cpu")


def words_of(rate: np.ndarray, words: int, edges: int) -> nova.Graph:
    """Nodes that have each word with a probability of their own, linked at random."""
    rng = np.random.default_rng(0)
    x = sp.csr_array(rng.random((len(rate), words)) < rate[:, None], dtype=np.float32)
    return nova.Graph.of(x, rng.integers(len(rate), size=(2, edges)))


def random_graph() -> nova.Graph:
    return words_of(np.linspace(0.02, 0.4, 80), words=30, edges=200)


def test_it_is_the_plain_formula() -> None:
    graph = random_graph()
    a = graph.adjacency.toarray()
    walk = (a + np.eye(80)) / (a.sum(axis=1, keepdims=True) + 1)
    log = np.log1p(np.stack([a.sum(axis=1), (graph.x != 0).sum(axis=1)], axis=1))
    number = np.hstack([np.linalg.matrix_power(walk, step) @ log for step in STEPS])
    c = (number - number.mean(axis=0)) / number.std(axis=0)
    plain = np.hstack([np.exp(-((c - at) ** 2) / 2) for at in RBF_CENTERS])
    ours = DegreeFeatures.fit(graph, CPU)(graph).numpy()
    assert ours.shape == (80, COLUMNS)
    assert np.allclose(ours, plain, atol=1e-4)


def test_dense_features_are_counted_alike() -> None:
    graph = random_graph()
    dense = nova.Graph.of(graph.x.toarray(), graph.edge_index, dense=True)
    assert torch.equal(DegreeFeatures.fit(graph, CPU)(graph), DegreeFeatures.fit(dense, CPU)(dense))


def test_what_is_said_does_not_matter_only_how_much() -> None:
    graph = random_graph()
    other = nova.Graph.of(7.0 * graph.x[:, ::-1], graph.edge_index)
    counts = DegreeFeatures.fit(graph, CPU)
    assert torch.equal(counts(graph), counts(other))


@pytest.mark.parametrize("kind", ["measurements", "one length", "no edges", "one node"])
def test_counts_that_do_not_differ_say_nothing(kind: str) -> None:
    rng = np.random.default_rng(1)
    x, edges = np.eye(20), np.stack([np.arange(20), (np.arange(20) + 1) % 20])
    if kind == "measurements":
        x = rng.normal(size=(20, 5))
    if kind == "no edges":
        edges = edges[:, :0]
    if kind == "one node":
        x, edges = x[:1], edges[:, :0]
    graph = nova.Graph.of(x, edges)
    bumps = DegreeFeatures.fit(graph, CPU)(graph)
    assert torch.equal(bumps, bumps[:1].expand_as(bumps))  # a ring, or no edge: all nodes are alike


def test_a_class_told_by_its_number_of_words_alone_is_found() -> None:
    """Four classes that use the same words and link at random, and write more or less of them."""
    y = np.arange(800) % 4
    graph = words_of(np.array([0.02, 0.07, 0.16, 0.35])[y], words=300, edges=1600)
    old, new, exam = nova.split(nova.LabelledGraph(graph, y, tuple("abcd")), old=[0, 2])
    # 71 without counts.
    assert nova.grade(nova.discover(nova.fit(old), new), exam).scores("block")["all"] > 80
