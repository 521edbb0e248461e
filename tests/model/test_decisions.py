"""Decisions are values with one JSON form each way: asked in review.json, done in model.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodenova.errors import SettingError, StorageError
from nodenova.model.decisions import Decision, Merge, Reject, Rename, Split, from_json, to_json
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
]


@pytest.mark.parametrize(("decision", "written"), DONE, ids=lambda value: getattr(value, "do", ""))
def test_a_decision_that_is_done_is_written_and_read_as_before(
    decision: Decision, written: str
) -> None:
    assert json.dumps(to_json(decision)) == written
    assert from_json(json.loads(written), done=True) == decision


def test_a_decision_names_all_ids_that_are_given_out_by_it() -> None:
    assert [decision.ids for decision, _ in DONE] == [(2,), (0, 3), (3,), (3, 4, 5, 6)]


def test_a_split_has_two_parts_unless_another_number_is_given() -> None:
    assert from_json({"do": "split", "class": 3}) == Split(3, 2)


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
        StorageError, match="must be one of rename, merge, reject, split, not 'forget'"
    ):
        load_model(tmp_path / "m")
