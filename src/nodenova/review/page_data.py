"""What a review page tells, as plain values.

The nodes on the map, the classes, what moved and what is unsure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from nodenova.drawing.layout import positions
from nodenova.errors import GraphError
from nodenova.evaluation.graded import GradedRun
from nodenova.evaluation.metrics import confusion_matrix, match_global
from nodenova.graph import Graph
from nodenova.model.info import ClassInfo, class_info
from nodenova.model.model import Model, Stage
from nodenova.review.doubts import AmbiguousNode, DoubtfulPair, doubtful_pairs, numbers_of
from nodenova.review.history import History
from nodenova.review.map_nodes import (
    NOBODY,
    first_new_id,
    likely_classes,
    listed_neighbors,
    neighbor_classes,
    sample_nodes,
)
from nodenova.review.shown import texts_of
from nodenova.review.suggestions import NO_SUGGESTIONS, Suggestions
from nodenova.review.trust import HeldOutScores

Layout: TypeAlias = "Callable[[np.ndarray], np.ndarray]"  # embeddings (n, d) to places (n, 2)

MAX_NODES = 100_000  # on the map
SAMPLED = 20_000  # on the map of a larger graph
MAX_SUGGESTED = 25  # labels that look wrong, and nodes that fit none of the classes
LONGEST = 200  # letters of a node's name


@dataclass(frozen=True, eq=False)
class Nodes:
    """n nodes on the map. Classes are numbers of rows in `PageData.classes`, NOBODY for none.

    Attributes:
        names: Of the nodes, cut where they are long.
        xy: (n, 2) places in [0, 1].
        best: (n, 2..5) the most likely classes.
        p: (n, 2..5) their probabilities.
        degree: (n,) neighbors in the whole graph.
        near: (n, 3) the classes most of these are in.
        near_count: (n, 3) how many of them.
        start: (n + 1,) where the neighbors of a node begin in `targets`.
        targets: Up to 8 neighbors of each node that are on the map, the surest first.
        texts: What is shown of each beside its name, by column.
        given: (n,) labels of phase 1.
        true: (n,) numbers of rows in `PageData.true_names`, NOBODY where unknown.
    """

    names: tuple[str, ...]
    xy: np.ndarray
    best: np.ndarray
    p: np.ndarray
    degree: np.ndarray
    near: np.ndarray
    near_count: np.ndarray
    start: np.ndarray
    targets: np.ndarray
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    given: np.ndarray | None = None
    true: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class PageData:
    """Everything on a page.

    Attributes:
        title: Of the page.
        model: The sha256 of the model that is reviewed.
        edits: How many decisions are part of it already.
        history: The decisions that are part of the run, and its revision.
        first_new: The id of the first class that was ever discovered: colors are by id.
        num_nodes: Of the whole graph.
        num_edges: Of the whole graph, each edge once.
        classes: What is in each class.
        typical: Numbers of the representatives of each class on the map.
        nodes: Those on the map.
        min_confidence: A node whose class is less likely is unsure.
        num_unsure: How many are.
        moved: `moved[i][c]` nodes of class i would be in old class c without the new ones.
        doubts: Nodes between two classes, by pair; nodes are told by their number on the map.
        ambiguous: What is known of each of these nodes, by that number.
        stages: How the model was made.
        facts: Shown at the end, as they are.
        versions: Of packages, shown at the end.
        true_names: Of the true classes, where there is an answer key.
        true_as: The class that most of a true class is in, one to one; -1 for none.
        rows: Graded seeds, whose scores are shown.
        suggested: What may be decided with a click.
        suggested_nodes: Numbers on the map of nodes that `suggested` names, by their ids.
        kept: How many labelled nodes keep a label that the model would not give them.
        held_out: How labelled nodes fare that are judged without their labels, where there are any.
    """

    title: str
    model: str
    edits: int
    history: History
    first_new: int
    num_nodes: int
    num_edges: int
    classes: tuple[ClassInfo, ...]
    typical: tuple[tuple[int, ...], ...]
    nodes: Nodes
    min_confidence: float
    num_unsure: int
    moved: tuple[tuple[int, ...], ...]
    doubts: tuple[DoubtfulPair, ...]
    ambiguous: Mapping[int, AmbiguousNode]
    stages: tuple[Stage, ...]
    facts: Mapping[str, object]
    versions: Mapping[str, str]
    true_names: tuple[str, ...] = ()
    true_as: tuple[int, ...] = ()
    rows: Sequence[GradedRun] = ()
    suggested: Suggestions = NO_SUGGESTIONS
    suggested_nodes: Mapping[str | int, int] = field(default_factory=dict)
    kept: int = 0
    held_out: HeldOutScores | None = None


def collect(
    model: Model,
    graph: Graph,
    *,
    title: str,
    model_hash: str,
    answers: tuple[np.ndarray, Sequence[str]] | None = None,
    known: np.ndarray | None = None,
    rows: Sequence[GradedRun] = (),
    facts: Mapping[str, object] | None = None,
    versions: Mapping[str, str] | None = None,
    max_nodes: int = MAX_NODES,
    min_confidence: float = 0.5,
    layout: Layout = positions,
    outputs: tuple[np.ndarray, np.ndarray] | None = None,
    classes: Sequence[ClassInfo] | None = None,
    suggested: Suggestions = NO_SUGGESTIONS,
    kept: int = 0,
    held_out: HeldOutScores | None = None,
    shown: Mapping[str, Sequence[str]] | None = None,
    history: History | None = None,
) -> PageData:
    """What a page tells of a model on a graph.

    Args:
        model: Which is reviewed.
        graph: Of N nodes.
        title: Of the page.
        model_hash: The sha256 of the model.
        answers: (y, names): the true class of every node, -1 where it is unknown, and what these
            classes are called.
        known: (N,) id of the class that a node was labelled with, -1 for none.
        rows: Graded seeds, whose scores are shown.
        facts: Shown at the end, as they are.
        versions: Of packages, shown at the end.
        max_nodes: Of a graph with more nodes the map shows a sample of 20,000 or of so many if that
            is less, every class by its share.
        min_confidence: A node whose class is less likely is unsure.
        layout: Embeddings to places; `partial(positions, progress=...)` to be told how far it is.
        outputs: What `model.embed_and_predict(graph)` gave, where that is known already.
        classes: What `class_info(model, graph)` gave, where that is known already.
        suggested: What may be decided with a click.
        kept: How many labelled nodes keep a label that the model would not give them.
        held_out: How labelled nodes fare that are judged without their labels.
        shown: (N,) texts of the nodes, by column; the words of each unless given.
        history: What was decided before.

    Raises:
        GraphError: `answers` or `known` are not of as many nodes as the graph has.
    """
    for what, values in (("answers", answers and answers[0]), ("known", known)):
        if values is not None and len(values) != graph.num_nodes:
            raise GraphError(
                f"{what} are given for {len(values)} nodes, but the graph has {graph.num_nodes}"
            )
    z, p = outputs = model.embed_and_predict(graph) if outputs is None else outputs
    classes = tuple(
        class_info(model, graph, outputs=outputs, min_confidence=min_confidence)
        if classes is None
        else classes
    )
    best, likely = likely_classes(p)
    (first, second), (p1, p2) = best.T[:2], likely.T[:2]
    near, near_count, in_first, in_second = neighbor_classes(graph, first, second, len(classes))
    is_new = np.array([c.stage > 0 for c in classes])
    pairs = doubtful_pairs(best, likely, is_new, min_confidence)
    named = _named(graph, suggested)
    typical = [np.array(c.representative_nodes, dtype=np.int64) for c in classes]
    must = np.unique(
        np.concatenate([numbers_of(pairs), *typical, np.array([*named.values()], dtype=int)])
    )
    most = max_nodes if graph.num_nodes <= max_nodes else min(max_nodes, SAMPLED)
    on_map = sample_nodes(first, len(classes), most, must)
    number = np.full(graph.num_nodes, -1)
    number[on_map] = np.arange(len(on_map))
    degree = np.diff(graph.adjacency.indptr)
    start, targets = listed_neighbors(graph, number, len(on_map), p1)
    columns = (number, first, second, p1, p2, in_first, in_second, degree)
    ambiguous = [
        AmbiguousNode(*(column[i].item() for column in columns)) for i in numbers_of(pairs)
    ]
    true_as: tuple[int, ...] = ()
    if answers is not None:
        true_as = _matched(answers[0], first, len(answers[1]), len(classes))
    place = {c.id: i for i, c in enumerate(classes)}
    given = None if known is None else np.array([place.get(int(c), NOBODY) for c in known[on_map]])
    return PageData(
        title=title,
        model=model_hash,
        edits=len(model.edits),
        history=history or History(),
        first_new=first_new_id(model),
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges // 2,
        classes=classes,
        typical=tuple(tuple(number[list(c.representative_nodes)].tolist()) for c in classes),
        nodes=Nodes(
            names=tuple(_short(str(name)) for name in graph.node_ids[on_map].tolist()),
            xy=layout(z[on_map]),
            best=best[on_map],
            p=likely[on_map],
            degree=degree[on_map],
            near=near[on_map],
            near_count=near_count[on_map],
            start=start,
            targets=targets,
            texts=texts_of(graph, shown or {}, on_map),
            given=given,
            true=None
            if answers is None
            else np.where(answers[0][on_map] < 0, NOBODY, answers[0][on_map]),
        ),
        min_confidence=min_confidence,
        num_unsure=int((p1 < min_confidence).sum()),
        moved=_moved(p, first, is_new),
        doubts=tuple(_on_map(pair, number) for pair in pairs),
        ambiguous={one.node: one for one in ambiguous},
        stages=model.stages,
        facts=facts or {},
        versions=versions or {},
        true_names=() if answers is None else tuple(answers[1]),
        true_as=true_as,
        rows=rows,
        suggested=suggested,
        suggested_nodes={node: int(number[i]) for node, i in named.items()},
        kept=kept,
        held_out=held_out,
    )


def _on_map(pair: DoubtfulPair, number: np.ndarray) -> DoubtfulPair:
    """The pair with its nodes by their numbers on the map."""
    nodes = tuple((int(number[node]), first, second) for node, first, second in pair.nodes)
    return replace(pair, nodes=nodes)


def _named(graph: Graph, suggested: Suggestions) -> dict[str | int, int]:
    """Numbers of the nodes that the page names of those suggested."""
    wanted = {one.node for one in suggested.labels[:MAX_SUGGESTED]}
    wanted |= set(suggested.none[:MAX_SUGGESTED])
    ids = graph.node_ids.tolist() if wanted else []
    return {node: i for i, node in enumerate(ids) if node in wanted}


def _moved(p: np.ndarray, first: np.ndarray, is_new: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """(classes, classes): nodes of each new class by the old class that is the likeliest one."""
    n = len(is_new)
    old = np.flatnonzero(~is_new)
    counts = np.zeros((n, n), dtype=np.int64)
    if len(old):
        before = old[p[:, old].argmax(axis=1)]
        for i in np.flatnonzero(is_new):
            counts[i] = np.bincount(before[first == i], minlength=n)
    return tuple(map(tuple, counts.tolist()))


def _matched(y: np.ndarray, first: np.ndarray, n_true: int, n_classes: int) -> tuple[int, ...]:
    counts = confusion_matrix(y[y >= 0], first[y >= 0], n_true, n_classes)
    partner = match_global(counts, (), ())
    true_as = np.full(n_true, -1)
    true_as[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    return tuple(true_as.tolist())


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
