"""Edges of several types as the weighted edges of one graph.

Each type is normalized on its own, and they are added: with a_t the weights of a type, of mean 1,
d_t what the edges of a node of that type weigh together, and D the sum of d_t over types,

    w_ij = sum_t share_t a_t,ij sqrt(D_i D_j / (d_t,i d_t,j)),

so that D^-1/2 w D^-1/2 is the sum of the D_t^-1/2 A_t D_t^-1/2 of the types. At every node the
types that it has count alike, however many edges they have there; a single type stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nodenova.errors import GraphError
from nodenova.graph.parts import undirected

MAX_TYPES = 100  # more different values are no types of edges


class EdgeType(NamedTuple):
    """The edges of one type.

    Attributes:
        name: Of the type.
        ends: (2, E) numbers of nodes.
        weight: (E,) of each, or None where they count alike.
    """

    name: str
    ends: np.ndarray
    weight: np.ndarray | None = None


def by_type(
    names: Sequence[str], number: np.ndarray, ends: np.ndarray, weight: np.ndarray | None
) -> list[EdgeType]:
    """The edges of a table, type by type.

    Args:
        names: Of the types.
        number: (E,) of which type each edge is.
        ends: (2, E) numbers of nodes.
        weight: (E,) of each, or None.
    """
    masks = [number == t for t in range(len(names))]
    return [
        EdgeType(name, ends[:, mask], None if weight is None else weight[mask])
        for name, mask in zip(names, masks, strict=True)
    ]


def combined(
    types: Sequence[EdgeType],
    n: int,
    shares: Mapping[str, float] | None,
    source: str,
    notes: list[str],
) -> tuple[np.ndarray, np.ndarray | None]:
    """Edges of several types as those of one graph.

    Args:
        types: All that there are.
        n: How many nodes there are.
        shares: What each type weighs; types that are not named are left out. None: all alike.
        source: What messages call the table of edges.
        notes: Gets a sentence on what was done.

    Returns:
        (2, E) both directions of every edge, maybe of several types, and (E,) weights; None where
        there is one type, and all its edges count alike.

    Raises:
        GraphError: There is no such type.

    Examples:
        >>> cites = EdgeType("cites", np.array([[0, 0, 0], [1, 2, 3]]))
        >>> same = EdgeType("same author", np.array([[0], [1]]))
        >>> ends, weight = combined([cites, same], 4, None, "edges", [])
        >>> weight.reshape(2, -1).round(2).tolist()  # cites 0-1, 0-2, 0-3, 1-0; 2-0, 3-0; same
        [[1.63, 1.15, 1.15, 1.63], [1.15, 1.15, 2.83, 2.83]]
    """
    known = [kind.name for kind in types]
    for name in shares or ():
        if name not in known:
            raise GraphError(f"{source}: no edge is of type {name!r}; types: {', '.join(known)}")
    chosen = [kind for kind in types if shares is None or kind.name in shares]
    parts = []
    for kind in chosen:
        ends, weight = undirected(kind.ends, n, kind.weight)
        a = np.ones(ends.shape[1]) if weight is None else weight / weight.mean(dtype=np.float64)
        parts.append((ends, a, np.bincount(ends[0], weights=a, minlength=n)))
    total = np.sum([d for _, _, d in parts], axis=0)
    weights = []
    for kind, (ends, a, d) in zip(chosen, parts, strict=True):
        i, j = ends
        share = 1.0 if shares is None else shares[kind.name]
        weights.append(share * (a * np.sqrt(total[i] * total[j] / (d[i] * d[j]))))
    counts = [f"{k.name} {e.shape[1] // 2:,}" for k, (e, _, _) in zip(chosen, parts, strict=True)]
    said = f"{source}: types of edges are {', '.join(counts)}"
    if len(chosen) > 1:
        said += "; at every node those that it has count alike, however many edges they have there"
        if shares is not None and len({*shares.values()}) > 1:
            said += ", times " + ", ".join(f"{name} {share:g}" for name, share in shares.items())
    notes.append(said)
    left = [name for name in known if shares is not None and name not in shares]
    if left:
        notes.append(f"{source}: types of edges that were not chosen: {', '.join(left)}")
    if len(chosen) == 1 and chosen[0].weight is None:
        return parts[0][0], None
    return np.concatenate([ends for ends, _, _ in parts], axis=1), np.concatenate(weights)
