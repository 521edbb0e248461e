"""What a person has decided is not advised against: on the page, on the terminal, in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import nodenova as nova
from nodenova.cli.app import app
from nodenova.errors import SettingError
from nodenova.model.decisions import (
    Create,
    Decision,
    Merge,
    Reject,
    Relabel,
    Rename,
    Split,
    Unlabel,
)
from nodenova.model.edits import apply_decision
from nodenova.review import suggest
from nodenova.review.page import class_cards
from nodenova.review.suggestions import Suggestions
from nodenova.runs.apply import relabel_nodes, with_ids
from nodenova.runs.folder import RunFolder
from nodenova.runs.run import DiscoveryRun

NAMES = ("oak", "elm", "ash")
KINDS = ("rename", "merge", "split", "reject", "relabel", "unlabel", "create")
PICKS = st.integers(0, 2**16)


@pytest.fixture(scope="module")
def start() -> DiscoveryRun:
    """Three known and three discovered classes; six labels are wrong."""
    data = nova.synthetic(nodes=200, classes=5, words=60, seed=2)
    old, task, _ = nova.split(data, [0, 1, 2])
    model = nova.discover(nova.fit(old), replace(task, num_new=3))
    y = np.where(data.y < 3, data.y, -1)
    y[np.flatnonzero(y == 0)[:6]] = 2
    return DiscoveryRun("Mine", model, data.graph, label_ids=y, label_names=NAMES)


@dataclass
class Record:
    """What a person means by each decision, kept beside the model and not read from it."""

    run: DiscoveryRun
    splits: int = 0
    # By class: (number of the split, number of the part) of all it has come from.
    parts: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    # The same of created classes (part 1) and of the classes that their nodes were in (part 0).
    apart: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    one: set[int] = field(default_factory=set)  # classes that were named, merged or created
    unwanted: set[int] = field(default_factory=set)  # classes that hold nodes of a rejected one
    moved: dict[str, set[int]] = field(default_factory=dict)  # classes of the nodes moved by hand

    @property
    def decided(self) -> set[int]:
        return self.one | {c for c, parts in self.parts.items() if parts and c not in self.one}

    def apply(self, decision: Decision) -> None:
        """Apply a decision to the run, and keep what it means; nothing if it is not possible."""
        before, run = self.run.model, self.run
        try:
            model = apply_decision(before, decision, run.graph)
        except SettingError:
            return
        (decision,) = with_ids([decision], before, model)
        history = run.history.and_then([decision])
        self.run = replace(run, model=model, history=history)
        match decision:
            case Rename(class_id, _):
                self.one.add(class_id)
            case Merge(class_ids, _):
                (kept,) = {*class_ids} & {c.id for c in model.classes}
                self.parts[kept] = {part for c in class_ids for part in self.parts.get(c, ())}
                self.one = self.one - {*class_ids} | {kept}
                self._replace({*class_ids}, {kept})
            case Split(class_id, _):
                new = sorted({c.id for c in model.classes} - {c.id for c in before.classes})
                was = self.parts.pop(class_id, set())
                self.parts |= {c: was | {(self.splits, i)} for i, c in enumerate(new)}
                self.splits += 1
                self.one.discard(class_id)
                self._replace({class_id}, {*new})
            case Reject(class_id):
                here = before.predict(run.graph) == class_id
                ids, count = np.unique(model.predict(run.graph)[here], return_counts=True)
                self.unwanted |= {*ids[count >= 5].tolist()}
                self.parts.pop(class_id, None)
                self.one.discard(class_id)
                self._replace({class_id}, set())
            case Create(nodes, class_id=int(made)):
                self.moved |= {str(node): {made} for node in nodes}
                self.one.add(made)
                # It is one part, and the rest of each class that its nodes were in the other.
                here = np.isin(run.graph.node_ids.astype(str), [*map(str, nodes)])
                for c in np.unique(before.predict(run.graph)[here]).tolist():
                    self.apart.setdefault(c, set()).add((self.splits, 0))
                self.apart.setdefault(made, set()).add((self.splits, 1))
                self.splits += 1
            case Unlabel(nodes):
                self.moved |= {str(node): set() for node in nodes}
        match decision:
            case Relabel() | Create() | Unlabel():
                if isinstance(decision, Relabel):
                    self.moved |= {str(node): {decision.class_id} for node in decision.nodes}
                assert run.label_ids is not None
                stored = {"y": run.label_ids, "names": np.array(run.label_names)}
                after = relabel_nodes(stored, run.graph, [decision])
                self.run = replace(
                    self.run, label_ids=after["y"], label_names=after["names"].tolist()
                )

    def _replace(self, gone: set[int], came: set[int]) -> None:
        held = set().union(*(self.apart.pop(c, set()) for c in gone))
        for c in came:
            self.apart[c] = self.apart.get(c, set()) | held
        for ids in (self.unwanted, *self.moved.values()):
            if ids & gone:
                ids -= gone
                ids |= came

    def contradictions(self, found: Suggestions) -> list[object]:
        """Suggestions that reverse a decision."""
        known = {c.id for c in self.run.model.classes if not c.is_new}
        wrong: list[object] = []
        for merge in found.merges:
            a, b = merge.class_ids
            apart = any(
                one[0] == other[0] and one[1] != other[1]
                for held in (self.parts, self.apart)
                for one, other in product(held.get(a, ()), held.get(b, ()))
            )
            named = {a, b} <= self.one | known and {a, b} & self.one
            wrong += [merge] if apart or named else []
        wrong += [one for one in found.splits if one.class_id in self.one | self.unwanted]
        return wrong + [
            one
            for one in found.labels
            if self.moved.get(str(one.node)) and one.class_id not in self.moved[str(one.node)]
        ]


def choose(record: Record, kind: str, first: int, second: int) -> Decision:
    """A decision of this kind about the classes and nodes that there are now."""
    classes = record.run.model.classes
    new = [c.id for c in classes if c.is_new] or [0]  # the last is refused
    a, b = classes[first % len(classes)].id, classes[second % len(classes)].id
    match kind:
        case "rename":
            return Rename(a, f"name {first} {second}")
        case "merge":
            return Merge((a, b) if second % 2 else (new[first % len(new)], b))
        case "split":
            return Split(new[first % len(new)] if second % 4 else a, 2 + second % 2)
        case "reject":
            return Reject(new[first % len(new)])
    graph = record.run.graph
    some = graph.node_ids[(first + np.arange(3 + second % 20)) % graph.num_nodes].tolist()
    if kind == "create":
        return Create(tuple(some), f"made {first} {second}")
    if kind == "unlabel":
        return Unlabel(tuple(some))
    return Relabel((graph.node_ids[first % graph.num_nodes].item(),), b)


def check(record: Record) -> None:
    """No suggestion and no verdict of the run is against a decision."""
    run = record.run
    assert record.contradictions(run.suggestions) == []
    cards = class_cards(run.page_data(lambda z: np.zeros((len(z), 2))))
    levels = {card.info.id: card.trust.level for card in cards if card.trust is not None}
    assert {c for c, level in levels.items() if level == "yours"} == record.decided & {*levels}
    offered = [{*one.class_ids} for one in run.suggestions.merges]
    ids = [c.id for c in run.model.classes]
    assert all(
        {card.info.id, ids[card.same_as[0]]} in offered
        for card in cards
        if card.same_as is not None
    )


@pytest.fixture(scope="module", autouse=True)
def everything_is_suggested() -> object:
    """Suggest whatever has a probability, so that only the decisions keep suggestions away."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MIN_SAME", "MIN_TWO", "MIN_WRONG"):
            patch.setattr(suggest, name, 1e-9)
        yield


