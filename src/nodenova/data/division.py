"""The division of a labelled graph into tasks and exams: which node serves which purpose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from nodenova.data.labels import UNKNOWN, Exam, LabelledGraph, LabelledNewTask, OldTask
from nodenova.display import plural
from nodenova.errors import SettingError, SplitError, brief
from nodenova.graph import Graph, NewTask


def class_numbers(classes: Iterable[int], name: str) -> list[int]:
    """Numbers of classes, ascending."""
    try:
        return sorted(int(c) for c in classes)
    except (TypeError, ValueError, OverflowError):
        what = f"{name} must be a list of class numbers, it is {brief(classes)}"
        raise SettingError(what) from None


def check_groups(groups: Sequence[Sequence[int]], labelled: LabelledGraph) -> None:
    """Raise unless each class exists, appears once, and has at least two labelled nodes."""
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
    """The nodes of a graph by purpose, as masks over all N nodes."""

    graph: Graph  # the whole graph
    y: np.ndarray  # (N,) classes as the model numbers them, old ones first; -1 = unknown
    class_names: tuple[str, ...]  # names of the classes in that order
    sizes: tuple[int, ...]  # number of classes of each phase: (old, stage 1, ...)
    train: np.ndarray  # (N,) labelled nodes of old classes that phase 1 learns from
    val: np.ndarray  # (N,) validation nodes of all classes
    new: Sequence[np.ndarray]  # (N,) for each stage, the nodes to discover classes in
    test: np.ndarray  # (N,) nodes of exams, which use those whose class has appeared by their stage
    seen: Sequence[np.ndarray] | None = None  # (N,) nodes in the graph of each phase; None: all

    def old_task(self) -> OldTask:
        """Return the task of phase 1."""
        graph, nodes = self._phase_graphs[0]
        y = self.y[nodes]
        train_ids = np.flatnonzero(self.train[nodes])
        val_ids = np.flatnonzero((self.val & self._is_known(0))[nodes])
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
        """Return the task of phase 2 in a stage, from 1 on, without labels.

        It has the true number of classes unless `num_new` is given, and none if that must be
        `counted`; `mixed` nodes may be of known classes too.
        """
        graph, nodes = self._phase_graphs[stage]
        number = self.sizes[stage] if num_new is None else num_new
        ids = np.flatnonzero(self.new[stage - 1][nodes])
        return NewTask(graph, ids, None if counted else number, mixed=mixed)

    def labelled_new_task(self, stage: int = 1, num_new: int | None = None) -> LabelledNewTask:
        """Return the task of phase 2 in a stage with all labels."""
        new = self.new_task(stage, num_new)
        nodes = self._phase_graphs[stage][1]
        y = self.y[nodes]
        n_old = sum(self.sizes[:stage])
        old_ids = np.flatnonzero(self.train[nodes])
        val_ids = np.flatnonzero((self.val & self._is_known(stage))[nodes])
        labels = (y[new.ids] - n_old, old_ids, y[old_ids], val_ids, y[val_ids])
        return LabelledNewTask(new.graph, new.ids, new.number, *labels)

    def exam(self, stage: int = 1) -> Exam:
        """Return the exam over all classes that have appeared by a stage."""
        graph, nodes = self._phase_graphs[stage]
        ids = np.flatnonzero((self.test & self._is_known(stage))[nodes])
        sizes = self.sizes[: stage + 1]
        return Exam(graph, ids, self.y[nodes][ids], sizes, self.class_names[: sum(sizes)])

    def _is_known(self, phase: int) -> np.ndarray:
        """(N,) whether a node's class has appeared by a phase."""
        return (self.y != UNKNOWN) & (self.y < sum(self.sizes[: phase + 1]))

    @cached_property
    def _phase_graphs(self) -> Sequence[tuple[Graph, np.ndarray]]:
        """The graph of each phase, shared by its task and its exam, and the ids of its nodes."""
        if self.seen is None:
            return [(self.graph, np.arange(self.graph.num_nodes))] * len(self.sizes)
        ids = map(np.flatnonzero, self.seen)
        whole = self.graph.num_nodes
        return [(self.graph if len(i) == whole else self.graph.subgraph(i), i) for i in ids]
