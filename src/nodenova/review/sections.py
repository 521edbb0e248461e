"""What the sections of a review page say, as values for the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nodenova.display import percent, plural
from nodenova.model.info import ClassInfo
from nodenova.report.html import decimal
from nodenova.review.page_data import MAX_SUGGESTED, AmbiguousNode, PageData
from nodenova.review.review_file import sentence
from nodenova.review.suggestions import (
    LabelSuggestion,
    MergeSuggestion,
    SplitSuggestion,
    Suggestion,
    Suggestions,
    likely,
)
from nodenova.review.trust import ANYWAY, LOOK, MIN_ONE, Trust, found_in, tally, trust, verdict

What = TypeVar("What")


@dataclass(frozen=True, eq=False)
class Card:
    """A class. Classes and nodes are told by number.

    Attributes:
        number: Of the class.
        info: What is in it.
        numbers: What is measured, by name.
        trust: The verdict on it; None for a known class.
        nearest: The class most like it.
        same_as: The class that it looks like one with, and how likely that is.
        features: What is typical: in words, the weight, the length of the bar.
        neighbors: Where edges lead to: class, share, the length of the bar.
        instead: The known classes its nodes would be in without it, and their shares.
    """

    number: int
    info: ClassInfo
    numbers: Mapping[str, str]
    trust: Trust | None
    nearest: int | None
    same_as: tuple[int, str] | None
    features: Sequence[tuple[str, float, float]]
    neighbors: Sequence[tuple[int, float, float]]
    instead: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Answers:
    """What a reader wants to know in the first half minute.

    Attributes:
        found: What was found: classes by number and size, the largest first.
        trust: Whether that can be trusted, a sentence each.
        next_step: What to do now.
    """

    found: Sequence[tuple[int, int]]
    trust: Sequence[str]
    next_step: str


@dataclass(frozen=True)
class Doubt:
    """Two classes that nodes are between.

    Attributes:
        classes: Their numbers.
        total: How many nodes.
        nodes: Some of them: number, name, how likely its class is, and why it is between the two.
    """

    classes: tuple[int, int]
    total: int
    nodes: Sequence[tuple[int, str, str, str]]


@dataclass(frozen=True)
class SuggestionCard:
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


def answers(page: PageData, told: Sequence[Card]) -> Answers:
    """What was found, whether it can be trusted, what next."""
    last = len(page.stages) - 1
    found = [(card.number, card.info.size or 0) for card in told if card.info.stage == last > 0]
    said = verdict(page.stages, page.classes)
    estimate = page.stages[-1].count  # what to do about it stands below
    share = page.num_unsure / max(page.num_nodes, 1)
    trusted = [
        tally([card.trust for card in told if card.trust is not None]),
        estimate.finding if estimate is not None else said.sure if said is not None else "",
        page.held_out.sentence if page.held_out is not None else "",
        f"{plural(page.num_unsure, 'node is', 'nodes are')} unsure ({share:.1%}): less than "
        f"{page.min_confidence:.0%} likely to be in the class they are put in.",
    ]
    doubtful = any(card.trust is not None and card.trust.level != "good" for card in told)
    if not found:
        step = ANYWAY
    elif not doubtful:
        step = (
            "Look at a few members of each class, give it a name, and save. "
            "To decide the number yourself: nodenova discover --num-new N."
        )
    else:
        step = LOOK
    return Answers(found, [one for one in trusted if one], step)


def lead(page: PageData) -> str:
    """One line: how many classes, nodes and edges."""
    new = sum(c.stage > 0 for c in page.classes)
    known = plural(len(page.classes) - new, "class was", "classes were")
    return (
        f"{known} known and {plural(new, 'was', 'were')} discovered among "
        f"{plural(page.num_nodes, 'node')} and {plural(page.num_edges, 'edge')}."
    )


def shows(page: PageData) -> str:
    """Which classes the map and the cards show, where the tables say another one; else ""."""
    if not page.kept:
        return ""
    many = plural(page.kept, "node that you labelled is", "nodes that you labelled are")
    keep = "keeps its label" if page.kept == 1 else "keep their labels"
    return (
        f"Map and cards show where the model puts each node. {many} elsewhere by your label, and "
        f"{keep} in predictions.csv (column agrees: no)."
    )


def offered(suggested: Suggestions) -> list[Suggestion]:
    """Those that the page shows: all about classes, and the first labels that look wrong."""
    return [*suggested.ranked[: -len(suggested.labels) or None], *suggested.labels[:MAX_SUGGESTED]]


def offers(page: PageData) -> list[SuggestionCard]:
    """What may be accepted with a click, in the order of `Suggestions.ranked`."""
    place = {c.id: number for number, c in enumerate(page.classes)}
    listed = []
    for i, one in enumerate(offered(page.suggested)):
        match one:
            case MergeSuggestion(class_ids, probability):
                listed.append(
                    SuggestionCard(i, "merge", [place[c] for c in class_ids], likely(probability))
                )
            case SplitSuggestion(class_id, probability):
                listed.append(SuggestionCard(i, "split", [place[class_id]], likely(probability)))
            case LabelSuggestion(node, label, class_id, probability):
                at = page.suggested_nodes[node]
                shown = (at, page.nodes.names[at])
                said = likely(probability)
                listed.append(SuggestionCard(i, "relabel", [place[class_id]], said, shown, label))
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
    right, of = (0, 0) if page.held_out is None else page.held_out.by_class[i]
    held_out = {"labels held out": f"{percent(right / of)} right of {of:,}"} if of else {}
    groupings = found_in(page.stages).get(info.id)
    same = None
    if info.same_as is not None and (info.same_as_probability or 0) >= MIN_ONE:
        same = (place[info.same_as], likely(info.same_as_probability or 0))
    return Card(
        number=i,
        info=info,
        numbers={
            **held_out,
            "clear-cut": percent(info.confidence),
            "unsure": f"{info.unsure or 0:,}",
            "cohesion": decimal(info.cohesion),
            "own edges": percent(info.own_edges),
            **({} if info.fits_none is None else {"fit none": f"{info.fits_none:,}"}),
        },
        trust=trust(info, page.classes, groupings) if info.stage else None,
        nearest=None if info.nearest is None else place[info.nearest],
        same_as=same,
        features=_with_lengths([(f.said, abs(f.weight)) for f in info.features]),
        neighbors=_with_lengths([(place[n.id], n.share) for n in info.neighbors if n.id in place]),
        instead=_instead(page.moved[i]),
    )


def _instead(row: Sequence[int]) -> list[tuple[int, float]]:
    """The known classes that nodes of a discovered one would be in without it."""
    best = np.argsort(-np.array(row), kind="stable")[:3].tolist()
    return [(c, row[c] / sum(row)) for c in best if row[c]]


def _with_lengths(rows: Sequence[tuple[What, float]]) -> list[tuple[What, float, float]]:
    longest = max((value for _, value in rows), default=0.0) or 1.0
    return [(what, value, 100 * value / longest) for what, value in rows]


def doubts(page: PageData) -> list[Doubt]:
    """Nodes between two classes, by the pair."""

    def told(node: int) -> tuple[int, str, str, str]:
        one = page.ambiguous[node]
        return node, page.nodes.names[node], percent(one.p1), _why(one)

    return [
        Doubt(pair.classes, pair.total, [told(node) for node, _, _ in pair.nodes])
        for pair in page.doubts
    ]


def _why(node: AmbiguousNode) -> str:
    first, second = node.in_first, node.in_second
    if not node.degree:
        return "no neighbours: only its own features speak"
    if first == second == 0:
        return f"none of its {plural(node.degree, 'neighbour')} is in either class"
    side = "for the first" if not second else "against it" if not first else "on both sides"
    return f"neighbours {side}: {first} of {node.degree} in the first, {second} in the second"


def history(page: PageData) -> list[str]:
    """The decisions that are part of the run, a sentence each."""
    return [sentence(decision) for decision in page.history.decisions]
