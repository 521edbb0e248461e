"""Whole runs on the data that ships: minutes, so marked slow.

They assert what must hold whatever the seed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import nodenova as nova

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def citeseer():
    return nova.split(nova.load_dataset("citeseer"), old=range(4))


@pytest.fixture(scope="module")
def pretrained(citeseer):
    return nova.fit(citeseer[0], "gcn")


def scores(model: nova.Model, exam: nova.Exam) -> dict[str, float]:
    return nova.grade(model, exam).scores("block")


def test_sword_finds_new_classes_and_keeps_old_ones(citeseer, pretrained) -> None:
    found = scores(nova.discover(pretrained, citeseer[1], nova.Sword()), citeseer[2])
    assert found["new"] > 30
    assert found["old"] > 20


def test_the_ablation_story_without_self_training_new_is_lost(citeseer, pretrained) -> None:
    found = scores(
        nova.discover(pretrained, citeseer[1], replace(nova.Sword(), alpha1=0.0)), citeseer[2]
    )
    assert found["new"] < 2
    assert found["old"] > 55


def test_the_ablation_story_without_replay_and_distillation_old_is_lost(
    citeseer, pretrained
) -> None:
    found = scores(
        nova.discover(pretrained, citeseer[1], replace(nova.Sword(), lam=0.0)), citeseer[2]
    )
    assert found["old"] < 5
    assert found["new"] > 30


def test_prism_beats_sword_by_far(citeseer, pretrained) -> None:
    prism = scores(nova.discover(nova.fit(citeseer[0]), citeseer[1]), citeseer[2])
    sword = scores(nova.discover(pretrained, citeseer[1], nova.Sword()), citeseer[2])
    assert prism["all"] > sword["all"] + 10
    assert prism["h"] > sword["h"] + 10


@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage"])
@pytest.mark.parametrize("layers", [1, 8, 32])
def test_deep_encoders_run_and_stay_finite(citeseer, encoder: str, layers: int) -> None:
    old, new, exam = citeseer
    model = nova.discover(
        nova.fit(old, encoder, layers=layers, epochs=10), new, nova.Sword(epochs=10)
    )
    assert nova.grade(model, exam).confusion.sum() == len(exam.ids)
