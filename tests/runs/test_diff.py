"""Two runs compared."""

from __future__ import annotations

import pytest

from nodenova.errors import SettingError, StorageError
from nodenova.model.decisions import Decision, Merge, Reject, Rename, Split
from nodenova.runs.diff import Move, RunDiff, Snapshot, diff

NAMES = {0: "oak", 1: "elm", 2: "new-2", 3: "new-3"}


def run(classes: dict[int, str], nodes: dict[str, int], *edits: Decision, of: str) -> Snapshot:
    kinds = {c: "known" if c < 2 else "discovered" for c in classes}
    return Snapshot(classes, kinds, nodes, edits, of, ["spring"] if of != "spring" else [], of)


SPRING = run(NAMES, {"a": 0, "b": 0, "c": 1, "d": 2, "e": 2, "f": 3, "g": 3}, of="spring")


def later(names: dict[int, str], nodes: str, *edits: Decision) -> RunDiff:
    """Nodes as "a0 b1": the name of each, and its class."""
    found = {one[0]: int(one[1:]) for one in nodes.split()}
    return diff(SPRING, run(names, found, *edits, of="summer"))


def told(found: RunDiff) -> dict[str, str]:
    return {change.name: change.what for change in found.classes}


def test_classes_come_grow_shrink_stay_and_go() -> None:
    names = {0: "oak", 1: "elm", 2: "new-2", 4: "ash"}
    found = later(names, "a0 b0 c1 d2 e0 h1 i4 j4")
    what = {"oak": "grew", "elm": "grew", "new-2": "shrank", "ash": "came", "new-3": "went"}
    assert told(found) == what
    by_name = {change.name: change for change in found.classes}
    assert (by_name["oak"].before, by_name["oak"].after) == (2, 3)
    assert (by_name["oak"].stayed, by_name["oak"].moved_in, by_name["new-2"].moved_out) == (2, 1, 1)
    assert (by_name["ash"].before, by_name["new-3"].after) == (None, None)
    assert found.moves == (Move("e", "new-2", "oak", 2, 0),)
    assert (found.shared, found.nodes_came, found.nodes_went) == (5, 3, 2)
    same = later(NAMES, "a0 b0 c1 d2 e2 f3 g3")
    assert set(told(same).values()) == {"same"}
    assert not same.moves


def test_a_merged_class_is_said_to_be_and_its_nodes_have_not_moved() -> None:
    names = {0: "oak", 1: "elm", 2: "bushes"}
    found = later(names, "a0 b0 c1 d2 e2 f2 g2", Merge((2, 3), "bushes", kept=2, after=2))
    assert told(found) == {"oak": "same", "elm": "same", "bushes": "grew", "new-3": "merged"}
    by_name = {change.name: change for change in found.classes}
    assert by_name["new-3"].into == (2,)
    assert by_name["bushes"].was == "new-2"
    assert by_name["bushes"].stayed == 4
    assert not found.moves


def test_a_split_class_is_said_to_be_and_its_nodes_have_not_moved() -> None:
    names = {0: "oak", 1: "elm", 3: "new-3", 4: "left", 5: "right"}
    split = Split(2, 2, parts=(4, 5), names=("left", "right"), was="new-2", after=2)
    found = later(names, "a0 b0 c1 d4 e5 f3 g3", split)
    by_name = {change.name: change for change in found.classes}
    assert by_name["new-2"].what == "split"
    assert by_name["new-2"].into == (4, 5)
    assert (by_name["left"].what, by_name["left"].was, by_name["left"].stayed) == (
        "came",
        "new-2",
        1,
    )
    assert not found.moves


def test_a_rejected_class_is_said_to_be_and_its_nodes_have_moved() -> None:
    names = {0: "oak", 1: "elm", 2: "new-2"}
    found = later(names, "a0 b0 c1 d2 e2 f0 g1", Reject(3, name="new-3", after=2))
    assert told(found)["new-3"] == "rejected"
    assert [(move.node, move.after) for move in found.moves] == [("f", "oak"), ("g", "elm")]


def test_a_new_name_is_told_with_the_old_one() -> None:
    names = NAMES | {2: "heather"}
    edit = Rename(2, "heather", was="new-2", after=2)
    found = later(names, "a0 b0 c1 d2 e2 f3 g3", edit)
    (change,) = [change for change in found.classes if change.was]
    assert (change.name, change.was, change.what) == ("heather", "new-2", "same")


def test_runs_made_apart_are_matched_by_their_nodes() -> None:
    other = Snapshot(
        {0: "x", 1: "y", 2: "z"},
        {0: "known", 1: "known", 2: "discovered"},
        {"a": 2, "b": 2, "c": 0, "d": 1, "e": 1, "f": 1},
        digest="other",
    )
    found = diff(SPRING, other)
    assert not found.continued
    assert {(change.name, change.was) for change in found.classes if change.was} == {
        ("z", "oak"),
        ("x", "elm"),
        ("y", "new-2"),
    }
    assert [move.node for move in found.moves] == ["f"]
    assert told(found)["new-3"] == "went"


def test_runs_without_a_common_node_are_refused() -> None:
    other = run(NAMES, {"x": 0}, of="summer")
    with pytest.raises(SettingError, match="spring and summer have no node in common"):
        diff(SPRING, other)


def test_a_table_with_a_class_that_its_model_has_not_is_refused() -> None:
    other = run(NAMES, {"a": 0, "b": 7}, of="summer")
    with pytest.raises(StorageError, match=r"summer: predictions\.csv: .* has no class 7"):
        diff(SPRING, other)
    with pytest.raises(StorageError, match=r"summer: predictions\.csv"):
        diff(other, SPRING)
