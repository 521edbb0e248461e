"""The verdict on discovered classes, and the sentence on their number."""

from __future__ import annotations

from nodenova.model.info import ClassInfo
from nodenova.model.model import Stage
from nodenova.open_world.count import ClassCountEstimate
from nodenova.review.trust import number_sentence
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
