"""The graph every phase sees: features, edges, names. There is no field for a label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from nodenova.errors import GraphError, warn_renamed
from nodenova.graph.parts import (
    Features,
    edges_of,
    features_of,
    node_ids_of,
    undirected,
    vectors_of,
    weights_of,
)

# Where `Graph.derived` has how columns of a table became the features, for models to keep.
RECIPE = "recipe"


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph with node features.

    Build one with `Graph.of`, which checks what it is given. There is no field for a label.

    Attributes:
        x: (N, d) float32, a CSR array when sparse and a plain array when dense.
        edge_index: (2, E) int64, every edge in both directions, once each, no self-loops, sorted.
        node_ids: (N,) names of the nodes as the user knows them.
        feature_names: d names, or None.
        edge_weight: (E,) float32 positive weights of `edge_index`, the same in both directions;
            None where all edges count alike. How they count: `nodenova.nn.edge_weights`.
        vectors: (N, k) float32, what a language model makes of the texts of the nodes, beside
            their words in x; None where there are none.

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
    is_mapped: ClassVar[bool] = False  # arrays are on disk, as those of a graph folder are

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
        """Check features and edges, and put them into the one form everything else relies on.

        Edges are made undirected: both directions are stored, duplicates and self-loops are
        dropped.

        Args:
            x: (N, d) numbers, an array or a SciPy sparse matrix. It is copied.
            edge_index: (2, edges) whole numbers 0..N-1.
            node_ids: (N,) different names; 0..N-1 unless given.
            feature_names: d names.
            dense: Keeps the features in that form; without it, their share of non-zero entries
                decides.
            source: What error messages call the input, usually the file's name.
            edge_weight: (edges,) positive numbers. Those of the same edge are added; a symmetric
                matrix, which gives every edge in both directions, is taken as it is.
            vectors: (N, k) numbers, a row for each node.

        Raises:
            GraphError: Something of it is not as described; the sentence says what and where.

        Examples:
            >>> graph = Graph.of([[1, 0], [0, 1]], [[0], [1]], node_ids=["a", "b"])
            >>> graph.edge_index.tolist()
            [[0, 1], [1, 0]]
        """
        features = features_of(x, dense, source)
        n, d = features.shape
        names = node_ids_of(node_ids, n, source)
        words = None if feature_names is None else tuple(str(name) for name in feature_names)
        if words is not None and len(words) != d:
            raise GraphError(f"{source}: feature_names has {len(words)} names for {d} features")
        given = edges_of(edge_index, n, names, source)
        edges, weight = undirected(given, n, weights_of(edge_weight, given, source))
        return cls(features, edges, names, words, weight, vectors_of(vectors, n, source))

    @property
    def num_nodes(self) -> int:
        """N."""
        return int(self.x.shape[0])

    @property
    def num_features(self) -> int:
        """d."""
        return int(self.x.shape[1])

    @property
    def num_edges(self) -> int:
        """E: each undirected edge counted in both directions (PyTorch Geometric's convention)."""
        return int(self.edge_index.shape[1])

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """(N, N) symmetric CSR of ones."""
        ones = np.ones(self.num_edges, dtype=np.float32)
        places = (self.edge_index[0], self.edge_index[1])
        return sp.csr_array((ones, places), shape=(self.num_nodes,) * 2)

    @cached_property
    def derived(self) -> dict[object, object]:
        """Where `nn.sparse.once` keeps the operators of this graph, so that each is built once."""
        return {}

    def numbers_of(self, node_ids: Iterable[object]) -> np.ndarray:
        """(n,) the numbers of nodes that are named.

        Args:
            node_ids: Names of nodes, as numbers or as texts.

        Raises:
            GraphError: There is no node of such a name.

        Examples:
            >>> Graph.of([[1], [2]], [[0], [1]], node_ids=["a", "b"]).numbers_of(["b"]).tolist()
            [1]
        """
        place = self.derived.get("places of names")
        if not isinstance(place, dict):
            place = {str(name): number for number, name in enumerate(self.node_ids.tolist())}
            self.derived["places of names"] = place
        asked = [str(name) for name in node_ids]
        unknown = [name for name in asked if name not in place]
        if unknown:
            more = f", nor {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
            raise GraphError(f"the graph has no node {unknown[0]!r}{more}")
        return np.array([place[name] for name in asked], dtype=np.int64)

    def with_features(self, x: Features, feature_names: Sequence[str] | None) -> Graph:
        """The same nodes and edges with other features."""
        names = None if feature_names is None else tuple(feature_names)
        return self._with(x=x, feature_names=names)

    def with_vectors(self, vectors: object, source: str = "vectors") -> Graph:
        """The same graph with vectors of the texts of its nodes.

        Args:
            vectors: (N, k) numbers, a row for each node.
            source: What error messages call them.

        Raises:
            GraphError: They are something else.

        Examples:
            >>> Graph.of([[1, 0], [0, 1]], [[0], [1]]).with_vectors([[0.5], [0.1]])
            Graph(2 nodes, 2 edges, 2 dense features, vectors of 1)
        """
        return self._with(vectors=vectors_of(vectors, self.num_nodes, source))

    def _with(self, **parts: Any) -> Graph:
        return replace(self, **parts)

    def empty(self, size: int, dtype: type[np.generic]) -> np.ndarray:
        """(size,) an array for what is derived from the graph, where the graph itself is."""
        return np.empty(size, dtype=dtype)

    def subgraph(self, ids: np.ndarray) -> Graph:
        """The induced subgraph of some nodes, renumbered 0..len(ids)-1.

        Args:
            ids: (n,) numbers of nodes, ascending.

        Examples:
            >>> Graph.of([[1], [2], [3]], [[0, 1], [1, 2]]).subgraph(np.array([0, 1]))
            Graph(2 nodes, 2 edges, 1 dense features)
        """
        new_number = np.full(self.num_nodes, -1, dtype=np.int64)
        new_number[ids] = np.arange(len(ids))
        edges = new_number[self.edge_index]
        kept = (edges >= 0).all(axis=0)
        weight = None if self.edge_weight is None else self.edge_weight[kept]
        vectors = None if self.vectors is None else self.vectors[ids]
        names = (self.node_ids[ids], self.feature_names)
        return Graph(self.x[ids], edges[:, kept], *names, weight, vectors)

    def aligned(self, feature_names: Sequence[str]) -> tuple[Graph, int, int]:
        """The same graph with other features, in a given order: those a model knows.

        Args:
            feature_names: By which features are matched.

        Returns:
            The graph; how many of its own features are not among them, and are left out; how many
            of them it lacks, which are zero.

        Raises:
            GraphError: This graph's features have no names.
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
        """The k-hop subgraph: all nodes within `hops` steps of `ids`, and where `ids` are in it.

        With one hop more than an encoder has layers, its z at `ids` is that of the whole graph:
        every node that speaks in it has all its neighbors here, hence its true degree.

        Args:
            ids: (n,) numbers of nodes, ascending.
            hops: How many steps.

        Returns:
            The subgraph, and (n,) numbers of `ids` in it. If everything is reached, it is this
            graph itself.

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

    def around(self, ids: np.ndarray, hops: int) -> tuple[Graph, np.ndarray]:
        """The name that `k_hop_subgraph` had."""
        warn_renamed("Graph.around", "Graph.k_hop_subgraph")
        return self.k_hop_subgraph(ids, hops)

    def __repr__(self) -> str:
        kind = "sparse" if sp.issparse(self.x) else "dense"
        weighted = "" if self.edge_weight is None else "weighted "
        counts = f"{self.num_nodes} nodes, {self.num_edges} {weighted}edges"
        beside = "" if self.vectors is None else f", vectors of {self.vectors.shape[1]}"
        return f"Graph({counts}, {self.num_features} {kind} features{beside})"
