"""What is in each class, as far as a graph and a model can tell. No label is asked.

What a class is called before anybody has named it: its strongest features, in plain words.

Which features tell the nodes of a class from all others, and a name made of them.

Which classes the edges of a class lead to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
from nodenova.nn.seeding import fixed_sample, fixed_threads

if TYPE_CHECKING:
    from nodenova.model.model import Model


NAME_WORDS = 3
# Words that say nothing of a class: articles, pronouns, prepositions, conjunctions, auxiliaries.
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about above after against all also am an and any are as at be because been before
        being below between both but by can could did do does doing down during each few for
        from further had has have having he her here hers him his how i if in into is it its
        itself just me more most my no nor not now of off on once only or other our out over own
        per same she should so some such than that the their them then there these they this
        those through to too under until up upon very via was we were what when where which
        while who whom why will with within without would you your
        """,
    )
)
_CUT = re.compile(r"(.*?)>=[-+.\deE]+$")  # year>=1998: a number in steps
_PART = re.compile(r".*\[\d+\]$")  # emb[17]: one part of a vector, or emb[17]>=0.3 with the above


def spoken(feature: str, is_word: bool, is_high: bool) -> tuple[int, str] | None:
    """How a feature is said in a name, and how gladly: words 0, categories 1, numbers 2, vectors 3.

    Args:
        feature: Its name: a word, column=value, column>=number, column[part], or a measurement.
        is_word: Whether nodes have it or not; else it is a measurement.
        is_high: Whether the class has more of it than others.

    Returns:
        None for what says nothing: a stop word, or the rest of a category.

    Examples:
        >>> spoken("genus", True, True), spoken("maintainer=GNU R", True, True)
        ((0, 'genus'), (1, 'GNU R'))
        >>> spoken("year>=1998", True, True), spoken("emb[17]", False, False)
        ((2, 'high year'), (3, 'low emb[17]'))
        >>> spoken("via", True, True), spoken("maintainer=other", True, True)
        (None, None)
    """
    high = "high" if is_high else "low"
    cut = _CUT.fullmatch(feature)
    column = cut[1] if cut else feature
    if _PART.fullmatch(column):
        return 3, f"{high} {column}"
    if cut or not is_word:
        return 2, f"{high} {column}"
    column, equals, value = feature.partition("=")
    if equals and column:
        return None if value in ("", "other") else (1, value)
    return None if feature.lower() in STOP_WORDS else (0, feature)


def name_of(features: Iterable[tuple[int, str]], taken: Sequence[str]) -> str:
    """The first few features in words, one of each stem, and more where that name is taken.

    Args:
        features: What `spoken` gave, the strongest first. Words go before categories, these before
            numbers; parts of a vector are named only where there is nothing else.
        taken: Names that other classes have.

    Examples:
        >>> name_of([(2, "high year"), (0, "tree"), (0, "trees"), (1, "GNU R")], [])
        'tree, GNU R, high year'
        >>> name_of([(3, "high emb[3]"), (0, "tree")], ["tree"])
        'tree (2)'
    """
    told = sorted(features, key=lambda one: one[0])
    if any(tier < 3 for tier, _ in told):
        told = [one for one in told if one[0] < 3]
    stems: dict[str, str] = {}
    for _, word in told:
        stems.setdefault(word.lower().removesuffix("s"), word)
    different = list(stems.values())
    if not different:
        return ""
    for length in range(min(NAME_WORDS, len(different)), len(different) + 1):
        name = ", ".join(different[:length])
        if name not in taken:
            return name
    return make_unique([name], taken)[0]


PRIOR_NODES = 10.0  # nodes with average features that are added to either side
LEAST = 2.0  # standard errors that a feature must lie off to be worth a name
TRIED = 60  # features, the strongest, that a name is chosen from


class Feature(NamedTuple):
    """A feature that tells a class from the others.

    Attributes:
        name: Of the feature.
        weight: How far the class lies off the other nodes in it, in standard errors; below zero it
            has less.
    """

    name: str
    weight: float

    @property
    def said(self) -> str:
        """It in words: "low" before what the class has less of.

        Examples:
            >>> Feature("pages", 3.5).said, Feature("pages", -3.5).said
            ('pages', 'low pages')
        """
        return self.name if self.weight > 0 else f"low {self.name}"


