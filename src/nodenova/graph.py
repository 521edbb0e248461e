"""Graph, what every phase sees, and NewTask, what phase 2 is given. Neither has a field for a
label.

The functions above check features, names, edges and weights, and bring them into one form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from nodenova.errors import GraphError, SettingError, brief
from nodenova.files.arrays import are_texts
from nodenova.files.documents import check_encodable
from nodenova.settings import check_arguments

Features: TypeAlias = "sp.csr_array | np.ndarray"

DENSE_FROM = 0.25  # share of non-zero entries above which dense products are faster
MIN_WEIGHT, MAX_WEIGHT = 1e-30, 1e30  # of an edge: safe in float32
# Sizes of features whose squares can be added up in float32. Smaller ones count as 0.
MIN_SIZE, MAX_SIZE = 1e-15, 1e15
NOT_FINITE, TOO_LARGE = "that are not finite numbers", f"beyond {MAX_SIZE:g}"


def check_features(
    x: object, dense: bool | None, source: str, feature_names: Sequence[str] | None = None
) -> Features:
    """(N, d) float32 copy of x, dense or sparse."""
    _check_real(x, "x", source)
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
    check = EntryCheck()
    check.add(matrix)
    check.finish(source, feature_names)
    share = np.count_nonzero(values) / (matrix.shape[0] * matrix.shape[1])
    if not (share >= DENSE_FROM if dense is None else dense):
        sparse = sp.csr_array(matrix)
        sparse.eliminate_zeros()
        sparse.sort_indices()
        return sparse
    return matrix.toarray() if sp.issparse(matrix) else matrix


def _check_real(values: object, name: str, source: str) -> None:
    """Raise if an array, a tensor or a data frame has complex numbers: NumPy would cut them."""
    types = [values.dtype] if hasattr(values, "dtype") else getattr(values, "dtypes", ())
    if any(getattr(t, "kind", "") == "c" or getattr(t, "is_complex", False) for t in types):
        raise GraphError(f"{source}: {name} has complex numbers; give real ones")


def _numbers(convert: Callable[[], Any], source: str) -> Any:
    """The result of `convert`, a copy as float32; a GraphError if x is not numeric."""
    try:
        # Numbers that are too large become infinite, and are reported as such.
        with np.errstate(over="ignore"):
            return convert()
    except (TypeError, ValueError) as error:
        raise GraphError(f"{source}: x is not a table of numbers ({error})") from error


class EntryCheck:
    """Search for entries of x that are not finite, too large, or all too small, block by block."""

    def __init__(self) -> None:
        self.rows = 0
        self.largest = 0.0
        # {problem: (number of entries; row, column and value of the first)}
        self.bad: dict[str, tuple[int, tuple[int, int, float]]] = {}

    def add(self, rows: Features) -> None:
        """Look at the next rows of x."""
        values = rows if isinstance(rows, np.ndarray) else rows.data
        largest = max(-values.min(), values.max()) if values.size else 0.0  # NaN if there is one
        if largest <= MAX_SIZE:
            self.largest = max(self.largest, float(largest))
        else:
            entries = sp.coo_array(rows)
            finite = np.isfinite(entries.data)
            self._count(NOT_FINITE, entries, ~finite)
            self._count(TOO_LARGE, entries, finite & (np.abs(entries.data) > MAX_SIZE))
        self.rows += rows.shape[0]

    def _count(self, problem: str, entries: sp.coo_array, is_bad: np.ndarray) -> None:
        if is_bad.any():
            at = is_bad.argmax()
            row, column = (place[at] for place in entries.coords)
            here = (self.rows + int(row), int(column), entries.data[at])
            count, first = self.bad.get(problem, (0, here))
            self.bad[problem] = (count + int(is_bad.sum()), first)

    def finish(self, source: str, names: Sequence[str] | None = None) -> None:
        """Raise a GraphError that names the first bad entry, if there is one."""
        for problem, fix in ((NOT_FINITE, ""), (TOO_LARGE, "; divide this feature by its maximum")):
            if problem in self.bad:
                count, (row, column, value) = self.bad[problem]
                name = f" ({names[column]})" if names and column < len(names) else ""
                first = f"node {row}, feature {column}{name} is {value:g}"
                raise GraphError(f"{source}: x has {count} entries {problem}, first: {first}{fix}")
        if 0 < self.largest < MIN_SIZE:
            raise GraphError(
                f"{source}: all entries of x are below {MIN_SIZE:g}, the largest is "
                f"{self.largest:g}; divide x by it"
            )


def _as_array(values: object, name: str, source: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError):  # lists of different lengths, odd objects
        raise GraphError(f"{source}: {name} must be an array, it is {brief(values)}") from None


def check_node_ids(node_ids: object, n: int, source: str) -> np.ndarray:
    """(N,) unique names; 0..N-1 if None."""
    if node_ids is None:
        return np.arange(n)
    names = _as_array(node_ids, "node_ids", source)
    if names.shape != (n,):
        raise GraphError(f"{source}: node_ids has shape {names.shape}, but x has {n} nodes")
    if names.dtype == object:
        names = names.astype(str)
    if names.dtype.kind not in "biufUSMm":
        raise GraphError(f"{source}: node_ids must be texts or numbers, they are {names.dtype}")
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        node = int((~np.isfinite(names)).argmax())
        raise GraphError(f"{source}: node_ids must be finite numbers, that of node {node} is not")
    if names.dtype.kind == "U" and not are_texts(names):
        check_encodable(names.tolist(), f"{source}: the node id", GraphError)
    values, counts = np.unique(names, return_counts=True)
    if len(values) < n:
        twice = values[counts.argmax()].item()
        raise GraphError(
            f"{source}: node_ids must be unique, {brief(twice)} appears {counts.max()} times"
        )
    return names


def check_edges(edge_index: object, n: int, source: str) -> np.ndarray:
    """(2, edges) int64 node indices."""
    edges = _as_array(edge_index, "edge_index", source)
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise GraphError(f"{source}: edge_index must have shape (2, edges), it has {edges.shape}")
    if edges.size and edges.dtype.kind not in "iu":
        raise GraphError(f"{source}: edge_index must hold whole numbers, it holds {edges.dtype}")
    edges = edges.astype(np.int64)  # numbers above 2**63 become negative, and are refused as such
    outside = ((edges < 0) | (edges >= n)).any(axis=0)
    if outside.any():
        a, b = edges[:, outside.argmax()]
        number = int(outside.sum())
        name = "1 edge names a node" if number == 1 else f"{number:,} edges name nodes"
        raise GraphError(
            f"{source}: {name} not in the graph (nodes are 0..{n - 1}), first: {a} -> {b}"
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
    _check_real(edge_weight, "edge_weight", source)
    try:
        weight = np.array(edge_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise GraphError(f"{source}: edge_weight is not a list of numbers ({error})") from error
    if weight.shape != edges.shape[1:]:
        raise GraphError(
            f"{source}: edge_weight has shape {weight.shape}, but there are {edges.shape[1]} edges"
        )
    # Rounded as it will be stored, so that a graph that was saved can be loaded.
    with np.errstate(over="ignore"):
        stored = weight.astype(np.float32)
    bad = ~((stored >= np.float32(MIN_WEIGHT)) & (stored <= np.float32(MAX_WEIGHT)))
    if bad.any():
        first = int(bad.argmax())
        a, b = edges[:, first]
        raise GraphError(
            f"{source}: edge_weight must be positive numbers from {MIN_WEIGHT:g} to "
            f"{MAX_WEIGHT:g}, that of edge {first} ({a} -> {b}) is {weight[first]:g}"
        )
    return weight


def check_total_weights(weight: np.ndarray | None, edges: np.ndarray, source: str) -> None:
    """Raise a GraphError if the weights of the same edge add up to too much."""
    if weight is not None and weight.size and weight.max() > np.float32(MAX_WEIGHT):
        first = int(weight.argmax())
        a, b = edges[:, first]
        raise GraphError(
            f"{source}: the weights of the edge {a} -> {b} add up to {weight[first]:g}, "
            f"at most {MAX_WEIGHT:g} is possible"
        )


def check_vectors(vectors: object, n: int, source: str) -> np.ndarray | None:
    """(N, k) float32 finite numbers, or None."""
    if vectors is None:
        return None
    _check_real(vectors, "vectors", source)
    try:
        with np.errstate(over="ignore"):
            found = np.array(vectors, dtype=np.float32, order="C")
    except (TypeError, ValueError) as error:
        raise GraphError(f"{source}: vectors are not a table of numbers ({error})") from error
    if found.ndim != 2 or found.shape[0] != n or not found.shape[1]:
        raise GraphError(
            f"{source}: vectors have shape {found.shape}, but {n} nodes need one row each"
        )
    bad = ~(np.abs(found).max(axis=1) <= MAX_SIZE)  # also NaN
    if bad.any():
        row = int(bad.argmax())
        problem = "is not finite" if not np.isfinite(found[row]).all() else "is too large"
        raise GraphError(f"{source}: the vector of node {row} has a number that {problem}")
    return found


def canonical_order(node_ids: object) -> np.ndarray:
    """(N,) numbers of the nodes in canonical order: whole numbers by value, then texts.

    An id of the digits 0 to 9 is a whole number. Texts are ordered by code point, and so are two
    ids of the same value. The order depends on the set of ids alone.

    >>> canonical_order(["oak", "10", "9", "Oak", "09"]).tolist()
    [4, 2, 1, 3, 0]
    """
    names = np.asarray(node_ids)
    if names.dtype.kind in "iu":
        return np.argsort(names, kind="stable")
    names = np.ascontiguousarray(names.astype(str))
    if not names.size or not names.dtype.itemsize:
        return np.arange(len(names))
    signs = names.view(np.uint32).reshape(len(names), -1)
    is_digit = (signs >= ord("0")) & (signs <= ord("9")) | (signs == 0)
    numeric = np.flatnonzero(is_digit.all(axis=1))
    digits = np.char.lstrip(names[numeric], "0")
    by_value = np.lexsort((names[numeric], digits, np.char.str_len(digits)))
    others = np.flatnonzero(~is_digit.all(axis=1))
    return np.concatenate([numeric[by_value], others[np.argsort(names[others], kind="stable")]])


def check_order(order: np.ndarray, n: int, source: str) -> np.ndarray:
    """(N,) int64 numbers 0..N-1, each once."""
    is_whole = order.shape == (n,) and order.dtype.kind in "iu"
    if not is_whole or not (np.sort(order) == np.arange(n)).all():
        raise GraphError(f"{source}: given_order must hold each of the numbers 0..{n - 1} once")
    return order.astype(np.int64)


def invert(order: np.ndarray) -> np.ndarray:
    """(N,) the inverse of a permutation."""
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.arange(len(order))
    return inverse


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
        given_order: (N,) number in this graph of the node of each row of the user's table, for a
            graph in canonical order; None where nodes are in the order that was given.

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
    given_order: np.ndarray | None = None
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
            x: (N, d) numbers, an array or a SciPy sparse matrix. It is copied. Numbers beyond 1e15
                are refused, and so is x if all of it is below 1e-15: products would overflow or
                vanish.
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
        check_arguments(Graph.of, locals())
        features = check_features(x, dense, source, feature_names)
        n, d = features.shape
        names = check_node_ids(node_ids, n, source)
        words = None if feature_names is None else tuple(map(str, feature_names))
        if words is not None and len(words) != d:
            raise GraphError(f"{source}: feature_names has {len(words)} names for {d} features")
        check_encodable(words or (), f"{source}: the feature", GraphError)
        ends = check_edges(edge_index, n, source)
        edges, weight = make_undirected(ends, n, check_edge_weights(edge_weight, ends, source))
        check_total_weights(weight, edges, source)
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

    def canonical(self) -> Graph:
        """Return the graph with its nodes in canonical order, and the way back in `given_order`.

        Returns:
            The graph itself if it is in that order already.

        Examples:
            >>> graph = Graph.of([[1], [2], [3]], [[0], [1]], node_ids=["b", "a", "10"])
            >>> graph.canonical().node_ids.tolist(), graph.canonical().given_order.tolist()
            (['10', 'a', 'b'], [2, 1, 0])
        """
        if self.given_order is not None:
            return self
        order = canonical_order(self.node_ids)
        if (order == np.arange(len(order))).all():
            return self
        return replace(self.renumber(order), given_order=invert(order))

    def as_given(self) -> Graph:
        """Return the graph with its nodes in the order of the user's table."""
        if self.given_order is None:
            return self
        return self.renumber(self.given_order)

    def with_order_given(self) -> Graph:
        """Return the same graph without a way back: its own order is the one that was given."""
        return self if self.given_order is None else self._with(given_order=None)

    def in_given_order(self, values: Any) -> Any:
        """Return (N, ...) values of the nodes of this graph in the order of the user's table."""
        return values if self.given_order is None else values[self.given_order]

    def from_given_order(self, values: Any) -> Any:
        """Return (N, ...) values in the order of the user's table in that of this graph."""
        return values if self.given_order is None else values[invert(self.given_order)]

    def renumber(self, order: np.ndarray) -> Graph:
        """Return the same graph with its nodes in another order, a permutation of 0..N-1."""
        rank = invert(order)
        weight = np.ones(self.num_edges, np.float32) if self.edge_weight is None else None
        data = self.edge_weight if weight is None else weight
        starts = np.searchsorted(self.edge_index[0], np.arange(self.num_nodes + 1))
        parts = (data, self.edge_index[1], starts)
        links = sp.csr_array(parts, shape=(self.num_nodes,) * 2)[order]
        links.indices = rank[links.indices]
        links.has_sorted_indices = False
        links.sort_indices()
        source = np.repeat(np.arange(self.num_nodes), np.diff(links.indptr))
        return replace(
            self,
            x=self.x[order],
            edge_index=np.stack([source, links.indices.astype(np.int64)]),
            node_ids=self.node_ids[order],
            edge_weight=None if self.edge_weight is None else links.data,
            vectors=None if self.vectors is None else self.vectors[order],
            given_order=None,
        )

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
class SampledGraph(Graph):
    """Some nodes of a graph with drawn neighbors: what a batch of nodes is encoded on.

    Its edges are directed: `edge_index` holds (node, neighbor that was drawn for it), and a node
    that no neighbors were drawn for has none. `edge_weight` is the weight in the whole graph times
    the number of neighbors per drawn one, so that sums over neighbors keep their expectation.

    Attributes:
        whole: Graph that the nodes are from; it decides degrees.
        nodes: (n,) numbers of the nodes in it, ascending.
    """

    whole: Graph = field(kw_only=True)
    nodes: np.ndarray = field(kw_only=True)


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
        check_arguments(NewTask, vars(self))
        try:
            ids = np.asarray(self.ids, dtype=np.int64)
        except (TypeError, ValueError, OverflowError):
            what = f"the ids of the new nodes must be whole numbers, they are {brief(self.ids)}"
            raise GraphError(what) from None
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
