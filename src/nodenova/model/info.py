"""What is in each class, from a model and a graph: features, typical nodes, neighbors, a name.

No label is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.display import html_table, percent
from nodenova.errors import SettingError
from nodenova.graph import Graph
from nodenova.model.classes import display_names, make_unique
from nodenova.model.similarity import (
    MergeSplit,
    cosines_to_means,
    estimate_merge_split,
    remembered_means,
)
from nodenova.model.stop_words import STOP_WORDS
from nodenova.nn.seeding import fixed_sample, fixed_threads
from nodenova.settings import check_arguments, check_probability

if TYPE_CHECKING:
    from nodenova.model.model import Model


NAME_WORDS = 3
AROUND = "around node "  # begins the name of a class of which only neighbors are known
NEXT_TO = "next to "  # a feature of a graph without any others: next to 5578
_CUT = re.compile(r"(.*?)>=[-+.\deE]+$")  # year>=1998: a binned number
_PART = re.compile(r".*\[\d+\]$")  # emb[17]: one element of a vector; binned: emb[17]>=0.3


class Term(NamedTuple):
    """A feature in words.

    Attributes:
        rank: Kind of the feature: words 0, categories 1, numbers 2, vectors 3, neighbors 4.
        text: Its text, without = and >=.
        source: Column or word that it comes from; the strongest of each source is shown.
    """

    rank: int
    text: str
    source: str


def describe_feature(feature: str, is_word: bool, is_high: bool) -> Term | None:
    """A feature in words; None for a stop word and for the rest of a category.

    `feature` is a word, column=value, column>=number, column[element], a measurement, or
    "next to node".

    >>> describe_feature("genus", True, True), describe_feature("maintainer=GNU R", True, True)
    (Term(rank=0, text='genus', source='genu'), Term(rank=1, text='GNU R', source='maintainer='))
    >>> describe_feature("year>=1998", True, True), describe_feature("emb[17]", False, False).text
    (Term(rank=2, text='high year', source='year='), 'low emb[17]')
    >>> describe_feature("next to 5578", True, True)
    Term(rank=4, text='next to 5578', source='next to 5578')
    >>> describe_feature("via", True, True), describe_feature("maintainer=other", True, True)
    (None, None)
    """
    if feature.startswith(NEXT_TO):
        return Term(4, feature if is_high else f"not {feature}", feature)
    high = "high" if is_high else "low"
    cut = _CUT.fullmatch(feature)
    column = cut[1] if cut else feature
    if _PART.fullmatch(column):
        return Term(3, f"{high} {column}", f"{column}=")
    if cut or not is_word:
        return Term(2, f"{high} {column}", f"{column}=")
    column, equals, value = feature.partition("=")
    if equals and column:
        return None if value in ("", "other") else Term(1, value, f"{column}=")
    word = feature.lower()
    return None if word in STOP_WORDS else Term(0, feature, word.removesuffix("s"))


def make_name(terms: Iterable[Term], others: Sequence[str]) -> str:
    """A name from the first few terms, one per source, with more where that name is in `others`.

    The strongest terms come first. Elements of a vector and neighbors are used only where there is
    nothing else.

    >>> year, tree = Term(2, "high year", "year="), Term(0, "tree", "tree")
    >>> make_name([year, tree, Term(0, "trees", "tree"), Term(1, "GNU R", "owner=")], [])
    'tree, GNU R, high year'
    >>> make_name([Term(3, "high emb[3]", "emb[3]="), tree], ["tree"])
    'tree (2)'
    >>> hubs = [Term(4, f"next to {node}", f"next to {node}") for node in (5578, 6101, 17)]
    >>> make_name(hubs, []), make_name(hubs, ["around node 5578 (+2)"])
    ('around node 5578 (+2)', 'around node 6101 (+2)')
    """
    different = _one_per_source(sorted(terms, key=lambda one: one.rank))
    if not different:
        return ""
    if different[0].rank == 4:
        return _structure_name([one.text.removeprefix(NEXT_TO) for one in different], others)
    if different[0].rank < 3:
        different = [one for one in different if one.rank < 3]
    for length in range(min(NAME_WORDS, len(different)), len(different) + 1):
        name = ", ".join(one.text for one in different[:length])
        if name not in others:
            return name
    return make_unique([name], others)[0]


def _structure_name(hubs: Sequence[str], others: Sequence[str]) -> str:
    """The name of a class of which only neighbors are known, after the first hub that is free."""
    more = min(NAME_WORDS, len(hubs)) - 1
    names = [f"{AROUND}{hub} (+{more})" if more else f"{AROUND}{hub}" for hub in hubs]
    free = [name for name in names if name not in others]
    return free[0] if free else make_unique(names[:1], others)[0]


def _one_per_source(terms: Iterable[Term]) -> list[Term]:
    """The first term of each source, in order; different sources with one text count as one."""
    found: dict[str, Term] = {}
    texts: set[str] = set()
    for one in terms:
        if one.source not in found and one.text.lower() not in texts:
            found[one.source] = one
            texts.add(one.text.lower())
    return list(found.values())


PRIOR_NODES = 10.0  # average nodes that are added to either side
MIN_STRENGTH = 2.0  # standard errors of a feature that may be part of a name
MAX_CANDIDATES = 60  # strongest features that a name is chosen from


class Feature(NamedTuple):
    """A feature that distinguishes a class from the others.

    Attributes:
        name: Name of the feature.
        weight: Difference between the class and the other nodes, in standard errors; negative if
            the class has less of it.
    """

    name: str
    weight: float


def log_odds(having: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(C, d) log-odds ratio of having a word, class against other nodes, in standard errors.

    Either side gets `PRIOR_NODES` more nodes which have each word as often as all nodes do: the
    log-odds ratio with an informative Dirichlet prior of Monroe, Colaresi & Quinn ("Fightin'
    Words", 2008), so that a rare word must occur more than once to count.

    Args:
        having: (C, d) nodes of each class that have each word.
        size: (C,) nodes of each class.
    """
    total, n = having.sum(axis=0), size.sum()
    with_it = PRIOR_NODES * (total + 1) / (n + 2)  # (d,)
    without = PRIOR_NODES - with_it
    inside, inside_not = having + with_it, size[:, None] - having + without
    rest, rest_not = total - having + with_it, (n - size)[:, None] - (total - having) + without
    error = np.sqrt(1 / inside + 1 / inside_not + 1 / rest + 1 / rest_not)
    return (np.log(inside / inside_not) - np.log(rest / rest_not)) / error


