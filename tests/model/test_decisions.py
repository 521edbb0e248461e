"""Decisions are values with one JSON form each way: asked in review.json, done in model.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodenova.errors import SettingError, StorageError
from nodenova.model.decisions import (
    MAX_CHOSEN,
    Create,
    Decision,
    Merge,
    Reject,
    Relabel,
    Rename,
    Split,
    Unlabel,
    find_reversed,
    from_json,
    last_edits,
    to_json,
    trace,
)
from nodenova.model.loading import load_model

PREVIOUS = Path(__file__).parents[1] / "fixtures" / "previous"
# As earlier versions wrote them, to the order of the keys.
DONE: list[tuple[Decision, str]] = [
    (
        Rename(2, "third", was="new-2", after=2),
        '{"do": "rename", "class": 2, "name": "third", "was": "new-2", "after": 2}',
    ),
    (
        Merge((0, 3), "one", kept=0, after=1),
        '{"do": "merge", "classes": [0, 3], "class": 0, "name": "one", "after": 1}',
    ),
    (Reject(3, name="new-3", after=0), '{"do": "reject", "class": 3, "name": "new-3", "after": 0}'),
    (
        Split(3, 3, parts=(4, 5, 6), names=("a", "b", "c"), was="new-3", after=2),
        '{"do": "split", "class": 3, "parts": [4, 5, 6], "names": ["a", "b", "c"], '
        '"was": "new-3", "after": 2}',
    ),
    (
        Create((), "ferns", class_id=7, sources=(0, 3), size=12, after=2),
        '{"do": "create", "name": "ferns", "class": 7, "from": [0, 3], "size": 12, "after": 2}',
    ),
]


@pytest.mark.parametrize(("decision", "written"), DONE, ids=lambda value: getattr(value, "do", ""))
def test_a_decision_that_is_done_is_written_and_read_as_before(
    decision: Decision, written: str
) -> None:
    assert json.dumps(to_json(decision)) == written
    assert from_json(json.loads(written), done=True) == decision


def test_a_rejection_keeps_where_the_nodes_went() -> None:
    written = '{"do": "reject", "class": 3, "name": "new-3", "to": [0, 4], "after": 1}'
    done = Reject(3, name="new-3", to=(0, 4), after=1)
    assert json.dumps(to_json(done)) == written
    assert from_json(json.loads(written), done=True) == done
    with pytest.raises(SettingError, match="unknown key 'to'"):
        from_json({"do": "reject", "class": 3, "to": [0]})


def test_a_decision_names_all_ids_that_are_given_out_by_it() -> None:
    assert [decision.ids for decision, _ in DONE] == [(2,), (0, 3), (3,), (3, 4, 5, 6), (7,)]


def test_a_split_has_two_parts_unless_another_number_is_given() -> None:
    assert from_json({"do": "split", "class": 3}) == Split(3, 2)


def test_nodes_are_asked_for_and_not_kept_in_a_model() -> None:
    asked = {"do": "create", "nodes": ["a", 2, "c"], "name": "ferns", "class": 7, "among": 9}
    decision = from_json(asked)
    assert decision == Create(("a", 2, "c"), "ferns", 7, 9)
    assert to_json(decision) == asked
    assert from_json({"do": "create", "nodes": ["a"]}) == Create(("a",))
    assert from_json({"do": "unlabel", "nodes": ["a"]}) == Unlabel(("a",))
    with pytest.raises(SettingError, match="unknown key 'nodes'"):
        from_json({**json.loads(DONE[4][1]), "nodes": ["a"]}, done=True)
    for do in ("relabel", "unlabel"):
        with pytest.raises(SettingError, match="must be one of rename, merge"):
            from_json({"do": do, "nodes": ["a"], "class": 1}, done=True)
    with pytest.raises(SettingError, match="a list of at most 100,000 ids of nodes"):
        from_json({"do": "unlabel", "nodes": ["a"] * (MAX_CHOSEN + 1)})


def test_what_is_asked_is_not_what_is_done() -> None:
    with pytest.raises(SettingError, match=r"^edit \(rename\): was is missing$"):
        from_json({"do": "rename", "class": 2, "name": "x"}, done=True, where="edit")
    with pytest.raises(SettingError, match=r"unknown key 'into'"):
        from_json({**json.loads(DONE[3][1]), "into": 3}, done=True)
    with pytest.raises(SettingError, match=r"names must be a list of texts, not \[1, 2, 3\]"):
        from_json({**json.loads(DONE[3][1]), "names": [1, 2, 3]}, done=True)


def test_a_reviewed_model_of_the_previous_version_is_saved_byte_for_byte_as_it_was(
    tmp_path: Path,
) -> None:
    model = load_model(PREVIOUS / "run" / "model")
    assert model.edits == (
        Rename(2, "third", was="new-2", after=2),
        Split(3, 2, parts=(4, 5), names=("new-4", "new-5"), was="new-3", after=2),
    )
    model.save(tmp_path / "m")
    for path in (PREVIOUS / "run" / "model").iterdir():
        assert (tmp_path / "m" / path.name).read_bytes() == path.read_bytes()


def test_a_saved_edit_that_makes_no_sense_is_damage(tmp_path: Path) -> None:
    model = load_model(PREVIOUS / "run" / "model")
    model.save(tmp_path / "m")
    document = json.loads((tmp_path / "m" / "model.json").read_text())
    document["edits"][0]["do"] = "forget"
    (tmp_path / "m" / "model.json").write_text(json.dumps(document))
    with pytest.raises(
        StorageError, match="must be one of rename, merge, reject, split, create, not 'forget'"
    ):
        load_model(tmp_path / "m")


# Classes 0 and 1 are known, 2 to 6 were discovered.
KNOWN = (0, 1)
NAMED = Rename(2, "fish", was="new-2", after=1)
OTHER = Rename(3, "birds", was="new-3", after=1)
MERGED = Merge((4, 5), "places", kept=4, after=1)
HALVES = Split(6, parts=(7, 8), names=("a", "b"), was="new-6", after=1)
GONE = Reject(5, name="new-5", to=(1, 6), after=1)
MOVED = Relabel(("n1",), 2)
MADE = Create((), "ferns", class_id=9, sources=(3, 4), size=8, after=1)


@pytest.mark.parametrize(
    ("suggested", "decisions", "reversed_one"),
    [
        # Parts of a split, of any generation, merged with others or not.
        (Merge((7, 8)), [HALVES], HALVES),
        (Merge((8, 9)), [HALVES, Split(7, parts=(9, 10))], HALVES),
        (Merge((9, 10)), [HALVES, Split(7, parts=(9, 10))], Split(7, parts=(9, 10))),
        (Merge((3, 8)), [HALVES, Merge((3, 7), kept=3)], HALVES),
        (Merge((3, 7)), [HALVES], None),
        (Merge((3, 7)), [HALVES, Merge((7, 8), kept=7)], None),  # the person took it back
        (Merge((0, 3)), [HALVES, Reject(8)], None),
        (Split(7), [HALVES], None),  # further in the direction of the decision
        # One class: it was merged, or it was named.
        (Split(4), [MERGED], MERGED),
        (Split(3), [MERGED, Merge((3, 4), kept=3)], Merge((3, 4), kept=3)),
        (Split(7), [MERGED, Split(4, parts=(7, 8))], None),
        (Split(2), [NAMED], NAMED),
        (Split(2), [MERGED, OTHER, HALVES], None),
        (Split(0), [Rename(0, "oak")], Rename(0, "oak")),
        (Split(0), [NAMED], None),
        # Of its own: different from other classes that have a name.
        (Merge((2, 3)), [NAMED, OTHER], NAMED),
        (Merge((2, 4)), [NAMED, MERGED], NAMED),
        (Merge((1, 2)), [NAMED], NAMED),
        (Merge((2, 3)), [NAMED], None),
        (Merge((1, 3)), [NAMED], None),
        (Merge((3, 4)), [OTHER, Split(3, parts=(7, 8)), MERGED], None),
        (Merge((4, 7)), [OTHER, Split(3, parts=(7, 8)), MERGED], None),
        # Nodes of a rejected class would be a class again.
        (Merge((4, 9)), [MADE], MADE),
        (Merge((5, 9)), [MADE], None),  # no node of it was there
        (Merge((7, 9)), [MADE, Split(4, parts=(7, 8))], MADE),
        (Merge((2, 9)), [NAMED, MADE], NAMED),
        (Split(9), [MADE], MADE),
        (Split(4), [MADE], None),
        (Split(6), [GONE], GONE),
        (Split(1), [GONE], GONE),
        (Split(8), [GONE, HALVES], GONE),
        (Split(2), [GONE], None),
        (Split(6), [Reject(5)], None),  # a model of an earlier version
        # Labels.
        (Relabel(("n1",), 3), [MOVED], MOVED),
        (Relabel(("n1",), 2), [MOVED], None),
        (Relabel(("n2",), 3), [MOVED], None),
        (Relabel(("n1",), 3), [MOVED, Relabel(("n1",), 4)], Relabel(("n1",), 4)),
        (Relabel(("n1",), 3), [MOVED, Reject(2)], None),
        (Relabel(("n1",), 8), [Merge((2, 8), kept=2), MOVED], MOVED),
        (Relabel(("n1",), 8), [Split(2, parts=(7, 8)), MOVED], None),
        (Relabel((1,), 3), [Relabel(("1",), 2)], Relabel(("1",), 2)),
        # Names, and classes as a whole.
        (Rename(2, "cod"), [NAMED], NAMED),
        (Rename(2, "cod"), [OTHER], None),
        (Reject(4), [MERGED], MERGED),
    ],
)  # fmt: skip
def test_a_suggestion_reverses_a_decision_or_none(
    suggested: Decision, decisions: list[Decision], reversed_one: Decision | None
) -> None:
    assert find_reversed(suggested, decisions, KNOWN) == reversed_one
    assert find_reversed(suggested, [], KNOWN) is None


def test_a_class_is_followed_through_edits() -> None:
    assert trace(5, [GONE]) == set()
    assert trace(5, [MERGED, Split(4, parts=(7, 8)), Reject(7)]) == {8}
    assert trace(5, [NAMED, MOVED]) == {5}


def test_the_last_decision_about_a_class_counts() -> None:
    edits = [NAMED, HALVES, Rename(7, "cats"), MERGED, Merge((2, 3), kept=2), Reject(8)]
    assert last_edits(edits) == {2: edits[4], 4: MERGED, 7: edits[2]}
