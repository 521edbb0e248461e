"""What a row carries, how scores are read off it, and rows that earlier versions wrote."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodenova as nova
from nodenova.bench.plan import Plan, RunSpec, apply_schedule
from nodenova.bench.registry import ALL_METHODS, get_method
from nodenova.bench.row import Row
from nodenova.bench.rowfile import RowFile
from nodenova.bench.run import run_one
from nodenova.bench.runs import BenchConfig, runs_of
from nodenova.bench.sweep import failed_row, unfinished
from nodenova.bench.tables import TABLES
from nodenova.evaluation.grade import forgetting
from nodenova.evaluation.graded import RENAMED
from nodenova.evaluation.metrics import MATCHINGS
from tests.bench.rows import document, failed, row, seeds

ROOT = Path(__file__).parent.parent.parent
PREVIOUS = ROOT / "tests/fixtures/previous/bench/rows.jsonl"
GRADED = "synthetic:nodes=60,classes=4,words=40"


@pytest.fixture(scope="module")
def graph() -> nova.LabelledGraph:
    return nova.synthetic(nodes=80, classes=4, words=40)


def plan(graph: nova.LabelledGraph, method: Any) -> Plan:
    return Plan(graph.name, method, "gcn", (0, 1), 2, fit_settings=(("epochs", 20),))


@pytest.mark.parametrize("method", ["frozen_kmeans", "never_new"])
def test_a_row_carries_the_counts_that_its_scores_are_of(
    graph: nova.LabelledGraph, method: str
) -> None:
    made = run_one(graph, plan(graph, ALL_METHODS[method]()), 0).row
    whole, old, new = (
        np.array(counts) for counts in (made.confusion, made.confusion_old, made.confusion_new)
    )
    assert old.shape == new.shape == (2, 2)
    assert old.sum() + new.sum() == whole.sum() == made.nodes.test
    assert old.sum(axis=1).tolist() == whole.sum(axis=1)[:2].tolist()
    block = made.scores("block")
    assert block["old_n"] == pytest.approx(100 * np.trace(old) / old.sum())
    right = max(np.trace(new), np.trace(new[:, ::-1]))
    assert block["new_n"] == pytest.approx(100 * right / new.sum())
    assert block["all_n"] == pytest.approx(100 * (np.trace(old) + right) / whole.sum())
    said = whole[:, 2:].sum(axis=0)
    assert made.score("new_used") == (said > 0).sum()
    largest = made.score("new_largest")
    assert (
        largest is None
        if method == "never_new"
        else largest == pytest.approx(100 * said.max() / said.sum())
    )


def test_scores_are_those_of_the_grades_of_both_phases_bit_for_bit(
    graph: nova.LabelledGraph,
) -> None:
    asked = plan(graph, nova.FrozenKMeans())
    outcome = run_one(graph, asked, 3)
    read = Row.from_json(json.loads(json.dumps(outcome.row.to_json())))
    after = nova.grade(outcome.model, outcome.exam)
    before = nova.grade(
        nova.fit(nova.split(graph, [0, 1], seed=3)[0], "gcn", seed=3, epochs=20), outcome.exam
    )
    assert read == outcome.row
    for matching in MATCHINGS:
        assert read.scores(matching) == after.scores(matching)
    assert (read.once["aa"], read.once["af"]) == forgetting([before, after])
    assert {name: read.once[name] for name in after.collapse} == after.collapse


def test_scores_are_not_written_and_everything_else_is(graph: nova.LabelledGraph) -> None:
    made = run_one(graph, plan(graph, nova.NeverNew()), 0).row
    written = made.to_json()
    assert written["schema"] == 2
    assert not {"scores", "aa", "af", "new_used", "new_largest", "stored", "key", "error"} & set(
        written
    )
    assert written["confusion_new"] is not None
    assert replace(made, key="k", map="m.npz").to_json() == {**written, "key": "k", "map": "m.npz"}
    assert Row.from_json(written) == made


def test_a_failed_row_has_no_scores_and_writes_nothing_that_it_does_not_know() -> None:
    made = failed(seed=3)
    assert made.score("h") is None
    assert made.score("aa") is None
    written = made.to_json()
    assert not {"confusion", "sizes", "settings", "seconds", "sees", "scores"} & set(written)
    assert written["error"] == "Traceback:\nRuntimeError: 50% of_it & <b>x</b>"
    assert Row.from_json(written) == made


def test_a_failed_run_says_what_was_changed_as_a_finished_one_does(
    graph: nova.LabelledGraph,
) -> None:
    """In numbers, and only what differs from the method as it is, or as its schedule has it."""

    def said(name: str, **settings: str) -> object:
        made = failed_row(RunSpec(plan(graph, get_method(name, settings)), 0, "d"), "no luck")
        assert (made.status, made.error, made.method) == ("failed", "no luck", name)
        return made.changed

    assert said("sword", alpha1="0", eta="0.2", epochs="3") == {"alpha1": 0.0, "epochs": 3}
    assert said("sword", reading="released") == dict(nova.Sword.READINGS["released"])
    assert said("gem") == {}
    method = apply_schedule(ALL_METHODS["sword_as_released"](), "cora", "gat", "released")
    released = Plan("cora", method, "gat", (0, 1, 2, 3), 3, (("schedule", "released"),))
    assert failed_row(RunSpec(released, 0, "d"), "no luck").changed == {}
    made = run_one(graph, plan(graph, nova.Sword(epochs=2, replay=0.0)), 0).row
    assert said("sword", epochs="2", replay="0") == made.changed == {"epochs": 2, "replay": 0.0}


def test_a_reading_is_what_it_sets_by_whichever_way_it_was_asked_for(
    graph: nova.LabelledGraph,
) -> None:
    made = run_one(
        graph, plan(graph, get_method("sword", {"epochs": "2", "reading": "printed"})), 0
    ).row
    assert made.changed == dict(nova.Sword.READINGS["printed"]) | {"epochs": 2}
    assert made.settings == asdict(get_method("sword", {"epochs": "2", "reading": "printed"}))
    assert made.fit_settings["head"] == "linear"


def test_the_use_of_the_new_classes_by_hand() -> None:
    four = {"sizes": [2, 2], "predicted_sizes": [2, 2]}
    made = row(confusion=[[5, 0, 2, 0], [0, 5, 0, 1], [1, 0, 4, 2], [0, 0, 3, 0]], **four)
    assert (made.score("new_used"), made.score("new_largest"), made.score("new_all")) == (
        2,
        75.0,
        100.0,
    )
    nobody = row(confusion=[[5, 0, 0, 0], [0, 5, 0, 0], [1, 2, 0, 0], [1, 2, 0, 0]], **four)
    assert (nobody.score("new_used"), nobody.score("new_largest"), nobody.score("new_all")) == (
        0,
        None,
        0.0,
    )
    assert made.score("surprise") is None


def stored_scores(said: dict[str, Any]) -> list[tuple[str, str, float | None]]:
    """(matching, score, value) of every score that a row of schema 1 has."""
    found = [
        (matching, name, value)
        for matching, each in said["scores"].items()
        for name, value in each.items()
    ]
    return found + [
        ("block", name, said[name])
        for name in ("aa", "af", "new_used", "new_largest")
        if name in said
    ]


def test_derived_scores_are_the_stored_ones_on_a_sample_of_the_committed_rows() -> None:
    content = (
        gzip.decompress((ROOT / "results/bench.jsonl.gz").read_bytes()) + PREVIOUS.read_bytes()
    )
    documents = [said for said in map(json.loads, content.splitlines()) if "scores" in said]
    if not documents:  # packed since schema 2: then there is nothing to hold them against
        documents = [json.loads(line) for line in PREVIOUS.read_bytes().splitlines()]
    compared = 0
    for said in [*documents[::40], *documents[-8:]]:
        made = Row.from_json(said)
        for matching, name, value in stored_scores(said):
            there = value if value is not None and isfinite(value) else None
            now = RENAMED.get(name, name)
            assert made.score(now, matching) == there, (said["key"], matching, name)
            compared += 1
    assert compared >= 8 * 26


@pytest.mark.parametrize(
    ("without", "stored"),
    [
        ((), {}),
        (("confusion_new",), {"new_n": 61.0, "all_n": 62.0}),
        (("confusion_old",), {"old_n": 60.0, "all_n": 62.0}),
        (("confusion_fit",), {"aa": 63.0, "af": -64.0}),
        (
            ("confusion_new", "confusion_old", "confusion_fit"),
            {"old_n": 60.0, "new_n": 61.0, "all_n": 62.0, "aa": 63.0, "af": -64.0},
        ),
    ],
)
def test_what_the_counts_of_an_earlier_row_cannot_give_is_taken_from_its_scores(
    without: tuple[str, ...], stored: dict[str, float]
) -> None:
    told = {"old": 1.0, "new": 2.0, "old_n": 60.0, "new_n": 61.0, "all_n": 62.0}
    said = document(schema=1, scores={"block": told, "identity": told}, aa=63.0, af=-64.0)
    made = Row.from_json({key: value for key, value in said.items() if key not in without})
    whole = row()
    for name in ("old", "new", "all", "h", "old_n", "new_n", "all_n", "aa", "af", "new_used"):
        assert made.score(name) == stored.get(name, whole.score(name)), name
    assert made.score("new_n", "identity") == (61.0 if "confusion_new" in without else 100.0)
    again = Row.from_json(
        json.loads(json.dumps(made.to_json()))
    )  # and it is kept when such a row is written again
    assert again == made
    assert [again.score(name) for name in told] == [made.score(name) for name in told]


def test_settings_of_failed_rows_of_schema_1_were_text() -> None:
    said = {"alpha1": "0", "eta": "0.5", "similarity": "sigmoid", "class_mean": "true"}
    made = failed(changed=said, schema=1)
    assert made.changed == {"alpha1": 0, "eta": 0.5, "similarity": "sigmoid", "class_mean": True}
    assert failed(changed={"mark": "3"}).changed == {"mark": "3"}  # now they are values


def test_rows_of_the_version_before_are_in_the_tables() -> None:
    rows = [
        replace(each, fit_changed={}) for each in RowFile(PREVIOUS).read()
    ]  # few epochs of phase 1 are in no table
    found = {name: tables(rows) for name, tables in TABLES.items()}
    lines = {line.labels[0] for line in found["comparison"][0].lines}
    assert lines == {
        "frozen k-means",
        "frozen k-means, joint head alone",
        "GEM",
        "Prism (own encoder)",
    }
    collapse = {line.labels[0]: line for line in found["collapse"][0].lines}
    used = [
        each.score("new_used") or 0.0
        for each in rows
        if (each.method, each.changed) == ("frozen_kmeans", {})
    ]
    assert collapse["frozen k-means"].cells[0].mean == np.mean(used)
    settings = {line.labels[0]: line.cells[0] for line in found["settings"][0].lines}
    assert all(cell.mean is None for cell in settings.values())  # Old-N was not measured
    assert {name for name, tables in found.items() if any(table.lines for table in tables)} >= {
        "heads",
        "forgetting",
    }


def test_rows_of_then_do_not_stand_for_runs_of_today() -> None:
    """Phase 1 is another one by default, and that is in a key."""
    graph = nova.load_dataset(GRADED)
    methods = [nova.FrozenKMeans(), ALL_METHODS["gem"]()]
    cells = runs_of(
        "comparison", BenchConfig([(graph, 2)], ["gcn"], methods, [0, 1], (("epochs", 5),))
    )
    assert unfinished(cells, RowFile(PREVIOUS).read()) == cells


def test_rows_that_cannot_be_told_apart_by_key_are_all_kept_outside_a_row_file() -> None:
    rows = [replace(each, key="") for each in seeds(3)]
    assert TABLES["comparison"](rows)[0].lines[0].cells[0].n == 3
