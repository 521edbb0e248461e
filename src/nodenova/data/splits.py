"""Splits of a labelled graph into the task of phase 1, the task of phase 2, and the exam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from nodenova.data.division import Division, check_groups, check_training_nodes, class_numbers
from nodenova.data.labels import UNKNOWN, Exam, LabelledGraph, LabelledNewTask, OldTask
from nodenova.errors import SettingError, check_seed
from nodenova.graph import NewTask
from nodenova.settings import check_arguments

SETTINGS = ("transductive", "inductive")


def split(
    labelled: LabelledGraph,
    old: Sequence[int],
    *,
    num_new: int | None = None,
    setting: str = "transductive",
    per_class: int = 20,
    seed: int = 0,
) -> tuple[OldTask, NewTask, Exam]:
    """Split a labelled graph: phase 1 learns the classes `old`, phase 2 discovers all others.

    Args:
        labelled: The graph and its classes.
        old: Numbers of the classes that phase 1 learns.
        num_new: Number of classes that phase 2 looks for; the true number by default.
        setting: "transductive": each phase sees the whole graph (without labels). "inductive": a
            phase sees only nodes of the classes that have appeared by then.
        per_class: Training nodes per class to draw if the graph has no published split.
        seed: Seed of that draw.

    Returns:
        The task of phase 1, the task of phase 2, and the exam over all classes.

    Raises:
        SplitError: If a class does not exist, appears twice, or has too few nodes.
        SettingError: If `setting` or `per_class` is out of range.

    Examples:
        >>> import nodenova as nova
        >>> labelled = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> old, new, exam = nova.split(labelled, old=[0, 1])
        >>> old.class_names, new.num_new, exam.sizes
        (('class-0', 'class-1'), 2, (2, 2))
        >>> nova.split(labelled, old=[0, 1], setting="inductive")[0].graph.num_nodes
        87
    """
    check_arguments(split, locals())
    division = _divide(labelled, old, None, setting, per_class, seed)
    return division.old_task(), division.new_task(1, num_new), division.exam(1)


def labelled_new_task(
    labelled: LabelledGraph,
    old: Sequence[int],
    *,
    num_new: int | None = None,
    setting: str = "transductive",
    per_class: int = 20,
    seed: int = 0,
) -> LabelledNewTask:
    """Return the phase 2 task of `split` with all labels, for methods that need them.

    These are the labels of new nodes, old nodes with labels, and validation nodes with labels.

    Args:
        labelled: The graph and its classes.
        old: Numbers of the classes that phase 1 learns.
        num_new: Number of classes that phase 2 looks for; the true number by default.
        setting: "transductive": each phase sees the whole graph (without labels). "inductive": a
            phase sees only nodes of the classes that have appeared by then.
        per_class: Training nodes per class to draw if the graph has no published split.
        seed: Seed of that draw.

    Returns:
        The task for `discover_supervised`.

    Raises:
        SplitError: If a class does not exist, appears twice, or has too few nodes.
        SettingError: If `setting` or `per_class` is out of range.

    Examples:
        >>> import nodenova as nova
        >>> labelled = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> task = nova.labelled_new_task(labelled, old=[0, 1])
        >>> len(task.ids), len(task.old_ids), len(task.val_ids)
        (40, 40, 30)
    """
    check_arguments(labelled_new_task, locals())
    return _divide(labelled, old, None, setting, per_class, seed).labelled_new_task(1, num_new)


def split_stages(
    labelled: LabelledGraph,
    old: Sequence[int],
    stages: Sequence[Sequence[int]],
    *,
    num_new: int | None = None,
    setting: str = "transductive",
    per_class: int = 20,
    seed: int = 0,
) -> tuple[OldTask, list[NewTask], list[Exam]]:
    """Split a labelled graph into phase 1 and several stages of discovery.

    Args:
        labelled: The graph and its classes.
        old: Numbers of the classes that phase 1 learns.
        stages: Numbers of the new classes of each stage.
        num_new: Number of classes that phase 2 looks for in each stage; the true number by default.
        setting: "transductive": each phase sees the whole graph (without labels). "inductive": a
            phase sees only nodes of the classes that have appeared by then.
        per_class: Training nodes per class to draw if the graph has no published split.
        seed: Seed of that draw.

    Returns:
        The task of phase 1, and for each stage its task and its exam over all classes that have
        appeared by then.

    Raises:
        SplitError: If a class does not exist, appears twice, or has too few nodes.
        SettingError: If `setting` or `per_class` is out of range.

    Examples:
        >>> import nodenova as nova
        >>> labelled = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> old, news, exams = nova.split_stages(labelled, [0, 1], [[2], [3]])
        >>> [new.num_new for new in news], [exam.sizes for exam in exams]
        ([1, 1], [(2, 1), (2, 1, 1)])
    """
    check_arguments(split_stages, locals())
    division = _divide(labelled, old, stages, setting, per_class, seed)
    numbers = range(1, len(stages) + 1)
    news = [division.new_task(stage, num_new) for stage in numbers]
    return division.old_task(), news, [division.exam(stage) for stage in numbers]


def _divide(
    labelled: LabelledGraph,
    old: Sequence[int],
    stages: Sequence[Sequence[int]] | None,
    setting: str,
    per_class: int,
    seed: int,
) -> Division:
    """Divide by the published split or a seeded one; by default all other classes are one stage."""
    if setting not in SETTINGS:
        raise SettingError(f"setting must be one of {', '.join(SETTINGS)}, it is {setting!r}")
    old = class_numbers(old, "old")
    if stages is None:
        stages = [[c for c in range(labelled.num_classes) if c not in old]]
    groups = [old, *(class_numbers(group, "stages") for group in stages)]
    check_groups(groups, labelled)
    labelled = with_split(labelled, per_class, seed)
    assert labelled.train is not None
    assert labelled.test is not None
    order = [c for group in groups for c in group]
    renumber = np.full(labelled.num_classes + 1, UNKNOWN)  # the last entry keeps -1 at -1
    renumber[order] = np.arange(len(order))
    y = renumber[labelled.y]
    names = tuple(labelled.class_names[c] for c in order)
    ends = np.cumsum([len(group) for group in groups])
    check_training_nodes(y, labelled.train, ends, names, labelled.name)
    known = [(y != UNKNOWN) & (y < end) for end in ends]
    return Division(
        graph=labelled.graph,
        y=y,
        class_names=names,
        sizes=tuple(len(group) for group in groups),
        train=labelled.train & known[0],
        val=np.zeros_like(labelled.train) if labelled.val is None else labelled.val,
        new=[labelled.train & now & ~before for before, now in pairwise(known)],
        test=labelled.test,
        seen=None if setting == "transductive" else known,
    )


def with_split(labelled: LabelledGraph, per_class: int = 20, seed: int = 0) -> LabelledGraph:
    """Return the graph with its published split, else with a seeded one.

    A seeded split has `per_class` training nodes per class, at most half of it. A quarter of the
    other labelled nodes, at most 500, is for validation, and the rest for the test.
    """
    if labelled.has_split:
        return labelled
    check_per_class(per_class)
    check_seed(seed, 0)
    rng = np.random.default_rng([seed, 20240])
    train = np.zeros(labelled.graph.num_nodes, dtype=bool)
    for c in range(labelled.num_classes):
        members = rng.permutation(np.flatnonzero(labelled.y == c))
        train[members[: min(per_class, len(members) // 2)]] = True
    return _split_rest(labelled, train, rng)


def resample_training_nodes(
    labelled: LabelledGraph,
    old: Sequence[int],
    per_class: int = 20,
    seed: int = 0,
    balanced: bool = True,
) -> LabelledGraph:
    """Return the graph with other training nodes, outside the published test.

    A graph without a published test gets one as in `with_split`. Unless `balanced`, the training
    nodes of the new classes are drawn regardless of class, as unlabelled nodes come in practice.
    """
    check_per_class(per_class)
    rng = np.random.default_rng([seed, 31415])
    free = labelled.y != UNKNOWN
    if labelled.test is not None:
        free &= ~labelled.test
    is_old = np.isin(labelled.y, list(old))
    samples = []
    num_unbalanced = 0
    for c in range(labelled.num_classes):
        members = rng.permutation(np.flatnonzero(free & (labelled.y == c)))
        count = min(per_class, max(1, len(members) // 2))
        if balanced or c in set(old):
            samples.append(members[:count])
        else:
            num_unbalanced += count
    if num_unbalanced:
        samples.append(rng.permutation(np.flatnonzero(free & ~is_old))[:num_unbalanced])
    train = np.zeros(labelled.graph.num_nodes, dtype=bool)
    train[np.concatenate(samples)] = True
    if labelled.test is None:
        return _split_rest(labelled, train, rng)
    val = np.zeros_like(train)
    val[rng.permutation(np.flatnonzero(free & ~train))[:500]] = True
    return replace(labelled, train=train, val=val)


def check_per_class(per_class: int) -> None:
    """Raise unless `per_class` is at least 1."""
    if per_class < 1:
        raise SettingError(f"per_class must be at least 1, it is {per_class}")


def _split_rest(
    labelled: LabelledGraph, train: np.ndarray, rng: np.random.Generator
) -> LabelledGraph:
    """Use a quarter of the other labelled nodes, at most 500, for validation, the rest as test."""
    val, test = np.zeros_like(train), np.zeros_like(train)
    rest = rng.permutation(np.flatnonzero((labelled.y != UNKNOWN) & ~train))
    n_val = min(500, len(rest) // 4)
    val[rest[:n_val]] = True
    test[rest[n_val:]] = True
    return replace(labelled, train=train, val=val, test=test)
