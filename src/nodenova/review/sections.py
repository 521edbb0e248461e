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
    """A class. Classes and nodes are told by number.

    The last value of a feature or neighbor is the length of its bar.
    """

    number: int
    info: ClassInfo
    numbers: Mapping[str, str]
    nearest: int | None
    typical: Sequence[tuple[int, str]]
    features: Sequence[tuple[str, float, float]]
    neighbors: Sequence[tuple[int, float, float]]


@dataclass(frozen=True)
class Moved:
    """A discovered class, how many nodes it has, and the known classes these would be in.

    Each of these comes with its share.
    """

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
    """How a phase went; `losses` are "" where there are none."""

    title: str
    settings: Sequence[tuple[str, str]]
    losses: Markup


def lead(page: PageData) -> str:
    """The first sentences: how many classes, nodes and edges, and how many nodes are unsure."""
    new = sum(c.stage > 0 for c in page.classes)
    share = page.num_unsure / max(page.num_nodes, 1)
    known = count(len(page.classes) - new, "class was", "classes were")
    return (
        f"{known} known and {count(new, 'was', 'were')} discovered "
        f"among {count(page.num_nodes, 'node')} and {count(page.num_edges, 'edge')}. "
        f"{count(page.num_unsure, 'node is', 'nodes are')} unsure ({share:.1%}): "
        f"less than {page.min_confidence:.0%} likely to be in the class they are put in."
    )


def cards(page: PageData) -> list[Card]:
    """Discovered classes first, the largest first."""
    order = sorted(
        range(len(page.classes)),
        key=lambda i: (page.classes[i].stage == 0, -(page.classes[i].size or 0), i),
    )
    return [_card(page, i) for i in order]


def _card(page: PageData, i: int) -> Card:
    info = page.classes[i]
    place = {c.id: number for number, c in enumerate(page.classes)}
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
        typical=[(node, page.nodes.names[node]) for node in page.typical[i]],
        features=_with_lengths([(f.name, f.weight) for f in info.features if f.weight > 0]),
        neighbors=_with_lengths([(place[n.id], n.share) for n in info.neighbors if n.id in place]),
    )


def _with_lengths(rows: Sequence[tuple[What, float]]) -> list[tuple[What, float, float]]:
    longest = max((value for _, value in rows), default=0.0) or 1.0
    return [(what, value, 100 * value / longest) for what, value in rows]


def moved(page: PageData) -> list[Moved]:
    """Where the nodes of each discovered class would be without it."""
    lines = []
    for i, row in enumerate(page.moved):
        total = sum(row)
        if total:
            best = np.argsort(-np.array(row), kind="stable")[:3].tolist()
            lines.append(Moved(i, total, [(c, row[c] / total) for c in best if row[c]]))
    return lines


def ambiguous(
    page: PageData, listed: Sequence[AmbiguousNode]
) -> list[tuple[AmbiguousNode, str, str]]:
    """Each with the name of its node and why it is one."""
    return [(one, page.nodes.names[one.node], _why(one)) for one in listed]


def _why(node: AmbiguousNode) -> str:
    first, second = node.in_first, node.in_second
    if not node.degree:
        return "no neighbours: only its own features speak"
    if first == second == 0:
        return f"none of its {count(node.degree, 'neighbour')} is in either class"
    side = "for the first" if not second else "against it" if not first else "on both sides"
    return f"neighbours {side}: {first} of {node.degree} in the first, {second} in the second"


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
    return Graded(first.seed, score_tables(page.rows), drawn)


def phases(page: PageData) -> list[Phase]:
    """Settings, what each phase was shown, and its losses."""
    listed = []
    for number, stage in enumerate(page.stages, start=1):
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
    """A setting as text.

    The same of a model that was just made and of one that was saved, where tuples are lists.
    """
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
