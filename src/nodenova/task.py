"""What phase 2 is given: ids, and how many new classes to find. There is no field for a label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodenova.errors import GraphError, SettingError
from nodenova.graph import Graph


@dataclass(frozen=True, eq=False)
class NewTask:
    """Unlabelled nodes among which new classes are to be found: all that phase 2 is given.

    Attributes:
        graph: What phase 2 may see.
        ids: (n,) node numbers, strictly ascending: an order by class would be a leak.
        num_new: How many new classes to find among them; None for as many as there seem to be,
            which may be none.
        mixed: Whether nodes may be of known classes too, and nothing tells which. Otherwise all of
            them are new.

    Raises:
        SettingError: `num_new` is below 1.
        GraphError: The ids are not ascending, not in the graph, or fewer than `num_new`.

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
                f"{least} new classes need at least as many unlabelled nodes, there are {ids.size}"
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
        """How many new classes to find, for methods: by the time they are called it is known."""
        if self.num_new is None:
            raise SettingError("num_new must be a number here: count_new(model, task) estimates it")
        return self.num_new
