"""The contract that every method keeps: on every encoder, and on the odd tasks of real graphs.

Labels cannot reach a method either: see tests/test_no_leak.py.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.bench.plan import Plan
from nodenova.discovery import method_name
from nodenova.encoders.gnn import LAYERS
from nodenova.errors import SettingError
from nodenova.methods import METHODS, Method, get_method
from nodenova.methods.registry import preferred_encoder

Task = tuple[nova.OldTask, nova.NewTask, nova.Exam]


def one_new_class() -> Task:
    """As on PubMed: nothing to tell apart among the new nodes."""
    return nova.split(nova.synthetic(nodes=60, classes=3, words=40), [0, 1], per_class=6)


def an_isolated_node() -> Task:
    """One of the new nodes has no neighbor; its part of the graph is itself."""
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
    known = {field.name for field in dataclasses.fields(METHODS[name])}
    return get_method(name, {key: value for key, value in few.items() if key in known})


GRID = [(name, encoder, task) for name in METHODS for encoder in LAYERS for task in TASKS]
# Every pair of method and encoder, of method and task, of encoder and task.
COVER = [
    (name, list(LAYERS)[(i + j) % len(LAYERS)], task)
    for i, name in enumerate(METHODS)
    for j, task in enumerate(TASKS)
]


def check_odd_task(name: str, encoder: str, task: Callable[[], Task]) -> None:
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


@pytest.mark.parametrize(("name", "encoder", "task"), COVER)
def test_odd_tasks(name: str, encoder: str, task: Callable[[], Task]) -> None:
    check_odd_task(name, encoder, task)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "encoder", "task"), [each for each in GRID if each not in COVER])
def test_odd_tasks_in_every_other_combination(
    name: str, encoder: str, task: Callable[[], Task]
) -> None:
    check_odd_task(name, encoder, task)


def test_a_method_is_a_frozen_dataclass_of_plain_settings() -> None:
    for name, kind in METHODS.items():
        method = kind()
        assert isinstance(method, Method)
        assert kind.__dataclass_params__.frozen
        assert kind.__doc__
        assert kind(**json.loads(json.dumps(dataclasses.asdict(method)))) == method
        assert method_name(method) == name


@pytest.mark.parametrize("name", list(METHODS))
def test_a_method_adds_classes_repeats_itself_and_leaves_the_model_alone(
    name: str, fitted, tasks
) -> None:
    new = tasks[1]
    before, state = fitted.predict_proba(new.graph), torch.get_rng_state()
    mean = fitted.memory.replay.mean.clone()
    model, again = (nova.discover(fitted, new, quick(name), seed=5) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert len(model.classes) == 4
    assert model.num_old == 2
    assert model.classes[:2] == fitted.classes
    assert model.predict_proba(new.graph).shape == (120, 4)
    assert set(model.predict_new(new.graph)) <= {2, 3}
    assert np.isfinite(model.predict_proba(new.graph)).all()
    assert len(model.memory.replay.mean) == len(model.memory.replay.var) == 4
    assert model.stages[-1].method == name
    assert model.stages[-1].sees == ("graph", "new_ids")
    assert model.stages[-1].history == again.stages[-1].history
    assert model.predict_proba(new.graph).tobytes() == again.predict_proba(new.graph).tobytes()
    assert np.array_equal(model.predict_new(new.graph), again.predict_new(new.graph))
    assert (fitted.predict_proba(new.graph) == before).all()
    assert torch.equal(fitted.memory.replay.mean, mean)
    assert len(fitted.classes) == 2
    second = nova.discover(model, new, quick(name))
    assert len(second.classes) == 6
    assert second.num_old == 4


def test_a_method_that_trains_refuses_an_encoder_without_training(tasks) -> None:
    model = nova.fit(tasks[0])
    for name, kind in METHODS.items():
        if preferred_encoder(kind) != "prism":
            with pytest.raises(SettingError, match=f"{name} needs an encoder that can be trained"):
                nova.discover(model, tasks[1], quick(name))


@cache
def fitted_on_batches(encoder: str) -> nova.Model:
    settings = {"hidden": 6, "epochs": 3, "batch": 8, "neighbors": 2}
    return nova.fit(nova.split(many_nodes(), [0, 1])[0], encoder, **settings)


@cache
def many_nodes() -> nova.LabelledGraph:
    return nova.synthetic(nodes=200, classes=4, words=40)


@pytest.mark.parametrize("encoder", list(LAYERS))
@pytest.mark.parametrize("name", list(METHODS))
def test_a_method_works_on_batches_or_refuses_in_a_sentence(name: str, encoder: str) -> None:
    new, model = nova.split(many_nodes(), [0, 1])[1], fitted_on_batches(encoder)
    if not getattr(METHODS[name], "batches", False):
        with pytest.raises(
            SettingError, match=f"^{name} trains on the whole graph, not with batch=8: "
        ):
            nova.discover(model, new, quick(name))
        return
    found = nova.discover(model, new, quick(name))
    values = [each for term in found.stages[-1].history.values() for each in term]
    assert np.isfinite(values).all()
    assert np.isfinite(found.predict_proba(new.graph)).all()
    assert len(found.classes) == 4


def test_two_methods_refuse_batches() -> None:
    refusing = {name for name, kind in METHODS.items() if not getattr(kind, "batches", False)}
    assert refusing == {"distilled_gnn", "simgcd"}


@pytest.mark.parametrize("name", list(nova.LABELLED))
def test_a_method_that_is_given_labels_refuses_batches(name: str) -> None:
    task = nova.labelled_new_task(many_nodes(), [0, 1])
    with pytest.raises(
        SettingError, match=f"^{name} trains on the whole graph, not with batch=8: "
    ):
        nova.discover_supervised(fitted_on_batches("gcn"), task, nova.LABELLED[name]())


def test_batches_are_refused_before_anything_is_fitted() -> None:
    words = "^simgcd trains on the whole graph, not with batch=8: "
    with pytest.raises(SettingError, match=words):
        Plan("cora", nova.SimGCD(), "gcn", (0, 1), 2, (("batch", 8),))
    found = nova.NodeDiscoverer(
        num_new=2, method="simgcd", encoder="gcn", fit_settings={"batch": 8}, progress=pytest.fail
    )
    with pytest.raises(SettingError, match=words):
        found.fit(many_nodes().graph, many_nodes().y)


def test_every_number_among_the_settings_is_checked() -> None:
    for kind in METHODS.values():
        for field in dataclasses.fields(kind):
            if type(field.default) in (int, float):
                with pytest.raises(SettingError, match=field.name):
                    kind(**{field.name: -2})
