"""What a discovery comes to: what was found, how sure, what next."""

from __future__ import annotations

from nodenova.model.info import ClassInfo
from nodenova.model.model import Stage
from nodenova.open_world.count import ClassCountEstimate
from nodenova.review.trust import verdict

FIT = Stage("fit", {}, 0, ())
OLD = ClassInfo(0, "oak", "oak", "known", 0, size=70, labelled=50)
NEW = [
    ClassInfo(1, "elm", "elm", "discovered", 1, size=10, labelled=1),
    ClassInfo(2, "ash, box", "ash, box", "discovered", 1, size=20, labelled=0),
]


def test_new_classes_are_listed_the_largest_first_with_the_number_that_was_asked_for() -> None:
    said = verdict([FIT, Stage("prism", {}, 0, (), mixed=True)], [OLD, *NEW])
    assert said is not None
    assert said.found == "2 discovered classes: 'ash, box' (20 nodes), 'elm' (10 nodes)."
    # 20 of the known class, 9 and 20 of the new ones have no label.
    assert said.sure == "2 classes were asked for; 59% of 49 unlabelled nodes are in them."
    assert "nodenova discover --num-new N" in said.next_step


def test_a_count_speaks_for_itself() -> None:
    count = ClassCountEstimate(2, (0.02, 0.2, 0.5, 0.2, 0.08), 0.98, 0.001, 0.41, 2000)
    said = verdict([FIT, Stage("prism", {}, 0, (), mixed=True, count=count)], [OLD, *NEW])
    assert said is not None
    assert said.sure == count.sentence()


def test_nothing_new_is_an_answer() -> None:
    count = ClassCountEstimate(0, (0.9, 0.1), 0.1, 0.4, 0.02, 2000)
    said = verdict([FIT, Stage("prism", {}, 0, (), mixed=True, count=count)], [OLD])
    assert said is not None
    assert said.found == "Nothing was discovered."
    assert said.sure.startswith("No new class found")
    assert "looks for N classes all the same" in said.next_step


def test_only_the_last_stage_is_judged_and_a_strict_one_not_at_all() -> None:
    strict, mixed = Stage("prism", {}, 0, ()), Stage("prism", {}, 0, (), mixed=True)
    assert verdict([FIT, strict], [OLD, *NEW]) is None
    later = ClassInfo(3, "yew", "yew", "discovered", 2, size=5, labelled=0)
    said = verdict([FIT, strict, mixed], [OLD, *NEW, later])
    assert said is not None
    assert said.found == "1 discovered class: 'yew' (5 nodes)."


def test_labels_in_a_found_class_are_said_against_it_unless_they_are_very_few() -> None:
    mixed = Stage("prism", {}, 0, (), mixed=True)
    # 50 of 70 nodes of the known class have a label: 7.1 of ten, 14.3 of twenty.
    said = verdict([FIT, mixed], [OLD, *NEW])
    assert said is not None
    assert said.against == (
        "'elm': 1 of its nodes has a label of yours; a known class of this size has about 7.",
    )
    many = ClassInfo(2, "ash, box", "ash, box", "discovered", 1, size=20, labelled=9)
    said = verdict([FIT, mixed], [OLD, NEW[0], many])
    assert said is not None
    assert [line.split(":")[0] for line in said.against] == ["'ash, box'", "'elm'"]
    few = ClassInfo(2, "ash, box", "ash, box", "discovered", 1, size=200, labelled=9)
    said = verdict([FIT, mixed], [OLD, few])
    assert said is not None
    assert said.against == ()
