"""Describe a user's graph in numbers, with likely problems, for `nodenova inspect`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nodenova.data.labels import UNKNOWN, UserGraph
from nodenova.display import percent, plural


@dataclass(frozen=True)
class Description:
    """A graph in numbers.

    Attributes:
        name: Name of the graph.
        nodes: Number of nodes.
        edges: Number of edges, each counted once.
        features: (kind, number of features) for each kind.
        form: Form of the features: "present or not", or "numbers".
        old_classes: (name, number of labelled nodes that are not new) for each class.
        answer_key: The same for labels of new nodes, which are used for grading only.
        unlabelled: Number of nodes without a label.
        new: Number of nodes to search for new classes.
        homophily: Share of the edges between labelled nodes that stay within a class, if any.
        homophily_by_chance: The share expected if edges ignored the classes.
        components: Number of connected components.
        largest: Number of nodes in the largest component.
        isolated: Number of nodes without an edge.
        degree: Mean, median and maximum degree.
        notes: Sentences on what was repaired, dropped or assumed.
        problems: (problem, fix) for each likely problem.
        weights: Smallest and largest edge weight; None without weights.
        vectors: Length of the text vectors; 0 without vectors.
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
    """Count what `nodenova inspect` prints.

    Args:
        loaded: Graph from `load_graph`. Labels of new nodes only count as the answer key.

    Returns:
        The counts, the notes on the files, and likely problems.
    """
    graph = loaded.graph
    new = loaded.is_new
    y = np.where(new, UNKNOWN, loaded.y)  # the labels that fitting may use
    degree, weight = np.diff(graph.adjacency.indptr), graph.edge_weight
    weights = None
    if weight is not None and len(weight):
        weights = (float(weight.min()), float(weight.max()))
    parts = connected_components(graph.adjacency, directed=False)[1]
    homophily, by_chance = _homophily(graph.edge_index, y)
    description = Description(
        name=loaded.name,
        nodes=graph.num_nodes,
        edges=graph.num_edges // 2,
        features=_features_by_kind(loaded),
        form="present or not" if sp.issparse(graph.x) else "numbers",
        old_classes=_count_labels(y, loaded.class_names),
        answer_key=_count_labels(np.where(new, loaded.y, UNKNOWN), loaded.class_names),
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
        weights=weights,
        vectors=0 if graph.vectors is None else graph.vectors.shape[1],
    )
    return replace(description, problems=tuple(_find_problems(description, loaded)))


def _count_labels(y: np.ndarray, names: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
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


def _label_problems(d: Description) -> Iterator[tuple[str, str]]:
    label = "label_column (--label-column)"
    sizes = [count for _, count in d.old_classes]
    labelled = sum(sizes)
    if not sizes:
        yield "No labelled nodes found", f"name the label column with {label}, or label some nodes"
    elif len(sizes) == 1:
        yield (
            f"All labelled nodes are of one class, {d.old_classes[0][0]!r}",
            "label nodes of at least two classes",
        )
    elif len(sizes) > max(10, labelled / 3):
        yield (
            f"{len(sizes):,} classes for {labelled:,} labelled nodes: the labels look like ids",
            f"name another column with {label}",
        )
    elif min(sizes) < 2:
        small = [name for name, count in d.old_classes if count < 2]
        what = plural(len(small), "class has", "classes have")
        yield (
            f"{what} a single labelled node, first: {small[0]!r}",
            "label more nodes of these classes, or leave those labels empty",
        )
    elif max(sizes) > 20 * min(sizes):
        low = min(d.old_classes, key=lambda c: c[1])
        high = max(d.old_classes, key=lambda c: c[1])
        yield (
            f"Class sizes are very unequal: {high[0]!r} has {high[1]:,} labelled nodes, "
            f"{low[0]!r} has {low[1]:,}",
            "label more nodes of the small classes, unless they are really that rare",
        )


def _find_problems(d: Description, loaded: UserGraph) -> Iterator[tuple[str, str]]:
    yield from _label_problems(d)
    if not d.new:
        yield (
            "Every node has a label, so there is nothing to search",
            "name the nodes to search with new_nodes (--new-nodes) or new_column (--new-column), "
            "or leave their labels empty",
        )
    if not d.edges:
        yield "There are no edges", "check the table of edges; without edges only features count"
    elif d.isolated > 0.4 * d.nodes:
        yield (
            f"{percent(d.isolated / d.nodes)} of the nodes have no edge",
            "check that both tables write ids alike, and that no edges are missing",
        )
    if (
        d.homophily is not None
        and d.homophily_by_chance is not None
        and d.homophily < 1.1 * d.homophily_by_chance < 1
    ):
        yield (
            f"Edges hardly follow classes: {percent(d.homophily)} stay within one, "
            f"{percent(d.homophily_by_chance)} would by chance",
            "check that the labels belong to these nodes, or try other edges",
        )
    x = loaded.graph.x
    empty = (x == 0).all(axis=1) if isinstance(x, np.ndarray) else np.diff(x.indptr) == 0
    if empty.sum() > 0.2 * d.nodes:
        yield (
            f"{percent(int(empty.sum()) / d.nodes)} of the nodes have no feature",
            "add a text column, or columns that more nodes have",
        )


def lines_of(d: Description) -> list[str]:
    """Format a description as the lines that `nodenova inspect` prints."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in d.features)
    known = f"{len(d.old_classes):,} known: {_join(d.old_classes)}" if d.old_classes else "none"
    key = f"; labels for grading only: {_join(d.answer_key)}" if d.answer_key else ""
    lines = [
        f"{d.name}: {plural(d.nodes, 'node')}, {plural(d.edges, 'edge')}",
        f"features   {sum(count for _, count in d.features):,} ({kinds}), kept as {d.form}",
        f"classes    {known}",
        f"unlabelled {plural(d.unlabelled, 'node')}",
        f"to search  {plural(d.new, 'node')}{key}",
        f"parts      {plural(d.components, 'connected component')}, the largest of "
        f"{plural(d.largest, 'node')}; {plural(d.isolated, 'node')} without edges",
        f"degree     mean {d.degree[0]:.1f}, median {d.degree[1]}, maximum {d.degree[2]:,}",
    ]
    if d.weights is not None:
        low, high = d.weights
        lines.append(f"weights    {low:.3g} to {high:.3g}; heavier edges have more influence")
    if d.vectors:
        lines.append(f"vectors    {d.vectors:,} numbers per node, beside its features")
    if d.homophily is not None:
        lines.append(
            f"homophily  {percent(d.homophily)} of the edges between labelled nodes stay within a "
            f"class ({percent(d.homophily_by_chance)} would by chance)"
        )
    lines += ["", "Notes:", *(f"  {note}" for note in d.notes)] if d.notes else []
    lines += ["", "Likely problems:" if d.problems else "No problems found."]
    return lines + [f"  {problem}. Fix: {fix}." for problem, fix in d.problems]


def _join(classes: tuple[tuple[str, int], ...], most: int = 20) -> str:
    text = ", ".join(f"{name} {count:,}" for name, count in classes[:most])
    return text + (f" and {len(classes) - most:,} more" if len(classes) > most else "")
