"""Dividing a labelled graph into what phase 1 learns, what phase 2 must discover, and the exam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from nodenova.data.labels import UNKNOWN, Exam, GivenTask, Labelled, OldTask
from nodenova.errors import SettingError, SplitError
from nodenova.task import NewTask

VISIBILITIES = ("transductive", "induced")


def split(
    labelled: Labelled,
    old: Sequence[int],
    *,
    num_new: int | None = None,
    visibility: str = "transductive",
    per_class: int = 20,
    seed: int = 0,
) -> tuple[OldTask, NewTask, Exam]:
    """Classes `old` are labelled in phase 1, all others are to be discovered in one stage.

    num_new:    how many classes phase 2 is told to find; the true number unless given.
    visibility: "transductive" shows both phases the whole graph (never a label); "induced" shows a phase only
                the nodes of the classes met so far.
    per_class, seed: used only when the graph has no published split: `per_class` training nodes a class are drawn.
    """
    rest = [c for c in range(labelled.num_classes) if c not in set(old)]
    first, news, exams = split_stages(
        labelled, old, [rest], visibility=visibility, per_class=per_class, seed=seed, num_new=num_new
    )
    return first, news[0], exams[0]


def given_task(
    labelled: Labelled,
    old: Sequence[int],
    *,
    num_new: int | None = None,
    visibility: str = "transductive",
    per_class: int = 20,
    seed: int = 0,
) -> GivenTask:
    """The phase 2 of `split` with everything there is to give away: new labels, old nodes and labels, validation nodes."""
    drawn = with_split(labelled, per_class, seed)
    _, new, _ = split(drawn, old, num_new=num_new, visibility=visibility)
    assert drawn.train is not None
    seen = np.arange(new.graph.num_nodes) if visibility == "transductive" else np.flatnonzero(drawn.y != UNKNOWN)
    y, train = drawn.y[seen], drawn.train[seen]
    order = [*sorted(old), *(c for c in range(labelled.num_classes) if c not in set(old))]
    number = np.argsort(order)[y]  # as the joint head numbers classes; meaningless where y is unknown
    old_ids = np.flatnonzero(train & np.isin(y, list(old)))
    val_ids = np.flatnonzero(drawn.val[seen] & (y != UNKNOWN)) if drawn.val is not None else np.zeros(0, dtype=np.int64)
    y_new = number[new.ids] - len(old)
    return GivenTask(new.graph, new.ids, new.num_new, y_new, old_ids, number[old_ids], val_ids, number[val_ids])


def split_stages(
    labelled: Labelled,
    old: Sequence[int],
    stages: Sequence[Sequence[int]],
    *,
    num_new: int | None = None,
    visibility: str = "transductive",
    per_class: int = 20,
    seed: int = 0,
) -> tuple[OldTask, list[NewTask], list[Exam]]:
    """The same for several stages: stage s brings the classes stages[s], and exam s asks for all classes met until then."""
    if visibility not in VISIBILITIES:
        raise SettingError(f"visibility must be one of {', '.join(VISIBILITIES)}, it is {visibility!r}")
    groups = [sorted(int(c) for c in group) for group in (old, *stages)]
    _check_groups(groups, labelled)
    labelled = with_split(labelled, per_class, seed)
    assert labelled.train is not None
    assert labelled.test is not None
    val = labelled.val if labelled.val is not None else np.zeros(labelled.graph.num_nodes, dtype=bool)

    order = [c for group in groups for c in group]
    renumber = np.full(labelled.num_classes + 1, UNKNOWN)  # the last entry keeps -1 (unknown) at -1
    renumber[order] = np.arange(len(order))
    y = renumber[labelled.y]
    names = tuple(labelled.class_names[c] for c in order)
    ends = np.cumsum([len(group) for group in groups])
    _check_training_nodes(y, labelled.train, ends, names, labelled.name)

    def seen_after(phase: int) -> np.ndarray:
        """Ascending ids of the nodes that phase may see."""
        if visibility == "transductive":
            return np.arange(labelled.graph.num_nodes)
        return np.flatnonzero((y >= 0) & (y < ends[phase]))

    def graph_of(seen: np.ndarray):  # type: ignore[no-untyped-def]
        return labelled.graph if len(seen) == labelled.graph.num_nodes else labelled.graph.subgraph(seen)

    seen = seen_after(0)
    y_seen, train, validation = y[seen], labelled.train[seen], val[seen]
    is_old = (y_seen >= 0) & (y_seen < ends[0])
    train_ids, val_ids = np.flatnonzero(train & is_old), np.flatnonzero(validation & is_old)
    first = OldTask(graph_of(seen), train_ids, y_seen[train_ids], val_ids, y_seen[val_ids], names[: ends[0]])

    tasks, exams = [], []
    for phase in range(1, len(groups)):
        seen = seen_after(phase)
        graph, y_seen = graph_of(seen), y[seen]
        is_new = (y_seen >= ends[phase - 1]) & (y_seen < ends[phase])
        wanted = len(groups[phase]) if num_new is None else num_new
        tasks.append(NewTask(graph, np.flatnonzero(labelled.train[seen] & is_new), wanted))
        test_ids = np.flatnonzero(labelled.test[seen] & (y_seen >= 0) & (y_seen < ends[phase]))
        sizes = tuple(len(group) for group in groups[: phase + 1])
        exams.append(Exam(graph, test_ids, y_seen[test_ids], sizes, names[: ends[phase]]))
    return first, tasks, exams


def with_split(labelled: Labelled, per_class: int = 20, seed: int = 0) -> Labelled:
    """The graph with its published split, or, when it has none, with a seeded one.

    Training nodes: `per_class` of each class, at most half of it. Of the other labelled nodes a quarter, at most
    500, are for validation, and the rest is for the test.
    """
    if labelled.has_split:
        return labelled
    _check_per_class(per_class)
    rng = np.random.default_rng([seed, 20240])
    train = np.zeros(labelled.graph.num_nodes, dtype=bool)
    for c in range(labelled.num_classes):
        members = rng.permutation(np.flatnonzero(labelled.y == c))
        train[members[: min(per_class, len(members) // 2)]] = True
    return _rest_divided(labelled, train, rng)


def redrawn(labelled: Labelled, old: Sequence[int], per_class: int = 20, seed: int = 0, balanced: bool = True) -> Labelled:
    """The same graph with other training nodes: `per_class` of each class, at most half of it, outside the published test.

    With balanced=False the new classes together get as many, drawn without looking at the class, as unlabelled nodes come
    in practice. A graph without a published test gets one from the nodes that are left, as in `with_split`.
    """
    _check_per_class(per_class)
    rng = np.random.default_rng([seed, 31415])
    free = labelled.y != UNKNOWN
    if labelled.test is not None:
        free &= ~labelled.test
    is_old = np.isin(labelled.y, list(old))
    drawn, wanted = [], 0
    for c in range(labelled.num_classes):
        members = rng.permutation(np.flatnonzero(free & (labelled.y == c)))
        count = min(per_class, max(1, len(members) // 2))
        if balanced or c in set(old):
            drawn.append(members[:count])
        else:
            wanted += count
    if wanted:
        drawn.append(rng.permutation(np.flatnonzero(free & ~is_old))[:wanted])
    train = np.zeros(labelled.graph.num_nodes, dtype=bool)
    train[np.concatenate(drawn)] = True
    if labelled.test is None:
        return _rest_divided(labelled, train, rng)
    val = np.zeros_like(train)
    val[rng.permutation(np.flatnonzero(free & ~train))[:500]] = True
    return replace(labelled, train=train, val=val)


def _check_per_class(per_class: int) -> None:
    if per_class < 1:
        raise SettingError(f"per_class must be at least 1, it is {per_class}")


def _rest_divided(labelled: Labelled, train: np.ndarray, rng: np.random.Generator) -> Labelled:
    """Of the other labelled nodes a quarter, at most 500, for validation, and the rest for the test."""
    val, test = np.zeros_like(train), np.zeros_like(train)
    rest = rng.permutation(np.flatnonzero((labelled.y != UNKNOWN) & ~train))
    n_val = min(500, len(rest) // 4)
    val[rest[:n_val]] = True
    test[rest[n_val:]] = True
    return replace(labelled, train=train, val=val, test=test)


def _check_groups(groups: list[list[int]], labelled: Labelled) -> None:
    order = [c for group in groups for c in group]
    unknown = [c for c in order if not 0 <= c < labelled.num_classes]
    if unknown:
        raise SplitError(f"{labelled.name}: class {unknown[0]} is not there, classes are 0..{labelled.num_classes - 1}")
    if len(set(order)) < len(order):
        twice = next(c for c in order if order.count(c) > 1)
        raise SplitError(f"{labelled.name}: class {twice} is given twice among old and new classes")
    if not groups[0]:
        raise SplitError(f"{labelled.name}: there must be at least one old class")
    if not all(groups[1:]):
        raise SplitError(
            f"{labelled.name}: {len(groups[0])} old classes of {labelled.num_classes} leave no new class to discover"
        )
    counts = np.bincount(labelled.y[labelled.y >= 0], minlength=labelled.num_classes)
    for c in order:
        if counts[c] < 2:
            raise SplitError(
                f"{labelled.name}: class {labelled.class_names[c]!r} has {counts[c]} labelled node"
                f"{'' if counts[c] == 1 else 's'}; each class needs at least 2, one to learn from and one to be graded on"
            )


def _check_training_nodes(y: np.ndarray, train: np.ndarray, ends: np.ndarray, names: tuple[str, ...], source: str) -> None:
    for c in range(ends[0]):
        if not (train & (y == c)).any():
            raise SplitError(f"{source}: old class {names[c]!r} has no training node (train_mask)")
    for start, end in pairwise(ends):
        if not (train & (y >= start) & (y < end)).any():
            which = ", ".join(repr(name) for name in names[start:end])
            raise SplitError(f"{source}: none of the new classes ({which}) has a node in train_mask for phase 2 to see")
