"""Every method on every encoder, on the odd tasks that real graphs bring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache

import numpy as np
import pytest

import nodenova as nova
from nodenova.encoders.gnn import LAYERS
from nodenova.methods import METHODS, Method, get_method

Task = tuple[nova.OldTask, nova.NewTask, nova.Exam]


def one_new_class() -> Task:
    """As on PubMed: nothing to tell apart among the new nodes."""
    return nova.split(nova.synthetic(nodes=60, classes=3, words=40), [0, 1], per_class=6)


def an_isolated_node() -> Task:
    """One of the new nodes has no neighbour; its part of the graph is itself."""
    data = nova.synthetic(nodes=60, classes=4, words=40)
    lonely = int(np.flatnonzero(data.y == 3)[0])
    edges = data.graph.edge_index[:, (data.graph.edge_index != lonely).all(axis=0)]
    labelled = nova.LabelledGraph(nova.Graph.of(data.graph.x, edges), data.y, data.class_names)
    old, new, exam = nova.split(labelled, [0, 1], per_class=6)
    return old, nova.NewTask(new.graph, np.union1d(new.ids, [lonely]), 2), exam


def nothing_but_an_isolated_node() -> Task:
    old, new, exam = an_isolated_node()
    lonely = np.setdiff1d(new.ids, new.graph.edge_index[0])
    return old, nova.NewTask(new.graph, lonely[:1], 1), exam


def classes_of_two_nodes() -> Task:
    """One old and one new class has two nodes in all.

    There are fewer new nodes than any k or number of neighbors.
    """
    rng = np.random.default_rng(0)
    y = np.array([0] * 10 + [1] * 2 + [2] * 10 + [3] * 2)
    graph = nova.Graph.of(rng.random((24, 6)), rng.integers(24, size=(2, 40)))
    old, new, exam = nova.split(nova.LabelledGraph(graph, y, tuple("abcd")), [0, 1], per_class=2)
    return old, nova.NewTask(new.graph, np.union1d(new.ids, [22]), 2), exam


def as_many_nodes_as_classes() -> Task:
    old, new, exam = nova.split(nova.synthetic(nodes=60, classes=5, words=40), [0, 1], per_class=6)
    return old, nova.NewTask(new.graph, new.ids[:3], 3), exam


TASKS: list[Callable[[], Task]] = [
    one_new_class,
    an_isolated_node,
    nothing_but_an_isolated_node,
    classes_of_two_nodes,
    as_many_nodes_as_classes,
]


@cache
def made(task: Callable[[], Task]) -> Task:
    return task()


@cache
def fitted(task: Callable[[], Task], encoder: str, layers: int) -> nova.Model:
    return nova.fit(made(task)[0], encoder, hidden=6, heads=2, epochs=3, layers=layers)


def quick(name: str) -> Method:
    few = {"epochs": "4", "warmup": "1", "update": "2"}  # enough for every branch of every method
    known = {field.name for field in fields(METHODS[name])}
    return get_method(name, {key: value for key, value in few.items() if key in known})


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("encoder", list(LAYERS))
@pytest.mark.parametrize("name", list(METHODS))
def test_odd_tasks(name: str, encoder: str, task: Callable[[], Task]) -> None:
    _, new, exam = made(task)
    for layers in (1, 2):
        before = fitted(task, encoder, layers)
        model = nova.discover(before, new, quick(name))
        n_old, n = len(before.classes), len(before.classes) + new.num_new
        probabilities = model.predict_proba(new.graph)
        assert probabilities.shape == (new.graph.num_nodes, n)
        assert np.isfinite(probabilities).all()
        assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
        assert set(model.predict_new(new.graph)) <= set(range(n_old, n))
        for statistic in (
            model.memory.replay.mean,
            model.memory.replay.var,
            model.memory.classes.factor,
        ):
            assert statistic.isfinite().all()
        assert np.isfinite(
            [value for values in model.stages[-1].history.values() for value in values]
        ).all()
        if new.num_new == len(exam.class_names) - n_old:
            assert nova.grade(model, exam).confusion.sum() == len(exam.ids)
