"""How steadily new classes are found: in how many groupings each is met again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.memory import Memory

SAME = 0.5  # the Jaccard index from which on two groups are the same class


class JointFit(NamedTuple):
    """What is found among unlabelled nodes.

    Attributes:
        memory: What is known of all classes, those found behind the others.
        head: One classifier for all of them.
        times_found: For each class that was found, in how many groupings it was met again, and how
            many there were.
    """

    memory: Memory
    head: UnitLinearHead
    times_found: tuple[tuple[int, int], ...]


def times_found(
    groups: np.ndarray, others: Sequence[np.ndarray], num_new: int
) -> tuple[tuple[int, int], ...]:
    """For each group, in how many other groupings it is met again, and how many there are.

    It is met where at least half of the nodes that are in it in either grouping are in it in both.

    Args:
        groups: (n,) numbers of groups; other numbers are of no group.
        others: (n,) each, numbered alike.
        num_new: How many groups.

    Examples:
        >>> times_found(np.array([0, 0, 1, 1]), [np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])], 2)
        ((2, 2), (2, 2))
        >>> times_found(np.array([0, 0, 0, 1]), [np.array([0, 1, 1, 1])], 2)
        ((0, 1), (0, 1))
    """
    met = np.zeros(num_new, dtype=np.int64)
    for other in others:
        for number in range(num_new):
            one, two = groups == number, other == number
            met[number] += (one & two).sum() >= SAME * max((one | two).sum(), 1)
    return tuple((int(times), len(others)) for times in met)
