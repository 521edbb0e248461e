"""Prism where unlabelled nodes are of known and new classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.data.labels import OldTask
from nodenova.encoders.prism import lda
from nodenova.encoders.prism.lda import count_times_found
from nodenova.errors import SettingError
from nodenova.methods import METHODS, get_method, prism
from nodenova.nn.encode_cache import encode
from nodenova.open_world import mixed
from nodenova.open_world.novelty import cell_novelty, odds_of_new


@pytest.fixture(scope="module")
def world():
    """Phase 1 on three of six planted classes, every other node unlabelled, and the exam."""
    data = nova.synthetic(nodes=600, classes=6, words=300, seed=1)
    old, new, exam = nova.split(data, old=[0, 1, 2])
    rest = np.setdiff1d(np.arange(600), old.train_ids)
    return nova.fit(old), nova.NewTask(data.graph, rest, 3, mixed=True), exam, new, data


def test_planted_new_classes_are_found_among_known_ones(world) -> None:
    model, task, exam, _, _ = world
    scores = nova.grade(nova.discover(model, task), exam).scores("block")
    assert scores["old"] > 90
    assert scores["new"] > 90


def mostly_known(seed: int = 1) -> tuple[nova.Model, nova.NewTask, nova.Exam]:
    """Hardly any new nodes among many known ones, and words that say little."""
    data = nova.synthetic(nodes=900, classes=6, words=60, seed=seed)
    old, _, exam = nova.split(data, old=[0, 1, 2])
    rest = np.setdiff1d(np.arange(900), old.train_ids)
    new = [rest[data.y[rest] == c][:12] for c in (3, 4, 5)]
    ids = np.sort(np.concatenate([rest[data.y[rest] < 3], *new]))
    return nova.fit(old), nova.NewTask(data.graph, ids, 3, mixed=True), exam


def test_where_most_nodes_are_known_taking_all_for_new_is_worse() -> None:
    model, task, exam = mostly_known()
    blind = nova.discover(model, replace(task, mixed=False), nova.Prism(n_resamples=0))
    seeing = nova.discover(model, task, nova.Prism(n_resamples=0))
    h = [nova.grade(found, exam).scores()["h"] for found in (seeing, blind)]
    assert h[0] > h[1] + 10


def test_the_same_seed_gives_the_same_model_and_the_one_it_started_from_is_as_it_was(world) -> None:
    model, task, _, _, data = world
    before = model.predict_proba(data.graph)
    first, second = (nova.discover(model, task, seed=7).predict_proba(data.graph) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.array_equal(before, model.predict_proba(data.graph))


def test_nodes_count_by_their_odds_of_being_new() -> None:
    model, task, exam = mostly_known(seed=3)
    heavy, even = (
        nova.discover(model, task, nova.Prism(weigh=on, n_resamples=0)) for on in (True, False)
    )
    h = [nova.grade(found, exam).scores()["h"] for found in (heavy, even)]
    assert h[0] > h[1] + 10


def test_new_classes_lie_apart_in_a_balanced_world_though_hardly_any_node_is_new() -> None:
    model, task, _ = mostly_known()
    g, known = model.frozen_encoder(), model.memory.classes
    z = encode(g, task.graph)[torch.from_numpy(task.ids)]
    is_new = nova.synthetic(nodes=900, classes=6, words=60, seed=1).y[task.ids] >= 3
    odds = odds_of_new(cell_novelty(g.spec.multirank, known, model.cells, model.lda, z))
    apart = []
    for weight in (odds, None):
        space = mixed.WhitenedSpace.of(g.spec.multirank, known, z, 3, model.lda, weight)
        anchors = space.anchors / np.linalg.norm(space.anchors, axis=1, keepdims=True)
        alike = (space.points @ anchors.T).max(axis=1)
        apart.append(alike[~is_new].mean() - alike[is_new].mean())
    assert apart[0] > 1.1 * apart[1]


def test_of_many_nodes_a_part_is_grouped_and_all_are_classified(world, monkeypatch) -> None:
    model, task, exam, _, _ = world
    monkeypatch.setattr(prism, "MAX_GROUPED", 150)
    monkeypatch.setattr(lda, "MAX_RESAMPLED", 100)
    assert (
        nova.grade(nova.discover(model, task, nova.Prism(n_resamples=2)), exam).scores()["all"] > 85
    )


def test_a_stage_says_that_it_was_mixed_and_one_that_was_not_does_not(world) -> None:
    model, task, _, new, _ = world
    quick = nova.Prism(n_resamples=0)
    assert nova.discover(model, task, quick).stages[-1].mixed
    assert not nova.discover(model, new, quick).stages[-1].mixed


def test_a_second_stage_knows_where_the_classes_of_the_first_are() -> None:
    data = nova.synthetic(nodes=600, classes=6, words=300, seed=1)
    old, _, exams = nova.split_stages(data, [0, 1], [[2, 3], [4, 5]])
    model = nova.fit(old)
    rest = np.setdiff1d(np.arange(600), old.train_ids)
    first = np.intersect1d(rest, np.flatnonzero(data.y < 4))
    model = nova.discover(model, nova.NewTask(data.graph, first, 2, mixed=True))
    assert model.cells is not None
    assert model.cells.table.shape[2] == 4
    assert (model.cells.table.sum(dim=1) > 0).all()
    model = nova.discover(model, nova.NewTask(data.graph, rest, 2, mixed=True))
    assert model.classes_per_stage == (2, 2, 2)
    assert nova.grade(model, exams[1]).scores()["all"] > 85


def few_labels(seed: int) -> tuple[nova.Model, nova.NewTask, np.ndarray, np.ndarray]:
    """Four known classes with five labels each among four new ones; ids and classes of nodes."""
    data = nova.synthetic(nodes=480, classes=8, words=120, seed=seed)
    labelled = np.concatenate([np.flatnonzero(data.y == c)[:5] for c in range(4)])
    none = np.zeros(0, dtype=np.int64)
    ids = np.sort(labelled)
    old = OldTask(data.graph, ids, data.y[ids], none, none, data.class_names[:4])
    rest = np.setdiff1d(np.arange(480), ids)
    return nova.fit(old), nova.NewTask(data.graph, rest, 4, mixed=True), rest, data.y[rest]


def test_nodes_of_known_classes_with_few_labels_are_less_often_called_new(monkeypatch) -> None:
    lost = {0.0: 0, 1.0: 0}
    for seed in range(3):
        model, task, ids, y = few_labels(seed)
        for noise in lost:
            monkeypatch.setattr(lda, "NOISE", noise)
            classes = nova.discover(model, task, nova.Prism(n_resamples=2)).predict(task.graph)
            lost[noise] += int((classes[ids][y < 4] >= 4).sum())
    assert lost[1.0] < lost[0.0]


def test_the_noise_of_a_mean_falls_with_the_number_of_its_labels() -> None:
    model = few_labels(0)[0]
    known, multirank = model.memory.classes, model.frozen_encoder().spec.multirank
    used = model.lda.ranks_for(multirank, 8)
    small = known.at(multirank.columns_of(used))
    more = replace(small, count=small.count * torch.tensor([1.0, 2.0, 4.0, 8.0]))
    noise = lda._noise_of_means(used, more, model.lda)
    assert (noise > 0).all()
    assert torch.allclose(noise * torch.tensor([1.0, 2.0, 4.0, 8.0]), noise[0].expand(4))
    gone = replace(small, count=small.count * torch.tensor([1.0, 1.0, 1.0, 0.0]))
    assert lda._noise_of_means(used, gone, model.lda)[3] == 0


@pytest.mark.parametrize("encoder", ["prism", "gcn"])
@pytest.mark.parametrize("nodes", [3, 12])
def test_few_nodes_one_new_class_and_every_encoder(encoder: str, nodes: int) -> None:
    data = nova.synthetic(nodes=150, classes=3, words=60)
    old, new, _ = nova.split(data, old=[0, 1])
    settings = {} if encoder == "prism" else {"epochs": 3, "hidden": 8}
    model = nova.fit(old, encoder, **settings)
    task = nova.NewTask(data.graph, new.ids[:nodes], 1, mixed=True)
    found = nova.discover(model, task, nova.Prism(n_resamples=2))
    assert len(found.classes) == 3
    assert np.isfinite(found.predict_proba(data.graph)).all()


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("prism", "simgcd")])
def test_methods_that_take_all_nodes_for_new_refuse_a_mixture(world, name: str) -> None:
    model, task, _, _, _ = world
    with pytest.raises(SettingError, match=f"{name} assumes that all nodes are new"):
        nova.discover(model, task, get_method(name, {}))


@dataclass(frozen=True)
class OwnMethod:
    """A user's method that declares support for mixtures."""

    mixed = True

    def discover(self, model: nova.Model, task: nova.NewTask) -> nova.Model:
        assert task.mixed
        return nova.Prism(n_resamples=0).discover(model, task)


