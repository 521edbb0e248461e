"""The user's own labels beside what a model says: which class each stands for, and who differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodenova.model.decisions import Merge, Split
from nodenova.model.info import ClassInfo
from nodenova.model.model import Model
from nodenova.pages.html import count

NOBODY_SAID = -1
MAX_CONTRADICTED = 0.05  # share of labelled nodes in discovered classes above which it is said
MAX_NAMED = 3  # discovered classes that are named when it is said


@dataclass(frozen=True, eq=False)
class UserLabels:
    """What a user said of some nodes.

    Attributes:
        class_ids: (N,) the id that the class of the label had when it was learned, -1 for none.
        names: What the user calls these classes, by id: 0, 1, ...
        keep: Whether a labelled node keeps its label, whatever the model says.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> model = nova.fit(old).rename(0, "fish")
        >>> said = UserLabels(np.array([0, 1, -1]), ("cod", "oak"))
        >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
        >>> said.texts(), said.agrees(model, p), said.rows(model, p).tolist()
        (['cod', 'oak', ''], ['yes', 'no', ''], [0, 1, 1])
    """

    class_ids: np.ndarray
    names: Sequence[str]
    keep: bool = True

    @property
    def labelled(self) -> np.ndarray:
        """(N,) which nodes have a label."""
        return self.class_ids != NOBODY_SAID

    def texts(self) -> list[str]:
        """The label of every node as the user wrote it, "" for none."""
        return [self.names[c] if c != NOBODY_SAID else "" for c in self.class_ids.tolist()]

    def agrees(self, model: Model, p: np.ndarray) -> list[str]:
        """Whether the model would say the same of every node: yes, no, or "" without a label."""
        meant, row = self._meant(model), p.argmax(axis=1)
        same = meant[self.class_ids, row]
        return [
            "" if not there else "yes" if agrees else "no"
            for there, agrees in zip(self.labelled.tolist(), same.tolist(), strict=True)
        ]

    def rows(self, model: Model, p: np.ndarray) -> np.ndarray:
        """(N,) the class of every node, a row of `model.classes`: by its label if that is kept."""
        if not self.keep:
            return p.argmax(axis=1)
        meant = self._meant(model)[self.class_ids]
        meant[~meant.any(axis=1)] = True  # no label: any class may be the likeliest
        return np.where(meant, p, -np.inf).argmax(axis=1)

    def _meant(self, model: Model) -> np.ndarray:
        """(labels + 1, classes) which classes a label stands for now; the last row is of none.

        A review may have merged its class with others, or split it: then it is one of the parts.
        """
        meant = np.zeros((len(self.names) + 1, len(model.classes)), dtype=bool)
        for label in range(len(self.names)):
            ids = {label}
            for edit in model.edits:
                match edit:
                    case Merge(class_ids, kept=int(kept)) if ids & {*class_ids}:
                        ids = ids - {*class_ids} | {kept}
                    case Split(class_id, parts=parts) if class_id in ids:
                        ids = ids - {class_id} | {*parts}
            meant[label] = [c.id in ids for c in model.classes]
        return meant


def labels_in_new_classes(classes: Sequence[ClassInfo]) -> str:
    """A sentence on labelled nodes that look like discovered classes; "" if they are few.

    Args:
        classes: What `class_info(model, graph, labelled=...)` gave.

    Returns:
        The sentence, where more than 5 % of the user's labelled nodes are in discovered classes.

    Examples:
        >>> old = ClassInfo(0, "oak", "oak", "old", 0, labelled=90)
        >>> new = ClassInfo(1, "new-1", "elm", "new", 1, labelled=10)
        >>> labels_in_new_classes([old, new]).split(";")[0]
        "10 of your 100 labelled nodes look like discovered classes, most in 'new-1' (10)"
    """
    total = sum(info.labelled or 0 for info in classes)
    new = sorted(
        (info for info in classes if info.kind == "new" and info.labelled),
        key=lambda info: -(info.labelled or 0),
    )
    inside = sum(info.labelled or 0 for info in new)
    if inside <= MAX_CONTRADICTED * total:
        return ""
    most = ", ".join(f"{info.name!r} ({info.labelled:,})" for info in new[:MAX_NAMED])
    return (
        f"{inside:,} of your {count(total, 'labelled node looks', 'labelled nodes look')} "
        f"like discovered classes, most in {most}; either such a class is a known one (merge or "
        "reject it, or look for fewer with --num-new), or these labels are wrong"
    )
