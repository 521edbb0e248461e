"""How a model was made and graded, as values for the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from nodenova.drawing.confusion import before_and_after_matching
from nodenova.drawing.curves import loss_curves
from nodenova.pages.scores import ScoreTables, score_tables
from nodenova.review.page_data import PageData

# Scores that are said first, in words of this page.
HEADLINE = {"All": "all nodes", "Old": "of known classes", "New": "of discovered classes"}


@dataclass(frozen=True)
class Graded:
    """Against an answer key, of the model as it was graded.

    Attributes:
        seed: The first graded one.
        nodes: How many were graded in it.
        headline: The scores that are said first, under block matching: names and values.
        scores: All of them.
        confusions: Matrices by title.
    """

    seed: int
    nodes: int
    headline: Sequence[tuple[str, str]]
    scores: ScoreTables
    confusions: Mapping[str, Markup]


@dataclass(frozen=True)
class Phase:
    """How a step went; `losses` are "" where there are none."""

    title: str
    settings: Sequence[tuple[str, str]]
    losses: Markup


def graded(page: PageData) -> Graded | None:
    """Scores and confusion against the answer key; None without one."""
    if not page.rows:
        return None
    first = page.rows[0]
    counts = np.array(first.confusion)
    called = {c.id: c.name for c in page.classes if c.stage > 0}
    drawn = before_and_after_matching(
        counts, first.class_names, first.num_old, first.sizes, first.predicted_sizes, called
    )
    told = score_tables(page.rows)
    values = dict(zip(told.by_matching[0], told.by_matching[1], strict=True))
    shown = [(said, values[title]) for title, said in HEADLINE.items()]
    return Graded(first.seed, int(counts.sum()), shown, told, drawn)


def phases(page: PageData) -> list[Phase]:
    """Settings, what each step was shown, and its losses."""
    listed = []
    for number, stage in enumerate(page.stages, start=1):
        lines = [(name, _said(value)) for name, value in stage.settings.items()]
        lines += [("seed", str(stage.seed)), ("was shown", ", ".join(stage.sees) or "–")]
        listed.append(
            Phase(
                f"Step {number}: {'learning' if stage.method == 'fit' else stage.method}",
                lines,
                loss_curves(stage.history, f"Losses of step {number}"),
            )
        )
    return listed


def _said(value: object) -> str:
    """A setting as text.

    The same of a model that was just made and of one that was saved, where tuples are lists.
    """
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