def test_a_method_of_ones_own_can_say_that_it_does_mixtures(world) -> None:
    model, task, _, _, _ = world
    assert len(nova.discover(model, task, OwnMethod()).classes) == 6


def test_editing_classes_keeps_the_cells_in_step(world) -> None:
    model, task, _, _, data = world
    found = nova.discover(model, task, nova.Prism(n_resamples=0))
    new = found.classes[-1].id
    for edited in (found.reject(new), found.split(new, data.graph), found.merge([new, new - 1])):
        assert edited.cells is not None
        assert edited.cells.table.shape[2] == edited.num_columns
        assert len(edited.memory.classes.count) == edited.num_columns
        again = nova.discover(edited, replace(task, num_new=1), nova.Prism(n_resamples=0))
        assert torch.isfinite(again.head().linear.weight).all()


def test_a_group_is_met_where_half_of_either_is_in_both() -> None:
    groups = np.array([0, 0, 0, 0, 1, 1, 1, 1, -1, -1])
    half = np.array([0, 0, 1, 1, 1, 1, 1, 1, -1, -1])
    apart = np.array([1, 1, 1, 0, 0, 0, 0, 1, 0, 0])
    assert count_times_found(groups, [groups, half, apart], 2) == ((2, 3), (2, 3))
    assert count_times_found(groups, [], 2) == ((0, 0), (0, 0))


@pytest.mark.parametrize("mixed", [False, True])
def test_a_stage_tells_in_how_many_groupings_each_class_was_met(
    labelled: nova.LabelledGraph, tmp_path: Path, mixed: bool
) -> None:
    old, new, _ = nova.split(labelled, [0, 1])
    task = nova.NewTask(new.graph, new.ids, new.num_new, mixed=mixed)
    model = nova.discover(nova.fit(old), task)
    found = model.stages[-1].found_in
    assert sorted(found) == [c.id for c in model.classes if c.is_new]
    assert all(0 <= times <= of <= 12 for times, of in found.values())
    assert max(times for times, _ in found.values()) >= 6  # planted classes are met again
    model.save(tmp_path / "model")
    assert nova.load_model(tmp_path / "model").stages[-1].found_in == found
    plain = nova.discover(nova.fit(old), task, nova.Prism(refit=False))
    assert set(plain.stages[-1].found_in.values()) == {(0, 0)}