def mean_difference(sums: np.ndarray, squares: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(C, d) Welch's t of the means of a class and of the other nodes; 0 where nothing varies.

    Args:
        sums: (C, d) sums of the values over the nodes of each class.
        squares: (C, d) sums of their squares.
        size: (C,) nodes of each class.
    """

    def moments(
        sums: np.ndarray, squares: np.ndarray, n: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        many = np.maximum(n, 1)[:, None]
        mean = sums / many
        variance = np.maximum(squares / many - mean**2, 0) * many / np.maximum(many - 1, 1)
        # A sum of squares is exact to a few parts in 10^12: less than that is no variance.
        return mean, np.where(variance > 1e-12 * (squares / many), variance, 0) / many

    mean, error = moments(sums, squares, size)
    mean_rest, error_rest = moments(
        sums.sum(axis=0) - sums, squares.sum(axis=0) - squares, size.sum() - size
    )
    both = np.sqrt(error + error_rest)
    there = (both > 0) & ((size > 0) & (size < size.sum()))[:, None]
    return np.divide(mean - mean_rest, both, out=np.zeros_like(mean), where=there)


def weights(graph: Graph, groups: np.ndarray, num_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """(C, d) difference of each group (N,) from the other nodes per feature, and (d,) which are
    words.

    Words are weighed by `log_odds`, other features by `mean_difference`. A word is a feature that
    is 0 or 1, and in a sparse matrix any that is never negative and that most nodes lack.
    """
    x, n = graph.x, graph.num_nodes
    size = np.bincount(groups, minlength=num_groups).astype(float)
    if isinstance(x, np.ndarray):
        parts = [x[groups == c].astype(np.float64) for c in range(num_groups)]
        sums = np.stack([part.sum(axis=0) for part in parts])
        squares = np.stack([np.square(part).sum(axis=0) for part in parts])
        low, high = x.min(axis=0), x.max(axis=0)
        words = (low >= 0) & (high <= 1) & (sums.sum(axis=0) == squares.sum(axis=0))
        having = sums
    else:
        member = sp.csr_array((np.ones(n), (groups, np.arange(n))), shape=(num_groups, n))

        def summed(values: np.ndarray) -> np.ndarray:
            matrix = sp.csr_array((values, x.indices, x.indptr), shape=x.shape)
            return (member @ matrix).toarray()  # (C, d)

        values = x.data.astype(np.float64)
        having = summed(np.ones_like(values))
        negative = np.bincount(x.indices, weights=values < 0, minlength=graph.num_features) > 0
        words = ~negative & (having.sum(axis=0) <= n / 2)
        sums, squares = (summed(values), summed(values**2)) if not words.all() else (having, having)
        total = having.sum(axis=0)
        words |= ~negative & (sums.sum(axis=0) == total) & (squares.sum(axis=0) == total)
    result = np.empty_like(sums)
    result[:, words] = log_odds(having[:, words], size)
    result[:, ~words] = mean_difference(sums[:, ~words], squares[:, ~words], size)
    return result, words


class Characteristics(NamedTuple):
    """What distinguishes each of some groups of nodes."""

    features: list[tuple[Feature, ...]]  # strongest first
    keywords: list[tuple[Feature, ...]]  # the same in words, one per column
    names: list[str]  # all different; "" where no feature is strong enough


def characteristic(
    graph: Graph, groups: np.ndarray, num_groups: int, count: int
) -> Characteristics:
    """Up to `count` characteristic features and keywords of each group, and a name for each.

    Words that the group has more often; measurements that are higher or lower.
    """
    weight, words = weights(graph, groups, num_groups)
    title = graph.feature_names or [f"feature {j}" for j in range(weight.shape[1])]
    result = Characteristics([], [], [])
    for row in weight:
        strength = np.where(words, row, np.abs(row))
        ranked = np.argsort(-strength, kind="stable")[: max(count, MAX_CANDIDATES)].tolist()
        ranked = [j for j in ranked if strength[j] > 0]
        result.features.append(tuple(Feature(title[j], float(row[j])) for j in ranked[:count]))
        terms = [(describe_feature(title[j], bool(words[j]), row[j] > 0), j) for j in ranked]
        row_of = {term: j for term, j in reversed(terms) if term is not None}
        found = _one_per_source(term for term, _ in terms if term is not None)[:count]
        result.keywords.append(
            tuple(Feature(term.text, float(strength[row_of[term]])) for term in found)
        )
        strong = [term for term, j in row_of.items() if strength[j] >= MIN_STRENGTH]
        result.names.append(make_name(reversed(strong), result.names))
    return result


class Neighbor(NamedTuple):
    """Another class that edges of a class lead to.

    Attributes:
        id: Id of the other class.
        share: Share of the class's edges that lead to it.
        expected: The share if edges were random.
    """

    id: int
    share: float
    expected: float


def edge_counts(graph: Graph, groups: np.ndarray, n: int) -> np.ndarray:
    """(C, C) edges between classes, each counted from both ends."""
    a, b = groups[graph.edge_index]
    return np.bincount(a * n + b, minlength=n * n).reshape(n, n)


def neighbors_of(edges: np.ndarray, i: int, ids: Sequence[int], count: int) -> tuple[Neighbor, ...]:
    """Up to `count` other classes that most edges of class i lead to."""
    if not edges[i].any():
        return ()
    share, expected = edges[i] / edges[i].sum(), edges.sum(axis=0) / edges.sum()
    others = [j for j in np.argsort(-share, kind="stable").tolist() if j != i and share[j] > 0]
    return tuple(Neighbor(ids[j], float(share[j]), float(expected[j])) for j in others[:count])


MAX_COMPARED_NODES = 100_000  # nodes that representatives are chosen from


@dataclass(frozen=True)
class ClassInfo:
    """What is in one class.

    The attributes from `size` on need a graph; without one they are None or empty.

    Attributes:
        id: Id of the class, as in `NodeClass`.
        name: Its given name, or else its `auto_name`; unique.
        auto_name: Unique name made of its features or suggested by a namer, or else its name.
        kind: "known" (learned from labels) or "discovered".
        stage: Stage, as in `NodeClass`.
        nearest: Id of the class with the most similar mean.
        nearest_similarity: Cosine of the two means.
        size: Number of nodes in the class; in a run, those of predictions.csv.
        share: Their share of all nodes.
        confidence: Mean probability of the class over these nodes; None without nodes. In a run,
            that of discovered classes is calibrated.
        unsure: Number of them with a probability below `min_confidence`.
        labelled: Number of them that the user labelled, if known. In a discovered class such a
            label is evidence against the class.
        fits_none: Number of them that fit none of the classes, if computed.
        same_as: Id of the class that it most likely belongs together with.
        same_as_probability: Probability that a node of the one and a node of the other belong
            together; not computed for two known classes.
        two: Probability that it is two classes.
        halves_alike: Correlation of the means of its two halves, without sampling noise. Near 1:
            they are alike; near 0: they differ as two classes do.
        held_out: In a run: number of the user's labels that, judged without themselves, land in it.
        held_out_right: Number of them that are labels of this class.
        one_class: In a run: probability that it is one class, which means that at least 80% of its
            nodes belong to one true class; None for a known class. The verdict follows from it.
        cohesion: Mean over these nodes of their cosine to the mean of the class, less the highest
            cosine to another mean. Near 0 or below: hardly separated from its neighbors.
        representatives: Ids of nodes nearest to the mean, among the surer half, no two of them
            linked.
        representative_nodes: Their indices.
        features: The most characteristic features: see `log_odds` and `mean_difference`.
        keywords: The same in words, as pairs of text and strength: without stop words, the column
            of a number or category once ("high year", "GNU R").
        own_edges: Share of its nodes' edges that stay in the class.
        neighbors: The other classes that most of its edges lead to.
        size_by_model: In a run: number of nodes that the model alone puts in the class, before
            labels and earlier classes are kept. `confidence`, `unsure`, `labelled` and `fits_none`
            are of these nodes.
        confidence_by_model: In a run: `confidence` before it is calibrated.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> info = nova.fit(old).class_info()[0]
        >>> info.name, info.kind, info.nearest
        ('class-0', 'known', 1)
    """

    id: int
    name: str
    auto_name: str
    kind: str
    stage: int
    nearest: int | None = None
    nearest_similarity: float | None = None
    size: int | None = None
    share: float | None = None
    confidence: float | None = None
    unsure: int | None = None
    labelled: int | None = None
    fits_none: int | None = None
    same_as: int | None = None
    same_as_probability: float | None = None
    two: float | None = None
    halves_alike: float | None = None
    held_out: int | None = None
    held_out_right: int | None = None
    one_class: float | None = None
    cohesion: float | None = None
    representatives: tuple[str | int, ...] = ()
    representative_nodes: tuple[int, ...] = ()
    features: tuple[Feature, ...] = ()
    keywords: tuple[Feature, ...] = ()
    own_edges: float | None = None
    neighbors: tuple[Neighbor, ...] = ()
    size_by_model: int | None = None
    confidence_by_model: float | None = None

    @property
    def is_new(self) -> bool:
        """Whether it was discovered."""
        return self.stage > 0

    @property
    def predicted_size(self) -> int:
        """Number of nodes that the model alone puts in the class; 0 if that is not known."""
        return (self.size if self.size_by_model is None else self.size_by_model) or 0


# Columns of a table of classes, in this order.
FRAME = ("id", "name", "auto_name", "kind", "stage", "size", "share", "confidence", "unsure",
         "labelled", "held_out", "one_class", "fits_none", "same_as", "same_as_probability", "two",
         "cohesion", "nearest", "nearest_similarity", "own_edges", "features",
         "keywords", "representatives")  # fmt: skip


class ClassInfos(tuple[ClassInfo, ...]):
    """One `ClassInfo` per class, in the order of `model.classes`.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> nova.fit(old).class_info().to_frame()["name"].tolist()
        ['class-0', 'class-1']
    """

    __slots__ = ()

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a data frame with a row for each class: fields of `ClassInfo`, features by name.

        Args:
            backend: Library of the data frame.

        Raises:
            SettingError: If the backend is none of these, or not installed.
        """
        import narwhals as nw

        backends = ("pandas", "polars", "pyarrow")
        if backend not in backends:
            raise SettingError(f"backend must be one of {', '.join(backends)}, not {backend!r}")
        columns = {name: [getattr(info, name) for info in self] for name in FRAME}
        for name in ("features", "keywords"):
            columns[name] = [tuple(one.name for one in getattr(info, name)) for info in self]
        try:
            return nw.from_dict(columns, backend=backend).to_native()
        except ImportError:
            raise SettingError(
                f"to_frame(backend={backend!r}) needs {backend}: pip install {backend}"
            ) from None

    def _repr_html_(self) -> str:
        heads = ("id", "name", "kind", "nodes", "share", "confidence", "features")
        rows = [
            (info.id, info.name, info.kind, info.size,
             percent(info.share), percent(info.confidence),
             ", ".join(word.name for word in info.keywords[:5]))
            for info in sorted(self, key=lambda info: (not info.is_new, info.id))
        ]  # fmt: skip
        return html_table(heads, rows, f"{len(self)} classes")


def class_info(
    model: Model,
    graph: Graph | None = None,
    *,
    outputs: tuple[np.ndarray, np.ndarray] | None = None,
    labelled: np.ndarray | None = None,
    fits_none: np.ndarray | None = None,
    merge_split: MergeSplit | None = None,
    min_confidence: float = 0.5,
    representatives: int = 8,
    features: int = 10,
    neighbors: int = 5,
    names: Mapping[int, str] | None = None,
) -> ClassInfos:
    """Describe each class, in the order of `model.classes`. No label is used.

    Args:
        model: Model whose classes are described.
        graph: Graph whose nodes are described. Without one, only what the model itself knows.
        outputs: Result of `model.embed_and_predict(graph)`, if already computed.
        labelled: (N,) mask of the nodes that the user labelled, if known.
        fits_none: (N,) mask of the nodes that fit none of the classes, if computed.
        merge_split: Result of `estimate_merge_split`, if already computed.
        min_confidence: Nodes whose class is less probable count as unsure.
        representatives: Number of representatives per class.
        features: Number of characteristic features per class.
        neighbors: Number of neighboring classes per class.
        names: Names by class id that take the place of automatic ones.

    Raises:
        SettingError: If `min_confidence` is not a probability.

    Examples:
        >>> import nodenova as nova
        >>> labelled = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> old, new, exam = nova.split(labelled, [0, 1])
        >>> infos = nova.class_info(nova.discover(nova.fit(old), new), labelled.graph)
        >>> [info.kind for info in infos], sum(info.size for info in infos)
        (['known', 'known', 'discovered', 'discovered'], 200)
    """
    check_arguments(class_info, locals())
    check_probability(min_confidence)
    with torch.no_grad(), fixed_threads():
        means = remembered_means(model)  # (C, D)
        known = [ClassInfo(c.id, c.name, c.name, c.kind, c.stage) for c in model.classes]
        if graph is None:
            return ClassInfos(_with_nearest(known, means))
        z, p = model.embed_and_predict(graph) if outputs is None else outputs
        groups, sure = p.argmax(axis=1), p.max(axis=1)
        chosen = np.arange(graph.num_nodes)[fixed_sample(graph.num_nodes, MAX_COMPARED_NODES)]
        z_chosen = torch.from_numpy(z if len(chosen) == len(z) else z[chosen])
        means, cosine = cosines_to_means(model, z_chosen, groups[chosen], means)
    merge_split = estimate_merge_split(model, z, p) if merge_split is None else merge_split
    found = characteristic(graph, groups, len(known), features)
    edges = edge_counts(graph, groups, len(known))
    automatic = {c.id: name for c, name in zip(model.classes, found.names, strict=True)}
    automatic |= {c: name for c, name in (names or {}).items() if c in automatic}
    shown = display_names(model.classes, automatic)
    infos = []
    for i, info in enumerate(_with_nearest(known, means)):
        mine = np.flatnonzero(groups == i)
        of_chosen = cosine[groups[chosen] == i]
        best = _medoids(graph, chosen[groups[chosen] == i], sure, of_chosen[:, 0], representatives)
        apart = (of_chosen[:, 0] - of_chosen[:, 1]) if len(known) > 1 else mine[:0]
        described = replace(
            info,
            name=shown[i],
            auto_name=automatic[info.id] or info.name,
            size=len(mine),
            share=len(mine) / graph.num_nodes,
            confidence=float(sure[mine].mean(dtype=np.float64)) if len(mine) else None,
            unsure=int((sure[mine] < min_confidence).sum()),
            labelled=None if labelled is None else int(labelled[mine].sum()),
            fits_none=None if fits_none is None else int(fits_none[mine].sum()),
            cohesion=float(apart.mean()) if len(apart) else None,
            representatives=tuple(graph.node_ids[best].tolist()),
            representative_nodes=tuple(best.tolist()),
            features=found.features[i] if len(mine) else (),
            keywords=found.keywords[i] if len(mine) else (),
            own_edges=float(edges[i, i] / edges[i].sum()) if edges[i].any() else None,
            neighbors=neighbors_of(edges, i, [c.id for c in known], neighbors),
        )
        infos.append(described)
    return ClassInfos(infos if merge_split is None else _with_merge_split(infos, merge_split))


def without_ids(info: ClassInfo) -> ClassInfo:
    """The description of a class without ids of nodes: those of members, hubs and neighbors."""
    return replace(
        info,
        name=anonymous(info.id, info.name),
        auto_name=anonymous(info.id, info.auto_name),
        representatives=(),
        features=tuple(one for one in info.features if not one.name.startswith(NEXT_TO)),
        keywords=tuple(one for one in info.keywords if NEXT_TO not in one.name),
    )


def anonymous(class_id: int, name: str) -> str:
    """The name of a class, or new-7 instead of a name that is made of a node's id."""
    return f"new-{class_id}" if name.startswith(AROUND) else name


def _with_nearest(known: Sequence[ClassInfo], means: Tensor) -> list[ClassInfo]:
    if len(known) < 2:
        return list(known)
    unit = F.normalize(means, dim=1)
    best = (unit @ unit.t()).fill_diagonal_(-torch.inf).max(dim=1)
    nearest = [known[other].id for other in best.indices.tolist()]
    found = zip(known, nearest, best.values.tolist(), strict=True)
    return [replace(info, nearest=other, nearest_similarity=s) for info, other, s in found]


def _with_merge_split(infos: Sequence[ClassInfo], merge_split: MergeSplit) -> list[ClassInfo]:
    result = []
    of_classes = (merge_split.together, merge_split.two, merge_split.halves_alike)
    for info, together, two, alike in zip(infos, *of_classes, strict=True):
        if not np.isnan(together).all():
            best = int(np.nanargmax(together))
            same_as, p = infos[best].id, float(together[best])
            info = replace(info, same_as=same_as, same_as_probability=p)
        if not np.isnan(two):
            info = replace(info, two=float(two), halves_alike=float(alike))
        result.append(info)
    return result


def _medoids(
    graph: Graph, mine: np.ndarray, sure: np.ndarray, cosine: np.ndarray, count: int
) -> np.ndarray:
    """Unlinked nodes with the highest cosine among the surer half of `mine`, best first."""
    if not len(mine):
        return mine
    surer = sure[mine] >= np.median(sure[mine])
    ranked = mine[surer][np.argsort(-cosine[surer], kind="stable")].tolist()
    links = graph.adjacency
    best: list[int] = []
    near: set[int] = set()
    for node in ranked:
        if len(best) == count:
            break
        if node not in near:
            best.append(node)
            near.update(links.indices[links.indptr[node] : links.indptr[node + 1]].tolist())
    return np.array(best, dtype=np.int64)
