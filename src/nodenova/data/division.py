"""Which nodes of a labelled graph are for what: where labels become tasks and exams.

Whether a labelled graph can be divided into phases by given groups of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from nodenova.data.labels import UNKNOWN, Exam, LabelledGraph, LabelledNewTask, OldTask
from nodenova.display import plural
from nodenova.errors import SplitError
from nodenova.graph import Graph, NewTask


def check_groups(groups: Sequence[Sequence[int]], labelled: LabelledGraph) -> None:
    """Raise unless each class is there, is given once, and has a node to learn and one to grade."""
    order = [c for group in groups for c in group]
    unknown = [c for c in order if not 0 <= c < labelled.num_classes]
    if unknown:
        raise SplitError(
            f"{labelled.name}: class {unknown[0]} is not there, "
            f"classes are 0..{labelled.num_classes - 1}"
        )
    if len(set(order)) < len(order):
        twice = next(c for c in order if order.count(c) > 1)
        raise SplitError(f"{labelled.name}: class {twice} is given twice among old and new classes")
    if not groups[0]:
        raise SplitError(f"{labelled.name}: there must be at least one old class")
    if not all(groups[1:]):
        raise SplitError(
            f"{labelled.name}: {len(groups[0])} old classes of {labelled.num_classes} "
            "leave no new class to discover"
        )
    counts = np.bincount(labelled.y[labelled.y >= 0], minlength=labelled.num_classes)
    for c in order:
        if counts[c] < 2:
            raise SplitError(
                f"{labelled.name}: class {labelled.class_names[c]!r} has "
                f"{plural(counts[c], 'labelled node')}; each class needs at least 2, "
                "one to learn from and one to be graded on"
            )


def check_training_nodes(
    y: np.ndarray, train: np.ndarray, ends: np.ndarray, names: tuple[str, ...], source: str
) -> None:
    """Raise unless every old class and every stage has a training node."""
    for c in range(ends[0]):
        if not (train & (y == c)).any():
            raise SplitError(f"{source}: old class {names[c]!r} has no training node (train_mask)")
    for start, end in pairwise(ends):
        if not (train & (y >= start) & (y < end)).any():
            which = ", ".join(repr(name) for name in names[start:end])
            raise SplitError(
                f"{source}: none of the new classes ({which}) has a node in train_mask "
                "for phase 2 to see"
            )


@dataclass(frozen=True, eq=False)
class Division:
    """Nodes by purpose. Masks are over all nodes of the graph.

    Attributes:
        graph: All of it; `seen` says what of it a phase is shown.
        y: (N,) classes as the model numbers them, old ones and then stage by stage; -1 for unknown.
        class_names: In that order.
        sizes: How many classes each phase brings: (old, stage 1, ...).
        train: (N,) the labelled nodes of old classes that phase 1 learns from.
        val: (N,) validation nodes of all classes.
        new: (N,) for each stage, the nodes whose ids phase 2 is given.
        test: (N,) nodes that exams ask for, each of those whose class has been met.
        seen: (N,) for each phase the nodes that it is shown; None shows all phases the whole graph.
    """

    graph: Graph
    y: np.ndarray
    class_names: tuple[str, ...]
    sizes: tuple[int, ...]
    train: np.ndarray
    val: np.ndarray
    new: Sequence[np.ndarray]
    test: np.ndarray
    seen: Sequence[np.ndarray] | None = None

    def old_task(self) -> OldTask:
        """What phase 1 is given."""
        graph, shown = self._shown[0]
        y = self.y[shown]
        train_ids = np.flatnonzero(self.train[shown])
        val_ids = np.flatnonzero((self.val & self._met(0))[shown])
        names = self.class_names[: self.sizes[0]]
        return OldTask(graph, train_ids, y[train_ids], val_ids, y[val_ids], names)

    def new_task(
        self,
        stage: int = 1,
        num_new: int | None = None,
        *,
        mixed: bool = False,
        counted: bool = False,
    ) -> NewTask:
        """What phase 2 is given in a stage: no label, and how many classes to find.

        Args:
            stage: Which, from 1 on.
            num_new: How many classes to find; the true number unless given.
            mixed: Whether the nodes may be of known classes too.
            counted: Whether no number is told, so that it has to be estimated.
        """
        graph, shown = self._shown[stage]
        wanted = self.sizes[stage] if num_new is None else num_new
        ids = np.flatnonzero(self.new[stage - 1][shown])
        return NewTask(graph, ids, None if counted else wanted, mixed=mixed)

    def labelled_new_task(self, stage: int = 1, num_new: int | None = None) -> LabelledNewTask:
        """What phase 2 is given in a stage with everything there is to give away.

        Args:
            stage: Which, from 1 on.
            num_new: How many classes to find; the true number unless given.
        """
        new = self.new_task(stage, num_new)
        shown = self._shown[stage][1]
        y = self.y[shown]
        n_old = sum(self.sizes[:stage])
        old_ids = np.flatnonzero(self.train[shown])
        val_ids = np.flatnonzero((self.val & self._met(stage))[shown])
        return LabelledNewTask(
            graph=new.graph,
            ids=new.ids,
            num_new=new.number,
            y=y[new.ids] - n_old,
            old_ids=old_ids,
            old_y=y[old_ids],
            val_ids=val_ids,
            val_y=y[val_ids],
        )

    def exam(self, stage: int = 1) -> Exam:
        """The answers for the test nodes of all classes met until a stage."""
        graph, shown = self._shown[stage]
        ids = np.flatnonzero((self.test & self._met(stage))[shown])
        sizes = self.sizes[: stage + 1]
        return Exam(graph, ids, self.y[shown][ids], sizes, self.class_names[: sum(sizes)])

    def _met(self, phase: int) -> np.ndarray:
        """(N,) nodes of the classes that have been met in a phase."""
        return (self.y != UNKNOWN) & (self.y < sum(self.sizes[: phase + 1]))

    @cached_property
    def _shown(self) -> Sequence[tuple[Graph, np.ndarray]]:
        """The graph of each phase, the same one for its task and its exam, and its nodes' ids."""
        if self.seen is None:
            return [(self.graph, np.arange(self.graph.num_nodes))] * len(self.sizes)
        ids = map(np.flatnonzero, self.seen)
        whole = self.graph.num_nodes
        return [(self.graph if len(i) == whole else self.graph.subgraph(i), i) for i in ids]
