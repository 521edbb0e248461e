"""Everything a review page shows, as plain values: nodes on the map, classes, unsure nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from nodenova.errors import GraphError
from nodenova.evaluation.graded import GradedRun
from nodenova.evaluation.metrics import confusion_matrix, match_global
from nodenova.graph import Graph
from nodenova.model.classes import make_unique
from nodenova.model.decisions import Edit, Relabel, Split, find_separations, last_edits
from nodenova.model.info import ClassInfo, characteristic, class_info, without_ids
from nodenova.model.model import Model, Stage
from nodenova.report.tsne import positions
from nodenova.review.cross_validation import HeldOutScores
from nodenova.review.node_text import texts_of
from nodenova.review.review_file import History
from nodenova.review.suggestions import NO_SUGGESTIONS, Suggestions

Layout: TypeAlias = "Callable[[np.ndarray], np.ndarray]"  # embeddings (n, d) to places (n, 2)

MAX_NODES = 100_000  # on the map
MAX_SAMPLED = 20_000  # on the map of a larger graph
MIN_PER_CLASS = 50  # nodes of every class in the sample, if it has that many
MAX_SUGGESTED = 25  # listed labels that look wrong, and listed nodes that fit no class
MAX_NAME = 200  # letters of a node's name
MAX_PAIRS = 12  # listed pairs of classes with nodes between them
MAX_PER_PAIR = 8  # listed nodes of each pair
CLOSE = 0.2  # difference of probabilities below which a node is between known and discovered
LIKELY = 5  # classes of a node with their probabilities
LISTED = 8  # neighbors of a node that are named
NEAR = 3  # most frequent classes of its neighbors
MAX_EDGES = 300_000  # edges on the map; of more, none are in the page
MAX_LINKS = 1000  # pairs of classes with edges between them
NO_CLASS = 0xFFFF  # instead of a row of `PageData.classes`


@dataclass(frozen=True)
class AmbiguousNode:
    """A node between two classes."""

    node: int  # its number on the map
    first: int  # row of the most likely class
    second: int  # row of the next one
    p1: float
    p2: float
    in_first: int  # number of its neighbors in the first
    in_second: int  # number of its neighbors in the second
    degree: int


@dataclass(frozen=True)
class DoubtfulPair:
    """Two classes with nodes between them."""

    classes: tuple[int, int]  # rows of the classes, the one with more of the nodes first
    total: int  # number of these nodes
    nodes: tuple[AmbiguousNode, ...]  # some of them, the closest calls first


@dataclass(frozen=True, eq=False)
class Nodes:
    """n nodes on the map. Classes are rows of `PageData.classes`, NO_CLASS for none."""

    names: tuple[str, ...]  # shortened
    xy: np.ndarray  # (n, 2) places in [0, 1]
    best: np.ndarray  # (n, 2..5) most likely classes
    p: np.ndarray  # (n, 2..5) their probabilities
    degree: np.ndarray  # (n,) number of neighbors in the whole graph
    near: np.ndarray  # (n, 3) most frequent classes of the neighbors
    near_count: np.ndarray  # (n, 3) number of neighbors in each
    start: np.ndarray  # (n + 1,) where the neighbors of a node begin in `targets`
    targets: np.ndarray  # up to 8 neighbors of each node that are on the map, the surest first
    edges: bytes | None = None  # as `pack_edges` packs them; None above MAX_EDGES
    shortened: tuple[int, ...] = ()  # numbers of the nodes whose names are shortened
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)  # (n,) texts by column
    given: np.ndarray | None = None  # (n,) labels
    true: np.ndarray | None = None  # (n,) rows of `PageData.true_names`, NO_CLASS where unknown


@dataclass(frozen=True, eq=False)
class NumberPreview:
    """The classes at another number of new classes."""

    number: int
    class_ids: np.ndarray  # (n,) class of each node on the map
    classes: tuple[tuple[int, str, bool, int], ...]  # id, name, whether new, number of nodes


@dataclass(frozen=True, eq=False)
class PageData:
    """Everything on a page."""

    title: str
    model_hash: str  # the sha256 of the reviewed model
    edits: int  # number of decisions that are part of the model
    first_new: int  # id of the first class that was ever discovered: colors go by id
    num_nodes: int  # of the whole graph
    num_edges: int  # of the whole graph, each counted once
    classes: tuple[ClassInfo, ...]
    typical: tuple[tuple[int, ...], ...]  # representatives of each class, by number on the map
    nodes: Nodes
    min_confidence: float  # a node whose class is less likely is unsure
    num_unsure: int
    moved: tuple[tuple[int, ...], ...]  # of class i, in known class c without the new classes
    doubts: tuple[DoubtfulPair, ...]  # nodes between two classes, by pair
    stages: tuple[Stage, ...]  # how the model was made
    facts: Mapping[str, object] = field(default_factory=dict)  # about the run
    versions: Mapping[str, str] = field(default_factory=dict)  # of packages
    true_names: tuple[str, ...] = ()  # names of the true classes, where there is an answer key
    true_as: tuple[int, ...] = ()  # class that is matched to each true class; -1 for none
    rows: Sequence[GradedRun] = ()  # graded seeds, whose scores are shown
    suggested: Suggestions = NO_SUGGESTIONS  # decisions that can be accepted with a click
    suggested_nodes: Mapping[str | int, int] = field(default_factory=dict)  # id to place on the map
    num_disagreeing: int = 0  # labelled nodes that the model would put into another class
    held_out: HeldOutScores | None = None  # cross-check of the labels
    history: History = field(default_factory=History)
    last_edits: Mapping[int, Edit] = field(default_factory=dict)  # about decided classes, by id
    moves: Sequence[Relabel] = ()  # nodes that a person moved
    apart: tuple[tuple[int, int], ...] = ()  # rows of classes that a person has split
    next_id: int = 0  # id of the next class
    links: tuple[tuple[int, int, int], ...] = ()  # rows of two classes, and edges between them
    numbers: tuple[NumberPreview, ...] = ()  # ascending; with that of the run, or empty
    num_new: int = 0  # number of new classes that the run has
    num_counted: int = 0  # number that was counted


def collect(
    model: Model,
    graph: Graph,
    *,
    answers: tuple[np.ndarray, Sequence[str]] | None = None,
    known: np.ndarray | None = None,
    max_nodes: int = MAX_NODES,
    min_confidence: float = 0.5,
    layout: Layout = positions,
    outputs: tuple[np.ndarray, np.ndarray] | None = None,
    classes: Sequence[ClassInfo] | None = None,
    suggested: Suggestions = NO_SUGGESTIONS,
    shown: Mapping[str, Sequence[str]] | None = None,
    previews: Mapping[int, np.ndarray] | None = None,
    **fields: Any,
) -> PageData:
    """Collect what the page of a model on a graph of N nodes shows; `fields` are of `PageData`.

    `answers` are (N,) true classes, -1 where unknown, and their names; `known` is (N,) the class id
    of each label, -1 for none; `shown` has (N,) texts by column (default: the words of each node).
    `outputs` and `classes` are those of `embed_and_predict` and `class_info`, if at hand. From
    `max_nodes` on, the map shows a stratified sample of at most 20,000 nodes. `previews` are (N,)
    class ids by other numbers of new classes.
    """
    for what, values in (("answers", answers and answers[0]), ("known", known)):
        if values is not None and len(values) != graph.num_nodes:
            raise GraphError(
                f"{what} are given for {len(values)} nodes, but the graph has {graph.num_nodes}"
            )
    z, p = outputs = model.embed_and_predict(graph) if outputs is None else outputs
    if classes is None:
        classes = class_info(model, graph, outputs=outputs, min_confidence=min_confidence)
    classes = tuple(classes)
    best, likely = likely_classes(p)
    first, p1 = best[:, 0], likely[:, 0]
    near, near_count, in_first, in_second = neighbor_classes(graph, best, len(classes))
    degree = np.diff(graph.adjacency.indptr)
    is_new = np.array([c.stage > 0 for c in classes])
    certain = np.eye(1, likely.shape[1])  # the class of a node that a person moved is decided
    moved = _moved_nodes(graph, fields.get("moves", ()))[:, None]
    pairs = doubtful_pairs(best, np.where(moved, certain, likely), is_new, min_confidence)
    suggested_nodes = _suggested_nodes(graph, suggested)
    listed = [nodes for _, _, nodes in pairs]
    listed += [np.array(c.representative_nodes, dtype=np.int64) for c in classes]
    listed.append(np.array([*suggested_nodes.values()], dtype=np.int64))
    most = max_nodes if graph.num_nodes <= max_nodes else min(max_nodes, MAX_SAMPLED)
    on_map = sample_nodes(first, len(classes), most, np.unique(np.concatenate(listed)))
    number = np.full(graph.num_nodes, -1)
    number[on_map] = np.arange(len(on_map))
    whole = {"best": best, "p": likely, "degree": degree, "near": near, "near_count": near_count}
    others: dict[str, Any] = {"texts": texts_of(graph, shown or {}, on_map)}
    if known is not None:
        row_of = {c.id: i for i, c in enumerate(classes)}
        others["given"] = np.array([row_of.get(int(c), NO_CLASS) for c in known[on_map]])
    if answers is not None:
        y, names = answers
        whole["true"] = np.where(y < 0, NO_CLASS, y)
        fields |= {"true_names": tuple(names)}
        fields |= {"true_as": _match_true(y, first, len(names), len(classes))}
    columns = (number, *best.T[:2], *likely.T[:2], in_first, in_second, degree)
    return PageData(
        edits=len(model.edits),
        last_edits=last_edits(model.edits),
        apart=_apart(model),
        next_id=model.next_id,
        links=class_links(graph, first, len(classes)),
        first_new=first_new_id(model),
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges // 2,
        classes=classes,
        typical=tuple(tuple(number[list(c.representative_nodes)].tolist()) for c in classes),
        nodes=_nodes_on_map(graph, on_map, number, whole, xy=layout(z[on_map]), **others),
        min_confidence=min_confidence,
        num_unsure=int((p1 < min_confidence).sum()),
        moved=_moves(p, first, is_new),
        doubts=tuple(_doubtful_pair(*pair, columns) for pair in pairs),
        stages=model.stages,
        suggested=suggested,
        suggested_nodes={node: int(number[i]) for node, i in suggested_nodes.items()},
        numbers=tuple(
            _number_preview(graph, other, ids, classes, on_map)
            for other, ids in sorted((previews or {}).items())
        ),
        **fields,
    )


def without_private(page: PageData) -> PageData:
    """The page without what is private: ids, texts, labels and edges of nodes, and decisions.

    Names, words and sizes of classes stay, and places and probabilities of nodes, which are
    numbered.
    """
    nodes, n = page.nodes, len(page.nodes.names)
    public = replace(
        nodes,
        names=tuple(f"node {number:,}" for number in range(1, n + 1)),
        degree=np.zeros_like(nodes.degree),
        near=np.full_like(nodes.near, NO_CLASS),
        near_count=np.zeros_like(nodes.near_count),
        start=np.zeros_like(nodes.start),
        targets=nodes.targets[:0],
        edges=None,
        shortened=(),
        texts={},
        given=None,
        true=None,
    )
    notes = re.compile(r"Note \d+")  # they may name files and nodes
    return replace(
        page,
        model_hash="",  # a review of this page is of no model
        nodes=public,
        classes=tuple(without_ids(info) for info in page.classes),
        doubts=(),
        facts={name: fact for name, fact in page.facts.items() if not notes.fullmatch(name)},
        true_names=(),
        true_as=(),
        suggested=NO_SUGGESTIONS,
        suggested_nodes={},
        history=History(),
        moves=(),
        numbers=(),
    )


def _number_preview(
    graph: Graph, num_new: int, class_ids: np.ndarray, classes: Sequence[ClassInfo], on_map: Any
) -> NumberPreview:
    """A preview; classes of the run keep their names, others get one from their features."""
    ids, groups, sizes = np.unique(class_ids, return_inverse=True, return_counts=True)
    name_of = {c.id: c.name for c in classes}
    known = {c.id for c in classes if c.stage == 0}
    if {*ids.tolist()} - {*name_of}:
        made = characteristic(graph, groups, len(ids), 0).names
        others = [i for i, c in enumerate(ids.tolist()) if c not in name_of]
        wanted = [made[i] or f"new-{ids[i]}" for i in others]
        unique = make_unique(wanted, list(name_of.values()))
        name_of |= {int(ids[i]): name for i, name in zip(others, unique, strict=True)}
    listed = zip(ids.tolist(), sizes.tolist(), strict=True)
    rows = tuple((c, name_of[c], c not in known, size) for c, size in listed)
    return NumberPreview(num_new, class_ids[on_map], rows)


def _nodes_on_map(
    graph: Graph, on_map: np.ndarray, number: np.ndarray, whole: dict[str, Any], **others: Any
) -> Nodes:
    """The nodes `on_map`; `whole` are fields of `Nodes` for all N, `number` is (N,) places."""
    ids = [str(node) for node in graph.node_ids[on_map].tolist()]
    start, targets = listed_neighbors(graph, number, len(on_map), whole["p"][:, 0])
    return Nodes(
        names=tuple(n if len(n) <= MAX_NAME else n[: MAX_NAME - 1] + "…" for n in ids),
        shortened=tuple(i for i, node in enumerate(ids) if len(node) > MAX_NAME),
        start=start,
        targets=targets,
        edges=pack_edges(graph, number, len(on_map)),
        **{name: values[on_map] for name, values in whole.items()},
        **others,
    )


def _doubtful_pair(
    classes: tuple[int, int], total: int, some: np.ndarray, columns: Sequence[np.ndarray]
) -> DoubtfulPair:
    """A pair of classes with some of its nodes; (N,) `columns` are the fields of those."""
    nodes = (AmbiguousNode(*(column[i].item() for column in columns)) for i in some)
    return DoubtfulPair(classes, total, tuple(nodes))


def doubtful_pairs(
    best: np.ndarray, p: np.ndarray, is_new: np.ndarray, min_confidence: float
) -> list[tuple[tuple[int, int], int, np.ndarray]]:
    """Pairs of classes with unsure nodes, or nodes close to both a known and a new class.

    `best` and `p` are (N, 2 or more) most likely classes and their probabilities. Returns (classes,
    number of nodes, some of these nodes), the pairs with most nodes and the closest calls first.
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
        most_in_high = int((first[mine] == high).sum()) > len(mine) / 2
        classes = (high, low) if most_in_high else (low, high)
        listed.append((classes, len(mine), mine[:MAX_PER_PAIR]))
    return listed


