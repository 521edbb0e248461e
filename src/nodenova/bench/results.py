"""Summaries of rows over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nodenova.bench.row import Row
from nodenova.evaluation.metrics import MATCHINGS
from nodenova.evaluation.scores import ONCE, SECONDS, Spread, mean_std


@dataclass(frozen=True)
class Summary:
    """The seeds of one cell: what was run, and the spread of each score."""

    dataset: str
    method: str
    encoder: str
    num_old: int
    num_new: int
    split: str
    visibility: str
    seeds: tuple[int, ...]
    scores: Mapping[str, Mapping[str, Spread]]  # {matching: {score: spread}}
    once: Mapping[str, Spread]  # scores that need no matching
    seconds: Mapping[str, Spread]  # by phase

    def to_json(self) -> dict[str, Any]:
        document = asdict(self)
        return document | document.pop("once")


def summarize(rows: Sequence[Row]) -> Summary:
    """Over the seeds of one cell, of which there is at least one."""
    first = rows[0]
    for row in rows:
        if _cell(row) != _cell(first):
            raise ValueError(
                f"a summary is over the seeds of one cell, these are of {_cell(first)} and {_cell(row)}"
            )
    return Summary(
        *_cell(first),
        split=first.split,
        visibility=first.visibility,
        seeds=tuple(row.seed for row in rows),
        scores={
            matching: {
                score: mean_std([row.score(score, matching) for row in rows])
                for score in first.scores(matching)
            }
            for matching in MATCHINGS
        },
        once={score: mean_std([row.score(score) for row in rows]) for score in ONCE},
        seconds={
            phase: mean_std([getattr(row.seconds, phase) for row in rows]) for phase in SECONDS
        },
    )


def _cell(row: Row) -> tuple[str, str, str, int, int]:
    return row.dataset, row.method, row.encoder, row.num_old, row.num_new
