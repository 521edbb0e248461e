"""What a review page tells, as plain values: the nodes on the map, the classes, what moved and what is unsure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from nodenova.drawing.layout import positions
from nodenova.errors import GraphError
from nodenova.evaluation.graded import GradedRun
from nodenova.evaluation.metrics import confusion_matrix, match_global
from nodenova.graph import Graph
from nodenova.model.info import ClassInfo, class_info
from nodenova.model.model import Model, Stage

Layout: TypeAlias = "Callable[[np.ndarray], np.ndarray]"  # embeddings (n, d) to places (n, 2)

MAX_NODES = 100_000  # on the map; of a larger graph a sample
MIN_OF_A_CLASS = 50  # nodes that a sample takes of every class, if it has them
LIKELY = 5  # classes of a node whose probabilities are told
LISTED = 8  # neighbours of a node that are named
NEAR = 3  # classes of its neighbours that are counted
DOUBTS = 25  # rows of a table of unsure nodes
LONGEST = 200  # letters of a node's name
NOBODY = 0xFFFF  # instead of the number of a class


@dataclass(frozen=True, eq=False)
class Nodes:
    """n nodes on the map. Classes are numbers of rows in `PageData.classes`, NOBODY for none.

    xy: (n, 2) in [0, 1].  best, p: (n, 2..5) the most likely classes, and their probabilities.
    degree: (n,) neighbours in the whole graph.  near, near_count: (n, 3) the classes most of these are in, and how many.
    start, targets: CSR of up to 8 neighbours that are on the map, the surest first.
    given: (n,) labels of phase 1.  true: (n,) numbers of rows in `PageData.true_names`, NOBODY where unknown.
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
    given: np.ndarray | None = None
    true: np.ndarray | None = None


@dataclass(frozen=True)
class AmbiguousNode:
    """A node between two classes, and how many of its neighbours are in either. `node` is its number on the map."""

    node: int
    first: int
    second: int
    p1: float
    p2: float
    in_first: int
    in_second: int
    degree: int


