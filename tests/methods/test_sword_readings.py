"""What each setting that reads the paper one way or another does, and the named readings."""

from __future__ import annotations

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.methods import get_method
from nodenova.methods.sword import Sword
from nodenova.nn.heads import LinearHead, UnitLinearHead


def first(fitted, tasks, **settings: object) -> dict[str, float]:
    """The terms of the first epoch, when nothing has been learned yet and the noise is the same."""
    method = Sword(epochs=1, **settings)  # type: ignore[arg-type]
    history = nova.discover(fitted, tasks[1], method).stages[-1].history
    return {name: values[0] for name, values in history.items()}


def test_eq_2_as_printed_is_of_clean_logits_and_as_released_of_perturbed_ones(
    fitted, tasks
) -> None:
    clean, shaken = (
        first(fitted, tasks, similarity="sigmoid", eta=eta)["pseudo"] for eta in (0.0, 50.0)
    )
    assert clean == shaken
    clean, shaken = (
        first(fitted, tasks, similarity="softmax", eta=eta)["pseudo"] for eta in (0.0, 50.0)
    )
    assert clean != pytest.approx(shaken, rel=1e-3)


@pytest.mark.parametrize("joint_head", ["unit", "linear"])
def test_class_mean_divides_eq_6_and_10_by_the_number_of_classes(
    fitted, tasks, joint_head: str
) -> None:
    whole, mean = (
        first(fitted, tasks, class_mean=mean, joint_head=joint_head) for mean in (False, True)
    )
    for term in ("self", "replay"):
        assert mean[term] == pytest.approx(whole[term] / 4, rel=1e-6)
    for term in ("pseudo", "perturb", "distill"):
        assert mean[term] == whole[term]


def test_novel_weighs_the_first_three_terms_and_lam_the_last_two(fitted, tasks) -> None:
    plain, novel, old = (
        first(fitted, tasks, **more) for more in ({}, {"novel": 3.0}, {"lam": 1.2})
    )
    for term, value in plain.items():
        is_new = term in ("pseudo", "self", "perturb")
        assert novel[term] == pytest.approx(3 * value if is_new else value, rel=1e-6)
        assert old[term] == pytest.approx(value if is_new else 3 * value, rel=1e-6)


def test_without_temperature_the_replay_is_softer_and_a_linear_head_has_none(fitted, tasks) -> None:
    hot, cold = (first(fitted, tasks, replay_temperature=kept)["replay"] for kept in (False, True))
    assert hot != pytest.approx(cold, rel=1e-2)
    hot, cold = (
        first(fitted, tasks, replay_temperature=kept, joint_head="linear")["replay"]
        for kept in (False, True)
    )
    assert hot == cold


def test_the_joint_head_is_read_on_unit_length_or_as_it_was_trained(fitted, tasks) -> None:
    unit, linear = (
        nova.discover(fitted, tasks[1], Sword(epochs=4, joint_head=head))
        for head in ("unit", "linear")
    )
    assert type(unit.head()) is UnitLinearHead
    assert type(linear.head()) is LinearHead


@pytest.mark.parametrize("reading", list(Sword.READINGS))
def test_a_reading_by_its_name_and_changed_further(reading: str) -> None:
    values = Sword.READINGS[reading]
    assert get_method("sword", {"reading": reading}) == Sword(**values)  # type: ignore[arg-type]
    # Each says something.
    assert all(getattr(Sword(), name) != value for name, value in values.items())
    further = get_method("sword", {"epochs": "7", "reading": reading, "eta": "0.9"})
    assert further == Sword(**values, epochs=7, eta=0.9)  # type: ignore[arg-type]
    name = next(iter(values))
    # A setting counts, not its place.
    back = get_method("sword", {name: str(getattr(Sword(), name)), "reading": reading})
    assert getattr(back, name) == getattr(Sword(), name)


def test_readings_that_are_not_there() -> None:
    with pytest.raises(
        SettingError, match="unknown reading of sword 'prnted'; known: printed, released"
    ):
        get_method("sword", {"reading": "prnted"})
    with pytest.raises(SettingError, match="unknown setting of dtc 'reading'"):
        get_method("dtc", {"reading": "printed"})


@pytest.mark.parametrize("reading", list(Sword.READINGS))
@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage"])
def test_every_reading_runs_on_every_encoder_and_is_repeatable(
    tasks, encoder: str, reading: str
) -> None:
    old, new, _ = tasks
    fitted = nova.fit(old, encoder, hidden=8, heads=2, epochs=3)
    method = get_method("sword", {"reading": reading, "epochs": "4"})
    a, b = (nova.discover(fitted, new, method, seed=2) for _ in range(2))
    assert np.isfinite(a.predict_proba(new.graph)).all()
    assert a.predict_proba(new.graph).tobytes() == b.predict_proba(new.graph).tobytes()
    assert a.stages[-1].settings["lam"] == method.lam
