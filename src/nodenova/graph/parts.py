"""What a graph is made of, checked and put into one form: features, names, edges, their weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from nodenova.errors import GraphError

Features: TypeAlias = "sp.csr_array | np.ndarray"

# Above this share of non-zero entries a dense matrix product is the faster one.
DENSE_FROM = 0.25
MIN_WEIGHT, MAX_WEIGHT = 1e-30, 1e30  # of an edge: what float32 holds


def features_of(x: object, dense: bool | None, source: str) -> Features:
    """(N, d) float32: a copy, dense or sparse."""
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
    """A copy as float32.

    What the user brought stays as it was, and later changes to it do not reach the graph.
    """
    try:
        # Too large a number becomes infinite, and is reported as such.
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


def node_ids_of(node_ids: object, n: int, source: str) -> np.ndarray:
    """(N,) different names."""
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


def edges_of(edge_index: object, n: int, names: np.ndarray, source: str) -> np.ndarray:
    """(2, edges) numbers of nodes."""
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


def undirected(
    edges: np.ndarray, n: int, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Every edge in both directions, once each, sorted, without self-loops; and what each weighs.

    Weights of the same edge are added, whichever direction it is given in. Where all edges are
    given in both directions and weigh the same in either, each counts once: then these are the
    entries of a symmetric matrix.

    Args:
        edges: (2, edges) numbers of nodes.
        n: How many nodes there are.
        weight: (edges,) of each; None where all count alike.

    Examples:
        >>> undirected(np.array([[0, 1, 0], [1, 0, 2]]), 3, np.array([2.0, 3.0, 4.0]))[1].tolist()
        [5.0, 4.0, 5.0, 4.0]
        >>> undirected(np.array([[0, 1], [1, 0]]), 2, np.array([2.0, 2.0]))[1].tolist()
        [2.0, 2.0]
    """
    other = edges[0] != edges[1]
    a, b = edges[:, other]
    if weight is None:
        keys = np.unique(np.concatenate([a * n + b, b * n + a]))
        return np.stack([keys // n, keys % n]), None
    one_way, place = np.unique(a * n + b, return_inverse=True)
    given = np.bincount(place, weights=weight[other], minlength=len(one_way))
    back = one_way % n * n + one_way // n
    keys, place = np.unique(np.concatenate([one_way, back]), return_inverse=True)
    total = np.bincount(place, weights=np.concatenate([given, given]), minlength=len(keys))
    is_symmetric = len(keys) == len(one_way) and (total == 2 * given).all()
    return np.stack([keys // n, keys % n]), (total / (2 if is_symmetric else 1)).astype(np.float32)


def weights_of(edge_weight: object, edges: np.ndarray, source: str) -> np.ndarray | None:
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


def vectors_of(vectors: object, n: int, source: str) -> np.ndarray | None:
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
            f"{source}: vectors have shape {found.shape}, but there are {n} nodes: a row for each"
        )
    bad = ~np.isfinite(found).all(axis=1)
    if bad.any():
        row = int(bad.argmax())
        raise GraphError(f"{source}: the vector of node {row} has a number that is not finite")
    return found
