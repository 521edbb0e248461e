"""What was understood of a user's graph, and what looks wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nodenova.data.labels import UNKNOWN, UserGraph
from nodenova.display import percent


@dataclass(frozen=True)
class Description:
    """A graph in numbers.

    Attributes:
        name: Of the graph.
        nodes: How many.
        edges: How many, each counted once.
        features: (kind, how many) for each kind.
        form: Of the features: "present or not", or "numbers".
        old_classes: (name, labelled nodes that are not new) for each class.
        answer_key: The same of the classes that new nodes are labelled with, for grading alone.
        unlabelled: How many nodes have no label.
        new: How many nodes are new.
        homophily: Share of the edges between labelled nodes that stay within a class, if any.
        homophily_by_chance: The same share if edges did not care for classes.
        components: How many connected components there are.
        largest: Nodes in the largest component.
        isolated: Nodes without an edge.
        degree: Its mean, median and maximum.
        notes: What was repaired, dropped or assumed.
        problems: (what looks wrong, how to mend it).
        weights: Of edges, the least and the largest; None where all count alike.
        vectors: How many numbers the vectors of texts have; 0 where there are none.
    """

    name: str
    nodes: int
    edges: int
    features: tuple[tuple[str, int], ...]
    form: str
    old_classes: tuple[tuple[str, int], ...]
    answer_key: tuple[tuple[str, int], ...]
    unlabelled: int
    new: int
    homophily: float | None
    homophily_by_chance: float | None
    components: int
    largest: int
    isolated: int
    degree: tuple[float, int, int]
    notes: tuple[str, ...]
    problems: tuple[tuple[str, str], ...]
    weights: tuple[float, float] | None = None
    vectors: int = 0


def describe(loaded: UserGraph) -> Description:
    """Count what `nodenova inspect` shows.

    Args:
        loaded: What `load_graph` made. A label of a new node counts as an answer key, nothing else.

    Returns:
        The counts, what was done to the files, and what looks wrong.
    """
    graph = loaded.graph
    new = loaded.is_new
    y = np.where(new, UNKNOWN, loaded.y)  # what phase 1 may know
    degree = np.diff(graph.adjacency.indptr)
    parts = connected_components(graph.adjacency, directed=False)[1]
    homophily, by_chance = _homophily(graph.edge_index, y)
    found = Description(
        name=loaded.name,
        nodes=graph.num_nodes,
        edges=graph.num_edges // 2,
        features=_features_by_kind(loaded),
        form="present or not" if sp.issparse(graph.x) else "numbers",
        old_classes=_counted(y, loaded.class_names),
        answer_key=_counted(np.where(new, loaded.y, UNKNOWN), loaded.class_names),
        unlabelled=int((loaded.y == UNKNOWN).sum()),
        new=len(loaded.new_ids),
        homophily=homophily,
        homophily_by_chance=by_chance,
        components=int(parts.max()) + 1,
        largest=int(np.bincount(parts).max()),
        isolated=int((degree == 0).sum()),
        degree=(float(degree.mean()), int(np.median(degree)), int(degree.max())),
        notes=loaded.notes,
        problems=(),
        weights=_range(graph.edge_weight),
        vectors=0 if graph.vectors is None else graph.vectors.shape[1],
    )
    return replace(found, problems=tuple(_problems(found, loaded)))


def _range(weight: np.ndarray | None) -> tuple[float, float] | None:
    if weight is None or not len(weight):
        return None
    return float(weight.min()), float(weight.max())


def _counted(y: np.ndarray, names: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    counts = np.bincount(y[y != UNKNOWN], minlength=len(names))
    return tuple((name, int(count)) for name, count in zip(names, counts, strict=True) if count)


def _homophily(edges: np.ndarray, y: np.ndarray) -> tuple[float | None, float | None]:
    a, b = y[edges]
    both = (a != UNKNOWN) & (b != UNKNOWN)
    if not both.any():
        return None, None
    ends = np.bincount(a[both]) / both.sum()  # share of edge ends in each class
    return float((a == b)[both].mean()), float((ends**2).sum())


def _features_by_kind(loaded: UserGraph) -> tuple[tuple[str, int], ...]:
    recipe = loaded.recipe
    if recipe is None:
        return (("ready made", loaded.graph.num_features),)
    kinds: dict[str, int] = {}
    for column in recipe.columns:
        kinds[column.kind] = kinds.get(column.kind, 0) + len(column.feature_names(recipe.cut))
    kinds["words"] = len(recipe.words)
    kinds["neighbours"] = len(recipe.neighbors)
    return tuple((kind, count) for kind, count in kinds.items() if count)


def _problems(d: Description, loaded: UserGraph) -> Iterator[tuple[str, str]]:
    label = "label_column (--label-column)"
    sizes = [count for _, count in d.old_classes]
    labelled = sum(sizes)
    if not sizes:
        yield (
            "no node that is not new has a label",
            f"name the column of classes with {label}, or label some nodes",
        )
    elif len(sizes) == 1:
        yield (
            f"there is one class only, {d.old_classes[0][0]!r}",
            "label nodes of at least two classes",
        )
    elif len(sizes) > max(10, labelled / 3):
        yield (
            f"{len(sizes):,} classes for {labelled:,} labelled nodes: "
            "the labels look like ids or names",
            f"give another {label}",
        )
    elif min(sizes) < 2:
        small = [name for name, count in d.old_classes if count < 2]
        yield (
            f"{len(small):,} classes have a single labelled node, first: {small[0]!r}",
            "label more of their nodes, or leave those labels empty",
        )
    elif max(sizes) > 20 * min(sizes):
        low = min(d.old_classes, key=lambda c: c[1])
        high = max(d.old_classes, key=lambda c: c[1])
        yield (
            f"classes are very unequal: {high[0]!r} has {high[1]:,} labelled nodes, "
            f"{low[0]!r} has {low[1]:,}",
            "label more of the small classes, or merge them into larger ones",
        )
    if not d.new:
        yield (
            "every node has a label: nothing is left to discover",
            "name the nodes to discover in with new_nodes (--new-nodes) or new_column "
            "(--new-column), or leave their labels empty",
        )
    if not d.edges:
        yield (
            "there are no edges: every node stands alone",
            "check the table of edges; without edges, text alone decides",
        )
    elif d.isolated > 0.4 * d.nodes:
        yield (
            f"{percent(d.isolated / d.nodes)} of the nodes have no edge",
            "check that ids are written alike in both tables, and that no edges are missing",
        )
    if (
        d.homophily is not None
        and d.homophily_by_chance is not None
        and d.homophily < 1.1 * d.homophily_by_chance < 1
    ):
        yield (
            f"edges hardly follow classes: {percent(d.homophily)} stay within one, "
            f"{percent(d.homophily_by_chance)} would by chance",
            "check that the labels belong to these nodes; if they do, other edges may tell more",
        )
    empty = _without_features(loaded)
    if empty > 0.2 * d.nodes:
        yield (
            f"{percent(empty / d.nodes)} of the nodes have no feature",
            "add a text column, or columns that more nodes have",
        )


def _without_features(loaded: UserGraph) -> int:
    x = loaded.graph.x
    empty = (x == 0).all(axis=1) if isinstance(x, np.ndarray) else np.diff(x.indptr) == 0
    return int(empty.sum())


def lines_of(d: Description) -> list[str]:
    """The description as lines of text, as `nodenova inspect` prints them."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in d.features)
    known = f"{len(d.old_classes):,} known: {_listed(d.old_classes)}" if d.old_classes else "none"
    key = f"; answer key, for grading alone: {_listed(d.answer_key)}" if d.answer_key else ""
    lines = [
        f"{d.name}: {d.nodes:,} nodes, {d.edges:,} edges",
        f"features   {sum(count for _, count in d.features):,} ({kinds}), kept as {d.form}",
        f"classes    {known}",
        f"unlabelled {d.unlabelled:,} nodes",
        f"discovery  among {d.new:,} nodes{key}",
        f"parts      {d.components:,} connected components, the largest of {d.largest:,} nodes; "
        f"{d.isolated:,} nodes alone",
        f"degree     mean {d.degree[0]:.1f}, median {d.degree[1]}, most {d.degree[2]:,}",
    ]
    if d.weights is not None:
        low, high = d.weights
        lines.append(f"weights    from {low:.3g} to {high:.3g}: heavier neighbors are heard more")
    if d.vectors:
        lines.append(f"vectors    {d.vectors:,} numbers a node, beside its features")
    if d.homophily is not None:
        lines.append(
            f"homophily  {percent(d.homophily)} of the edges between labelled nodes stay within a "
            f"class ({percent(d.homophily_by_chance)} would by chance)"
        )
    lines += ["", "What was done:", *(f"  {note}" for note in d.notes)] if d.notes else []
    lines += ["", "What looks wrong:" if d.problems else "Nothing looks wrong."]
    return lines + [f"  {what}; to mend it: {how}" for what, how in d.problems]


def _listed(classes: tuple[tuple[str, int], ...], most: int = 20) -> str:
    text = ", ".join(f"{name} {count:,}" for name, count in classes[:most])
    return text + (f" and {len(classes) - most:,} more" if len(classes) > most else "")
