from __future__ import annotations

import json
from pathlib import Path

import pytest

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.files.content import to_json
from nodenova.model.decisions import Create, Merge, Reject, Relabel, Rename, Split, Unlabel
from nodenova.model.loading import load_model
from nodenova.model.saving import weights_digest
from nodenova.review.review_file import Review, sentence
from nodenova.runs.apply import apply_review
from nodenova.runs.folder import RunFolder
from nodenova.runs.run import DiscoveryRun


def review(model: nova.Model, /, *decisions: object, **other: object) -> dict:
    document = {
        "format": "nodenova review",
        "version": 1,
        "model": weights_digest(model),
        "decisions": list(decisions),
    }
    return document | other


def test_decisions_are_taken_in_order(case) -> None:
    document = review(
        case.model,
        {"do": "split", "class": 2, "into": 3},
        {"do": "rename", "class": 4, "name": "plants"},
        {"do": "merge", "classes": [5, 6], "name": "places"},
        {"do": "reject", "class": 3},
        {"do": "merge", "classes": [0, 1]},
    )
    by_hand = (
        case.model.split(2, case.graph, 3)
        .rename(4, "plants")
        .merge([5, 6], "places")
        .reject(3, case.graph)
        .merge([0, 1])
    )
    reviewed = apply_review(case.model, json.loads(json.dumps(document)), case.graph)
    assert reviewed.classes == by_hand.classes
    assert [(c.id, c.name) for c in reviewed.classes] == [
        (0, "class-0"),
        (4, "plants"),
        (5, "places"),
    ]
    assert reviewed.edits == by_hand.edits
    assert (reviewed.predict_proba(case.graph) == by_hand.predict_proba(case.graph)).all()


def test_the_model_of_a_review_is_the_one_that_model_json_names(case, tmp_path) -> None:
    case.model.save(tmp_path / "m")
    sha256 = json.loads((tmp_path / "m" / "model.json").read_text())["sha256"]
    loaded = nova.load_model(tmp_path / "m")
    document = review(case.model, {"do": "rename", "class": 2, "name": "plants"}, model=sha256)
    assert apply_review(loaded, document).class_of(2).name == "plants"
    with pytest.raises(SettingError, match="another model"):
        apply_review(loaded.reject(3), document)


def test_a_review_is_a_value_with_one_document(case) -> None:
    value = Review(
        "0" * 64,
        (Rename(4, "plants"), Merge((5, 6), "places"), Merge((0, 1)), Reject(3), Split(2, 3)),
    )
    document = value.to_json()
    assert document["decisions"] == [
        {"do": "rename", "class": 4, "name": "plants"},
        {"do": "merge", "classes": [5, 6], "name": "places"},
        {"do": "merge", "classes": [0, 1]},
        {"do": "reject", "class": 3},
        {"do": "split", "class": 2, "into": 3},
    ]
    assert Review.from_json(json.loads(json.dumps(document))) == value
    named = Review(weights_digest(case.model), (Rename(2, "plants"),))
    assert apply_review(case.model, named).edits == apply_review(case.model, named.to_json()).edits


def test_a_review_of_the_previous_version_is_written_as_it_was() -> None:
    path = Path(__file__).parents[1] / "fixtures" / "previous" / "run" / "review.json"
    assert to_json(Review.from_json(json.loads(path.read_text())).to_json()) == path.read_bytes()


def test_a_review_becomes_part_of_a_run_or_nothing_is_written(cases, tmp_path) -> None:
    model, graph = cases["prism"].model, cases["prism"].graph
    run = RunFolder.write(tmp_path / "run", DiscoveryRun("mine", model, graph), report=False)
    before = (run.path / "model" / "model.json").read_bytes()
    with pytest.raises(SettingError, match="there is no class 9"):
        run.apply(review(model, RENAME, {"do": "reject", "class": 9}))
    assert (run.path / "model" / "model.json").read_bytes() == before
    assert not (run.path / "review.json").exists()
    document = review(model, RENAME)
    assert run.apply(document).class_of(2).name == "x"
    assert load_model(run.path / "model").edits == (Rename(2, "x", was="new-2", after=2),)
    assert json.loads((run.path / "review.json").read_text()) == document


def test_a_review_without_decisions_changes_nothing(case) -> None:
    assert apply_review(case.model, review(case.model)) is case.model


