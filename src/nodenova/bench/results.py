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
    """The seeds of one cell: what was run, and the spread of each score.

    Attributes:
        dataset: The name of the graph.
        method: What tables know the method by.
        encoder: Of phase 1.
        num_old: How many classes were labelled.
        num_new: How many classes phase 2 was told to find.
        split: Where the split comes from, in words.
        visibility: "transductive" or "inductive".
        seeds: In the order of the rows.
        scores: {matching: {score: spread}}.
        once: Scores that need no matching.
        seconds: By phase.
    """

    dataset: str
    method: str
    encoder: str
    num_old: int
    num_new: int
    split: str
    visibility: str
    seeds: tuple[int, ...]
    scores: Mapping[str, Mapping[str, Spread]]
    once: Mapping[str, Spread]
    seconds: Mapping[str, Spread]

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON has it: scores that need no matching stand beside the others."""
        document = asdict(self)
        return document | document.pop("once")


def summarize(rows: Sequence[Row]) -> Summary:
    """Mean and spread over the seeds of one cell, of which there is at least one.

    Args:
        rows: Of one dataset, method and encoder, and as many old and new classes.

    Raises:
        ValueError: They are of several.

    Examples:
        >>> import nodenova as nova
        >>> from nodenova.bench.plan import Plan
        >>> from nodenova.bench.run import run_one
        >>> graph = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> plan = Plan(graph.name, nova.NeverNew(), "gcn", (0, 1), 2, (("epochs", 5),))
        >>> summary = summarize([run_one(graph, plan, seed).row for seed in (0, 1)])
        >>> summary.seeds, summary.scores["block"]["new"].mean
        ((0, 1), 0.0)
    """
    first = rows[0]
    for row in rows:
        if _cell(row) != _cell(first):
            raise ValueError(
                "a summary is over the seeds of one cell, "
                f"these are of {_cell(first)} and {_cell(row)}"
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
