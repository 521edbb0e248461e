"""The review page: one HTML file without a network, on which classes are checked and corrected.

This file turns `PageData` into the values of the templates; the scripts in `assets` draw the map
and collect the decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from markupsafe import Markup

from nodenova.display import percent, plural
from nodenova.model.decisions import MAX_CHOSEN, Create, Merge, Rename, to_json
from nodenova.model.info import ClassInfo
from nodenova.report.charts import before_and_after_matching, loss_curves
from nodenova.report.html import MAP_SCRIPTS, START, decimal, render_page
from nodenova.report.node_map import map_data, pack
from nodenova.report.scores import ScoreTables, score_tables
from nodenova.review.page_data import MAX_SUGGESTED, AmbiguousNode, NumberPreview, PageData
from nodenova.review.review_file import Review, sentence
from nodenova.review.suggestions import (
    LabelSuggestion,
    MergeSuggestion,
    SplitSuggestion,
    Suggestion,
    Suggestions,
    likely,
)
from nodenova.review.trust import (
    Trust,
    display_confidence,
    found_in,
    number_sentence,
    tally,
    trust,
)
from nodenova.review.user_labels import labels_in_new_classes

T = TypeVar("T")
SCRIPTS = (
    *MAP_SCRIPTS, "numbers.js", "cards.js", "members.js", "suggestions.js", "review.js", START,
)  # fmt: skip
# Scores in the first lines of the page, in its words.
HEADLINE = {"All": "all nodes", "Old": "known classes", "New": "discovered classes"}


@dataclass(frozen=True, eq=False)
class Card:
    """A class. Classes and nodes are given by number."""

    number: int
    info: ClassInfo
    numbers: Mapping[str, str]  # measures by name
    trust: Trust | None  # the verdict on a discovered class; None for a known one
    nearest: int | None  # the most similar class
    auto_name: str  # suggested name; "" if it has that name, or one that a person gave
    same_as: tuple[int, str] | None  # a class that is likely the same, and how likely
    features: Sequence[tuple[str, float, float]]  # text, weight, length of the bar
    neighbors: Sequence[tuple[int, float, float]]  # class, share of edges, length of the bar
    instead: Sequence[tuple[int, float]]  # known classes of its nodes without it, and shares


@dataclass(frozen=True)
class Answers:
    """The first lines of the page: classes found (number, size), trust in them, the next step."""

    found: Sequence[tuple[int, int]]
    trust: Sequence[str]
    next_step: str


@dataclass(frozen=True)
class SuggestionCard:
    """A suggestion on the page. Classes are given by number, a node by number and name."""

    number: int  # number of its decision in the data of the scripts
    kind: str  # "merge", "split" or "relabel"
    classes: Sequence[int]  # classes it is about; for a label, the class that its node looks like
    likely: str  # its probability as text
    node: tuple[int, str] | None = None  # the labelled node
    label: str = ""


@dataclass(frozen=True)
class Graded:
    """Scores against an answer key."""

    seed: int  # the first graded seed
    nodes: int  # number of nodes graded in it
    headline: Sequence[tuple[str, str]]  # the first scores, under block matching
    scores: ScoreTables
    confusions: Mapping[str, Markup]  # by title


@dataclass(frozen=True)
class Phase:
    """Settings and losses of a training step; `losses` is "" where there are none."""

    title: str
    settings: Sequence[tuple[str, str]]
    losses: Markup


def review_page(
    page: PageData, served: bool = False, in_notebook: bool = False, read_only: bool = False
) -> str:
    """Render the page as HTML; equal data give equal pages.

    A `served` page may send the review to its server, one `in_notebook` to the page around it. One
    that is `read_only` has no place for decisions.
    """
    on_map = len(page.nodes.names)
    views = {"class": "class", "unsure": "confidence"}
    if page.true_names:
        views["true"] = "true class"
    cards = class_cards(page)
    return render_page(
        "nodenova.review",
        "review.html.j2",
        page.title,
        kind="review read-only" if read_only else "review",
        scripts=(*SCRIPTS[:-1], "widget.js", START) if in_notebook else SCRIPTS,
        data=_data(page, served, read_only),
        served=served,
        read_only=read_only,
        page=page,
        lead=lead(page),
        answers=answers(page, cards),
        warning=labels_in_new_classes(page.classes, page.last_edits),
        disagreement=disagreement(page),
        suggestions=suggestion_cards(page),
        more_labels=max(len(page.suggested.labels) - MAX_SUGGESTED, 0),
        farthest=fit_none(page),
        sampled=on_map if on_map < page.num_nodes else None,
        views=views,
        map_note="",
        class_view=True,
        cards=cards,
        has_numbers=len(page.numbers) > 1,
        why=why_ambiguous,
        history=[sentence(decision) for decision in page.history.decisions],
        graded=graded(page),
        facts_listed={**page.facts, **({"Model": page.model_hash} if page.model_hash else {})},
        stages=phases(page),
    )


def _data(page: PageData, served: bool, read_only: bool) -> dict[str, object]:
    """Data of the scripts: the map, the neighbors of each node, the review to fill in.

    A page that is `read_only` is not about edges: without these keys no node has "no neighbors".
    """
    nodes = page.nodes
    neighbors = {
        "degree": pack(nodes.degree, "<u4"),
        "near": pack(nodes.near, "<u2"),
        "nearCount": pack(nodes.near_count, "<u4"),
        "start": pack(nodes.start, "<u4"),
        "targets": pack(nodes.targets, "<u4"),
    }
    return {
        "review": Review(page.model_hash, after=page.history.revision).to_json(),
        "edits": page.edits,
        "served": served,
        "suggestions": [to_json(one.decision) for one in listed_suggestions(page.suggested)],
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
        **({} if read_only else neighbors),
        "shortened": nodes.shortened,
        "moved": _moved_by_hand(page),
        "edges": None if nodes.edges is None else pack(np.frombuffer(nodes.edges, "u1"), "u1"),
        "links": page.links,
        "nextId": page.next_id,
        "mostChosen": MAX_CHOSEN,
        "numNodes": page.num_nodes,
        "apart": page.apart,
        "own": [not info.is_new or _is_named(page, info) for info in page.classes],
        "firstNew": page.first_new,
        "typical": page.typical,
        "columns": list(nodes.texts),
        "texts": list(nodes.texts.values()),
        "numbers": [_number(page, one) for one in page.numbers] if len(page.numbers) > 1 else [],
        "numNew": page.num_new,
        "numCounted": page.num_counted,
        "given": None if nodes.given is None else pack(nodes.given, "<u2"),
    }


def _number(page: PageData, one: NumberPreview) -> dict[str, object]:
    """Data of the scripts about the classes at another number of new classes."""
    keys = ("id", "name", "isNew", "size")
    return {
        "number": one.number,
        "classes": [dict(zip(keys, row, strict=True)) for row in one.classes],
        "of": pack(np.searchsorted([row[0] for row in one.classes], one.class_ids), "<u2"),
    }


def _moved_by_hand(page: PageData) -> list[tuple[int, int]]:
    """Nodes that earlier reviews moved, and the class of each; both by number."""
    number = {name: i for i, name in enumerate(page.nodes.names)}
    row_of = {c.id: i for i, c in enumerate(page.classes)}
    moved: dict[int, int] = {}
    for decision in page.history.moves:
        if decision.class_id in row_of:
            row = row_of[decision.class_id]
            moved |= {number[str(node)]: row for node in decision.nodes if str(node) in number}
    return list(moved.items())


def lead(page: PageData) -> str:
    """The number of classes, nodes and edges, in one line."""
    new = sum(c.stage > 0 for c in page.classes)
    return (
        f"{len(page.classes) - new:,} known and "
        f"{plural(new, 'discovered class', 'discovered classes')} among "
        f"{plural(page.num_nodes, 'node')} and {plural(page.num_edges, 'edge')}."
    )


def answers(page: PageData, cards: Sequence[Card]) -> Answers:
    """What was found, whether it can be trusted, what to do next."""
    last = len(page.stages) - 1
    found = [(card.number, card.info.size or 0) for card in cards if card.info.stage == last > 0]
    verdicts = [card.trust for card in cards if card.trust is not None]
    share = percent(page.num_unsure / max(page.num_nodes, 1), 1)
    lines = [
        tally(verdicts),
        number_sentence(page.stages, page.classes),
        page.held_out.sentence if page.held_out is not None else "",
        f"{plural(page.num_unsure, 'node is', 'nodes are')} unsure ({share}): less than "
        f"{percent(page.min_confidence)} likely to be in the predicted class.",
    ]
    if not found:
        step = "If you expect new classes, discover again and set their number with --num-new."
    elif all(verdict.level == "yours" for verdict in verdicts):
        step = "All classes are yours. Use predictions.csv, or continue with discover --from."
    elif all(verdict.level in ("good", "yours") for verdict in verdicts):
        step = "Check a few members of each class, name it, and save."
    else:
        step = "Name the good classes, merge duplicates, split mixtures, reject the rest."
    return Answers(found, [line for line in lines if line], step)


def disagreement(page: PageData) -> str:
    """Which classes map and cards show where predictions.csv has the user's label; else ""."""
    number = page.num_disagreeing
    if not number:
        return ""
    return (
        "Map and cards show the classes of the model. For "
        f"{plural(number, 'node')} the model disagrees with your label. predictions.csv keeps "
        f"your label and marks {'it' if number == 1 else 'them'} agrees=no."
    )


