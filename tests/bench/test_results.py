"""What seeds add up to."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, stdev

import pytest

from nodenova.bench.render import describe, scores_table, summarize
from nodenova.evaluation.scores import Spread
from tests.bench.rows import row, seeds


def test_a_summary_is_over_the_seeds_of_one_cell() -> None:
    rows = seeds(3)
    summary = summarize(rows)
    assert (summary.dataset, summary.method, summary.encoder, summary.seeds) == (
        "cora",
        "sword",
        "gcn",
        (0, 1, 2),
    )
    h = [r.scores()["h"] for r in rows]
    assert summary.scores["block"]["h"] == Spread(
        pytest.approx(fmean(h)), pytest.approx(stdev(h)), 3
    )  # type: ignore[arg-type]
    assert summary.once["aa"].mean == pytest.approx(fmean(r.once["aa"] for r in rows))
    assert summary.seconds == {"fit": Spread(1.0, 0.0, 3), "discover": Spread(2.0, 0.0, 3)}
    with pytest.raises(ValueError, match="a summary is over the seeds of one cell"):
        summarize([*rows, row("dtc")])


def test_a_summary_has_the_collapse_of_the_seeds() -> None:
    said = [(50, 0), (80, 20), (0, 0)]
    rows = [
        row(
            seed=seed,
            num_new=2,
            predicted_sizes=[2, 2],
            confusion=[[9, 0, 0, 0], [0, 9, 0, 0], [0, 0, a, b]],
        )
        for seed, (a, b) in enumerate(said)
    ]
    summary = summarize(rows)
    assert summary.once["new_used"] == Spread(1.0, 1.0, 3)
    assert summary.once["new_largest"] == Spread(90.0, pytest.approx(stdev([100.0, 80.0])), 2)  # type: ignore[arg-type]


def test_seeds_with_and_without_a_score_are_summarised_over_those_that_have_it() -> None:
    rows = seeds(2)
    rows[1] = replace(rows[1], confusion_old=None)
    assert summarize(rows).scores["block"]["old_n"] == Spread(rows[0].score("old_n"), None, 1)


def test_as_json_a_summary_has_all_scores_by_name() -> None:
    written = summarize(seeds(2)).to_json()
    assert {"dataset", "seeds", "scores", "aa", "af", "new_used", "new_largest", "seconds"} <= set(
        written
    )
    assert written["scores"]["block"]["h"].keys() == written["aa"].keys() == {"mean", "std", "n"}


def test_the_terminal_shows_every_score_and_what_it_is_about() -> None:
    summary = summarize(seeds(2))
    head, lines = scores_table(summary)
    assert head == ["matched by", "block", "identity", "global"]
    names = [line[0] for line in lines]
    assert names[:4] == ["Old", "New", "All", "H"]
    assert names[-4:] == ["AA", "AF", "New classes used", "Largest of them"]
    spread = summary.scores["block"]["old"]
    assert lines[0][1] == f"{spread.mean:.1f} ± {spread.std:.1f}"
    assert describe(summary) == (
        "cora, sword on gcn: 2 old classes, 1 new; published split, transductive; "
        "mean ± std over 2 seeds (0, 1), percent"
    )
