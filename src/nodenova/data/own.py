"""A user's own graph as tasks: what phase 1 learns from, what phase 2 discovers in, and the exam if there are answers."""

from __future__ import annotations

import numpy as np

from nodenova.data.answers import UNKNOWN, Exam, Loaded, OldTask
from nodenova.errors import SplitError
from nodenova.task import NewTask

VALIDATION_SHARE = 5  # one labelled node in so many is for validation
MOST_VALIDATION = 500


def own_tasks(loaded: Loaded, num_new: int, *, seed: int = 0) -> tuple[OldTask, NewTask, Exam | None]:
    """Phase 1 learns from labelled nodes that are not new, phase 2 sees the ids of all new nodes and no label.

    A fifth of the labelled nodes of a class, drawn with `seed` and at most 500 in all, is for validation. The exam asks for
    the new nodes that have a label; it is None when none has.
    """
    y, name = loaded.y, loaded.name
    labelled = (y != UNKNOWN) & ~loaded.is_new
    if not labelled.any():
        raise SplitError(f"{name}: no node has a label, apart from the new ones; phase 1 has nothing to learn from")
    n_old = loaded.num_old
    if n_old < 2:
        raise SplitError(f"{name}: all labelled nodes are of one class, {loaded.class_names[0]!r}; at least two are needed")
    if not len(loaded.new_ids):
        raise SplitError(f"{name}: every node has a label and none was named as new; there is nothing to discover in")
    rng = np.random.default_rng([seed, 27182])
    most = MOST_VALIDATION / labelled.sum()
    val = np.zeros_like(labelled)
    for c in range(n_old):
        members = rng.permutation(np.flatnonzero(labelled & (y == c)))
        val[members[: int(len(members) * min(1 / VALIDATION_SHARE, most))]] = True
    train_ids, val_ids = np.flatnonzero(labelled & ~val), np.flatnonzero(val)
    old = OldTask(loaded.graph, train_ids, y[train_ids], val_ids, y[val_ids], loaded.class_names[:n_old])
    asked = loaded.new_ids[y[loaded.new_ids] != UNKNOWN]
    n_new = len(loaded.class_names) - n_old
    exam = Exam(loaded.graph, asked, y[asked], (n_old, n_new), loaded.class_names) if n_new else None
    return old, NewTask(loaded.graph, loaded.new_ids, num_new), exam
