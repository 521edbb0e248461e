"""The page on which a reader looks at the classes, names, merges, splits and rejects them.

One HTML file, no network. `sections` says what is on it and the templates how it is marked up; the
scripts in `assets` draw the map and collect the decisions.

How a model was made and graded, as values for the templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from nodenova.model.decisions import Relabel, to_json
from nodenova.report.charts import before_and_after_matching, loss_curves
from nodenova.report.html import MAP_SCRIPTS, START, render_page
from nodenova.report.node_map import map_data, packed
from nodenova.report.scores import ScoreTables, score_tables
from nodenova.review import sections
from nodenova.review.page_data import MAX_SUGGESTED, PageData
from nodenova.review.review_file import Review
from nodenova.review.user_labels import labels_in_new_classes

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


SCRIPTS = (*MAP_SCRIPTS, "cards.js", "members.js", "suggestions.js", "review.js", START)


def review_page(page: PageData, served: bool = False, in_notebook: bool = False) -> str:
    """The page as HTML. Equal data give equal pages.

    Args:
        page: What it tells.
        served: Whether it may send the review to where it came from; else it can send nothing.
        in_notebook: Whether it tells the page around it what is decided, as a widget does.
    """
    sampled = len(page.nodes.names) < page.num_nodes
    views = {"class": "class", "unsure": "how sure"}
    if page.true_names:
        views["true"] = "true class"
    cards = sections.cards(page)
    return render_page(
        "nodenova.review",
        "review.html.j2",
        page.title,
        kind="review",
        scripts=(*SCRIPTS[:-1], "widget.js", START) if in_notebook else SCRIPTS,
        data=_data(page, served),
        served=served,
        page=page,
        lead=sections.lead(page),
        answers=sections.answers(page, cards),
        warning=labels_in_new_classes(page.classes),
        shows=sections.shows(page),
        offers=sections.offers(page),
        more_labels=max(len(page.suggested.labels) - MAX_SUGGESTED, 0),
        farthest=sections.fit_none(page),
        sampled=len(page.nodes.names) if sampled else None,
        views=views,
        map_note="",
        cards=cards,
        doubts=sections.doubts(page),
        history=sections.history(page),
        graded=graded(page),
        facts_listed={**page.facts, "Model": page.model},
        stages=phases(page),
    )


def _data(page: PageData, served: bool) -> dict[str, object]:
    """What the scripts read: the map, the neighbors of each node, the review that they fill in."""
    nodes = page.nodes
    return {
        "review": Review(page.model, after=page.history.revision).to_json(),
        "edits": page.edits,
        "served": served,
        "suggestions": [to_json(one.decision) for one in sections.offered(page.suggested)],
        **map_data(
            nodes.names,
            nodes.xy,
            [(c.id, c.name, c.stage > 0, c.size or 0) for c in page.classes],
            nodes.best,
            p=nodes.p,
            true=nodes.true,
            true_names=page.true_names,
            true_as=page.true_as,
            min_confidence=page.min_confidence,
        ),
        "degree": packed(nodes.degree, "<u4"),
        "near": packed(nodes.near, "<u2"),
        "nearCount": packed(nodes.near_count, "<u4"),
        "start": packed(nodes.start, "<u4"),
        "targets": packed(nodes.targets, "<u4"),
        "moved": _moved(page),
        "firstNew": page.first_new,
        "typical": page.typical,
        "columns": list(nodes.texts),
        "texts": list(nodes.texts.values()),
        "given": None if nodes.given is None else packed(nodes.given, "<u2"),
    }


def _moved(page: PageData) -> list[tuple[int, int]]:
    """Nodes that were moved by hand before, and the class of each; both by number."""
    number = {name: i for i, name in enumerate(page.nodes.names)}
    place = {c.id: i for i, c in enumerate(page.classes)}
    moved: dict[int, int] = {}
    for decision in page.history.decisions:
        if isinstance(decision, Relabel) and decision.class_id in place:
            moved |= {
                number[str(n)]: place[decision.class_id] for n in decision.nodes if str(n) in number
            }
    return list(moved.items())
