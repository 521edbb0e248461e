"""What every method promises, whatever it does inside; and the entrances methods come through."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.methods import get_method


def test_never_new_never_says_new_and_keeps_every_old_answer(fitted, tasks) -> None:
    graph = tasks[1].graph
    model = nova.discover(fitted, tasks[1], nova.NeverNew())
    assert model.predict(graph).max() == 1
    assert (model.predict(graph) == fitted.predict(graph)).all()
    assert np.allclose(model.predict_proba(graph)[:, :2], fitted.predict_proba(graph), atol=1e-6)
    assert (model.predict_proba(graph)[:, 2:] == 0).all()
    assert (model.embed(graph) == fitted.embed(graph)).all()


def test_the_default_is_prism_on_its_own_encoder(tasks) -> None:
    model = nova.discover(nova.fit(tasks[0]), tasks[1])
    assert model.stages[-1].method == "prism"
    assert model.stages[-1].settings == dataclasses.asdict(nova.Prism())
    assert model.frozen_encoder().spec.name == "prism"


def test_get_method_reads_settings_by_the_type_of_their_default() -> None:
    method = get_method("sword", {"eta": "0.5", "k": "4", "similarity": "sigmoid", "alpha1": "0"})
    assert method == nova.Sword(eta=0.5, k=4, similarity="sigmoid", alpha1=0.0)
    assert isinstance(method.alpha1, float)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("swrod", {}, "unknown method 'swrod'; known: .*sword"),
        ("sword", {"alpha3": "1"}, "unknown setting of sword 'alpha3'; known: alpha1, alpha2, "),
        ("sword", {"k": "three"}, r"k must be int \(like 3\), it is 'three'"),
        ("sword", {"k": "3.5"}, "k must be int"),
        ("sword", {"eta": "big"}, "eta must be float"),
        ("sword", {"epochs": "0"}, "epochs must be at least 1"),
        ("never_new", {"epochs": "5"}, "unknown setting of never_new 'epochs'"),
    ],
)
def test_get_method_refuses(name: str, settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        get_method(name, settings)


@dataclasses.dataclass(frozen=True)
class Mine:
    """A user's own method."""

    extra: int = 0

    def discover(self, model: nova.Model, task: nova.NewTask) -> nova.Model:
        return nova.NeverNew().discover(
            model, nova.NewTask(task.graph, task.ids, task.num_new + self.extra)
        )


def test_a_users_own_method_needs_no_registration(fitted, tasks) -> None:
    model = nova.discover(fitted, tasks[1], Mine())
    assert model.stages[-1].method == "Mine"
    assert model.stages[-1].settings == {"extra": 0}


def test_a_method_that_returns_another_number_of_classes_is_refused(fitted, tasks) -> None:
    with pytest.raises(SettingError, match=r"Mine\(extra=1\) returned 5 classes for 2 \+ 2"):
        nova.discover(fitted, tasks[1], Mine(extra=1))


class NoDataclass:
    def discover(self, model: nova.Model, task: nova.NewTask) -> nova.Model:
        raise AssertionError("it should be refused before it runs")


@pytest.mark.parametrize("method", ["sword", 7, nova.Sword, NoDataclass()])
def test_what_is_no_method_is_refused_before_it_runs(fitted, tasks, method: object) -> None:
    with pytest.raises(SettingError, match="a method is a dataclass instance"):
        nova.discover(fitted, tasks[1], method)  # type: ignore[arg-type]


def test_every_epoch_is_reported(fitted, tasks) -> None:
    seen: list[tuple[int, int]] = []
    nova.discover(
        fitted,
        tasks[1],
        nova.Sword(epochs=3),
        progress=lambda phase, done, total=1, **losses: seen.append((done, total)),
    )
    assert seen == [(0, 1), (1, 3), (2, 3), (3, 3)]


def test_progress_does_not_change_the_result(fitted, tasks) -> None:
    a = nova.discover(fitted, tasks[1], nova.Sword(epochs=3), progress=lambda *_, **losses: None)
    b = nova.discover(fitted, tasks[1], nova.Sword(epochs=3))
    assert (a.predict_proba(tasks[1].graph) == b.predict_proba(tasks[1].graph)).all()
