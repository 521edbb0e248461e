"""Graph, what every phase sees, and NewTask, what phase 2 is given. Neither has a field for a
label.

The functions above check features, names, edges and weights, and bring them into one form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from nodenova.errors import GraphError, SettingError

Features: TypeAlias = "sp.csr_array | np.ndarray"

DENSE_FROM = 0.25  # share of non-zero entries above which dense products are faster
MIN_WEIGHT, MAX_WEIGHT = 1e-30, 1e30  # of an edge: safe in float32


def check_features(x: object, dense: bool | None, source: str) -> Features:
    """(N, d) float32 copy of x, dense or sparse."""
    if sp.issparse(x):
        matrix = _numbers(lambda: sp.csr_array(x, dtype=np.float32, copy=True), source)
        matrix.sum_duplicates()
        values = matrix.data
    else:
        matrix = _numbers(lambda: np.array(x, dtype=np.float32, order="C"), source)
        if matrix.ndim != 2:
            raise GraphError(
                f"{source}: x must have two dimensions (nodes, features), it has {matrix.ndim}"
            )
        values = matrix
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise GraphError(f"{source}: x is empty, shape {matrix.shape}")
    if not np.isfinite(values).all():
        raise GraphError(f"{source}: {_first_not_finite(matrix)}")
    share = np.count_nonzero(values) / (matrix.shape[0] * matrix.shape[1])
    if not (share >= DENSE_FROM if dense is None else dense):
        sparse = sp.csr_array(matrix)
        sparse.eliminate_zeros()
        sparse.sort_indices()
        return sparse
    return matrix.toarray() if sp.issparse(matrix) else matrix


def _numbers(convert: Callable[[], Any], source: str) -> Any:
    """The result of `convert`, a copy as float32; a GraphError if x is not numeric."""
    try:
        # Numbers that are too large become infinite, and are reported as such.
        with np.errstate(over="ignore"):
            return convert()
    except (TypeError, ValueError) as error:
        raise GraphError(f"{source}: x is not a table of numbers ({error})") from error


def _first_not_finite(matrix: Features) -> str:
    coo = sp.coo_array(matrix) if sp.issparse(matrix) else None
    if coo is not None:
        bad = np.flatnonzero(~np.isfinite(coo.data))
        row, column, value = coo.coords[0][bad[0]], coo.coords[1][bad[0]], coo.data[bad[0]]
    else:
        rows, columns = np.nonzero(~np.isfinite(matrix))
        bad, row, column = rows, rows[0], columns[0]
        value = matrix[row, column]
    first = f"node {row}, feature {column} is {value}"
    return f"x has {len(bad)} entries that are not finite numbers, first: {first}"


def check_node_ids(node_ids: object, n: int, source: str) -> np.ndarray:
    """(N,) unique names; 0..N-1 if None."""
    if node_ids is None:
        return np.arange(n)
    names = np.asarray(node_ids)
    if names.dtype == object:
        names = names.astype(str)
    if names.shape != (n,):
        raise GraphError(f"{source}: node_ids has shape {names.shape}, but x has {n} nodes")
    values, counts = np.unique(names, return_counts=True)
    if len(values) < n:
        twice = values[counts.argmax()].item()
        raise GraphError(
            f"{source}: node_ids must be unique, {twice!r} appears {counts.max()} times"
        )
    return names


def check_edges(edge_index: object, n: int, source: str) -> np.ndarray:
    """(2, edges) int64 node indices."""
    edges = np.asarray(edge_index)
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise GraphError(f"{source}: edge_index must have shape (2, edges), it has {edges.shape}")
    if edges.size and not np.issubdtype(edges.dtype, np.integer):
        raise GraphError(f"{source}: edge_index must hold whole numbers, it holds {edges.dtype}")
    edges = edges.astype(np.int64)
    outside = ((edges < 0) | (edges >= n)).any(axis=0)
    if outside.any():
        a, b = edges[:, outside.argmax()]
        raise GraphError(
            f"{source}: {outside.sum()} edges name nodes that are not there "
            f"(nodes are 0..{n - 1}), first: {a} -> {b}"
        )
    return edges


def make_undirected(
    edges: np.ndarray, n: int, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Every edge in both directions, once each, sorted, without self-loops; and the weights.

    Weights of the same edge are added, in either direction. Where all edges come in both directions
    with equal weights, they are the entries of a symmetric matrix, and each counts once.

    >>> make_undirected(np.array([[0, 1, 0], [1, 0, 2]]), 3, np.array([2.0, 3.0, 4.0]))[1].tolist()
    [5.0, 4.0, 5.0, 4.0]
    >>> make_undirected(np.array([[0, 1], [1, 0]]), 2, np.array([2.0, 2.0]))[1].tolist()
    [2.0, 2.0]
    """
    other = edges[0] != edges[1]
    a, b = edges[:, other]
    if weight is None:
        keys = np.unique(np.concatenate([a * n + b, b * n + a]))
        return np.stack([keys // n, keys % n]), None
    one_way, place = np.unique(a * n + b, return_inverse=True)
    one_way_weight = np.bincount(place, weights=weight[other], minlength=len(one_way))
    back = one_way % n * n + one_way // n
    keys, place = np.unique(np.concatenate([one_way, back]), return_inverse=True)
    total = np.bincount(place, weights=np.tile(one_way_weight, 2), minlength=len(keys))
    is_symmetric = len(keys) == len(one_way) and (total == 2 * one_way_weight).all()
    return np.stack([keys // n, keys % n]), (total / (2 if is_symmetric else 1)).astype(np.float32)


def check_edge_weights(edge_weight: object, edges: np.ndarray, source: str) -> np.ndarray | None:
    """(edges,) positive numbers, or None."""
    if edge_weight is None:
        return None
    try:
        weight = np.array(edge_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise GraphError(f"{source}: edge_weight is not a list of numbers ({error})") from error
    if weight.shape != edges.shape[1:]:
        raise GraphError(
            f"{source}: edge_weight has shape {weight.shape}, but there are {edges.shape[1]} edges"
        )
    bad = ~((weight >= MIN_WEIGHT) & (weight <= MAX_WEIGHT))
    if bad.any():
        first = int(bad.argmax())
        a, b = edges[:, first]
        raise GraphError(
            f"{source}: edge_weight must be positive numbers, "
            f"that of edge {first} ({a} -> {b}) is {weight[first]:g}"
        )
    return weight


def check_vectors(vectors: object, n: int, source: str) -> np.ndarray | None:
    """(N, k) float32 finite numbers, or None."""
    if vectors is None:
        return None
    try:
        with np.errstate(over="ignore"):
            found = np.array(vectors, dtype=np.float32, order="C")
    except (TypeError, ValueError) as error:
        raise GraphError(f"{source}: vectors are not a table of numbers ({error})") from error
    if found.ndim != 2 or found.shape[0] != n or not found.shape[1]:
        raise GraphError(
            f"{source}: vectors have shape {found.shape}, but {n} nodes need one row each"
        )
    bad = ~np.isfinite(found).all(axis=1)
    if bad.any():
        row = int(bad.argmax())
        raise GraphError(f"{source}: the vector of node {row} has a number that is not finite")
    return found


Built = TypeVar("Built")


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph with node features. There is no field for a label.

    Build one with `Graph.of`, which checks its input.

    Attributes:
        x: (N, d) float32 features, a CSR array when sparse and a plain array when dense.
        edge_index: (2, E) int64, every edge in both directions, once each, no self-loops, sorted.
        node_ids: (N,) names of the nodes in the user's data.
        feature_names: d names, or None.
        edge_weight: (E,) float32 positive weights of `edge_index`, the same in both directions;
            None for an unweighted graph. How they count: `nodenova.nn.sparse`.
        vectors: (N, k) float32 vectors of the texts of the nodes, by a language model, beside their
            words in x; None without them.
        recipe: Encoding of the columns of a table as x, as JSON values, for models to keep; None
            where x did not come from a table, or was changed since.

    Examples:
        >>> import nodenova as nova
        >>> nova.Graph.of([[1, 0], [0, 1], [1, 1]], [[0, 1], [1, 2]])
        Graph(3 nodes, 4 edges, 2 dense features)
    """

    x: Features
    edge_index: np.ndarray
    node_ids: np.ndarray
    feature_names: tuple[str, ...] | None = None
    edge_weight: np.ndarray | None = None
    vectors: np.ndarray | None = None
    recipe: Mapping[str, Any] | None = None
    is_mapped: ClassVar[bool] = False  # arrays are on disk, as in a graph folder

    @classmethod
    def of(
        cls,
        x: object,
        edge_index: object,
        *,
        node_ids: object = None,
        feature_names: Sequence[str] | None = None,
        dense: bool | None = None,
        source: str = "graph",
        edge_weight: object = None,
        vectors: object = None,
    ) -> Graph:
        """Check features and edges, and bring them into the one form that everything relies on.

        Edges are made undirected: both directions are stored, duplicates and self-loops are
        dropped.

        Args:
            x: (N, d) numbers, an array or a SciPy sparse matrix. It is copied.
            edge_index: (2, edges) whole numbers 0..N-1.
            node_ids: (N,) unique names; 0..N-1 by default.
            feature_names: d names.
            dense: Whether features are stored dense; by default their share of non-zero entries
                decides.
            source: Name of the input in error messages, usually the file's name.
            edge_weight: (edges,) positive numbers. Weights of the same edge are added; a symmetric
                matrix, which has every edge in both directions, is used as it is.
            vectors: (N, k) numbers, one row per node.

        Raises:
            GraphError: If an input is not as described; the message names it and the place.

        Examples:
            >>> graph = Graph.of([[1, 0], [0, 1]], [[0], [1]], node_ids=["a", "b"])
            >>> graph.edge_index.tolist()
            [[0, 1], [1, 0]]
        """
        features = check_features(x, dense, source)
        n, d = features.shape
        names = check_node_ids(node_ids, n, source)
        words = None if feature_names is None else tuple(str(name) for name in feature_names)
        if words is not None and len(words) != d:
            raise GraphError(f"{source}: feature_names has {len(words)} names for {d} features")
        ends = check_edges(edge_index, n, source)
        edges, weight = make_undirected(ends, n, check_edge_weights(edge_weight, ends, source))
        return cls(features, edges, names, words, weight, check_vectors(vectors, n, source))

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return int(self.x.shape[0])

    @property
    def num_features(self) -> int:
        """Number of features d."""
        return int(self.x.shape[1])

    @property
    def num_edges(self) -> int:
        """Number of edges E, each counted in both directions (PyTorch Geometric's convention)."""
        return int(self.edge_index.shape[1])

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """(N, N) symmetric CSR of ones."""
        ones = np.ones(self.num_edges, dtype=np.float32)
        places = (self.edge_index[0], self.edge_index[1])
        return sp.csr_array((ones, places), shape=(self.num_nodes,) * 2)

    @cached_property
    def cache(self) -> dict[object, Any]:
        """Results computed from this graph, by key: operators, totals, the split of its rows.

        It is not part of the graph's value: no copy of the graph has it.
        """
        return {}

    def cached(self, key: object, build: Callable[[], Built]) -> Built:
        """Return the result of `build`, which is called once per key and kept in `cache`."""
        if key not in self.cache:
            self.cache[key] = build()
        built: Built = self.cache[key]
        return built

    def numbers_of(self, node_ids: Iterable[object]) -> np.ndarray:
        """Return (n,) indices of the named nodes.

        Args:
            node_ids: Names of nodes, as numbers or as texts.

        Raises:
            GraphError: If there is no such node.

        Examples:
            >>> Graph.of([[1], [2]], [[0], [1]], node_ids=["a", "b"]).numbers_of(["b"]).tolist()
            [1]
        """
        names = self.node_ids.tolist()
        place = self.cached("places of names", lambda: {str(n): i for i, n in enumerate(names)})
        wanted = [str(name) for name in node_ids]
        unknown = [name for name in wanted if name not in place]
        if unknown:
            more = f", nor {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
            raise GraphError(f"the graph has no node {unknown[0]!r}{more}")
        return np.array([place[name] for name in wanted], dtype=np.int64)

    def with_features(self, x: Features, feature_names: Sequence[str] | None) -> Graph:
        """Return the same nodes and edges with other features."""
        names = None if feature_names is None else tuple(feature_names)
        return self._with(x=x, feature_names=names, recipe=None)

    def with_vectors(self, vectors: object, source: str = "vectors") -> Graph:
        """Return the same graph with vectors of the texts of its nodes.

        Args:
            vectors: (N, k) numbers, one row per node.
            source: Name of the vectors in error messages.

        Raises:
            GraphError: If they are something else.

        Examples:
            >>> Graph.of([[1, 0], [0, 1]], [[0], [1]]).with_vectors([[0.5], [0.1]])
            Graph(2 nodes, 2 edges, 2 dense features, vectors of 1)
        """
        return self._with(vectors=check_vectors(vectors, self.num_nodes, source), recipe=None)

    def _with(self, **parts: Any) -> Graph:
        return replace(self, **parts)

    def empty(self, size: int, dtype: type[np.generic]) -> np.ndarray:
        """Return an uninitialized (size,) array for derived values: on disk if the graph is."""
        return np.empty(size, dtype=dtype)

    def subgraph(self, ids: np.ndarray) -> Graph:
        """Return the induced subgraph of some nodes, renumbered 0..len(ids)-1.

        Args:
            ids: (n,) node indices, ascending.

        Examples:
            >>> Graph.of([[1], [2], [3]], [[0, 1], [1, 2]]).subgraph(np.array([0, 1]))
            Graph(2 nodes, 2 edges, 1 dense features)
        """
        new_number = np.full(self.num_nodes, -1, dtype=np.int64)
        new_number[ids] = np.arange(len(ids))
        edges = new_number[self.edge_index]
        inside = (edges >= 0).all(axis=0)
        weight = None if self.edge_weight is None else self.edge_weight[inside]
        vectors = None if self.vectors is None else self.vectors[ids]
        names = (self.node_ids[ids], self.feature_names)
        return Graph(self.x[ids], edges[:, inside], *names, weight, vectors)

    def aligned(self, feature_names: Sequence[str]) -> tuple[Graph, int, int]:
        """Return the graph with the features of these names, in this order, missing ones zero.

        Args:
            feature_names: Names by which features are matched.

        Returns:
            The graph; the number of its own features that were dropped; the number of missing ones.

        Raises:
            GraphError: If this graph's features have no names.
        """
        if self.feature_names is None:
            raise GraphError(
                "features are matched by name, and this graph's features have no names"
            )
        own = {name: place for place, name in enumerate(self.feature_names)}
        place = np.array([own.get(name, -1) for name in feature_names], dtype=np.int64)
        there = np.flatnonzero(place >= 0)
        entries = (np.ones(len(there), dtype=np.float32), (place[there], there))
        moved = sp.csr_array(entries, shape=(self.num_features, len(feature_names)))
        dense = isinstance(self.x, np.ndarray)
        x = Graph.of(self.x @ moved, np.zeros((2, 0), dtype=np.int64), dense=dense).x
        graph = self.with_features(x, feature_names)
        return graph, self.num_features - len(there), len(feature_names) - len(there)

    def k_hop_subgraph(self, ids: np.ndarray, hops: int) -> tuple[Graph, np.ndarray]:
        """Return the subgraph of all nodes within `hops` hops of `ids`, and (n,) the indices of
        `ids` in it.

        With one hop more than an encoder has layers, z at `ids` is that of the whole graph: all
        nodes that count have all their neighbors, hence their true degree. If everything is
        reached, it is this graph itself.

        Args:
            ids: (n,) node indices, ascending.
            hops: Number of hops.

        Examples:
            >>> path = Graph.of([[1], [2], [3], [4]], [[0, 1, 2], [1, 2, 3]])
            >>> path.k_hop_subgraph(np.array([3]), hops=1)
            (Graph(2 nodes, 2 edges, 1 dense features), array([1]))
        """
        reached = np.zeros(self.num_nodes, dtype=bool)
        reached[ids] = True
        source, target = self.edge_index
        for _ in range(hops):
            before = np.count_nonzero(reached)
            reached[target[reached[source]]] = True
            if np.count_nonzero(reached) == before:
                break
        if reached.all():
            return self, ids
        nodes = np.flatnonzero(reached)
        return self.subgraph(nodes), np.searchsorted(nodes, ids)

    def __repr__(self) -> str:
        kind = "sparse" if sp.issparse(self.x) else "dense"
        weighted = "" if self.edge_weight is None else "weighted "
        counts = f"{self.num_nodes} nodes, {self.num_edges} {weighted}edges"
        beside = "" if self.vectors is None else f", vectors of {self.vectors.shape[1]}"
        return f"Graph({counts}, {self.num_features} {kind} features{beside})"


@dataclass(frozen=True, eq=False)
class NewTask:
    """Unlabelled nodes among which new classes are to be found: all that phase 2 is given.

    Attributes:
        graph: Graph that phase 2 may see.
        ids: (n,) node indices, strictly ascending: an order by class would be a leak.
        num_new: Number of new classes to find; None to estimate it, which may give none.
        mixed: Whether the nodes may belong to known classes too. Otherwise all of them are new.

    Raises:
        SettingError: If `num_new` is below 1.
        GraphError: If the ids are not ascending, not in the graph, or fewer than `num_new`.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.synthetic(nodes=200, classes=4, seed=0).graph
        >>> nova.NewTask(graph, np.array([120, 130, 150]), num_new=2).ids
        array([120, 130, 150])
    """

    graph: Graph
    ids: np.ndarray
    num_new: int | None
    mixed: bool = False

    def __repr__(self) -> str:
        wanted = "as many as there are" if self.num_new is None else f"{self.num_new} classes"
        among = ", known ones among them" if self.mixed else ""
        return f"NewTask({len(self.ids):,} unlabelled nodes{among}, {wanted}, {self.graph!r})"

    def __post_init__(self) -> None:
        ids = np.asarray(self.ids, dtype=np.int64)
        object.__setattr__(self, "ids", ids)
        if self.num_new is not None and self.num_new < 1:
            raise SettingError(f"num_new must be at least 1, it is {self.num_new}")
        least = self.num_new or 1
        if ids.ndim != 1 or len(ids) < least:
            raise GraphError(
                f"{least} new classes need at least {least} unlabelled nodes, there are {ids.size}"
            )
        if (np.diff(ids) <= 0).any():
            raise GraphError("the ids of the new nodes must be strictly ascending")
        if ids[0] < 0 or ids[-1] >= self.graph.num_nodes:
            raise GraphError(
                f"the ids of the new nodes must lie in 0..{self.graph.num_nodes - 1}, "
                f"they span {ids[0]}..{ids[-1]}"
            )

    @property
    def number(self) -> int:
        """Number of new classes, for methods: it is always known when they are called."""
        if self.num_new is None:
            raise SettingError("num_new must be a number here: count_new(model, task) estimates it")
        return self.num_new
