"""Which features tell the nodes of a class from all others, and a name made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from nodenova.graph import Graph
from nodenova.model.naming import name_of, spoken

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
