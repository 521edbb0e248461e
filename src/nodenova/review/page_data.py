"""What a review page tells, as plain values.

The nodes on the map, the classes, what moved and what is unsure.

Nodes between two classes: one list, by the pair that they are between.

Which nodes a review page shows on its map, and what it says of each and of its neighbors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from nodenova.errors import GraphError
from nodenova.evaluation.graded import GradedRun
from nodenova.evaluation.metrics import confusion_matrix, match_global
from nodenova.graph import Graph
from nodenova.model.decisions import Split
from nodenova.model.info import ClassInfo, class_info
from nodenova.model.model import Model, Stage
from nodenova.report.tsne import positions
from nodenova.review.node_text import texts_of
from nodenova.review.review_file import History
from nodenova.review.suggestions import NO_SUGGESTIONS, Suggestions
from nodenova.review.trust import HeldOutScores

MAX_PAIRS = 12  # that are listed
MAX_OF_A_PAIR = 8  # nodes that are named of each
CLOSE = 0.2  # difference of probabilities below which a node is between known and discovered


@dataclass(frozen=True)
class AmbiguousNode:
    """A node between two classes.

    Attributes:
        node: Its number on the map.
        first: The likeliest class, a row in `PageData.classes`.
        second: The next one.
        p1: Probability of the first.
        p2: Probability of the second.
        in_first: How many of its neighbors are in the first.
        in_second: How many are in the second.
        degree: How many neighbors it has.
    """

    node: int
    first: int
    second: int
    p1: float
    p2: float
    in_first: int
    in_second: int
    degree: int


@dataclass(frozen=True)
class DoubtfulPair:
    """Two classes that nodes are between.

    Attributes:
        classes: Rows in `PageData.classes`, the one that more of the nodes are in first.
        total: How many nodes.
        nodes: Some of them, the closest calls first: (node, its likeliest class, the other).
    """

    classes: tuple[int, int]
    total: int
    nodes: tuple[tuple[int, int, int], ...]


def doubtful_pairs(
    best: np.ndarray, p: np.ndarray, is_new: np.ndarray, min_confidence: float
) -> list[DoubtfulPair]:
    """Nodes that are unsure, or hardly on one side of known and discovered, by pair of classes.

    Args:
        best: (N, 2 or more) the likeliest classes of every node, the likeliest first.
        p: (N, 2 or more) their probabilities.
        is_new: (C,) which classes were discovered.
        min_confidence: A node whose class is less likely is unsure.

    Returns:
        The pairs with most nodes first; numbers of nodes are those of the graph.

    Examples:
        >>> best = np.array([[0, 1], [1, 0], [0, 2], [0, 1]])
        >>> p = np.array([[0.45, 0.4], [0.48, 0.4], [0.55, 0.4], [0.9, 0.1]])
        >>> found = doubtful_pairs(best, p, np.array([False, False, True]), 0.5)
        >>> [(pair.classes, [node for node, _, _ in pair.nodes]) for pair in found]
        [((0, 1), [0, 1]), ((0, 2), [2])]
    """
    if len(is_new) < 2:
        return []
    first, second, margin = best[:, 0], best[:, 1], p[:, 0] - p[:, 1]
    between = (is_new[first] != is_new[second]) & (margin < CLOSE)
    doubtful = np.flatnonzero(between | (p[:, 0] < min_confidence))
    doubtful = doubtful[np.argsort(margin[doubtful], kind="stable")]
    key = np.minimum(first, second)[doubtful] * len(is_new) + np.maximum(first, second)[doubtful]
    pairs, counts = np.unique(key, return_counts=True)
    listed = []
    for pair in pairs[np.argsort(-counts, kind="stable")][:MAX_PAIRS]:
        mine = doubtful[key == pair]
        low, high = divmod(int(pair), len(is_new))
        most = int((first[mine] == high).sum()) > len(mine) / 2
        named = tuple((int(i), int(first[i]), int(second[i])) for i in mine[:MAX_OF_A_PAIR])
        listed.append(DoubtfulPair((high, low) if most else (low, high), len(mine), named))
    return listed


def numbers_of(pairs: Sequence[DoubtfulPair]) -> np.ndarray:
    """All nodes that the pairs name."""
    return np.array([node for pair in pairs for node, _, _ in pair.nodes], dtype=np.int64)


MIN_OF_A_CLASS = 50  # nodes that a sample takes of every class, if it has them
LIKELY = 5  # classes of a node whose probabilities are told
LISTED = 8  # neighbors of a node that are named
NEAR = 3  # classes of its neighbors that are counted
NOBODY = 0xFFFF  # instead of the number of a class


def likely_classes(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most likely classes of each node, and their probabilities, both (N, 2..5).

    NOBODY is the second where there is but one class.
    """
    best = np.argsort(-p, axis=1, kind="stable")[:, :LIKELY]
    missing = ((0, 0), (0, max(0, 2 - p.shape[1])))
    likely = np.take_along_axis(p, best, axis=1)
    return np.pad(best, missing, constant_values=NOBODY), np.pad(likely, missing)


