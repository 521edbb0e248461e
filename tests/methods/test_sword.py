from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.errors import NodenovaError, SettingError
from nodenova.methods.sword import Sword
from nodenova.nn.seeding import sample

FAST = Sword(epochs=4)


def probabilities(model: nova.Model, task: nova.NewTask) -> np.ndarray:
    return model.predict_proba(task.graph)


def test_different_seeds_differ(fitted, tasks) -> None:
    new = tasks[1]
    a, b = nova.discover(fitted, new, FAST, seed=0), nova.discover(fitted, new, FAST, seed=1)
    assert (probabilities(a, new) != probabilities(b, new)).any()


def test_it_tells_new_nodes_from_old_ones_and_keeps_the_old_classes() -> None:
    """On an easy graph.

    Which new class is which is another matter: on some seeds SWORD puts all new nodes into one.
    """
    easy = nova.synthetic(
        nodes=300, classes=4, words=80, degree=10, homophily=0.95, topic_share=0.9
    )
    old, new, exam = nova.split(easy, [0, 1])
    scores = nova.grade(
        nova.discover(nova.fit(old, "gcn", hidden=16, epochs=50), new, Sword(epochs=100)), exam
    ).scores()
    assert scores["old"] > 80
    assert scores["old_new_accuracy"] > 80
    assert scores["new"] > 40


def test_one_new_class(labelled) -> None:
    old, new, exam = nova.split(labelled, [0, 1, 2])
    model = nova.discover(nova.fit(old, "gcn", hidden=8, epochs=5), new, FAST)
    assert len(model.classes) == 4
    assert (model.predict_new(new.graph) == 3).all()
    assert nova.grade(model, exam).scores()["new_n"] == 100.0


def test_two_stages(labelled) -> None:
    old, news, exams = nova.split_stages(labelled, [0, 1], [[2], [3]])
    first = nova.discover(nova.fit(old, "gcn", hidden=8, epochs=5), news[0], FAST)
    second = nova.discover(first, news[1], FAST)
    assert len(second.classes) == 4
    assert second.num_old == 3
    assert [stage.method for stage in second.stages] == ["fit", "sword", "sword"]
    assert nova.grade(second, exams[1]).confusion.shape == (4, 4)
    assert second.memory.replay.mean.shape == (4, 8)


def test_the_two_stages_draw_different_randomness(fitted, tasks) -> None:
    """The generator is seeded from (seed, phase): a second stage has noise of its own."""
    noise = []

    @dataclasses.dataclass(frozen=True)
    class Listener:
        def discover(self, model: nova.Model, task: nova.NewTask) -> nova.Model:
            noise.append(torch.randn(3))
            return nova.NeverNew().discover(model, task)

    nova.discover(nova.discover(fitted, tasks[1], Listener()), tasks[1], Listener())
    assert not torch.equal(noise[0], noise[1])


def test_pairs_of_a_sample_of_the_new_nodes(fitted, tasks) -> None:
    new = tasks[1]
    assert len(new.ids) > 7
    sampled = nova.discover(fitted, new, replace(FAST, pair_nodes=7))
    full = nova.discover(fitted, new, FAST)
    assert np.isfinite(sampled.stages[-1].history["pseudo"]).all()
    assert (probabilities(sampled, new) != probabilities(full, new)).any()
    assert sample(20, 7, torch.device("cpu")).unique().numel() == 7
    assert sample(20, 20, torch.device("cpu")).tolist() == list(range(20))


TERMS = {
    "pseudo": {"pseudo"},
    "alpha1": {"self"},
    "alpha2": {"perturb"},
    "replay": {"replay"},
    "omega": {"distill"},
    "lam": {"replay", "distill"},
}


def test_every_term_is_in_the_history_of_every_epoch(fitted, tasks) -> None:
    history = nova.discover(fitted, tasks[1], FAST).stages[-1].history
    assert set(history) == {"pseudo", "self", "perturb", "replay", "distill"}
    assert all(len(values) == 4 and np.isfinite(values).all() for values in history.values())