def listed_suggestions(suggested: Suggestions) -> list[Suggestion]:
    """Suggestions on the page: all about classes, and the first labels that look wrong."""
    return [*suggested.about_classes, *suggested.labels[:MAX_SUGGESTED]]


def suggestion_cards(page: PageData) -> list[SuggestionCard]:
    """Suggestions that can be accepted with a click, in the order of `Suggestions.ranked`."""
    row_of = {c.id: number for number, c in enumerate(page.classes)}
    cards = []
    for i, one in enumerate(listed_suggestions(page.suggested)):
        chance = likely(one.probability)
        match one:
            case MergeSuggestion(class_ids):
                cards.append(SuggestionCard(i, "merge", [row_of[c] for c in class_ids], chance))
            case SplitSuggestion(class_id):
                cards.append(SuggestionCard(i, "split", [row_of[class_id]], chance))
            case LabelSuggestion(node, label, class_id):
                at = page.suggested_nodes[node]
                named = (at, page.nodes.names[at])
                cards.append(SuggestionCard(i, "relabel", [row_of[class_id]], chance, named, label))
    return cards


def fit_none(page: PageData) -> list[tuple[int, str]]:
    """Numbers and names of the first nodes that fit none of the classes."""
    numbers = [page.suggested_nodes[node] for node in page.suggested.none[:MAX_SUGGESTED]]
    return [(number, page.nodes.names[number]) for number in numbers]


