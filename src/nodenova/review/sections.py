"""What the sections of a review page say, as values for the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from markupsafe import Markup

from nodenova.drawing.confusion import before_and_after_matching
from nodenova.drawing.curves import loss_curves
from nodenova.model.info import ClassInfo
from nodenova.pages.html import count, decimal, percent
from nodenova.pages.scores import ScoreTables, score_tables
from nodenova.review.page_data import AmbiguousNode, PageData

What = TypeVar("What")


@dataclass(frozen=True, eq=False)
class Card:
    """A class. Classes and nodes are told by number; the last value of a feature or neighbour is the length of its bar."""

    number: int
    info: ClassInfo
    numbers: Mapping[str, str]
    nearest: int | None
    typical: Sequence[tuple[int, str]]
    features: Sequence[tuple[str, float, float]]
    neighbors: Sequence[tuple[int, float, float]]


@dataclass(frozen=True)
class Moved:
    """A discovered class, how many nodes it has, and the known classes these would be in, with their shares."""

    number: int
    nodes: int
    into: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Graded:
    """Against an answer key, of the model as it was graded."""

    seed: int
    scores: ScoreTables
    confusions: Mapping[str, Markup]


@dataclass(frozen=True)
class Phase:
    title: str
    settings: Sequence[tuple[str, str]]
    losses: Markup  # "" where there are none


def lead(story: PageData) -> str:
    new = sum(c.stage > 0 for c in story.classes)
    share = story.num_unsure / max(story.num_nodes, 1)
    return (
        f"{count(len(story.classes) - new, 'class was', 'classes were')} known and {count(new, 'was', 'were')} discovered "
        f"among {count(story.num_nodes, 'node')} and {count(story.num_edges, 'edge')}. "
        f"{count(story.num_unsure, 'node is', 'nodes are')} unsure ({share:.1%}): "
        f"less than {story.min_confidence:.0%} likely to be in the class they are put in."
    )


def cards(story: PageData) -> list[Card]:
    """Discovered classes first, the largest first."""
    order = sorted(
        range(len(story.classes)),
        key=lambda i: (story.classes[i].stage == 0, -(story.classes[i].size or 0), i),
    )
    return [_card(story, i) for i in order]


def _card(story: PageData, i: int) -> Card:
    info = story.classes[i]
    place = {c.id: number for number, c in enumerate(story.classes)}
    return Card(
        number=i,
        info=info,
        numbers={
            "confidence": percent(info.confidence),
            "unsure": f"{info.unsure or 0:,}",
            "cohesion": decimal(info.cohesion),
            "own edges": percent(info.own_edges),
        },
        nearest=None if info.nearest is None else place[info.nearest],
        typical=[(node, story.nodes.names[node]) for node in story.typical[i]],
        features=_with_lengths([(f.name, f.weight) for f in info.features if f.weight > 0]),
        neighbors=_with_lengths([(place[n.id], n.share) for n in info.neighbors if n.id in place]),
    )


def _with_lengths(rows: Sequence[tuple[What, float]]) -> list[tuple[What, float, float]]:
    longest = max((value for _, value in rows), default=0.0) or 1.0
    return [(what, value, 100 * value / longest) for what, value in rows]


def moved(story: PageData) -> list[Moved]:
    lines = []
    for i, row in enumerate(story.moved):
        total = sum(row)
        if total:
            best = np.argsort(-np.array(row), kind="stable")[:3].tolist()
            lines.append(Moved(i, total, [(c, row[c] / total) for c in best if row[c]]))
    return lines


def doubts(
    story: PageData, listed: Sequence[AmbiguousNode]
) -> list[tuple[AmbiguousNode, str, str]]:
    """Each with the name of its node and why it is one."""
    return [(d, story.nodes.names[d.node], _why(d)) for d in listed]


def _why(d: AmbiguousNode) -> str:
    if not d.degree:
        return "no neighbours: only its own features speak"
    if d.in_first == d.in_second == 0:
        return f"none of its {count(d.degree, 'neighbour')} is in either class"
    side = (
        "for the first" if not d.in_second else "against it" if not d.in_first else "on both sides"
    )
    return (
        f"neighbours {side}: {d.in_first} of {d.degree} in the first, {d.in_second} in the second"
    )


def graded(story: PageData) -> Graded | None:
    if not story.rows:
        return None
    first = story.rows[0]
    counts = np.array(first.confusion)
    called = {c.id: c.name for c in story.classes if c.stage > 0}
    drawn = before_and_after_matching(
        counts, first.class_names, first.num_old, first.sizes, first.predicted_sizes, called
    )
    return Graded(first.seed, score_tables(story.rows), drawn)


def phases(story: PageData) -> list[Phase]:
    """Settings, what each phase was shown, and its losses."""
    listed = []
    for number, stage in enumerate(story.stages, start=1):
        lines = [(name, _said(value)) for name, value in stage.settings.items()]
        lines += [("seed", str(stage.seed)), ("was shown", ", ".join(stage.sees) or "–")]
        listed.append(
            Phase(
                f"Phase {number}: {stage.method}",
                lines,
                loss_curves(stage.history, f"Losses of phase {number}"),
            )
        )
    return listed


def _said(value: object) -> str:
    """A setting as text: the same of a model that was just made and of one that was saved, where tuples are lists."""
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
