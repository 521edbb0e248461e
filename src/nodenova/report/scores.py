"""Score tables of graded runs: the values of the macro `score_tables`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodenova.evaluation.graded import GradedRun
from nodenova.evaluation.scores import (
    MATCHING_MEANINGS,
    ONCE,
    SCORES,
    SECONDS,
    mean_std,
    number,
    spread_text,
)

OVERALL = ONCE | SECONDS


@dataclass(frozen=True)
class ScoreTables:
    """Scores as text. The first line of a table is its head."""

    spread: str  # what the scores are means of
    by_matching: Sequence[Sequence[str]]  # one line per matching, one column per score
    overall: Sequence[Sequence[str]]  # scores that are the same under every matching, and seconds
    seeds: Sequence[Sequence[str]]  # one line per seed
    meanings: Sequence[tuple[str, str]]  # meaning of each score and of each matching


def score_tables(runs: Sequence[GradedRun]) -> ScoreTables:
    """Tables of the scores of graded seeds, and the meaning of each score."""
    head = ["Matching", *(score.title for score in SCORES.values())]
    body = [
        [
            f"{matching} (headline)" if matching == "block" else matching,
            *(_mean(run.score(score, matching) for run in runs) for score in SCORES),
        ]
        for matching in MATCHING_MEANINGS
    ]
    overall = [_mean(_overall(run, key) for run in runs) for key in OVERALL]
    each = [
        [
            str(run.seed),
            *(number(run.score(score)) for score in SCORES),
            *(number(_overall(run, key)) for key in OVERALL),
        ]
        for run in runs
    ]
    names = [score.long for score in OVERALL.values()]
    words = [(score.long, score.meaning) for score in (SCORES | OVERALL).values()]
    words += [(f"Matching: {name}", why) for name, why in MATCHING_MEANINGS.items()]
    over = f"mean ± standard deviation over {len(runs)} seeds"
    return ScoreTables(
        spread=over if len(runs) > 1 else "one run",
        by_matching=[head, *body],
        overall=[["Seeds", *names], [str(len(runs)), *overall]],
        seeds=[["Seed", *head[1:], *names], *each],
        meanings=words,
    )


def _overall(run: GradedRun, key: str) -> float | None:
    return getattr(run.seconds, key) if key in SECONDS else run.score(key)


def _mean(values: Iterable[float | None]) -> str:
    return spread_text(mean_std(list(values)))