RENAME = {"do": "rename", "class": 2, "name": "x"}
BAD = [
    ("there is no class 9; the model has 0, 1, 2, 3", [RENAME, {"do": "reject", "class": 9}], 2),
    ("there is no class 3", [{"do": "reject", "class": 3}, {"do": "merge", "classes": [2, 3]}], 2),
    ("already has the name 'x'", [RENAME, {"do": "rename", "class": 3, "name": "x"}], 2),
    ("learned from labels", [{"do": "reject", "class": 0}], 1),
    ("without the graph", [{"do": "split", "class": 2}], 1),
    (
        "must be one of rename, merge, reject, split, create, relabel, unlabel, not 'drop'",
        [RENAME, {"do": "drop", "class": 2}],
        2,
    ),
    ("must be one of", [["rename", 2]], 1),
    ("must be one of", [{"do": ["rename"], "class": 2}], 1),
    ("name is missing", [{"do": "rename", "class": 2}], 1),
    ("classes is missing", [{"do": "merge", "class": 2}], 1),
    ("unknown key 'why'", [RENAME | {"why": "because"}], 1),
    ("class must be the id of a class, not '2'", [{"do": "reject", "class": "2"}], 1),
    ("class must be the id of a class, not true", [{"do": "reject", "class": True}], 1),
    ("classes must be a list of ids of classes, not 3", [{"do": "merge", "classes": 3}], 1),
    ("name must be a text, not null", [{"do": "merge", "classes": [2, 3], "name": None}], 1),
    ("into must be a whole number, not 'two'", [{"do": "split", "class": 2, "into": "two"}], 1),
    ("without the graph", [{"do": "create", "nodes": ["1", "2", "3"]}], 1),
    ("unknown key 'size'", [{"do": "create", "nodes": [], "size": 3}], 1),
    ("unknown key 'class'", [{"do": "unlabel", "nodes": [1], "class": 2}], 1),
    ("nodes must be a list of at most 100,000", [{"do": "create", "nodes": "a"}], 1),
    ("among must be a whole number", [{"do": "create", "nodes": [1], "among": 2.5}], 1),
    ("different classes", [{"do": "merge", "classes": [2, 2]}], 1),
    ("unknown key 'was'", [RENAME | {"was": "y"}], 1),  # what comes of a decision is not asked for
]


@pytest.mark.parametrize(("message", "decisions", "number"), BAD)
def test_a_wrong_decision_is_named_and_none_is_taken(
    cases, message: str, decisions: list, number: int
) -> None:
    model = cases["prism"].model
    with pytest.raises(SettingError) as error:
        apply_review(model, review(model, *decisions))
    assert str(error.value).startswith(f"decision {number}")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert model.class_names == ("class-0", "class-1", "new-2", "new-3")


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("not a review", {"format": "nodenova model"}),
        ("review of version 2", {"version": 2}),
        ("unknown key 'extra'", {"extra": 1}),
        ("list of decisions", {"decisions": {"do": "rename"}}),
        ("model must be a text", {"model": None}),
        ("another model", {"model": "0" * 64}),
    ],
)
def test_a_wrong_document_is_refused(cases, message: str, change: dict) -> None:
    model = cases["prism"].model
    with pytest.raises(SettingError, match=message):
        apply_review(model, review(model, RENAME, **change))


@pytest.mark.parametrize("document", [None, [], "review", 3, {}])
def test_what_is_no_document_is_refused(cases, document: object) -> None:
    with pytest.raises(SettingError, match="not a review"):
        apply_review(cases["prism"].model, document)


def test_decisions_in_words() -> None:
    decisions = (
        Rename(4, "plants"),
        Merge((0, 1)),
        Merge((5, 6), "places"),
        Reject(3),
        Split(2, 3),
        Relabel(("n1", 7), 4),
        Unlabel(("n1",)),
        Create(("n1", "n2", "n3"), "ferns", 9),
        Create(tuple(range(6))),
    )
    assert [sentence(decision) for decision in decisions] == [
        "Renamed class 4 to “plants”.",
        "Merged classes 0 and 1.",
        "Merged classes 5 and 6 as “places”.",
        "Rejected class 3.",
        "Split class 2 into 3.",
        "Moved “n1”, “7” to class 4.",
        "Removed the label of “n1”.",
        "Made class 9 “ferns” of “n1”, “n2”, “n3”.",
        "Made a class of 6 nodes.",
    ]