def likely_classes(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N, 2..5) most likely classes and their probabilities; NO_CLASS after the only class."""
    best = np.argsort(-p, axis=1, kind="stable")[:, :LIKELY]
    missing = ((0, 0), (0, max(0, 2 - p.shape[1])))
    likely = np.take_along_axis(p, best, axis=1)
    return np.pad(best, missing, constant_values=NO_CLASS), np.pad(likely, missing)


def neighbor_classes(graph: Graph, best: np.ndarray, n_classes: int) -> tuple[np.ndarray, ...]:
    """Classes of each node's neighbors, by (N, 2 or more) `best` classes of the nodes.

    Returns (N, 3) most frequent classes and their counts, NO_CLASS and 0 where there are fewer, and
    (N,) counts of the node's own two best classes.
    """
    n = graph.num_nodes
    first, second = best.T[:2]
    most = min(NEAR, n_classes)
    member = sp.csr_array(
        (np.ones(n, dtype=np.float32), (np.arange(n), first)), shape=(n, n_classes)
    )
    near, near_count = np.full((n, NEAR), NO_CLASS), np.zeros((n, NEAR), dtype=np.int64)
    in_first, in_second = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for ids in np.array_split(np.arange(n), 1 + n // 4096):
        counts = (graph.adjacency[ids] @ member).toarray().astype(np.int64)  # (ids, classes)
        order = np.argsort(-counts, axis=1, kind="stable")[:, :most]
        near_count[ids, :most] = np.take_along_axis(counts, order, axis=1)
        near[ids, :most] = np.where(near_count[ids, :most] > 0, order, NO_CLASS)
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
        parts.append(mine[: max(MIN_PER_CLASS, most * len(mine) // n)])
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


def pack_edges(graph: Graph, number: np.ndarray, n: int) -> bytes | None:
    """Edges between the n nodes on the map; None if there are more than MAX_EDGES.

    For each node in turn: how many of its neighbors have a higher number, then the gaps between
    their numbers, ascending. Whole numbers have 7 bits in each byte, the lowest first; the highest
    bit of a byte is set where another one follows.
    """
    a, b = number[graph.edge_index]
    upward = (a >= 0) & (a < b)
    a, b = a[upward], b[upward]
    if len(a) > MAX_EDGES:
        return None
    order = np.lexsort((b, a))
    a, b = a[order], b[order]
    first = np.r_[True, a[1:] != a[:-1]] if len(a) else np.zeros(0, dtype=bool)
    gaps = b - np.where(first, a, np.r_[0, b[:-1]]) if len(a) else b
    values = np.insert(gaps, np.searchsorted(a, np.arange(n)), np.bincount(a, minlength=n))
    parts = np.stack([values >> 7 * i for i in range(5)], axis=1)  # (values, 5)
    used = np.cumsum(parts[:, ::-1] > 0, axis=1)[:, ::-1] > 0
    used[:, 0] = True
    more = np.pad(used[:, 1:], ((0, 0), (0, 1)))
    return bytes((parts & 0x7F | more << 7)[used].astype(np.uint8))


def class_links(
    graph: Graph, first: np.ndarray, n_classes: int
) -> tuple[tuple[int, int, int], ...]:
    """Rows of two classes, or of one twice, and the number of edges between them; most first."""
    pairs = np.zeros(n_classes * n_classes, dtype=np.int64)
    edges = graph.edge_index
    for some in np.array_split(np.arange(edges.shape[1]), 1 + edges.shape[1] // 1_000_000):
        a, b = first[edges[:, some]]
        once = edges[0, some] <= edges[1, some]
        low, high = np.minimum(a, b)[once], np.maximum(a, b)[once]
        pairs += np.bincount(low * n_classes + high, minlength=len(pairs))
    most = np.argsort(-pairs, kind="stable")[:MAX_LINKS]
    rows = ((*divmod(pair, n_classes), int(pairs[pair])) for pair in most.tolist() if pairs[pair])
    return tuple(rows)


def first_new_id(model: Model) -> int:
    """Id of the first discovered class; all classes learned from labels have lower ids."""
    splits = [edit for edit in model.edits if isinstance(edit, Split)]
    parts = {part for edit in splits for part in edit.parts}
    known = {c.id for c in model.classes if not c.is_new}
    learned = known - parts | {edit.class_id for edit in splits if known & {*edit.parts}}
    return 1 + max(learned - parts, default=-1)


def _moved_nodes(graph: Graph, moves: Sequence[Relabel]) -> np.ndarray:
    """(N,) which nodes a person moved to another class."""
    nodes = {str(node) for one in moves for node in one.nodes}
    if not nodes:
        return np.zeros(graph.num_nodes, dtype=bool)
    return np.array([str(node) in nodes for node in graph.node_ids.tolist()])


def _apart(model: Model) -> tuple[tuple[int, int], ...]:
    """Rows of any two classes that hold different parts of a split."""
    row_of = {c.id: row for row, c in enumerate(model.classes)}
    pairs = find_separations(model.edits)
    return tuple((row_of[a], row_of[b]) for a, b in pairs if a in row_of and b in row_of)


def _suggested_nodes(graph: Graph, suggested: Suggestions) -> dict[str | int, int]:
    """Numbers in the graph of the listed nodes of the suggestions, by id."""
    wanted = {one.node for one in suggested.labels[:MAX_SUGGESTED]}
    wanted |= set(suggested.none[:MAX_SUGGESTED])
    ids = graph.node_ids.tolist() if wanted else []
    return {node: i for i, node in enumerate(ids) if node in wanted}


def _moves(p: np.ndarray, first: np.ndarray, is_new: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """(classes, classes) nodes of each new class by the known class that is most likely."""
    n = len(is_new)
    old = np.flatnonzero(~is_new)
    counts = np.zeros((n, n), dtype=np.int64)
    if len(old):
        before = old[p[:, old].argmax(axis=1)]
        for i in np.flatnonzero(is_new):
            counts[i] = np.bincount(before[first == i], minlength=n)
    return tuple(map(tuple, counts.tolist()))


def _match_true(y: np.ndarray, first: np.ndarray, n_true: int, n_classes: int) -> tuple[int, ...]:
    """The class matched to each true class, one to one; -1 for none."""
    counts = confusion_matrix(y[y >= 0], first[y >= 0], n_true, n_classes)
    partner = match_global(counts, (), ())
    true_as = np.full(n_true, -1)
    true_as[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    return tuple(true_as.tolist())
