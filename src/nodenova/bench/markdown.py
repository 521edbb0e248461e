"""Scores as text, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from nodenova.bench.results import Summary
from nodenova.evaluation.scores import ONCE, SCORES, spread_text


def scores_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table of a summary.

    Returns:
        One row a score, one column a matching, the headline first.
    """
    matchings = list(summary.scores)
    shown = [score for score in SCORES if score in summary.scores["block"]]
    rows = [
        [SCORES[score].title, *(spread_text(summary.scores[m][score]) for m in matchings)]
        for score in shown
    ]
    rows += [
        [title.long, spread_text(summary.once[key]), *[""] * (len(matchings) - 1)]
        for key, title in ONCE.items()
    ]
    return ["matched by", *matchings], rows


def describe(summary: Summary) -> str:
    """What the numbers are about: nothing is reported without it."""
    seeds = summary.seeds
    over = (
        f"mean ± std over {len(seeds)} seeds ({', '.join(map(str, seeds))})"
        if len(seeds) > 1
        else f"seed {seeds[0]}"
    )
    return (
        f"{summary.dataset}, {summary.method} on {summary.encoder}: {summary.num_old} old classes, "
        f"{summary.num_new} new; {summary.split} split, {summary.visibility}; {over}, percent"
    )


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    Examples:
        >>> print(markdown(["score", "mean"], [["New", "59.4"]]))
        | score | mean |
        | --- | --- |
        | New | 59.4 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
