"""Score tables of graded seeds, in words."""

from __future__ import annotations

from statistics import fmean, stdev

from nodenova.evaluation.graded import GradedRun
from nodenova.evaluation.scores import ONCE, SCORES, SECONDS
from nodenova.report.scores import score_tables
from tests.bench.rows import document


def test_means_by_matching_and_every_seed_below() -> None:
    runs = [GradedRun.from_json(document(seed=seed)) for seed in (0, 1, 4)]
    tables = score_tables(runs)
    assert tables.spread == "mean ± standard deviation over 3 seeds"
    assert [line[0] for line in tables.by_matching[1:]] == [
        "block (headline)",
        "identity",
        "global",
    ]
    h = [run.scores("block")["h"] for run in runs]
    column = tables.by_matching[0].index("H")
    assert tables.by_matching[1][column] == f"{fmean(h):.1f} ± {stdev(h):.1f}"
    assert [line[0] for line in tables.seeds[1:]] == ["0", "1", "4"]
    assert [line[column] for line in tables.seeds[1:]] == [f"{value:.1f}" for value in h]
    seconds = tables.overall[0].index("Seconds, phase 2")
    assert tables.overall[1][seconds] == "2.0 ± 0.0"


def test_each_seed_is_scored_by_the_headline_matching() -> None:
    swapped = [[10, 0, 0, 0], [0, 10, 0, 0], [0, 0, 2, 8], [0, 0, 9, 1]]
    sizes = {"sizes": [2, 2], "predicted_sizes": [2, 2]}
    tables = score_tables([GradedRun.from_json(document(confusion=swapped, **sizes))])
    column = tables.by_matching[0].index("New")
    assert [line[column] for line in tables.by_matching[1:]] == ["85.0", "15.0", "85.0"]
    assert tables.seeds[1][column] == "85.0"


def test_one_seed_has_no_spread_and_every_score_is_explained() -> None:
    tables = score_tables([GradedRun.from_json(document())])
    assert tables.spread == "one run"
    assert not [cell for line in tables.by_matching[1:] for cell in line if "±" in cell]
    explained = [name for name, _ in tables.meanings]
    shown = [score.long for score in (SCORES | ONCE | SECONDS).values()]
    assert explained == [*shown, "Matching: block", "Matching: identity", "Matching: global"]
