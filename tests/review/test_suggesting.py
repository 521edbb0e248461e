"""What a run suggests: labels that look wrong, nodes that fit none, and how it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import SettingError, StorageError
from nodenova.files.content import to_json
from nodenova.model.decisions import Merge, Relabel, Split
from nodenova.review.cross_validation import cross_validate
from nodenova.review.suggest import build_suggestions
from nodenova.review.suggestions import (
    LabelSuggestion,
    MergeSuggestion,
    SplitSuggestion,
    Suggestions,
    likely,
)
from nodenova.review.user_labels import UserLabels
from nodenova.runs.run import DiscoveryRun


class Made(NamedTuple):
    data: nova.LabelledGraph
    old: nova.OldTask
    model: nova.Model  # classes 0, 1, 2 known, two discovered
    y: np.ndarray  # labels of all nodes of the known classes


@pytest.fixture(scope="module")
def made() -> Made:
    data = nova.synthetic(nodes=400, classes=5, words=120, seed=2)
    old, task, _ = nova.split(data, [0, 1, 2])
    y = np.where(data.y < 3, data.y, -1)
    return Made(data, old, nova.discover(nova.fit(old), task), y)


@pytest.fixture(scope="module")
def run(made: Made) -> DiscoveryRun:
    given = made.y.copy()
    given[np.flatnonzero(given == 0)[:3]] = 2
    return DiscoveryRun(
        "Mine", made.model, made.data.graph, label_ids=given, label_names=("oak", "elm", "ash"),
        none_share=0.05,
    )  # fmt: skip


def test_labels_that_were_made_wrong_are_named_with_their_right_class(made: Made) -> None:
    wrong = np.flatnonzero(made.y == 0)[:3]
    y = made.y.copy()
    y[wrong] = 2
    found = nova.suggest(made.model, made.data.graph, y).labels
    named = {one.node: one for one in found}
    ids = made.data.graph.node_ids[wrong].tolist()
    assert set(ids) <= set(named)
    assert len(found) <= 5
    assert {named[node].class_id for node in ids} == {0}
    assert {named[node].label for node in ids} == {"class-2"}
    assert [one.probability for one in found] == sorted(
        (o.probability for o in found), reverse=True
    )
    assert not nova.suggest(made.model, made.data.graph).labels


def test_a_label_does_not_speak_for_itself(made: Made) -> None:
    """Held-out probabilities of a node are the same whatever label it has, but for its fold."""
    z = made.model.embed(made.data.graph)
    few = np.full(len(z), -1)
    for c in range(3):  # few labels a class, so that one that speaks for itself would be heard
        few[np.flatnonzero(made.y == c)[:4]] = c
    node = int(np.flatnonzero(few == 0)[0])
    moved = few.copy()
    moved[node] = 1
    said = cross_validate(made.model, z, moved)
    assert said is not None
    p = said.p[np.searchsorted(said.ids, node)]
    assert p.argmax() == 0


def test_the_only_label_of_a_class_is_not_judged(made: Made) -> None:
    z, row = made.model.embed(made.data.graph), made.y.copy()
    mine = np.flatnonzero(row == 1)
    row[mine[1:]] = -1
    said = cross_validate(made.model, z, row)
    assert said is not None
    at = np.searchsorted(said.ids, mine[0])
    assert np.isnan(said.p[at]).all()
    assert np.isnan(said.fit[at])
    assert not np.isnan(np.delete(said.fit, at)).any()


def test_about_the_asked_share_of_known_nodes_fits_none_and_most_of_unknown_ones_do(
    made: Made,
) -> None:
    known = nova.fit(made.old)  # of three classes; nodes of two others are in the graph
    rng = np.random.default_rng(0)
    told = np.where(rng.random(400) < 0.5, made.y, -1)
    for share in (0.05, 0.2):
        none = set(nova.suggest(known, made.data.graph, told, share).none)
        unlabelled = made.data.graph.node_ids[(told < 0) & (made.data.y < 3)].tolist()
        others = made.data.graph.node_ids[made.data.y >= 3].tolist()
        assert abs(np.mean([node in none for node in unlabelled]) - share) < 0.08
        assert np.mean([node in none for node in others]) > 0.9
        assert not none & set(made.data.graph.node_ids[told >= 0].tolist())
    assert nova.suggest(known, made.data.graph, told).none == ()


@pytest.mark.parametrize(
    ("share", "labels", "sentence"),
    [
        (1.0, "all", "none_share is a share from 0 to below 1, not 1"),
        (-0.1, "all", "none_share is a share from 0 to below 1, not -0.1"),
        (0.001, "all", "needs at least 999 labelled nodes, and there are 230"),
        (0.1, "none", "found by labelled nodes and the prism encoder"),
    ],
)
def test_a_share_that_cannot_be_told_is_refused(
    made: Made, share: float, labels: str, sentence: str
) -> None:
    y = made.y if labels == "all" else None
    with pytest.raises(SettingError, match=sentence):
        nova.suggest(made.model, made.data.graph, y, share)


def test_halves_of_a_class_look_like_one_but_the_person_who_split_it_is_not_told(
    made: Made,
) -> None:
    halved = made.model.split(3, made.data.graph)
    assert nova.suggest(halved, made.data.graph).merges == ()
    unknown = nova.suggest(replace(halved, edits=()), made.data.graph)
    assert [one.class_ids for one in unknown.merges] == [(5, 6)]
    assert unknown.merges[0].decision == Merge((5, 6))


def test_a_run_tells_the_same_everywhere(run: DiscoveryRun, made: Made) -> None:
    assert run.labels is not None
    alone = nova.suggest(made.model, made.data.graph, run.label_ids, 0.05)
    words = {"class-0": "oak", "class-1": "elm", "class-2": "ash"}
    labels = tuple(replace(one, label=words[one.label]) for one in alone.labels)
    assert run.suggestions == replace(alone, labels=labels)
    assert len(labels) >= 3
    table = run.predictions.columns()
    ids = made.data.graph.node_ids.tolist()
    marked = {node for node, none in zip(ids, table["fits_none"], strict=True) if none == "yes"}
    assert marked == set(run.suggestions.none)
    assert sum(info.fits_none or 0 for info in run.classes) == len(marked)
    assert None not in table["class"]
    off = replace(run, none_share=0.0)
    assert "fits_none" not in off.predictions.columns()
    assert {info.fits_none for info in off.classes} == {None}
    assert off.predictions.columns()["class"] == table["class"]


def test_suggestions_come_back_from_json_and_name_their_decisions(tmp_path: Path) -> None:
    told = Suggestions(
        (MergeSuggestion((1, 4), 0.7),),
        (SplitSuggestion(2, 0.9),),
        (LabelSuggestion("n7", "oak", 4, 0.95), LabelSuggestion(8, "elm", 1, 0.91)),
        ("n1", 3),
        0.1,
    )
    (tmp_path / "suggestions.json").write_bytes(to_json(told.to_json()))
    assert Suggestions.load(tmp_path) == told
    assert [one.decision for one in told.ranked] == [
        Split(2),
        Merge((1, 4)),
        Relabel(("n7",), 4),
        Relabel((8,), 1),
    ]
    names = {1: "elm", 2: "ash", 4: "new-4"}
    said = told.sentences(names)
    assert said[0] == "'ash' is 90% likely to be two classes"
    assert said[1].endswith("likely to be the same class")
    assert said[2] == (
        "2 labels look wrong, the first: 'n7' is labelled 'oak' but looks like 'new-4' (95%)"
    )
    assert said[3].startswith("2 nodes fit none of the classes (so would 10% of")
    assert told.sentences(names, 1) == said[:1]
    (tmp_path / "suggestions.json").write_text(json.dumps({"format": "else"}))
    with pytest.raises(StorageError, match='expected "format": "nodenova suggestions"'):
        Suggestions.load(tmp_path)
    with pytest.raises(StorageError, match="does not exist"):
        Suggestions.load(tmp_path / "nowhere")


class Rows(NamedTuple):
    together: np.ndarray
    two: np.ndarray


class Held(NamedTuple):
    ids: np.ndarray
    p: np.ndarray


def test_suggestions_have_their_least_probability_and_the_likeliest_comes_first(made: Made) -> None:
    together = np.zeros((5, 5))
    for (a, b), p in {(0, 3): 0.5, (1, 4): 0.8, (2, 3): 0.499, (3, 4): np.nan}.items():
        together[a, b] = together[b, a] = p
    two = np.array([0.3, np.nan, 0.29, 0.9, 0.0])
    found = build_suggestions(made.model, Rows(together, two), None, None, np.arange(9))  # type: ignore[arg-type]
    assert found.merges == (MergeSuggestion((1, 4), 0.8), MergeSuggestion((0, 3), 0.5))
    assert found.splits == (SplitSuggestion(3, 0.9), SplitSuggestion(0, 0.3))
    assert found == replace(Suggestions(), merges=found.merges, splits=found.splits)
    assert build_suggestions(made.model, None, None, None, np.arange(9)) == Suggestions()


def test_a_label_looks_wrong_if_another_class_is_nine_tenths_likely(made: Made) -> None:
    ids, classes = np.array([1, 2, 4, 6]), np.array([-1, 0, 0, -1, 1, -1, 2])
    p = np.array(
        [
            [0.05, 0.0, 0.0, 0.95, 0.0],  # labelled 0
            [0.95, 0.05, 0.0, 0.0, 0.0],  # labelled 0: right
            [0.0, 0.0, 0.97, 0.03, 0.0],  # labelled 1
            [0.0, 0.89, 0.11, 0.0, 0.0],  # labelled 2: not likely enough
        ]
    )
    labels = UserLabels(classes, ("oak", "elm", "ash"))
    nodes = np.array([f"n{i}" for i in range(7)])
    found = build_suggestions(made.model, None, Held(ids, p), labels, nodes)  # type: ignore[arg-type]
    assert found.labels == (
        LabelSuggestion("n4", "elm", 2, 0.97),
        LabelSuggestion("n1", "oak", 3, 0.95),
    )
    p[3] = [0.0, 0.9, 0.1, 0.0, 0.0]
    assert len(build_suggestions(made.model, None, Held(ids, p), labels, nodes).labels) == 3  # type: ignore[arg-type]


def test_nodes_that_fit_none_are_unlabelled_and_the_farthest_comes_first(made: Made) -> None:
    fit, nodes = np.array([-1.0, 0.0, -3.0, 2.0, -2.0]), np.array(list("abcde"))
    labels = UserLabels(np.array([-1, -1, -1, 0, 0]), ("oak",))
    found = build_suggestions(made.model, None, None, labels, nodes, fit, 0.1)
    assert (found.none, found.none_share) == (("c", "a"), 0.1)
    assert build_suggestions(made.model, None, None, None, nodes, fit).none == ("c", "e", "a")


def test_a_probability_is_never_certain_and_one_wrong_label_is_the_only_one() -> None:
    assert [likely(p) for p in (0.99, 0.991, 0.5)] == ["99%", ">99%", "50%"]
    one = Suggestions(labels=(LabelSuggestion("n7", "oak", 4, 0.95),), none=("a",), none_share=0.2)
    assert one.sentences({4: "yew"}) == [
        "1 label looks wrong: 'n7' is labelled 'oak' but looks like 'yew' (95%)",
        "1 node fits none of the classes (so would 20% of known-class nodes by mistake)",
    ]
    for wrong, why in (({"version": 2}, "has version 2"), ({"format": "else"}, "suggestions")):
        with pytest.raises(StorageError, match=why):
            Suggestions.from_json(one.to_json() | wrong)