def neighbor_classes(
    graph: Graph, first: np.ndarray, second: np.ndarray, n_classes: int
) -> tuple[np.ndarray, ...]:
    """The classes of each node's neighbors.

    Returns:
        (N, 3) the most frequent ones and their counts, NOBODY and 0 where there are fewer, and (N,)
        the counts of the node's own two classes, `first` and `second`.
    """
    n = graph.num_nodes
    most = min(NEAR, n_classes)
    member = sp.csr_array(
        (np.ones(n, dtype=np.float32), (np.arange(n), first)), shape=(n, n_classes)
    )
    near, near_count = np.full((n, NEAR), NOBODY), np.zeros((n, NEAR), dtype=np.int64)
    in_first, in_second = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for ids in np.array_split(np.arange(n), 1 + n // 4096):
        counts = (graph.adjacency[ids] @ member).toarray().astype(np.int64)  # (ids, classes)
        best = np.argsort(-counts, axis=1, kind="stable")[:, :most]
        near_count[ids, :most] = np.take_along_axis(counts, best, axis=1)
        near[ids, :most] = np.where(near_count[ids, :most] > 0, best, NOBODY)
        row = np.arange(len(ids))
        in_first[ids] = counts[row, first[ids]]
        there = second[ids] < n_classes
        in_second[ids] = counts[row, np.minimum(second[ids], n_classes - 1)] * there
    return near, near_count, in_first, in_second


def sample_nodes(first: np.ndarray, n_classes: int, most: int, must: np.ndarray) -> np.ndarray:
    """Ascending node numbers: all, or `must` and of every class its share of about `most`."""
    n = len(first)
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(0).permutation(n)
    parts = [must]
    for c in range(n_classes):
        mine = order[first[order] == c]
        parts.append(mine[: max(MIN_OF_A_CLASS, most * len(mine) // n)])
    return np.unique(np.concatenate(parts))


def listed_neighbors(
    graph: Graph, number: np.ndarray, n: int, p1: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """CSR (start, targets) of up to `LISTED` neighbors of each node on the map, surest first."""
    a, b = graph.edge_index[:, (number[graph.edge_index] >= 0).all(axis=0)]
    order = np.lexsort((b, -p1[b], a))
    a, b = number[a[order]], number[b[order]]
    rank = np.arange(len(a)) - np.searchsorted(a, a)
    a, b = a[rank < LISTED], b[rank < LISTED]
    return np.concatenate([[0], np.cumsum(np.bincount(a, minlength=n))]), b


def first_new_id(model: Model) -> int:
    """The id of the first class that was discovered: those learned from labels come before it."""
    splits = [edit for edit in model.edits if isinstance(edit, Split)]
    parts = {part for edit in splits for part in edit.parts}
    known = {c.id for c in model.classes if not c.is_new}
    learned = known - parts | {edit.class_id for edit in splits if known & {*edit.parts}}
    return 1 + max(learned - parts, default=-1)


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
