"""Whether a labelled graph can be divided into phases by given groups of classes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from nodenova.data.labels import LabelledGraph
from nodenova.errors import SplitError


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
                f"{labelled.name}: class {labelled.class_names[c]!r} has {counts[c]} labelled node"
                f"{'' if counts[c] == 1 else 's'}; each class needs at least 2, "
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