def class_cards(page: PageData) -> list[Card]:
    """Cards of all classes: discovered ones first, then the largest first."""
    cards = [_card(page, i) for i in range(len(page.classes))]
    return sorted(cards, key=lambda card: (card.info.stage == 0, -(card.info.size or 0)))


def _card(page: PageData, i: int) -> Card:
    info = page.classes[i]
    row_of = {c.id: number for number, c in enumerate(page.classes)}
    right, total = (0, 0) if page.held_out is None else page.held_out.by_class[i]
    check = {"cross-check": f"{percent(right / total)} of {total:,}"} if total else {}
    verdict = _verdict(page, info) if info.is_new else None
    merges = (one for one in page.suggested.merges if info.id in one.class_ids)
    best = next(merges, None)  # they are sorted
    same = None
    if best is not None:
        (other,) = {*best.class_ids} - {info.id}
        same = (row_of[other], likely(best.probability))
    return Card(
        number=i,
        info=info,
        numbers={
            **check,
            "confidence": display_confidence(info, verdict),
            "unsure": f"{info.unsure or 0:,}",
            "cohesion": decimal(info.cohesion),
            "own edges": percent(info.own_edges),
            **({} if info.fits_none is None else {"fit none": f"{info.fits_none:,}"}),
        },
        trust=verdict,
        nearest=None if info.nearest is None else row_of[info.nearest],
        auto_name="" if _is_named(page, info) or info.auto_name == info.name else info.auto_name,
        same_as=same,
        features=_with_lengths([(word.name, word.weight) for word in info.keywords]),
        neighbors=_with_lengths(
            [(row_of[n.id], n.share) for n in info.neighbors if n.id in row_of]
        ),
        instead=_instead(page.moved[i]),
    )


def _verdict(page: PageData, info: ClassInfo) -> Trust:
    groupings = found_in(page.stages).get(info.id)
    return trust(info, page.classes, groupings, page.last_edits.get(info.id))


def _is_named(page: PageData, info: ClassInfo) -> bool:
    """Whether a person named the class, or merged others into it."""
    return isinstance(page.last_edits.get(info.id), Rename | Merge | Create)


def _instead(row: Sequence[int]) -> list[tuple[int, float]]:
    """Known classes that the nodes of a discovered one would be in without it."""
    best = np.argsort(-np.array(row), kind="stable")[:3].tolist()
    return [(c, row[c] / sum(row)) for c in best if row[c]]


def _with_lengths(rows: Sequence[tuple[T, float]]) -> list[tuple[T, float, float]]:
    """Add the length of the bar, 100 for the largest value."""
    longest = max((value for _, value in rows), default=0.0) or 1.0
    return [(what, value, 100 * value / longest) for what, value in rows]


def why_ambiguous(node: AmbiguousNode) -> str:
    """Where the neighbors of a node between two classes are."""
    if not node.degree:
        return "no neighbors: only its own features count"
    if node.in_first == node.in_second == 0:
        return f"none of its {plural(node.degree, 'neighbor')} is in either class"
    return (
        f"{node.in_first:,} of {plural(node.degree, 'neighbor')} in the first class, "
        f"{node.in_second:,} in the second"
    )


def graded(page: PageData) -> Graded | None:
    """Scores and confusion against the answer key; None without one."""
    if not page.rows:
        return None
    first = page.rows[0]
    counts = np.array(first.confusion)
    names = {c.id: c.name for c in page.classes if c.stage > 0}
    drawings = before_and_after_matching(
        counts, first.class_names, first.num_old, first.sizes, first.predicted_sizes, names
    )
    scores = score_tables(page.rows)
    values = dict(zip(scores.by_matching[0], scores.by_matching[1], strict=True))
    headline = [(text, values[title]) for title, text in HEADLINE.items()]
    return Graded(first.seed, int(counts.sum()), headline, scores, drawings)


def phases(page: PageData) -> list[Phase]:
    """Settings, data seen and losses of every training step."""
    return [
        Phase(
            f"Step {number}: {stage.method}",
            [
                *((name, _setting(value)) for name, value in stage.settings.items()),
                ("seed", str(stage.seed)),
                ("data seen", ", ".join(stage.sees) or "–"),
            ],
            loss_curves(stage.history, f"Losses of step {number}"),
        )
        for number, stage in enumerate(page.stages, start=1)
    ]


def _setting(value: object) -> str:
    """A setting as text, the same for tuples and, in saved models, lists."""
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