@pytest.mark.parametrize("weight", list(TERMS))
def test_a_zero_weight_removes_its_term(fitted, tasks, weight: str) -> None:
    history = nova.discover(fitted, tasks[1], replace(FAST, **{weight: 0.0})).stages[-1].history
    assert set(history) == {"pseudo", "self", "perturb", "replay", "distill"} - TERMS[weight]


def test_without_any_weight_nothing_is_learnt(fitted, tasks) -> None:
    new = tasks[1]
    model = nova.discover(fitted, new, replace(FAST, pseudo=0.0, alpha1=0.0, alpha2=0.0, lam=0.0))
    assert (model.embed(new.graph) == fitted.embed(new.graph)).all()
    assert model.stages[-1].history == {}


def test_distillation_holds_the_encoder_near_what_it_was(fitted, tasks) -> None:
    new = tasks[1]

    def moved(omega: float) -> float:
        model = nova.discover(fitted, new, Sword(epochs=30, omega=omega))
        return float(
            np.linalg.norm(model.embed(new.graph) - fitted.embed(new.graph), axis=1).mean()
        )

    assert moved(10.0) < 0.5 * moved(0.0)


def test_the_first_epochs_self_training_is_ramped_up(fitted, tasks) -> None:
    """beta1 = alpha1 * rampup.

    With a ramp-up of one epoch the first loss is larger by exactly the ramp.
    """
    new = tasks[1]
    slow = nova.discover(fitted, new, replace(FAST, epochs=1)).stages[-1].history
    fast = nova.discover(fitted, new, replace(FAST, epochs=1, rampup_epochs=0)).stages[-1].history
    ratio = np.exp(-5 * (1 - 1 / 50) ** 2)
    assert slow["self"][0] == pytest.approx(fast["self"][0] * ratio, rel=1e-5)
    assert slow["perturb"][0] == pytest.approx(fast["perturb"][0] * ratio, rel=1e-5)
    assert slow["pseudo"][0] == fast["pseudo"][0]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"similarity": "cosine"}, "similarity must be one of softmax, sigmoid, it is 'cosine'"),
        ({"joint_head": "cosine"}, "joint_head must be one of unit, linear, it is 'cosine'"),
        ({"noise": "x"}, "noise must be one of z, logits, it is 'x'"),
        ({"perturb": "old"}, "perturb must be one of new, joint, it is 'old'"),
        ({"sigma": "own"}, "sigma must be one of class, shared, it is 'own'"),
        ({"distill": "some"}, "distill must be one of global, all, new, it is 'some'"),
        ({"novel": -1.0}, "novel must not be negative"),
        ({"epochs": 0}, "epochs must be at least 1, it is 0"),
        ({"k": 0}, "k must be at least 1"),
        ({"draws": 0}, "draws must be at least 1"),
        ({"pair_nodes": 0}, "pair_nodes must be at least 1"),
        ({"lr": -1.0}, "lr"),
        ({"alpha1": -1.0}, "alpha1"),
        ({"eta": -0.1}, "eta"),
        ({"omega": float("nan")}, "omega"),
    ],
)
def test_bad_settings(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(NodenovaError, match=sentence):
        Sword(**settings)  # type: ignore[arg-type]


def test_an_unknown_setting() -> None:
    with pytest.raises(TypeError, match="alpha3"):
        replace(Sword(), alpha3=1.0)  # type: ignore[call-arg]


def test_the_papers_settings_are_the_defaults() -> None:
    s = Sword()
    assert (s.epochs, s.lr, s.weight_decay, s.k) == (600, 0.01, 5e-4, 3)
    assert (s.alpha1, s.alpha2, s.rampup_epochs, s.eta, s.omega) == (0.08, 5.0, 50, 0.2, 10.0)
    assert (s.lam, s.novel) == (0.4, 1.0)


def test_a_class_instead_of_an_instance(fitted, tasks) -> None:
    with pytest.raises(SettingError, match=r"like Sword\(\); got .*Sword"):
        nova.discover(fitted, tasks[1], Sword)  # type: ignore[arg-type]
