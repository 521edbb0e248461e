"""Means of scores, scores as text, and what they are called."""

from __future__ import annotations

from statistics import stdev

import pytest

from nodenova.evaluation.metrics import MATCHINGS
from nodenova.evaluation.scores import (
    MATCHING_MEANINGS,
    ONCE,
    Spread,
    mean_std,
    number,
    score_title,
    spread_text,
)


def test_mean_and_spread_are_over_the_values_there_are() -> None:
    spread = mean_std([1.0, None, 3.0, float("nan")])
    assert (spread.mean, spread.n) == (2.0, 2)
    assert spread.std == pytest.approx(stdev([1.0, 3.0]))
    assert mean_std([4.0]) == Spread(4.0, None, 1)
    assert mean_std([None, float("nan")]) == Spread(None, None, 0)


@pytest.mark.parametrize(
    ("values", "said"),
    [([50.0, 60.0], "55.0 ± 7.1"), ([50.04], "50.0"), ([], "–"), ([-1.25, -1.25], "−1.2 ± 0.0")],
)
def test_a_spread_is_said_where_there_is_one(values: list[float], said: str) -> None:
    assert spread_text(mean_std(values)) == said


def test_what_cannot_be_measured_is_a_dash() -> None:
    assert number(None) == number(float("nan")) == number(float("inf")) == "–"


def test_every_matching_is_explained_and_the_headline_comes_first() -> None:
    assert list(MATCHING_MEANINGS) == list(MATCHINGS)
    assert next(iter(MATCHING_MEANINGS)) == "block"


def test_scores_of_all_kinds_have_titles() -> None:
    titles = [score_title(name) for name in ("h", "af", "new_all")]
    assert titles == ["H", "AF", "Full"]
    with pytest.raises(KeyError):
        score_title("fit")


def test_a_spread_of_nothing_counts_nothing() -> None:
    assert Spread() == mean_std([])


def test_the_longer_title_is_the_name_if_there_is_one() -> None:
    assert ONCE["new_used"].long == "New classes used"
    assert ONCE["aa"].long == "AA"