HALVES = [("split", 0, 1), ("split", 1, 1), ("merge", 2, 3), ("rename", 1, 0), ("relabel", 3, 5)]


@given(st.lists(st.tuples(st.sampled_from(KINDS), PICKS, PICKS), min_size=1, max_size=6))
@example(HALVES)
@example([("create", 3, 9), ("merge", 4, 6), ("split", 2, 1), ("create", 90, 2), ("unlabel", 0, 9)])
@example([("reject", 1, 0), ("split", 0, 1), ("rename", 3, 0), ("rename", 0, 0)])
@settings(max_examples=20, deadline=None, derandomize=True, database=None)
def test_no_sequence_of_decisions_is_advised_against(
    start: DiscoveryRun, chosen: Sequence[tuple[str, int, int]]
) -> None:
    record = Record(start)
    for one in chosen:
        record.apply(choose(record, *one))
    check(record)


def test_a_run_folder_its_page_and_the_terminal_respect_a_split_until_it_is_undone(
    start: DiscoveryRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder.write(tmp_path / "run", start)
    before = Suggestions.load(folder.path)
    folder.apply([{"do": "split", "class": 5, "into": 2}])
    first, second = (c.id for c in folder.model.classes[-2:])
    pairs = [one.class_ids for one in Suggestions.load(folder.path).merges]
    assert (first, second) not in pairs
    assert (0, first) in pairs
    assert (folder.path / "report.html").read_text().count('<p class="trust yours">') == 2
    app(["classes", str(folder.path)], standalone_mode=False)
    printed = capsys.readouterr().out
    assert printed.count("Yours") == 2
    assert printed.count("You split it off class 5.") == 2
    folder.undo()
    assert Suggestions.load(folder.path) == before
    assert '<p class="trust yours">' not in (folder.path / "report.html").read_text()


def test_a_moved_node_is_not_listed_as_uncertain(start: DiscoveryRun) -> None:
    def listed(run: DiscoveryRun) -> set[str]:
        page = run.page_data(lambda z: np.zeros((len(z), 2)))
        return {page.nodes.names[one.node] for pair in page.doubts for one in pair.nodes}

    unsure = replace(start, min_confidence=1.0)
    node = min(listed(unsure))
    record = Record(unsure)
    record.apply(Relabel((node,), 0))
    assert node not in listed(record.run)


def test_a_name_of_a_person_is_not_followed_by_a_suggested_one(start: DiscoveryRun) -> None:
    record = Record(start)
    record.apply(Rename(4, "cats"))
    record.apply(Rename(5, start.classes[5].auto_name))
    cards = class_cards(record.run.page_data(lambda z: np.zeros((len(z), 2))))
    assert {card.info.id for card in cards if card.auto_name} == {0, 1, 2}  # known: from labels
