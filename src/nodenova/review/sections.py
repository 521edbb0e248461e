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
from nodenova.review.page_data import MAX_SUGGESTED, AmbiguousNode, PageData
from nodenova.review.suggestions import (
    LabelSuggestion,
    MergeSuggestion,
    SplitSuggestion,
    Suggestion,
    Suggestions,
    likely,
)
from nodenova.review.user_labels import labels_against

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
    against: str


@dataclass(frozen=True)
class Offer:
    """A suggestion on the page: classes are told by number, a node by its number and name.

    Attributes:
        number: Of its decision, in what the scripts read.
        kind: "merge", "split" or "relabel".
        classes: Those that it is about; for a label the class that its node looks like.
        likely: How likely it is what it says.
        node: The node of a label, on the map.
        label: What the label says.
    """

    number: int
    kind: str
    classes: Sequence[int]
    likely: str
    node: tuple[int, str] | None = None
    label: str = ""


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


def shows(page: PageData) -> str:
    """Which classes the map and the cards show, where the tables say another one; else ""."""
    if not page.kept:
        return ""
    many = count(page.kept, "node that you labelled is", "nodes that you labelled are")
    keep = "keeps its label" if page.kept == 1 else "keep their labels"
    return (
        f"Map and cards show where the model puts each node. {many} elsewhere by your label, and "
        f"{keep} in predictions.csv (column agrees: no)."
    )


def offered(suggested: Suggestions) -> list[Suggestion]:
    """Those that the page shows: all about classes, and the first labels that look wrong."""
    return [*suggested.ranked[: -len(suggested.labels) or None], *suggested.labels[:MAX_SUGGESTED]]


def offers(page: PageData) -> list[Offer]:
    """What may be accepted with a click, in the order of `Suggestions.ranked`."""
    place = {c.id: number for number, c in enumerate(page.classes)}
    listed = []
    for i, one in enumerate(offered(page.suggested)):
        match one:
            case MergeSuggestion(class_ids, probability):
                listed.append(Offer(i, "merge", [place[c] for c in class_ids], likely(probability)))
            case SplitSuggestion(class_id, probability):
                listed.append(Offer(i, "split", [place[class_id]], likely(probability)))
            case LabelSuggestion(node, label, class_id, probability):
                at = page.suggested_nodes[node]
                shown = (at, page.nodes.names[at])
                said = likely(probability)
                listed.append(Offer(i, "relabel", [place[class_id]], said, shown, label))
    return listed


def fit_none(page: PageData) -> list[tuple[int, str]]:
    """The first nodes that fit none of the classes: numbers and names."""
    numbers = [page.suggested_nodes[node] for node in page.suggested.none[:MAX_SUGGESTED]]
    return [(number, page.nodes.names[number]) for number in numbers]


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
            **({} if info.fits_none is None else {"fit none": f"{info.fits_none:,}"}),
        },
        nearest=None if info.nearest is None else place[info.nearest],
        typical=[(node, page.nodes.names[node]) for node in page.typical[i]],
        features=_with_lengths([(f.name, f.weight) for f in info.features if f.weight > 0]),
        neighbors=_with_lengths([(place[n.id], n.share) for n in info.neighbors if n.id in place]),
        against=labels_against(info, page.classes),
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
