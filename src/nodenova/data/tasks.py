"""A user's own graph as tasks.

What phase 1 learns from, what phase 2 discovers in, and the exam if there are answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nodenova.data.division import Division
from nodenova.data.labels import UNKNOWN, Exam, OldTask, UserGraph
from nodenova.errors import GraphError, SplitError
from nodenova.graph import NewTask

VALIDATION_SHARE = 5  # one labelled node in so many is for validation
MAX_VALIDATION = 500


def tasks_from_labels(
    loaded: UserGraph, num_new: int | None = None, *, mixed: bool | None = None, seed: int = 0
) -> tuple[OldTask, NewTask, Exam | None]:
    """Divide a user's own graph: phase 1 learns from labelled nodes, phase 2 sees the others.

    Phase 1 learns from the labelled nodes that are not new; a fifth of those of a class, at most
    500 in all, is for validation. Phase 2 sees the ids of all new nodes, which are the unlabelled
    ones unless others were named, and no label. Classes that no node has are left out.

    Args:
        loaded: The graph, with what it knows of labels and of new nodes.
        num_new: How many classes phase 2 is told to find; None for as many as there seem to be.
        mixed: Whether the nodes that phase 2 sees may be of known classes too. None: they may,
            unless somebody named the new ones. False: all of them are new.
        seed: Of the draw of validation nodes.

    Returns:
        What phase 1 is given, what phase 2 is given, and the exam, which asks for the new nodes
        that have a label; None where no class is of new nodes alone.

    Raises:
        SplitError: Fewer than two classes are labelled, or no node is new.

    Examples:
        >>> import numpy as np
        >>> import nodenova as nova
        >>> known = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> new_ids = np.flatnonzero(known.y >= 2)
        >>> mine = nova.UserGraph(known.graph, known.y, known.class_names, new_ids=new_ids)
        >>> old, new, exam = nova.tasks_from_labels(mine, num_new=2)
        >>> old.class_names, len(new.ids), new.mixed, exam.sizes
        (('class-0', 'class-1'), 113, False, (2, 2))
        >>> y = np.where(np.arange(200) % 2, known.y, -1)  # nobody says which nodes are new
        >>> loaded = nova.load_graph(nova.LabelledGraph(known.graph, y, known.class_names))
        >>> nova.tasks_from_labels(loaded)[1].mixed
        True
    """
    loaded = drop_empty_classes(loaded)
    y = loaded.y
    name = loaded.name
    labelled = (y != UNKNOWN) & ~loaded.is_new
    if not labelled.any():
        raise SplitError(
            f"{name}: no node has a label, apart from the new ones; "
            "phase 1 has nothing to learn from"
        )
    n_old = loaded.num_old
    if n_old < 2:
        raise SplitError(
            f"{name}: all labelled nodes are of one class, {loaded.class_names[0]!r}; "
            "at least two are needed"
        )
    if not len(loaded.new_ids):
        raise SplitError(
            f"{name}: every node has a label and none was named as new; "
            "there is nothing to discover in"
        )
    rng = np.random.default_rng([seed, 27182])
    most = MAX_VALIDATION / labelled.sum()
    val = np.zeros_like(labelled)
    for c in range(n_old):
        members = rng.permutation(np.flatnonzero(labelled & (y == c)))
        val[members[: int(len(members) * min(1 / VALIDATION_SHARE, most))]] = True
    divided = Division(
        graph=loaded.graph,
        y=y,
        class_names=loaded.class_names,
        sizes=(n_old, len(loaded.class_names) - n_old),
        train=labelled & ~val,
        val=val,
        new=[loaded.is_new],
        test=loaded.is_new,
    )
    exam = divided.exam() if divided.sizes[1] else None
    if mixed is None:
        mixed = not loaded.new_named
    new = divided.new_task(1, num_new, mixed=mixed, counted=num_new is None)
    return divided.old_task(), new, exam


def drop_empty_classes(loaded: UserGraph) -> UserGraph:
    """The same graph, its classes those that a node has.

    A file may name more, and numbers of classes may have gaps.
    """
    there = np.unique(loaded.y[loaded.y != UNKNOWN])
    if len(there) == len(loaded.class_names):
        return loaded
    y = np.where(loaded.y == UNKNOWN, UNKNOWN, np.searchsorted(there, loaded.y))
    return replace(loaded, y=y, class_names=tuple(loaded.class_names[c] for c in there))


def number_labels(y: Any, num_nodes: int) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Labels of any kind as numbers. Unknown is what is None, NaN, pandas.NA, -1 or an empty text.

    Args:
        y: N labels: a list, an array, a tensor, a column of a table.
        num_nodes: N.

    Returns:
        (N,) numbers 0..C-1, -1 where the label is unknown, and the C labels in their order.

    Raises:
        GraphError: There are not as many labels as nodes, or one is not a single value.

    Examples:
        >>> number_labels(["gene", None, "cell"], 3)
        (array([ 1, -1,  0]), ('cell', 'gene'))
    """
    values = _listed(y)
    if len(values) != num_nodes:
        raise GraphError(f"y has {len(values):,} labels, but the graph has {num_nodes:,} nodes")
    known = [not _is_unknown(value) for value in values]
    try:
        different = {value for value, there in zip(values, known, strict=True) if there}
    except TypeError:
        strange = next(v for v in values if getattr(v, "__hash__", None) is None)
        raise GraphError(
            f"y holds a {type(strange).__name__}, and a label is one value: a text or a number"
        ) from None
    number = {value: c for c, value in enumerate(_ordered(different))}
    codes = [
        number[value] if there else UNKNOWN for value, there in zip(values, known, strict=True)
    ]
    return np.array(codes, dtype=np.int64), tuple(number)


def _listed(y: Any) -> Sequence[Any]:
    """A list of Python values from a list, an array, a tensor, a column of a table."""
    if hasattr(y, "__array__") and not hasattr(y, "tolist"):
        y = np.asarray(y)
    shape = getattr(y, "shape", None)
    if (
        isinstance(y, (str, bytes, dict))
        or not hasattr(y, "__len__")
        or (shape is not None and len(shape) != 1)
    ):
        of = type(y).__name__ if shape is None else f"{type(y).__name__} of shape {tuple(shape)}"
        raise GraphError(
            f"y holds one label for each node, a list or an array of one dimension, not a {of}"
        )
    return y.tolist() if hasattr(y, "tolist") else list(y)


def _is_unknown(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value):
        return True
    try:
        return bool(value == UNKNOWN) or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal nor unequal to anything
        return type(value).__name__ == "NAType"


def _ordered(labels: set[Any]) -> list[Any]:
    """Sorted where they can be compared; else by kind, then as texts."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))
