"""A user's own graph as tasks of the two phases, and as an exam if it has answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from nodenova.data.division import Division
from nodenova.data.labels import UNKNOWN, Exam, OldTask, UserGraph
from nodenova.errors import GraphError, SettingError, SplitError, check_seed
from nodenova.graph import NewTask
from nodenova.settings import check_arguments

VALIDATION_SHARE = 5  # one of this many labelled nodes is for validation
MAX_VALIDATION = 500


def tasks_from_labels(
    loaded: UserGraph, num_new: int | None = None, *, mixed: bool | None = None, seed: int = 0
) -> tuple[OldTask, NewTask, Exam | None]:
    """Divide a user's own graph into the tasks of the two phases.

    Phase 1 learns from the labelled nodes that are not new; a fifth of each class, at most 500
    nodes in all, is for validation. Phase 2 gets the ids of the new nodes (by default all
    unlabelled ones) and no label. Classes without a node are dropped.

    Args:
        loaded: The graph with its labels and new nodes.
        num_new: Number of classes that phase 2 looks for; None to estimate it.
        mixed: Whether the new nodes may be of known classes too. By default they may unless the
            user named the new nodes.
        seed: Seed of the draw of validation nodes.

    Returns:
        The task of phase 1, the task of phase 2, and the exam over the new nodes that have a
        label; None instead of the exam if no class consists of new nodes only.

    Raises:
        SplitError: If fewer than two classes are labelled, or no node is new.

    Examples:
        >>> import numpy as np
        >>> import nodenova as nova
        >>> known = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> new_ids = np.flatnonzero(known.y >= 2)
        >>> mine = nova.UserGraph(known.graph, known.y, known.class_names, new_ids=new_ids)
        >>> old, new, exam = nova.tasks_from_labels(mine, num_new=2)
        >>> old.class_names, len(new.ids), new.mixed, exam.sizes
        (('class-0', 'class-1'), 113, False, (2, 2))
        >>> y = np.where(np.arange(200) % 2, known.y, -1)  # new nodes not named
        >>> loaded = nova.load_graph(nova.LabelledGraph(known.graph, y, known.class_names))
        >>> nova.tasks_from_labels(loaded)[1].mixed
        True
    """
    check_arguments(tasks_from_labels, locals())
    check_seed(seed, 0)
    loaded = drop_empty_classes(loaded)
    y, name = loaded.y, loaded.name
    labelled = (y != UNKNOWN) & ~loaded.is_new
    if not labelled.any():
        raise SplitError(
            f"{name}: no labelled nodes apart from new ones; "
            "at least two classes need labelled nodes"
        )
    n_old = loaded.num_old
    if n_old < 2:
        raise SplitError(
            f"{name}: all labelled nodes are of one class, {loaded.class_names[0]!r}; "
            "at least two classes need labelled nodes"
        )
    if not len(loaded.new_ids):
        raise SplitError(
            f"{name}: every node has a label and none is marked as new; "
            "leave some labels empty, or name the new nodes"
        )
    rng = np.random.default_rng([seed, 27182])
    total = int(labelled.sum())
    val = np.zeros_like(labelled)
    for c in range(n_old):
        members = rng.permutation(np.flatnonzero(labelled & (y == c)))
        val[members[: _num_validation(len(members), total)]] = True
    division = Division(
        graph=loaded.graph,
        y=y,
        class_names=loaded.class_names,
        sizes=(n_old, len(loaded.class_names) - n_old),
        train=labelled & ~val,
        val=val,
        new=[loaded.is_new],
        test=loaded.is_new,
    )
    exam = division.exam() if division.sizes[1] else None
    if mixed is None:
        mixed = not loaded.new_named
    new = division.new_task(1, num_new, mixed=mixed, counted=num_new is None)
    return division.old_task(), new, exam


def _num_validation(size: int, total: int) -> int:
    """Number of validation nodes of a class with `size` of `total` labelled nodes."""
    return int(size * min(1 / VALIDATION_SHARE, MAX_VALIDATION / total))


def check_min_class_size(min_size: object) -> None:
    """Raise unless it is a whole number from 1 on."""
    if isinstance(min_size, bool) or not isinstance(min_size, Integral) or int(min_size) < 1:
        raise SettingError(f"min_class_size must be a whole number from 1 on, it is {min_size!r}")


def small_classes(user_graph: UserGraph, min_size: int) -> list[int]:
    """Numbers of known classes with fewer than `min_size` training nodes, smallest number first."""
    labelled = (user_graph.y != UNKNOWN) & ~user_graph.is_new
    sizes = np.bincount(user_graph.y[labelled], minlength=len(user_graph.class_names)).tolist()
    total = sum(sizes)
    return [c for c, n in enumerate(sizes) if n and n - _num_validation(n, total) < min_size]


def unlabel_small_classes(user_graph: UserGraph, min_size: int) -> UserGraph:
    """Treat the nodes of known classes with fewer than `min_size` training nodes as unlabelled.

    Examples:
        >>> from nodenova.graph import Graph
        >>> graph = Graph.of(np.eye(6), [[0], [1]])
        >>> y = np.array([0, 0, 1, 2, 2, -1])
        >>> mine = UserGraph(graph, y, ("a", "b", "c"), new_ids=np.array([5]), new_named=False)
        >>> left = unlabel_small_classes(mine, 2)
        >>> left.class_names, left.y.tolist(), left.new_ids.tolist()
        (('a', 'c'), [0, 0, -1, 1, 1, -1], [2, 5])
        >>> left.notes
        ("fewer than 2 training nodes (min_class_size), treated as unlabelled: 'b'",)
    """
    check_min_class_size(min_size)
    before, dropped = user_graph.num_old, list[str]()
    while small := small_classes(user_graph, min_size):  # the share for validation may change
        dropped += [user_graph.class_names[c] for c in small]
        y = np.where(np.isin(user_graph.y, small), UNKNOWN, user_graph.y)
        new_ids = user_graph.new_ids if user_graph.new_named else np.flatnonzero(y == UNKNOWN)
        user_graph = drop_empty_classes(replace(user_graph, y=y, new_ids=new_ids))
    if not dropped:
        return user_graph
    remaining = user_graph.num_old
    if remaining < 2:
        raise SplitError(
            f"{user_graph.name}: min_class_size={min_size} leaves {remaining} of {before} known "
            "classes, and at least two are needed; label more nodes, or choose a smaller limit"
        )
    note = (
        f"fewer than {min_size} training nodes (min_class_size), treated as unlabelled: "
        f"{', '.join(map(repr, dropped))}"
    )
    return replace(user_graph, notes=(*user_graph.notes, note))


def drop_empty_classes(loaded: UserGraph) -> UserGraph:
    """Drop classes without a node: files may name more, and class numbers may have gaps."""
    there = np.unique(loaded.y[loaded.y != UNKNOWN])
    if len(there) == len(loaded.class_names):
        return loaded
    y = np.where(loaded.y == UNKNOWN, UNKNOWN, np.searchsorted(there, loaded.y))
    return replace(loaded, y=y, class_names=tuple(loaded.class_names[c] for c in there))


def number_labels(y: Any, num_nodes: int) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Return (N,) class numbers, -1 = unknown, of labels of any kind, and the C labels in order.

    None, NaN, pandas.NA, -1 and "" are unknown.
    """
    values = _to_list(y)
    if len(values) != num_nodes:
        raise GraphError(f"y has {len(values):,} labels, but the graph has {num_nodes:,} nodes")
    known = [not _is_unknown(value) for value in values]
    try:
        distinct = {value for value, is_known in zip(values, known, strict=True) if is_known}
    except TypeError:
        odd = next(value for value in values if getattr(value, "__hash__", None) is None)
        raise GraphError(
            f"y holds a {type(odd).__name__}, but a label is a single text or number"
        ) from None
    number = {value: c for c, value in enumerate(_sort_labels(distinct))}
    pairs = zip(values, known, strict=True)
    codes = [number[value] if is_known else UNKNOWN for value, is_known in pairs]
    return np.array(codes, dtype=np.int64), tuple(number)


def _to_list(y: Any) -> Sequence[Any]:
    """Return a list, an array, a tensor or a column of a table as Python values."""
    if hasattr(y, "__array__") and not hasattr(y, "tolist"):
        y = np.asarray(y)
    shape = getattr(y, "shape", None)
    is_single = isinstance(y, (str, bytes, dict)) or not hasattr(y, "__len__")
    if is_single or (shape is not None and len(shape) != 1):
        what = type(y).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")
        raise GraphError(
            f"y must be a list or one-dimensional array with one label per node, not a {what}"
        )
    return y.tolist() if hasattr(y, "tolist") else list(y)


def _is_unknown(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value):
        return True
    try:
        return bool(value == UNKNOWN) or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal nor unequal to anything
        return type(value).__name__ == "NAType"


def _sort_labels(labels: set[Any]) -> list[Any]:
    """Sort labels that can be compared; others by type, then as texts."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))
