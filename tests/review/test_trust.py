"""The verdict on discovered classes, and the sentence on their number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nodenova.model.info import ClassInfo
from nodenova.model.model import Stage
from nodenova.open_world.count import ClassCountEstimate
from nodenova.review.trust import Trust, found_in, number_sentence, tally, trust
from nodenova.review.user_labels import labels_against

FIT = Stage("fit", {}, 0, ())
MIXED = Stage("prism", {}, 0, (), mixed=True)
OLD = ClassInfo(0, "oak", "oak", "known", 0, size=70, labelled=50)
NEW = [
    ClassInfo(1, "elm", "elm", "discovered", 1, size=10, labelled=1),
    ClassInfo(2, "ash, box", "ash, box", "discovered", 1, size=20, labelled=0),
]


def test_a_requested_number_comes_with_the_share_of_the_nodes() -> None:
    # 20 of the known class, 9 and 20 of the new ones have no label.
    assert number_sentence([FIT, MIXED], [OLD, *NEW]) == (
        "You asked for 2 new classes; they have 59% of the 49 unlabelled nodes."
    )


def test_an_estimate_has_advice_in_the_terminal_alone() -> None:
    count = ClassCountEstimate(2, (0.02, 0.2, 0.5, 0.2, 0.08), 0.98, 0.001, 0.41, 2000)
    stages = [FIT, Stage("prism", {}, 0, (), mixed=True, count=count)]
    assert number_sentence(stages, [OLD, *NEW]) == count.finding
    assert number_sentence(stages, [OLD, *NEW], advice=True) == count.sentence()
    assert "--num-new" in count.sentence()
    assert "--num-new" not in count.finding


def test_only_the_last_stage_counts_and_a_strict_one_has_nothing_to_estimate() -> None:
    strict = Stage("prism", {}, 0, ())
    assert number_sentence([FIT, strict], [OLD, *NEW]) == ""
    later = ClassInfo(3, "yew", "yew", "discovered", 2, size=5, labelled=0)
    assert "1 new class;" in number_sentence([FIT, strict, MIXED], [OLD, *NEW, later])


def test_labels_contradict_a_discovered_class_unless_they_are_very_few() -> None:
    # 50 of 70 nodes of the known class have a label: 7.1 of ten, 14.3 of twenty.
    assert labels_against(NEW[0], [OLD, *NEW]).endswith("about 7.")
    assert labels_against(NEW[1], [OLD, *NEW]) == ""
    few = ClassInfo(2, "ash, box", "ash, box", "discovered", 1, size=200, labelled=9)
    assert labels_against(few, [OLD, few]) == ""


FINE = ClassInfo(1, "elm", "elm", "discovered", 1, size=5, share=0.002, labelled=0)


@pytest.mark.parametrize(
    ("groupings", "level"),
    [((3, 4), "good"), ((2, 3), "look"), ((1, 2), "look"), ((2, 5), "doubt"), (None, "good")],
)
def test_a_class_in_few_groupings_is_doubtful(groupings: Any, level: str) -> None:
    verdict = trust(FINE, [OLD, FINE], groupings)
    assert verdict.level == level
    found = () if groupings is None else (f"Found in {groupings[0]} of {groupings[1]} groupings.",)
    assert verdict.reasons == (*found, "Contains none of your labelled nodes.")


@pytest.mark.parametrize(
    ("changes", "level", "reason"),
    [
        ({"size": 4}, "doubt", "Only 4 nodes: probably not a class."),
        ({"size": 1}, "doubt", "Only 1 node: probably not a class."),
        ({"size": 90, "share": 0.0019}, "doubt", "Only 90 nodes: probably not a class."),
        ({"size": None, "share": None}, "doubt", "Only 0 nodes: probably not a class."),
        ({"share": None}, "good", None),
        ({"cohesion": 0.019}, "look", "Barely separated from the nearest class."),
        ({"cohesion": 0.02}, "good", None),
        ({"same_as_probability": 0.5}, "look", None),
        ({"same_as_probability": 0.49}, "good", None),
        ({"two": 0.3}, "look", "May be two classes (30%)."),
        ({"two": 0.29}, "good", None),
        ({"size": 4, "two": 0.3}, "doubt", "May be two classes (30%)."),
    ],
)
def test_each_sign_of_a_bad_class_has_its_level(
    changes: dict[str, Any], level: str, reason: str | None
) -> None:
    info = replace(FINE, **changes)
    verdict = trust(info, [OLD, info])
    assert verdict.level == level
    more = verdict.reasons[1:]
    assert (reason in more) if reason else (more == ())


def test_labels_count_for_and_against_a_class() -> None:
    few = replace(FINE, size=1000, labelled=3)
    assert trust(few, [OLD, few]).reasons == ("Contains 3 of your labelled nodes.",)
    many = replace(FINE, size=10, labelled=4)
    verdict = trust(many, [OLD, many])
    assert verdict.level == "doubt"
    assert verdict.reasons == (
        "Contains 4 of your labelled nodes; a known class of this size has about 7.",
    )
    unlabelled = replace(OLD, labelled=0)
    assert trust(FINE, [unlabelled, FINE]).reasons == ()
    assert trust(replace(FINE, labelled=None), [OLD, FINE]).reasons == ()


@pytest.mark.parametrize(
    ("levels", "sentence"),
    [
        ("", ""),
        ("g", "The discovered class holds up."),
        ("ggg", "All 3 discovered classes hold up."),
        ("l", "0 of 1 discovered class holds up; 1 needs a closer look."),
        ("gl", "1 of 2 discovered classes holds up; 1 needs a closer look."),
        ("dd", "0 of 2 discovered classes hold up; 2 are doubtful."),
        ("ggldd", "2 of 5 discovered classes hold up; 1 needs a closer look; 2 are doubtful."),
    ],
)
def test_verdicts_are_counted_in_one_sentence(levels: str, sentence: str) -> None:
    names = {"g": "good", "l": "look", "d": "doubt"}
    assert tally([Trust(names[level], ()) for level in levels]) == sentence


def test_groupings_are_those_of_the_last_stage_that_has_some() -> None:
    first = Stage("prism", {}, 0, (), found_in={1: (3, 4), 2: (1, 4)})
    later = Stage("prism", {}, 0, (), found_in={2: (5, 6), 3: (0, 0)})
    assert found_in([FIT, first, later]) == {1: (3, 4), 2: (5, 6)}


def test_one_requested_class_without_unlabelled_nodes() -> None:
    full = replace(OLD, labelled=70)
    none = replace(NEW[0], labelled=10)
    assert number_sentence([FIT, MIXED], [full, none]) == (
        "You asked for 1 new class; it has 0% of the 0 unlabelled nodes."
    )