@dataclass(frozen=True, eq=False)
class PageData:
    """Everything on a page. `moved[i][c]` says how many nodes of class i would be in old class c without the new ones."""

    title: str
    model: str  # sha256 of the model that is reviewed
    edits: int  # decisions that are part of it already
    num_nodes: int  # of the whole graph
    num_edges: int
    classes: tuple[ClassInfo, ...]
    typical: tuple[tuple[int, ...], ...]  # numbers of the representatives of each class on the map
    nodes: Nodes
    min_confidence: float
    num_unsure: int
    moved: tuple[tuple[int, ...], ...]
    border: tuple[AmbiguousNode, ...]
    unsure: tuple[AmbiguousNode, ...]
    stages: tuple[Stage, ...]
    facts: Mapping[str, object]
    versions: Mapping[str, str]
    true_names: tuple[str, ...] = ()
    true_as: tuple[
        int, ...
    ] = ()  # the class that most of a true class is in, one to one; -1 for none
    rows: Sequence[GradedRun] = ()


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
) -> PageData:
    """The story of `model` on `graph`.

    answers: (y, names): the true class of every node, -1 where it is unknown, and what these classes are called.
    known:   (N,) id of the class that a node was labelled with, -1 for none.
    rows:    graded seeds, whose scores are shown.
    facts, versions: shown at the end, as they are.
    max_nodes: of a graph with more nodes the map shows a sample, every class by its share.
    layout:  embeddings to places; `partial(positions, progress=...)` to be told how far it is.
    outputs, classes: what `model.embed_and_predict(graph)` and `model.class_info(graph)` gave, where that is known already.
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
    best, likely = _best(p)
    (first, second), (p1, p2) = best.T[:2], likely.T[:2]
    near, near_count, in_first, in_second = _around(graph, first, second, len(classes))
    is_new = np.array([c.stage > 0 for c in classes])
    margin = p1 - p2
    unsure = np.flatnonzero(p1 < min_confidence)
    border = (
        np.flatnonzero(is_new[first] != is_new[second])
        if len(classes) > 1
        else np.array([], dtype=np.int64)
    )
    chosen = [ids[np.argsort(margin[ids], kind="stable")[:DOUBTS]] for ids in (border, unsure)]
    must = np.unique(
        np.concatenate(
            [*chosen, *(np.array(c.representative_nodes, dtype=np.int64) for c in classes)]
        )
    )
    shown = _sample(first, len(classes), max_nodes, must)
    number = np.full(graph.num_nodes, -1)
    number[shown] = np.arange(len(shown))
    degree = np.diff(graph.adjacency.indptr)
    start, targets = _listed(graph, number, len(shown), p1)

    def doubts(ids: np.ndarray) -> tuple[AmbiguousNode, ...]:
        columns = (number, first, second, p1, p2, in_first, in_second, degree)
        return tuple(AmbiguousNode(*(column[i].item() for column in columns)) for i in ids)

    true_as: tuple[int, ...] = ()
    if answers is not None:
        true_as = _matched(answers[0], first, len(answers[1]), len(classes))
    place = {c.id: i for i, c in enumerate(classes)}
    given = None if known is None else np.array([place.get(int(c), NOBODY) for c in known[shown]])
    return PageData(
        title=title,
        model=model_hash,
        edits=len(model.edits),
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges // 2,
        classes=classes,
        typical=tuple(tuple(number[list(c.representative_nodes)].tolist()) for c in classes),
        nodes=Nodes(
            names=tuple(_short(str(name)) for name in graph.node_ids[shown].tolist()),
            xy=layout(z[shown]),
            best=best[shown],
            p=likely[shown],
            degree=degree[shown],
            near=near[shown],
            near_count=near_count[shown],
            start=start,
            targets=targets,
            given=given,
            true=None
            if answers is None
            else np.where(answers[0][shown] < 0, NOBODY, answers[0][shown]),
        ),
        min_confidence=min_confidence,
        num_unsure=len(unsure),
        moved=_moved(p, first, is_new),
        border=doubts(chosen[0]),
        unsure=doubts(chosen[1]),
        stages=model.stages,
        facts=facts or {},
        versions=versions or {},
        true_names=() if answers is None else tuple(answers[1]),
        true_as=true_as,
        rows=rows,
    )


def _best(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N, 2..5) the most likely classes of each node, and their probabilities; NOBODY where there is but one class."""
    best = np.argsort(-p, axis=1, kind="stable")[:, :LIKELY]
    missing = ((0, 0), (0, max(0, 2 - p.shape[1])))
    return np.pad(best, missing, constant_values=NOBODY), np.pad(
        np.take_along_axis(p, best, axis=1), missing
    )


def _around(
    graph: Graph, first: np.ndarray, second: np.ndarray, n_classes: int
) -> tuple[np.ndarray, ...]:
    """The classes of each node's neighbours: the three most frequent, their counts, and those of its own two classes."""
    n, most = graph.num_nodes, min(NEAR, n_classes)
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
        in_second[ids] = counts[row, np.minimum(second[ids], n_classes - 1)] * (
            second[ids] < n_classes
        )
    return near, near_count, in_first, in_second


def _sample(first: np.ndarray, n_classes: int, most: int, must: np.ndarray) -> np.ndarray:
    """Ascending node numbers: all, or of every class its share of about `most`, and `must` in any case."""
    n = len(first)
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(0).permutation(n)
    parts = [must]
    for c in range(n_classes):
        mine = order[first[order] == c]
        parts.append(mine[: max(MIN_OF_A_CLASS, most * len(mine) // n)])
    return np.unique(np.concatenate(parts))


def _listed(
    graph: Graph, number: np.ndarray, n: int, p1: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """CSR (start, targets) of up to `LISTED` neighbours of each node on the map, the surest first."""
    a, b = graph.edge_index[:, (number[graph.edge_index] >= 0).all(axis=0)]
    order = np.lexsort((b, -p1[b], a))
    a, b = number[a[order]], number[b[order]]
    rank = np.arange(len(a)) - np.searchsorted(a, a)
    a, b = a[rank < LISTED], b[rank < LISTED]
    return np.concatenate([[0], np.cumsum(np.bincount(a, minlength=n))]), b


def _moved(p: np.ndarray, first: np.ndarray, is_new: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """(classes, classes): nodes of each new class by the old class that is the most likely one among the old."""
    n, old = len(is_new), np.flatnonzero(~is_new)
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
