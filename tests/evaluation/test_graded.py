"""A graded run: its scores are read off its counts, and a row's document is one too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodenova.bench.row import Row
from nodenova.errors import StorageError
from nodenova.evaluation.graded import GradedRun
from nodenova.evaluation.metrics import MATCHINGS
from tests.bench.rows import document, failed

PREVIOUS = Path(__file__).parents[1] / "fixtures" / "previous" / "graded" / "seed-0" / "row.json"
SCORES = ("aa", "af", "new_used", "new_largest", "new_all")


def previous() -> dict[str, object]:
    """A row of schema 1, as the version before wrote it."""
    return json.loads(PREVIOUS.read_text())


@pytest.mark.parametrize("written", [document(), previous()], ids=["schema 2", "schema 1"])
def test_a_graded_run_has_the_scores_of_its_row(written: dict[str, object]) -> None:
    run, row = GradedRun.from_json(written), Row.from_json(written)
    assert type(run) is GradedRun
    for matching in MATCHINGS:
        assert json.dumps(run.scores(matching)) == json.dumps(row.scores(matching))
    assert json.dumps(run.once) == json.dumps(row.once)
    assert [run.score(name) for name in SCORES] == [row.score(name) for name in SCORES]
    assert (run.seed, run.seconds, run.class_names) == (row.seed, row.seconds, row.class_names)


def test_it_comes_back_from_its_document() -> None:
    run = GradedRun.from_json(document(seed=3))
    again = GradedRun.from_json(json.loads(json.dumps(run.to_json())))
    assert again == run
    assert "dataset" not in run.to_json()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"seed": None}, "not a result row, it has no seed"),
        ({"schema": 9}, "a row of schema 9, but this version of nodenova reads schemas up to 2"),
        ({"sizes": "two"}, "a result row: damaged, sizes must be a list of whole numbers"),
        ({"confusion": None}, "its confusion is not 3 × 3"),
        ({"confusion_new": [[1], [2]]}, "its confusion_new is not 1 × 1"),
    ],
)
def test_what_is_wrong_with_a_document_is_said(change: dict[str, object], expected: str) -> None:
    with pytest.raises(StorageError, match=expected):
        GradedRun.from_json(document() | change)


def test_a_failed_run_is_a_row_and_was_never_graded() -> None:
    row = failed(seed=1)
    assert row.score("all") is None
    with pytest.raises(StorageError, match="its confusion is not"):
        GradedRun.from_json(row.to_json())
