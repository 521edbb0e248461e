"""Nodes that an earlier run has classified: they keep their class unless there is good reason."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from nodenova.model.model import Model
from nodenova.review.user_labels import NOBODY_SAID, UserLabels

MIN_STAY = 0.001  # the probability below which the class of the earlier run is given up


@dataclass(frozen=True, eq=False)
class SettledLabels(UserLabels):
    """The user's labels, and what an earlier run said of the nodes that it had.

    A class that is a little more likely after the graph has grown is no reason to move a node that
    people have seen elsewhere: it moves where the class it was in has become unlikely, or is gone.

    Attributes:
        before: (N,) the id of the class that the earlier run put each node in, -1 for none.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> said = SettledLabels(np.full(3, -1), ("cod", "oak"), before=np.array([0, 0, -1]))
        >>> p = np.array([[0.3, 0.7], [0.0001, 0.9999], [0.3, 0.7]])
        >>> said.rows(nova.fit(old), p).tolist()
        [0, 1, 1]
    """

    before: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def of_nodes(self, numbers: np.ndarray) -> Self:
        """What was said of some nodes, and what the earlier run said of them."""
        return replace(super().of_nodes(numbers), before=self.before[numbers])

    def rows(self, model: Model, p: np.ndarray) -> np.ndarray:
        """(N,) the class of every node, a row of `model.classes`.

        By its label if that is kept, else by the earlier run unless that has become unlikely.
        """
        row = super().rows(model, p)
        if not self.keep:
            return row
        was = np.where(self.meant(model)[self.before], p, -np.inf)
        stays = (self.before != NOBODY_SAID) & ~self.labelled & (was.max(axis=1) >= MIN_STAY)
        return np.where(stays, was.argmax(axis=1), row)
