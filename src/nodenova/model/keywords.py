"""Which features tell the nodes of a class from all others, and a name for the class made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from nodenova.graph import Graph
from nodenova.model.classes import unused_names

PRIOR_NODES = 10.0  # nodes with average features that are added to either side
LEAST = 2.0  # standard errors that a feature must lie off to be worth a name
NAME_WORDS = 3


class Feature(NamedTuple):
    """A feature and how far the class lies off the other nodes in it, in standard errors; below zero: it has less."""

    name: str
    weight: float


def log_odds(having: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(C, d): log-odds that a node of a class has a word against a node of the others, in standard errors.

    having: (C, d) nodes of each class that have each word; size: (C,) nodes of each class. Either side is given
    `PRIOR_NODES` nodes more which have each word as often as all nodes do: the log-odds ratio with an informative Dirichlet
    prior of Monroe, Colaresi & Quinn ("Fightin' Words", 2008), so that a rare word must be seen more than once to count.
    """
    total, n = having.sum(axis=0), size.sum()
    with_it = PRIOR_NODES * (total + 1) / (n + 2)  # (d,)
    without = PRIOR_NODES - with_it
    inside, inside_not = having + with_it, size[:, None] - having + without
    rest, rest_not = total - having + with_it, (n - size)[:, None] - (total - having) + without
    error = np.sqrt(1 / inside + 1 / inside_not + 1 / rest + 1 / rest_not)
    return (np.log(inside / inside_not) - np.log(rest / rest_not)) / error


def mean_difference(sums: np.ndarray, squares: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(C, d): difference between the means of a class and of the other nodes, in its standard errors (Welch's t).

    sums, squares: (C, d) sums of the values and of their squares over the nodes of each class. 0 where nothing varies.
    """

    def moments(sums: np.ndarray, squares: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        many = np.maximum(n, 1)[:, None]
        mean = sums / many
        variance = np.maximum(squares / many - mean**2, 0) * many / np.maximum(many - 1, 1)
        # A sum of squares is exact to a few parts in 10^12: less than that is no variance.
        return mean, np.where(variance > 1e-12 * (squares / many), variance, 0) / many

    mean, error = moments(sums, squares, size)
    mean_rest, error_rest = moments(sums.sum(axis=0) - sums, squares.sum(axis=0) - squares, size.sum() - size)
    both = np.sqrt(error + error_rest)
    there = (both > 0) & ((size > 0) & (size < size.sum()))[:, None]
    return np.divide(mean - mean_rest, both, out=np.zeros_like(mean), where=there)


def weights(graph: Graph, groups: np.ndarray, num_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """(C, d) weight of each feature for each group of nodes, and (d,) which features are words: had or not had.

    Words are features that are 0 or 1, and in a sparse matrix all that are never negative and that most nodes lack.
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
            return (member @ sp.csr_array((values, x.indices, x.indptr), shape=x.shape)).toarray()  # (C, d)

        values = x.data.astype(np.float64)
        having = summed(np.ones_like(values))
        negative = np.bincount(x.indices, weights=values < 0, minlength=graph.num_features) > 0
        words = ~negative & (having.sum(axis=0) <= n / 2)
        sums, squares = (summed(values), summed(values**2)) if not words.all() else (having, having)
        words |= ~negative & (sums.sum(axis=0) == having.sum(axis=0)) & (squares.sum(axis=0) == having.sum(axis=0))
    result = np.empty_like(sums)
    result[:, words] = log_odds(having[:, words], size)
    result[:, ~words] = mean_difference(sums[:, ~words], squares[:, ~words], size)
    return result, words


def characteristic(
    graph: Graph, groups: np.ndarray, num_groups: int, count: int
) -> tuple[list[tuple[Feature, ...]], list[str]]:
    """The `count` most characteristic features of each group, strongest first, and a name for each of them ("" if none).

    Of words only those that the group has more often; of measurements those that are higher and those that are lower.
    """
    weight, words = weights(graph, groups, num_groups)
    known = graph.feature_names
    features: list[tuple[Feature, ...]] = []
    names: list[str] = []
    for row in weight:
        strength = np.where(words, row, np.abs(row))
        best = [j for j in np.argsort(-strength, kind="stable")[:count].tolist() if strength[j] > 0]
        title = [known[j] if known is not None else f"feature {j}" for j in best]
        features.append(tuple(Feature(name, float(row[j])) for name, j in zip(title, best, strict=True)))
        spoken = [
            name if words[j] else f"{'high' if row[j] > 0 else 'low'} {name}"
            for name, j in zip(title, best, strict=True)
            if strength[j] >= LEAST
        ]
        names.append(_name(spoken, names))
    return features, names


def _name(words: Sequence[str], taken: Sequence[str]) -> str:
    """The first few words, one of each stem, and more of them where another class has that name."""
    stems: dict[str, str] = {}
    for word in words:
        stems.setdefault(word.lower().removesuffix("s"), word)
    different = list(stems.values())
    if not different:
        return ""
    for length in range(min(NAME_WORDS, len(different)), len(different) + 1):
        name = ", ".join(different[:length])
        if name not in taken:
            return name
    return unused_names([name], taken)[0]