def log_odds(having: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Log-odds that a node of a class has a word, against a node of the others.

    Either side is given `PRIOR_NODES` nodes more which have each word as often as all nodes do: the
    log-odds ratio with an informative Dirichlet prior of Monroe, Colaresi & Quinn ("Fightin'
    Words", 2008), so that a rare word must be seen more than once to count.

    Args:
        having: (C, d) nodes of each class that have each word.
        size: (C,) nodes of each class.

    Returns:
        (C, d), in standard errors.
    """
    total, n = having.sum(axis=0), size.sum()
    with_it = PRIOR_NODES * (total + 1) / (n + 2)  # (d,)
    without = PRIOR_NODES - with_it
    inside, inside_not = having + with_it, size[:, None] - having + without
    rest, rest_not = total - having + with_it, (n - size)[:, None] - (total - having) + without
    error = np.sqrt(1 / inside + 1 / inside_not + 1 / rest + 1 / rest_not)
    return (np.log(inside / inside_not) - np.log(rest / rest_not)) / error


def mean_difference(sums: np.ndarray, squares: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Welch's t: the difference between the means of a class and of the other nodes.

    Args:
        sums: (C, d) sums of the values over the nodes of each class.
        squares: (C, d) sums of their squares.
        size: (C,) nodes of each class.

    Returns:
        (C, d), in its standard errors; 0 where nothing varies.
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
    """How far each group of nodes lies off the others in each feature.

    Words, which a node has or has not, are weighed by `log_odds`, other features by
    `mean_difference`. Words are features that are 0 or 1, and in a sparse matrix all that are never
    negative and that most nodes lack.

    Args:
        graph: Whose features.
        groups: (N,) the group of each node.
        num_groups: C.

    Returns:
        (C, d) weights, and (d,) which features are words.
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


def characteristic(
    graph: Graph, groups: np.ndarray, num_groups: int, count: int
) -> tuple[list[tuple[Feature, ...]], list[str]]:
    """The most characteristic features of each group, and a name for it made of them.

    Of words only those that the group has more often; of measurements those that are higher and
    those that are lower.

    Args:
        graph: Whose features.
        groups: (N,) the group of each node.
        num_groups: C.
        count: How many features of each group at the most.

    Returns:
        The features of each group, strongest first, and the names, all different; "" where none is
        strong enough.
    """
    weight, words = weights(graph, groups, num_groups)
    known = graph.feature_names
    features: list[tuple[Feature, ...]] = []
    names: list[str] = []
    for row in weight:
        strength = np.where(words, row, np.abs(row))
        best = [j for j in np.argsort(-strength, kind="stable")[:count].tolist() if strength[j] > 0]
        title = [known[j] if known is not None else f"feature {j}" for j in best]
        features.append(
            tuple(Feature(name, float(row[j])) for name, j in zip(title, best, strict=True))
        )
        names.append(name_of(_spoken(known, row, words, strength), names))
    return features, names


def _spoken(
    known: Sequence[str] | None, row: np.ndarray, words: np.ndarray, strength: np.ndarray
) -> list[tuple[int, str]]:
    """The features that a name may be made of, the strongest first."""
    strong = [
        j for j in np.argsort(-strength, kind="stable")[:TRIED].tolist() if strength[j] >= LEAST
    ]
    told = (
        spoken(known[j] if known is not None else f"feature {j}", bool(words[j]), row[j] > 0)
        for j in strong
    )
    return [one for one in told if one is not None]


class Neighbor(NamedTuple):
    """Another class that edges of a class lead to.

    Attributes:
        id: Of the other class.
        share: Of the class's edges that lead to it.
        expected: The share that would, if edges fell at random.
    """

    id: int
    share: float
    expected: float


def edge_counts(graph: Graph, groups: np.ndarray, n: int) -> np.ndarray:
    """(C, C) edges from a class to a class, each counted from both of its ends."""
    a, b = groups[graph.edge_index]
    return np.bincount(a * n + b, minlength=n * n).reshape(n, n)


def neighbors_of(edges: np.ndarray, i: int, ids: Sequence[int], count: int) -> tuple[Neighbor, ...]:
    """The other classes that most edges of class i lead to, at most `count`."""
    if not edges[i].any():
        return ()
    share, expected = edges[i] / edges[i].sum(), edges.sum(axis=0) / edges.sum()
    others = [j for j in np.argsort(-share, kind="stable").tolist() if j != i and share[j] > 0]
    return tuple(Neighbor(ids[j], float(share[j]), float(expected[j])) for j in others[:count])


MAX_SEEN = 100_000  # nodes among which typical ones are looked for


@dataclass(frozen=True)
class ClassInfo:
    """What is in one class.

    From `size` on it takes a graph to tell; without one they are None or empty.

    Attributes:
        id: As in `NodeClass`.
        name: The one it was given; where nobody has named it, its `auto_name`. Different from those
            of the other classes.
        auto_name: A name made of its features, different from those of the others; else its name.
        kind: "known" (learned from labels) or "discovered".
        stage: As in `NodeClass`.
        nearest: The id of the class whose mean is most like its own.
        nearest_similarity: The cosine of the two means.
        size: Nodes that the model puts in the class.
        share: Their share of all nodes.
        confidence: Mean probability of the class over these nodes; None when there are none.
        unsure: How many of them have a probability below `min_confidence`.
        labelled: How many of them have a label of the user's, where it is known which nodes have
            one. In a discovered class such a label speaks against the class.
        fits_none: How many of them fit none of the classes, where that was asked.
        same_as: The id of the class that it is likeliest one with; see `same_as_probability`.
        same_as_probability: That a node of the one and a node of the other belong together. Of
            two known classes it is not asked.
        two: The probability that it is two classes.
        cohesion: Mean over these nodes of their cosine to the mean of the class, less the highest
            to the mean of another class. Near 0 or below: hardly apart from its neighbors.
        representatives: Ids of nodes nearest to the mean, among the surer half, no two of them
            linked, so that they do not all say the same.
        representative_nodes: Their numbers.
        features: The most characteristic ones: see `log_odds` and `mean_difference`.
        own_edges: Share of its nodes' edges that stay in the class.
        neighbors: The other classes that most of its edges lead to.

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
    cohesion: float | None = None
    representatives: tuple[str | int, ...] = ()
    representative_nodes: tuple[int, ...] = ()
    features: tuple[Feature, ...] = ()
    own_edges: float | None = None
    neighbors: tuple[Neighbor, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether it was discovered."""
        return self.stage > 0


# The columns of a table of classes, in this order; what is drawn on a page alone is not among them.
FRAME = ("id", "name", "auto_name", "kind", "stage", "size", "share", "confidence", "unsure",
         "labelled", "fits_none", "same_as", "same_as_probability", "two", "cohesion", "nearest",
         "nearest_similarity", "own_edges", "features", "representatives")  # fmt: skip


class ClassInfos(tuple[ClassInfo, ...]):
    """What is in each class, in the order of `model.classes`: a sequence of `ClassInfo`.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> nova.fit(old).class_info().to_frame()["name"].tolist()
        ['class-0', 'class-1']
    """

    __slots__ = ()

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """A data frame, a row a class: the fields of `ClassInfo`, features by their names.

        Args:
            backend: Whose data frame.

        Raises:
            SettingError: The backend is none of these, or not installed.
        """
        import narwhals as nw

        kinds = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
        if backend not in kinds:
            raise SettingError(f"to_frame() knows the backends {', '.join(kinds)}, not {backend!r}")
        columns = {name: [getattr(info, name) for info in self] for name in FRAME}
        columns["features"] = [tuple(feature.name for feature in info.features) for info in self]
        try:
            return nw.from_dict(columns, backend=backend).to_native()
        except ImportError:
            made = f"{backend} {kinds[backend]}"
            how = f"pip install {backend}"
            raise SettingError(f"to_frame() makes a {made} and needs {backend}: {how}") from None

    def _repr_html_(self) -> str:
        heads = ("id", "name", "kind", "nodes", "share", "confidence", "what is in it")
        rows = [
            (info.id, info.name, info.kind, info.size,
             percent(info.share), percent(info.confidence),
             ", ".join(feature.name for feature in info.features[:5]))
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
    likeness: MergeSplit | None = None,
    min_confidence: float = 0.5,
    representatives: int = 8,
    features: int = 10,
    neighbors: int = 5,
) -> ClassInfos:
    """What is in each class, in the order of `model.classes`. No label is asked.

    Args:
        model: Whose classes.
        graph: Whose nodes are looked at. Without one, only what the model itself knows.
        outputs: What `model.embed_and_predict(graph)` gave, where that is known already.
        labelled: (N,) which nodes the user has labelled, where that is known; not with what.
        fits_none: (N,) which nodes fit none of the classes, where that was asked.
        likeness: What `estimate_merge_split` gave, where that is known already.
        min_confidence: Nodes whose class is less probable count as unsure.
        representatives: How many to give, as are the next two.
        features: The most characteristic ones of each class.
        neighbors: Other classes that edges lead to.

    Raises:
        SettingError: `min_confidence` is no probability.

    Examples:
        >>> import nodenova as nova
        >>> labelled = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> old, new, exam = nova.split(labelled, [0, 1])
        >>> infos = nova.class_info(nova.discover(nova.fit(old), new), labelled.graph)
        >>> [info.kind for info in infos], sum(info.size for info in infos)
        (['known', 'known', 'discovered', 'discovered'], 200)
    """
    if not 0 <= min_confidence <= 1:
        raise SettingError(f"min_confidence is a probability from 0 to 1, not {min_confidence}")
    with torch.no_grad(), fixed_threads():
        means = remembered_means(model)  # (C, D)
        known = [ClassInfo(c.id, c.name, c.name, c.kind, c.stage) for c in model.classes]
        if graph is None:
            return ClassInfos(_with_nearest(known, means))
        z, p = model.embed_and_predict(graph) if outputs is None else outputs
        groups, sure = p.argmax(axis=1), p.max(axis=1)
        seen = np.arange(graph.num_nodes)[fixed_sample(graph.num_nodes, MAX_SEEN)]
        z_seen = torch.from_numpy(z if len(seen) == len(z) else z[seen])
        means, cosine = cosines_to_means(model, z_seen, groups[seen], means)
    likeness = estimate_merge_split(model, z, p) if likeness is None else likeness
    found, names = characteristic(graph, groups, len(known), features)
    edges = edge_counts(graph, groups, len(known))
    automatic = {c.id: name for c, name in zip(model.classes, names, strict=True)}
    shown = display_names(model.classes, automatic)
    infos = []
    for i, info in enumerate(_with_nearest(known, means)):
        mine = np.flatnonzero(groups == i)
        of_seen = cosine[groups[seen] == i]
        best = _medoids(graph, seen[groups[seen] == i], sure, of_seen[:, 0], representatives)
        apart = (of_seen[:, 0] - of_seen[:, 1]) if len(known) > 1 else mine[:0]
        told = replace(
            info,
            name=shown[i],
            auto_name=names[i] or info.name,
            size=len(mine),
            share=len(mine) / graph.num_nodes,
            confidence=float(sure[mine].mean(dtype=np.float64)) if len(mine) else None,
            unsure=int((sure[mine] < min_confidence).sum()),
            labelled=None if labelled is None else int(labelled[mine].sum()),
            fits_none=None if fits_none is None else int(fits_none[mine].sum()),
            cohesion=float(apart.mean()) if len(apart) else None,
            representatives=tuple(graph.node_ids[best].tolist()),
            representative_nodes=tuple(best.tolist()),
            features=found[i] if len(mine) else (),
            own_edges=float(edges[i, i] / edges[i].sum()) if edges[i].any() else None,
            neighbors=neighbors_of(edges, i, [c.id for c in known], neighbors),
        )
        infos.append(told)
    return ClassInfos(infos if likeness is None else _with_likeness(infos, likeness))


def _with_nearest(known: Sequence[ClassInfo], means: Tensor) -> list[ClassInfo]:
    if len(known) < 2:
        return list(known)
    unit = F.normalize(means, dim=1)
    best = (unit @ unit.t()).fill_diagonal_(-torch.inf).max(dim=1)
    nearest = [known[other].id for other in best.indices.tolist()]
    found = zip(known, nearest, best.values.tolist(), strict=True)
    return [replace(info, nearest=other, nearest_similarity=s) for info, other, s in found]


def _with_likeness(infos: Sequence[ClassInfo], likeness: MergeSplit) -> list[ClassInfo]:
    told = []
    for info, together, two in zip(infos, likeness.together, likeness.two, strict=True):
        if not np.isnan(together).all():
            best = int(np.nanargmax(together))
            same_as, p = infos[best].id, float(together[best])
            info = replace(info, same_as=same_as, same_as_probability=p)
        told.append(info if np.isnan(two) else replace(info, two=float(two)))
    return told


def _medoids(
    graph: Graph, mine: np.ndarray, sure: np.ndarray, cosine: np.ndarray, count: int
) -> np.ndarray:
    """Numbers of the nodes with the highest cosine (of each) among the surer half of `mine`.

    Best first, no two of them linked.
    """
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
