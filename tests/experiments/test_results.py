"""What a row carries, how a score is read off it, and what seeds add up to."""

from __future__ import annotations

import json
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

import nodenova as nova
from nodenova.evaluation import metrics
from nodenova.experiments.cells import Cell
from nodenova.experiments.results import mean_std, score_of, summarise
from nodenova.experiments.run import Plan, run_one
from nodenova.experiments.sweep import failed_row
from tests.report.rows import row


@pytest.fixture(scope="module")
def graph() -> nova.Labelled:
    return nova.synthetic(nodes=80, classes=4, words=40)


def ran(graph: nova.Labelled, method: str, **more: Any) -> dict[str, Any]:
    return run_one(graph, Plan(graph.name, method, "gcn", (0, 1), 2, fit_settings=(("epochs", 20),), **more), 0).row


@pytest.mark.parametrize("method", ["frozen_kmeans", "never_new"])
def test_a_row_carries_the_counts_that_its_scores_are_of(graph: nova.Labelled, method: str) -> None:
    made = ran(graph, method)
    whole, old, new = (np.array(made[f"confusion{part}"]) for part in ("", "_old", "_new"))
    assert old.shape == new.shape == (2, 2)
    assert old.sum() + new.sum() == whole.sum() == made["nodes"]["test"]
    assert old.sum(axis=1).tolist() == whole.sum(axis=1)[:2].tolist()
    block = made["scores"]["block"]
    assert block["old_n"] == pytest.approx(100 * np.trace(old) / old.sum())
    right = max(np.trace(new), np.trace(new[:, ::-1]))
    assert block["new_n"] == pytest.approx(100 * right / new.sum())
    assert block["all_n"] == pytest.approx(100 * (np.trace(old) + right) / whole.sum())
    said = whole[:, 2:].sum(axis=0)
    assert made["new_used"] == (said > 0).sum()
    if method == "never_new":
        assert np.isnan(made["new_largest"])
    else:
        assert made["new_largest"] == pytest.approx(100 * said.max() / said.sum())
    assert json.loads(json.dumps(made["confusion_old"])) == old.tolist()


def test_the_former_head_is_said_in_the_row_and_settings_that_were_changed_too(graph: nova.Labelled) -> None:
    plain = ran(graph, "sword", method_settings=(("epochs", "2"), ("reading", "printed")))
    assert plain["fit_settings"]["head"] == "linear"
    assert plain["settings"]["joint_head"] == "linear"
    printed = {"joint_head": "linear", "similarity": "sigmoid", "perturb": "joint", "distill": "new", "class_mean": True}
    assert plain["changed"] == printed | {"epochs": 2}  # a reading is what it sets, by whichever way it was asked for


def test_a_failed_run_says_what_was_changed_as_a_finished_one_does(graph: nova.Labelled) -> None:
    """In numbers, and only what differs from the method as it is, or as its schedule has it."""

    def said(method: str, *settings: tuple[str, str], **more: Any) -> dict[str, object]:
        plan = Plan(graph.name, method, "gcn", (0, 1), 2, settings, **more)
        row = failed_row(Cell(plan, 0, "d"), "no luck")
        assert (row["status"], row["error"], row["method"]) == ("failed", "no luck", method)
        return row["changed"]

    assert said("sword", ("alpha1", "0"), ("eta", "0.2"), ("epochs", "3")) == {"alpha1": 0.0, "epochs": 3}
    assert said("sword", ("reading", "released")) == dict(nova.Sword.READINGS["released"])
    assert said("gem") == {}
    released = Plan("cora", "sword_as_released", "gat", (0, 1, 2, 3), 3, (), (("schedule", "released"),))
    assert failed_row(Cell(released, 0, "d"), "no luck")["changed"] == {}
    made = ran(graph, "sword", method_settings=(("epochs", "2"), ("replay", "0")))
    assert said("sword", ("epochs", "2"), ("replay", "0")) == made["changed"]


def test_scores_are_read_where_they_stand() -> None:
    made = row(new_used=3, new_largest=62.5, predicted_sizes=[2, 3])
    assert (score_of(made, "new_used"), score_of(made, "new_largest"), score_of(made, "new_all")) == (3, 62.5, 100.0)
    assert score_of(made | {"new_used": 2}, "new_all") == 0.0
    assert score_of(made, "h") == made["scores"]["block"]["h"]
    assert score_of(made, "h", "identity") == made["scores"]["identity"]["h"]
    assert score_of(made, "aa") == made["aa"]
    assert score_of(made, "surprise") is None
    assert score_of(made | {"new_largest": float("nan")}, "new_largest") is None


def test_scores_that_earlier_rows_do_not_have_are_read_off_their_confusion() -> None:
    confusion = [[5, 0, 2, 0], [0, 5, 0, 1], [1, 0, 4, 2], [0, 0, 3, 0]]
    made = row(confusion=confusion, sizes=[2, 2], predicted_sizes=[2, 2])
    assert not set(metrics.COLLAPSE) & set(made)
    assert score_of(made, "new_used") == 2
    assert score_of(made, "new_largest") == pytest.approx(75.0)
    assert score_of(made, "new_all") == 100.0
    nobody = row(confusion=[[5, 0, 0, 0], [0, 5, 0, 0], [1, 2, 0, 0], [1, 2, 0, 0]], predicted_sizes=[2, 2])
    assert (score_of(nobody, "new_used"), score_of(nobody, "new_largest"), score_of(nobody, "new_all")) == (0, None, 0.0)


def test_a_summary_has_the_collapse_of_the_seeds() -> None:
    values = [(1, 100.0), (2, 80.0), (0, float("nan"))]
    rows = [
        row(seed=seed, new_used=used, new_largest=share, split="published", seconds={"fit": 1.0, "discover": 2.0})
        for seed, (used, share) in enumerate(values)
    ]
    summary = summarise(rows)
    assert summary["new_used"] == {"mean": 1.0, "std": 1.0, "n": 3}
    assert summary["new_largest"] == {"mean": 90.0, "std": pytest.approx(stdev([100.0, 80.0])), "n": 2}
    assert summary["scores"]["block"]["h"]["mean"] == pytest.approx(fmean(r["scores"]["block"]["h"] for r in rows))


def test_seeds_with_and_without_a_score_are_summarised_over_those_that_have_it() -> None:
    rows = [row(seed=seed, split="published", seconds={"fit": 1.0, "discover": 2.0}) for seed in range(2)]
    rows[0]["scores"]["block"]["old_n"] = 70.0
    del rows[1]["scores"]["block"]["old_n"]
    assert summarise(rows)["scores"]["block"]["old_n"] == {"mean": 70.0, "std": None, "n": 1}
    assert mean_std([None, float("nan")]) == {"mean": None, "std": None, "n": 0}
