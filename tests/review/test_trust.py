"""The verdict on discovered classes, and the sentence on their number."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nodenova.model.decisions import Merge, Rename, Split
from nodenova.model.info import ClassInfo
from nodenova.model.model import Stage
from nodenova.open_world.count import ClassCountEstimate
from nodenova.review.trust import (
    ONE_CLASS,
    Trust,
    calibrate,
    class_evidence,
    contributions,
    found_in,
    log_odds_shifts,
    number_sentence,
    one_class_probability,
    tally,
    trust,
)
from nodenova.review.user_labels import labels_against

ROOT = Path(__file__).parents[2]
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


OAK = ClassInfo(0, "oak", "oak", "known", 0, size=400, held_out=90, held_out_right=88)
BEECH = ClassInfo(1, "beech", "beech", "known", 0, size=600, held_out=98, held_out_right=92)
ELM = ClassInfo(
    2, "elm", "elm", "discovered", 1, size=500, share=0.2, confidence=0.9, confidence_by_model=0.95,
    held_out=0, held_out_right=0, halves_alike=0.8,
)  # fmt: skip
ASH = replace(ELM, id=3, name="ash")
YEW = replace(ELM, id=4, name="yew")


def judge(**changes: Any) -> Trust:
    info = replace(ELM, **changes)
    return trust(info, [OAK, BEECH, info, ASH, YEW])


def test_evidence_is_relative_to_the_known_classes() -> None:
    infos = [OAK, replace(BEECH, held_out=99), replace(ELM, held_out=9, size=1000)]
    *_, found = class_evidence(infos)
    assert found["confidence"] == 0.95  # not the calibrated one
    assert found["log_size"] == pytest.approx(np.log(2))
    assert found["held_out_accuracy"] == pytest.approx(180 / 198)
    assert found["held_out_inside"] == pytest.approx(9 / 198)  # 198 labels on 1,000 known nodes
    assert found["halves_alike"] == 0.8
    assert found["log_found"] == 0
    assert class_evidence([OAK, BEECH, ELM, ASH])[-1]["log_found"] == pytest.approx(np.log(2))


def test_without_labels_or_halves_a_class_is_judged_by_the_rest() -> None:
    bare = [replace(c, held_out=None, held_out_right=None, halves_alike=None) for c in (OAK, ELM)]
    evidence = class_evidence(bare)[1]
    assert np.isnan([evidence[n] for n in ("held_out_accuracy", "halves_alike")]).all()
    added = contributions(evidence, ONE_CLASS)
    assert added["held_out_accuracy"] == added["held_out_inside"] == added["halves_alike"] == 0
    assert 0 < one_class_probability(evidence) < 1


def test_a_clear_class_holds_up_and_has_no_reason_against_it() -> None:
    verdict = judge()
    assert verdict.word == "Holds up"
    assert len(verdict.reasons) == 1
    assert verdict.reasons[0].endswith("likely to be one class.")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"confidence_by_model": 0.4}, "The model is unsure of its nodes (40%)."),
        ({"size": 3000, "confidence_by_model": 0.8}, "It is 6 times as large as your classes."),
        ({"held_out": 60}, "60 of your labels land in it when judged without themselves."),
        ({"halves_alike": -0.2}, "Its halves differ as two classes do."),
    ],
)
def test_what_speaks_most_against_a_class_is_given_in_words(
    changes: dict[str, Any], reason: str
) -> None:
    verdict = judge(**changes)
    assert verdict.reasons[1] == reason
    before, now = (
        one_class_probability(class_evidence([OAK, BEECH, info, ASH, YEW])[2])
        for info in (ELM, replace(ELM, **changes))
    )
    assert now < before


def test_levels_follow_from_the_probability() -> None:
    assert judge(confidence_by_model=0.3, halves_alike=-0.5, held_out=90).word == "Doubtful"
    words = {judge(halves_alike=alike / 10).word for alike in range(-10, 11)}
    assert words >= {"Holds up", "Look closer"}


@pytest.mark.parametrize(
    ("changes", "nodes"),
    [
        ({"size": 4}, "4 nodes"),
        ({"size": 1}, "1 node"),
        ({"size": 90, "share": 0.0019}, "90 nodes"),
        ({"size": None, "share": None}, "0 nodes"),
    ],
)
def test_a_tiny_class_is_doubtful(changes: dict[str, Any], nodes: str) -> None:
    verdict = judge(**changes)
    assert verdict.level == "doubt"
    assert f"Only {nodes}: probably not a class." in verdict.reasons


def test_one_class_alone_is_not_stable_for_being_in_every_grouping() -> None:
    alone = Stage("prism", {}, 0, (), found_in={2: (12, 12)})
    two = Stage("prism", {}, 0, (), found_in={2: (12, 12), 3: (7, 12)})
    assert found_in([FIT, alone]) == {}
    assert found_in([FIT, two]) == {2: (12, 12), 3: (7, 12)}
    assert "Found in 7 of 12 groupings." in trust(ASH, [OAK, ELM, ASH], (7, 12)).reasons
    assert trust(ASH, [OAK, ELM, ASH], (7, 12)).level == trust(ASH, [OAK, ELM, ASH]).level


def test_labels_inside_are_a_reason() -> None:
    old, many = replace(OLD, size=70), replace(ELM, size=10, labelled=4)
    against = "Contains 4 of your labelled nodes; a known class of this size has about 7."
    assert against in trust(many, [old, many]).reasons


@settings(derandomize=True, max_examples=100, deadline=None)
@given(
    p=arrays(np.float64, (12, 4), elements=st.floats(1e-4, 1)),
    shifts=st.lists(st.one_of(st.none(), st.floats(-4, 4)), min_size=4, max_size=4),
)
def test_calibration_keeps_classes_and_the_order_of_their_nodes(
    p: np.ndarray, shifts: list[float | None]
) -> None:
    p = p / p.sum(axis=1, keepdims=True)
    after, groups = calibrate(p, shifts), p.argmax(axis=1)
    assert np.allclose(after.sum(axis=1), 1)
    assert (after >= 0).all()
    for c, shift in enumerate(shifts):
        mine = np.flatnonzero(groups == c)
        if shift is None:
            assert np.array_equal(after[mine], p[mine])
            continue
        mine = mine[np.argsort(p[mine, c], kind="stable")]
        assert (np.diff(after[mine, c]) >= -1e-12).all()
        assert (after[mine, c] >= after[mine].max(axis=1) - 1e-12).all()


def test_known_classes_are_not_shifted_and_a_mixture_is_shifted_down() -> None:
    shifts = log_odds_shifts([OAK, BEECH, ELM, replace(ASH, halves_alike=-0.5, held_out=60)])
    assert set(shifts) == {ELM.id, ASH.id}
    assert shifts[ASH.id] < shifts[ELM.id]


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


@pytest.mark.parametrize(
    ("decided", "reason"),
    [
        (Rename(1, "elm", was="new-1", after=1), "You named it."),
        (Merge((1, 4), "elm", kept=1, after=1), "You merged classes 1 and 4."),
        (Split(9, parts=(1, 2), after=1), "You split it off class 9."),
    ],
)
def test_a_class_that_a_person_decided_on_is_theirs_whatever_the_evidence(
    decided: Any, reason: str
) -> None:
    bad = replace(ELM, labelled=0, size=3, two=0.9, same_as_probability=0.9, cohesion=0.0)
    assert trust(bad, [OLD, bad], (1, 12)).word == "Doubtful"
    verdict = trust(bad, [OLD, bad], (1, 12), decided)
    assert verdict == Trust("yours", (reason, "Contains none of your labelled nodes."))
    assert verdict.word == "Yours"
    unlabelled = [replace(OLD, labelled=0), bad]
    assert trust(bad, unlabelled, None, decided).reasons == (reason,)


@pytest.mark.parametrize(
    ("levels", "sentence"),
    [
        ("yours", "You decided on the discovered class."),
        ("yours yours", "You decided on all 2 discovered classes."),
        ("yours good good", "You decided on 1 of 3 discovered classes; 2 hold up."),
        ("yours look", "You decided on 1 of 2 discovered classes; 1 needs a closer look."),
    ],
)
def test_the_tally_names_the_decided_classes(levels: str, sentence: str) -> None:
    assert tally([Trust(level, ()) for level in levels.split()]) == sentence


@pytest.mark.slow
def test_weights_and_the_page_are_those_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing in docs/trust.md, its diagram or the weights is typed in by hand."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    learn_trust = importlib.import_module("learn_trust")
    rows, module = ROOT / "results/trust.jsonl.gz", ROOT / "src/nodenova/review/trust.py"
    weights = tmp_path / "trust.py"
    weights.write_text(re.sub(r"(?m)^(SLOPE|ONE_CLASS_BIAS) = .*", r"\1 = 0", module.read_text()))
    text = learn_trust.learn([rows], weights)
    assert weights.read_text() == module.read_text()
    assert f"<!-- trust -->\n\n{text}\n\n<!-- /trust -->" in (ROOT / "docs/trust.md").read_text()
    diagram = learn_trust.diagram(learn_trust.read(rows))
    assert diagram == (ROOT / "docs/images/calibration.svg").read_text()
