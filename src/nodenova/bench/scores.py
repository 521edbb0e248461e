"""Scores of graded runs, for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodenova.bench.markdown import cell, number
from nodenova.bench.results import mean_std
from nodenova.bench.row import Row
from nodenova.bench.titles import MATCHINGS, ONCE, SCORES, SECONDS

OVERALL = ONCE | SECONDS


@dataclass(frozen=True)
class Scores:
    """Scores of graded seeds in words: `spread` says what they are means of. The first line of a table is its head."""

    spread: str
    by_matching: Sequence[Sequence[str]]
    overall: Sequence[Sequence[str]]
    seeds: Sequence[Sequence[str]]
    meanings: Sequence[tuple[str, str]]


def scores(rows: Sequence[Row]) -> Scores:
    """The scores of graded seeds, and what each of them means."""
    head = ["Matching", *(score.title for score in SCORES.values())]
    body = [
        [
            f"{matching} (headline)" if matching == "block" else matching,
            *(_mean(row.score(score, matching) for row in rows) for score in SCORES),
        ]
        for matching in MATCHINGS
    ]
    overall = [_mean(_overall(row, key) for row in rows) for key in OVERALL]
    each = [
        [str(row.seed), *(number(row.score(score)) for score in SCORES)] + [number(_overall(row, key)) for key in OVERALL]
        for row in rows
    ]
    names = [score.long for score in OVERALL.values()]
    words = [(score.long, score.meaning) for score in (SCORES | OVERALL).values()]
    return Scores(
        f"mean ± standard deviation over {len(rows)} seeds" if len(rows) > 1 else "one seed, so there is no spread to show",
        [head, *body],
        [["Seeds", *names], [str(len(rows)), *overall]],
        [["Seed", *head[1:], *names], *each],
        words + [(f"Matching: {name}", why) for name, why in MATCHINGS.items()],
    )


def _overall(row: Row, key: str) -> float | None:
    return getattr(row.seconds, key) if key in SECONDS else row.score(key)


def _mean(values: Iterable[float | None]) -> str:
    return cell(mean_std(list(values)))
