from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from nodenova.errors import NumericsError, SettingError
from nodenova.nn.training import minimize, rampup
from nodenova.progress import DISCOVER, no_progress, reporting_to


class Point(nn.Module):
    """One number to be moved."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.at = nn.Parameter(torch.tensor(value))


def test_rampup() -> None:
    assert rampup(0, 50) == pytest.approx(math.exp(-5))
    assert rampup(25, 50) == pytest.approx(math.exp(-5 * 0.25))
    assert rampup(50, 50) == rampup(9999, 50) == 1.0
    assert rampup(1, 0) == 1.0
    values = [rampup(t, 50) for t in range(60)]
    assert values == sorted(values)


def test_it_minimises_the_sum_of_the_terms() -> None:
    point = Point(0.0)

    def terms(epoch: int) -> dict[str, Tensor]:
        return {"left": (point.at - 1.0) ** 2, "right": (point.at - 3.0) ** 2}

    minimize(terms, [point], epochs=500, lr=0.05, weight_decay=0.0)
    assert float(point.at.detach()) == pytest.approx(2.0, abs=1e-2)


def test_it_is_adam_step_by_step() -> None:
    point, twin = Point(1.0), Point(1.0)
    minimize(
        lambda epoch: {"a": (point.at * epoch) ** 2}, [point], epochs=7, lr=0.03, weight_decay=0.1
    )
    optimizer = torch.optim.Adam(twin.parameters(), lr=0.03, weight_decay=0.1)
    for epoch in range(1, 8):
        optimizer.zero_grad()
        ((twin.at * epoch) ** 2).backward()
        optimizer.step()
    assert torch.equal(point.at, twin.at)


def test_history_names_each_term_in_each_epoch() -> None:
    point, epochs = Point(1.0), []

    def terms(epoch: int) -> dict[str, Tensor]:
        epochs.append(epoch)
        return {"a": point.at * 0 + epoch} | ({"late": point.at * 0} if epoch > 2 else {})

    history = minimize(terms, [point], epochs=4)
    assert epochs == [1, 2, 3, 4]
    assert history == {"a": [1.0, 2.0, 3.0, 4.0], "late": [0.0, 0.0]}


def test_no_terms_change_nothing() -> None:
    point = Point(1.5)
    assert minimize(lambda epoch: {}, [point], epochs=3) == {}
    assert float(point.at.detach()) == 1.5


def test_modules_train_during_the_loop_and_are_done_after_it() -> None:
    point, modes = Point(1.0), []

    def terms(epoch: int) -> dict[str, Tensor]:
        modes.append(point.training)
        return {"a": point.at**2}

    def validate() -> tuple[float]:
        modes.append(point.training)
        assert not torch.is_grad_enabled()
        return (0.0,)

    minimize(terms, [point], epochs=2, validate=validate)
    assert modes == [True, False, True, False]
    assert not point.training


def test_the_best_state_is_kept_and_patience_stops() -> None:
    point, seen = Point(0.0), []
    scores = iter([1.0, 5.0, 4.0, 5.0, 3.0, 9.0])

    def validate() -> tuple[float]:
        seen.append(float(point.at))
        return (next(scores),)

    history = minimize(
        lambda epoch: {"a": -point.at}, [point], epochs=6, lr=0.1, validate=validate, patience=3
    )
    # The best is epoch 2; an equal score in epoch 4 is no improvement.
    assert len(history["a"]) == 5
    assert float(point.at.detach()) == seen[1]


def test_the_second_score_breaks_ties() -> None:
    point, seen = Point(0.0), []
    scores = iter([(0.9, -3.0), (0.9, -1.0), (0.8, 0.0)])

    def validate() -> tuple[float, float]:
        seen.append(float(point.at))
        return next(scores)

    minimize(lambda epoch: {"a": -point.at}, [point], epochs=3, validate=validate)
    assert float(point.at.detach()) == seen[1]


def test_every_epoch_is_reported_and_only_within_the_block() -> None:
    point, calls = Point(1.0), []

    def progress(phase: str, done: float, total: float = 1.0, /, **losses: float) -> None:
        calls.append((phase, done, total, sorted(losses)))

    with reporting_to(progress, "training"):
        minimize(lambda epoch: {"a": point.at**2}, [point], epochs=2)
    minimize(lambda epoch: {"a": point.at**2}, [point], epochs=2)
    assert calls == [("training", 0, 1, []), ("training", 1, 2, ["a"]), ("training", 2, 2, ["a"])]


def test_training_that_breaks_down_says_when_and_by_which_term() -> None:
    point = Point(1.0)

    def broken(epoch: int) -> dict[str, torch.Tensor]:
        return {"good": point.at**2} if epoch < 3 else {"bad": point.at * float("inf")}

    sentence = "^the term bad became NaN or infinite in epoch 3 of 5 with lr=0.02; .*smaller lr$"
    with pytest.raises(NumericsError, match=sentence):
        minimize(broken, [point], epochs=5, lr=0.02)
    with reporting_to(no_progress, DISCOVER), pytest.raises(NumericsError, match="phase 2: the"):
        minimize(broken, [point], epochs=5)


def test_training_that_breaks_down_after_its_best_epoch_ends_in_that() -> None:
    point = Point(1.0)
    scores = iter([(1.0,), (2.0,)])

    def terms(epoch: int) -> dict[str, torch.Tensor]:
        return {"a": -point.at if epoch < 3 else point.at * float("inf")}

    history = minimize(terms, [point], epochs=5, lr=0.1, validate=lambda: next(scores))
    assert len(history["a"]) == 2  # without the epoch that broke
    assert torch.isfinite(point.at)


def root_of_nothing(point: Point) -> Tensor:
    """A finite loss with a gradient that is not."""
    return (point.at * 0).sqrt()


def test_a_gradient_that_breaks_the_weights_in_the_last_epoch_is_an_error() -> None:
    point = Point(1.0)
    with pytest.raises(NumericsError, match="a weight became NaN or infinite in epoch 1 of 1"):
        minimize(lambda epoch: {"root": root_of_nothing(point)}, [point], epochs=1)


def test_a_state_whose_score_is_not_finite_is_never_the_best_one() -> None:
    point = Point(1.0)

    def validate() -> tuple[float, float]:
        return 0.5, float(point.at)

    with pytest.raises(NumericsError, match="the score of the validation nodes became NaN"):
        minimize(
            lambda epoch: {"root": root_of_nothing(point)}, [point], epochs=3, validate=validate
        )


@pytest.mark.parametrize("rate", ["lr", "weight_decay"])
@pytest.mark.parametrize("value", [1e38, math.inf, math.nan])
def test_a_rate_that_float32_cannot_hold_is_a_wrong_setting(rate: str, value: float) -> None:
    point = Point(1.0)
    with pytest.raises(SettingError, match=rf"{rate} must be from 0 to 1e\+30, it is"):
        minimize(lambda epoch: {"a": point.at**2}, [point], epochs=1, **{rate: value})
