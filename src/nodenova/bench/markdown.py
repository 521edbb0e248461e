"""Scores as text, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from nodenova.bench.results import Spread, Summary
from nodenova.bench.titles import ONCE, SCORES


def number(value: float | None) -> str:
    """One decimal; a dash where there is nothing."""
    return f"{value:.1f}".replace("-", "−") if value is not None and isfinite(value) else "–"


def cell(value: Spread) -> str:
    """mean ± std; the mean alone where one value has no spread."""
    return number(value.mean) if value.std is None else f"{number(value.mean)} ± {number(value.std)}"


def scores_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Header and rows: one row a score, one column a matching, the headline first."""
    matchings = list(summary.scores)
    shown = [score for score in SCORES if score in summary.scores["block"]]
    rows = [[SCORES[score].title, *(cell(summary.scores[m][score]) for m in matchings)] for score in shown]
    rows += [[title.long, cell(summary.once[key]), *[""] * (len(matchings) - 1)] for key, title in ONCE.items()]
    return ["matched by", *matchings], rows


def describe(summary: Summary) -> str:
    """What the numbers are about: nothing is reported without it."""
    seeds = summary.seeds
    over = f"mean ± std over {len(seeds)} seeds ({', '.join(map(str, seeds))})" if len(seeds) > 1 else f"seed {seeds[0]}"
    return (
        f"{summary.dataset}, {summary.method} on {summary.encoder}: {summary.num_old} old classes, "
        f"{summary.num_new} new; {summary.split} split, {summary.visibility}; {over}, percent"
    )


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
