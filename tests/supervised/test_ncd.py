"""AutoNovel, NCL and DTC with old labelled nodes.

Old labels reach them, labels of new nodes cannot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.data.labels import LabelledNewTask
from nodenova.data.splits import labelled_new_task
from nodenova.errors import SettingError
from nodenova.methods import get_method
from nodenova.nn.class_memory import Memory
from nodenova.supervised import LABELLED
from nodenova.supervised._shared import gather_nodes, refresh_memory
from nodenova.supervised.entrance import discover_supervised

NAMES = ("autonovel_ncd", "ncl_ncd", "dtc_ncd")
FAST: dict[str, Any] = {name: LABELLED[name](epochs=12) for name in NAMES}
FAST["two_heads"] = LABELLED["autonovel_ncd"](epochs=12, incremental=False)
every_method = pytest.mark.parametrize("name", list(FAST))

# What is left of each when the labels of old nodes may not train anything.
WITHOUT_OLD = {name: {"old": 0.0} for name in FAST} | {"ncl_ncd": {"old": 0.0, "old_contrast": 0.0}}


@pytest.fixture(scope="module")
def given(labelled) -> LabelledNewTask:
    return labelled_new_task(labelled, [0, 1])


def rotated(y: np.ndarray, classes: int) -> np.ndarray:
    """Every label wrong, for one node in two: not a mere renaming."""
    return np.where(np.arange(len(y)) % 2 == 0, (y + 1) % classes, y)


def scores(model: nova.Model, exam: nova.Exam) -> tuple[float, float]:
    """Accuracy on old test nodes among old classes, on new ones among new: the task is told."""
    is_old, n_old = exam.y < exam.sizes[0], exam.sizes[0]
    said = model.predict_proba(exam.graph)[exam.ids][:, :n_old].argmax(axis=1)
    old_n = 100.0 * float((said == exam.y)[is_old].mean())
    return old_n, nova.grade(model, exam).scores("block")["new_n"]


@every_method
def test_labels_of_new_nodes_cannot_reach_it(name: str, fitted, given) -> None:
    truly = discover_supervised(fitted, given, FAST[name])
    # As many classes as before, so that nothing else about the task has changed; and no label.
    wrong = replace(given, y=given.y[::-1].copy(), val_y=given.val_y[::-1].copy())
    assert not np.array_equal(wrong.y, given.y)
    for other in (wrong, replace(given, y=None, val_ids=None, val_y=None)):
        blind = discover_supervised(fitted, other, FAST[name])
        assert (
            truly.predict_proba(given.graph).tobytes() == blind.predict_proba(given.graph).tobytes()
        )
        assert np.array_equal(truly.predict_new(given.graph), blind.predict_new(given.graph))
        assert truly.stages[-1].history == blind.stages[-1].history
        assert torch.equal(truly.memory.replay.mean, blind.memory.replay.mean)
    assert truly.stages[-1].sees == ("graph", "new_ids", "old_nodes", "old_labels")


@every_method
def test_labels_of_old_nodes_do(name: str, fitted, given) -> None:
    wrong = replace(given, old_y=rotated(given.old_y, 2))
    truly, misled = (discover_supervised(fitted, task, FAST[name]) for task in (given, wrong))
    assert not np.allclose(truly.embed(given.graph), misled.embed(given.graph), atol=1e-3)
    assert truly.stages[-1].history["old"][-1] < misled.stages[-1].history["old"][-1]


@every_method
def test_labels_of_old_nodes_train_by_their_own_terms_only(name: str, fitted, given) -> None:
    method = replace(FAST[name], **WITHOUT_OLD[name])
    wrong = replace(given, old_y=rotated(given.old_y, 2))
    a, b = (discover_supervised(fitted, task, method) for task in (given, wrong))
    assert a.embed(given.graph).tobytes() == b.embed(given.graph).tobytes()
    assert not {"old", "old_contrast"} & set(a.stages[-1].history)


@every_method
def test_old_nodes_matter_too(name: str, fitted, given) -> None:
    fewer = replace(given, old_ids=given.old_ids[::2], old_y=given.old_y[::2])
    a, b = (discover_supervised(fitted, task, FAST[name]) for task in (given, fewer))
    assert not np.array_equal(a.embed(given.graph), b.embed(given.graph))


@pytest.mark.parametrize(
    ("name", "encoder"),
    [
        pytest.param(name, encoder, marks=[] if i % 3 == j else [pytest.mark.slow])
        for i, name in enumerate(FAST)
        for j, encoder in enumerate(("gcn", "gat", "sage"))
    ],
)
def test_every_encoder_and_every_seed_its_own(name: str, encoder: str, tasks, given) -> None:
    fitted = nova.fit(tasks[0], encoder, hidden=8, heads=2, epochs=3)
    a, b, c = (
        discover_supervised(fitted, given, replace(FAST[name], epochs=3), seed=seed)
        for seed in (3, 3, 4)
    )
    assert np.isfinite(a.predict_proba(given.graph)).all()
    assert a.predict_proba(given.graph).tobytes() == b.predict_proba(given.graph).tobytes()
    assert a.predict_proba(given.graph).tobytes() != c.predict_proba(given.graph).tobytes()
    assert not np.array_equal(a.embed(given.graph), fitted.embed(given.graph))


@every_method
def test_one_new_class_trains_what_old_nodes_allow(name: str, labelled) -> None:
    old, _, exam = nova.split(labelled, [0, 1, 2])
    fitted = nova.fit(old, "gcn", hidden=8, epochs=10)
    model = discover_supervised(fitted, labelled_new_task(labelled, [0, 1, 2]), FAST[name])
    assert np.isfinite(model.predict_proba(exam.graph)).all()
    assert (model.predict_new(exam.graph) == 3).all()
    history = model.stages[-1].history
    assert len(history["old"]) == 12
    assert not {"pairwise", "contrast", "clustering"} & set(history)
    assert all(np.isfinite(values).all() for values in history.values())


@every_method
def test_a_new_and_an_old_node_without_neighbours(name: str) -> None:
    rng = np.random.default_rng(0)
    y = np.array([0] * 10 + [1] * 10 + [2] * 10 + [3] * 10)
    edges, alone = rng.integers(40, size=(2, 80)), np.array([0, 1, 20, 21])
    graph = nova.Graph.of(rng.random((40, 6)), edges[:, ~np.isin(edges, alone).any(axis=0)])
    train = np.isin(np.arange(40), np.concatenate([alone, [10, 11, 12, 30, 31, 32]]))
    labelled = nova.LabelledGraph(
        graph, y, tuple("abcd"), train=train, val=np.zeros(40, dtype=bool), test=~train
    )
    given = labelled_new_task(labelled, [0, 1])
    assert np.isin(alone, np.concatenate([given.ids, given.old_ids])).all()
    model = discover_supervised(
        nova.fit(nova.split(labelled, [0, 1])[0], "gcn", hidden=8, epochs=5), given, FAST[name]
    )
    assert np.isfinite(model.predict_proba(graph)).all()
    assert all(np.isfinite(values).all() for values in model.stages[-1].history.values())


@pytest.fixture(scope="module")
def easy() -> tuple[nova.Model, LabelledNewTask, nova.NewTask, nova.Exam]:
    data = nova.synthetic(
        nodes=300, classes=4, words=80, degree=10, homophily=0.95, topic_share=0.9
    )
    old, new, exam = nova.split(data, [0, 1])
    return nova.fit(old, "gcn", hidden=16, epochs=50), labelled_new_task(data, [0, 1]), new, exam


@pytest.mark.parametrize("name", NAMES)
def test_planted_classes_are_told_apart_when_the_task_is_told(name: str, easy) -> None:
    fitted, given, _, exam = easy
    old, new = scores(discover_supervised(fitted, given, LABELLED[name](epochs=100)), exam)
    assert old >= 95
    assert new >= 75


@pytest.mark.parametrize("name", ["autonovel", "ncl"])
def test_old_nodes_hold_the_old_classes_that_are_forgotten_without_them(name: str) -> None:
    """Four old classes that share many of their words and neighbors.

    An encoder that moves on mixes them up.
    """
    data = nova.synthetic(
        nodes=300, classes=6, words=80, words_per_node=8, homophily=0.6, topic_share=0.3
    )
    old, new, exam = nova.split(data, [0, 1, 2, 3])
    fitted = nova.fit(old, "gcn", hidden=16, epochs=50)
    given = labelled_new_task(data, [0, 1, 2, 3])
    before = 100.0 * float((fitted.predict(exam.graph)[exam.ids] == exam.y)[exam.y < 4].mean())
    with_them = scores(
        discover_supervised(fitted, given, LABELLED[f"{name}_ncd"](epochs=100)), exam
    )[0]
    without = scores(nova.discover(fitted, new, nova.METHODS[name](epochs=100)), exam)[0]
    assert with_them > before - 5
    assert without < before - 15


def test_the_incremental_head_has_learnt_what_the_new_head_says(easy) -> None:
    fitted, given, _, exam = easy
    model = discover_supervised(fitted, given, LABELLED["autonovel_ncd"](epochs=100))
    joint = model.predict(given.graph)[given.ids]
    assert (joint == model.predict_new(given.graph)[given.ids]).mean() > 0.9
    untaught = discover_supervised(
        fitted, given, LABELLED["autonovel_ncd"](epochs=100, increment=0.0)
    )
    assert (untaught.predict(given.graph)[given.ids] < 2).all()
    assert "self" not in untaught.stages[-1].history
    assert nova.grade(model, exam).scores()["old_new_accuracy"] > 90


@pytest.mark.parametrize("name", ["ncl_ncd", "dtc_ncd"])
def test_strict_never_says_new(name: str, fitted, given) -> None:
    model = discover_supervised(fitted, given, replace(FAST[name], new_rows="untrained"))
    rows = model.head().linear
    assert torch.equal(rows.bias[2:], (rows.bias[:2].min() - 1.0).expand(2))


@pytest.mark.parametrize(
    ("name", "weight", "term"),
    [
        ("autonovel_ncd", "old", "old"),
        ("autonovel_ncd", "pairwise", "pairwise"),
        ("autonovel_ncd", "omega", "consistency"),
        ("autonovel_ncd", "increment", "self"),
        ("ncl_ncd", "old", "old"),
        ("ncl_ncd", "pairwise", "pairwise"),
        ("ncl_ncd", "omega", "consistency"),
        ("ncl_ncd", "contrast", "contrast"),
        ("ncl_ncd", "old_contrast", "old_contrast"),
        ("dtc_ncd", "old", "old"),
        ("dtc_ncd", "clustering", "clustering"),
        ("dtc_ncd", "omega", "consistency"),
    ],
)
def test_a_zero_weight_removes_its_term(name: str, weight: str, term: str, fitted, given) -> None:
    history = discover_supervised(fitted, given, FAST[name]).stages[-1].history
    without = (
        discover_supervised(fitted, given, replace(FAST[name], **{weight: 0.0})).stages[-1].history
    )
    assert set(history) - set(without) == {term}


@pytest.mark.parametrize("name", ["autonovel_ncd", "ncl_ncd"])
def test_pairs_of_a_sample(name: str, fitted, given) -> None:
    few, all_ = (
        discover_supervised(fitted, given, replace(FAST[name], pair_nodes=most))
        for most in (8, 10_000)
    )
    assert np.isfinite(few.predict_proba(given.graph)).all()
    assert not np.array_equal(few.embed(given.graph), all_.embed(given.graph))


@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage"])
def test_z_of_old_and_new_nodes_is_that_of_the_whole_graph(encoder: str) -> None:
    data = nova.synthetic(nodes=600, classes=4, words=40, degree=2.0)
    model = nova.fit(nova.split(data, [0, 1])[0], encoder, hidden=4, epochs=2)
    new, old = np.flatnonzero(data.y >= 2)[:4], np.flatnonzero(data.y < 2)[:5]
    nodes = gather_nodes(model, LabelledNewTask(data.graph, new, 2, None, old, data.y[old]))
    assert nodes.task.graph.num_nodes < 300
    g = model.frozen_encoder()
    whole, part = g(data.graph), g(nodes.task.graph)
    assert torch.allclose(part[nodes.new], whole[torch.from_numpy(new)], atol=1e-6)
    assert torch.allclose(part[nodes.old], whole[torch.from_numpy(old)], atol=1e-6)
    assert np.array_equal(nodes.task.ids, nodes.new.numpy())
    assert np.array_equal(nodes.y_old.numpy(), data.y[old])


def test_old_classes_are_remembered_as_the_encoder_sees_them_now(fitted, given) -> None:
    nodes = gather_nodes(fitted, given)
    g = fitted.encoder()
    with torch.no_grad():
        for parameter in g.parameters():
            parameter.mul_(1.5)
    expected = Memory.remember(g, nodes.task.graph, nodes.old, nodes.y_old, 2)
    again = refresh_memory(fitted, g, nodes).memory
    for part in ("mean", "var", "centre", "factor", "rest", "dof"):
        assert torch.equal(again.tensors()[part], expected.tensors()[part])
    assert torch.equal(again.classes.temperature, fitted.memory.classes.temperature)
    # Of a class nothing of which is given, what was remembered stays.
    only_0 = replace(
        given, old_ids=given.old_ids[given.old_y == 0], old_y=given.old_y[given.old_y == 0]
    )
    kept = refresh_memory(fitted, g, gather_nodes(fitted, only_0)).memory
    assert torch.equal(kept.replay.mean[1], fitted.memory.replay.mean[1])
    assert torch.allclose(kept.replay.mean[0], expected.replay.mean[0], atol=1e-6)


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("autonovel_ncd", {"incremental": 1}, "incremental must be true or false, it is 1"),
    ("autonovel_ncd", {"increment": -0.1}, "increment must not be negative"),
    ("ncl_ncd", {"lam": 1.0}, "lam is a cosine"),
    ("ncl_ncd", {"alpha": 1.5}, "alpha is a share"),
    ("ncl_ncd", {"tau": 0.0}, "tau must be positive"),
    ("dtc_ncd", {"new_rows": "learnt"}, "new_rows must be one of concatenated, untrained"),
    ("dtc_ncd", {"old": float("nan")}, "old must not be negative"),
]


@pytest.mark.parametrize(("name", "settings", "sentence"), BAD)
def test_bad_settings(name: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        LABELLED[name](**settings)


def test_settings_as_text_and_what_must_be_there(fitted, given) -> None:
    assert get_method("autonovel_ncd", {"incremental": "false"}, LABELLED) == LABELLED[
        "autonovel_ncd"
    ](incremental=False)
    with pytest.raises(SettingError, match="ncl_ncd needs old nodes, which the task does not have"):
        discover_supervised(fitted, LabelledNewTask(given.graph, given.ids, 2), FAST["ncl_ncd"])
