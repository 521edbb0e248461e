"""The user's own labels beside what a model says: which class each stands for, and who differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from nodenova.display import plural
from nodenova.model.decisions import Merge, Split
from nodenova.model.info import ClassInfo
from nodenova.model.model import Model

NOBODY_SAID = -1
MAX_CONTRADICTED = 0.05  # share of labelled nodes in discovered classes above which it is said
MIN_AGAINST = 0.1  # of the labels of a known class, with which labels speak against a new one
MAX_NAMED = 3  # discovered classes that are named when it is said


@dataclass(frozen=True, eq=False)
class UserLabels:
    """What a user said of some nodes.

    Attributes:
        class_ids: (N,) the id that the class of the label had when it was learned, -1 for none.
        names: What the user calls these classes, by id: 0, 1, ...; "" for a class that the user
            has no word for and that a label was corrected to: it is called what the model calls it.
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

    def of_nodes(self, numbers: np.ndarray) -> Self:
        """What was said of some nodes.

        Args:
            numbers: (n,) of these nodes.
        """
        return replace(self, class_ids=self.class_ids[numbers])

    def texts(self, model: Model | None = None, names: Sequence[str] | None = None) -> list[str]:
        """The label of every node as the user wrote it, "" for none.

        Args:
            model: Whose classes labels without a word stand for.
            names: What these are called; what the model calls them unless given.
        """
        called = list(self.names)
        if model is not None and "" in called:
            shown = model.class_names if names is None else names
            for label, meant in enumerate(self.meant(model)[:-1]):
                if not called[label] and meant.any():
                    called[label] = shown[int(meant.argmax())]
        return [called[c] if c != NOBODY_SAID else "" for c in self.class_ids.tolist()]

    def agrees(self, model: Model, p: np.ndarray) -> list[str]:
        """Whether the model would say the same of every node: yes, no, or "" without a label."""
        meant, row = self.meant(model), p.argmax(axis=1)
        same = meant[self.class_ids, row]
        return [
            "" if not there else "yes" if agrees else "no"
            for there, agrees in zip(self.labelled.tolist(), same.tolist(), strict=True)
        ]

    def rows(self, model: Model, p: np.ndarray) -> np.ndarray:
        """(N,) the class of every node, a row of `model.classes`: by its label if that is kept."""
        if not self.keep:
            return p.argmax(axis=1)
        meant = self.meant(model)[self.class_ids]
        meant[~meant.any(axis=1)] = True  # no label: any class may be the likeliest
        return np.where(meant, p, -np.inf).argmax(axis=1)

    def said_rows(self, model: Model, p: np.ndarray) -> np.ndarray:
        """(N,) the class of every label, a row of `model.classes`; -1 where there is none."""
        meant = self.meant(model)[self.class_ids]
        row = np.where(meant, p, -np.inf).argmax(axis=1)
        return np.where(meant.any(axis=1), row, NOBODY_SAID)

    def meant(self, model: Model) -> np.ndarray:
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


def labels_of_later(
    model: Model,
    names: Sequence[str],
    node_ids: Sequence[object],
    texts: Sequence[str],
    earlier: tuple[Sequence[object], UserLabels] | None = None,
    keep: bool = True,
) -> tuple[UserLabels | None, list[str]]:
    """What a user says of the nodes of a later graph: there, or before of nodes of the same ids.

    Args:
        model: Whose classes they may be of.
        names: What these are called.
        node_ids: (N,) of the later graph.
        texts: (N,) the labels that it brings, "" for none. They go before earlier ones.
        earlier: Ids of the nodes of an earlier graph, and what was said of them.
        keep: Whether a labelled node keeps its label, whatever the model says.

    Returns:
        The labels, None if there is none; and sentences on labels that mean no class of the model.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> model = nova.fit(old).rename(0, "fish")
        >>> before = UserLabels(np.array([0, 1]), ("cod", "oak"))
        >>> ids, texts = ["c", "b", "a"], ["fish", "elm", ""]
        >>> said, notes = labels_of_later(
        ...     model, model.class_names, ids, texts, (["a", "b"], before))
        >>> said.class_ids.tolist(), said.texts(model)
        ([0, 1, 0], ['cod', 'oak', 'cod'])
        >>> notes
        ["1 label means no class of the model and is ignored: 'elm'"]
    """
    called = [] if earlier is None else list(earlier[1].names)
    called += [""] * (1 + max(c.id for c in model.classes) - len(called))
    meant = {name: c.id for c, name in zip(model.classes, names, strict=True)}
    meant |= {c.name: c.id for c in model.classes}
    meant |= {name: label for label, name in enumerate(called) if name}
    before = {}
    if earlier is not None:
        before = dict(zip(map(str, earlier[0]), earlier[1].class_ids.tolist(), strict=True))
    told = [
        meant.get(text, before.get(str(node), NOBODY_SAID))
        for node, text in zip(node_ids, texts, strict=True)
    ]
    strange = [text for text in texts if text and text not in meant]
    said = []
    if strange:
        many = plural(len(strange), "label means", "labels mean")
        listed = ", ".join(map(repr, sorted(set(strange))[:MAX_NAMED]))
        more = len(set(strange)) - MAX_NAMED
        verb = "is" if len(strange) == 1 else "are"
        said = [
            f"{many} no class of the model and {verb} ignored: {listed}"
            + (f" and {more:,} more" if more > 0 else "")
        ]
    labels = UserLabels(np.array(told, dtype=np.int64), called, keep)
    return (labels if labels.labelled.any() else None), said


def labels_against(info: ClassInfo, classes: Sequence[ClassInfo]) -> str:
    """What the user's labels say against a discovered class; "" if nothing.

    Args:
        info: Of the class.
        classes: All of them, with `labelled` nodes counted.

    Examples:
        >>> old = ClassInfo(0, "oak", "oak", "known", 0, size=200, labelled=100)
        >>> new = ClassInfo(1, "elm", "elm", "discovered", 1, size=40, labelled=9)
        >>> labels_against(new, [old, new])
        '9 of its nodes have a label of yours; a known class of this size has about 20.'
    """
    if not info.is_new or not info.labelled:
        return ""
    known = [each for each in classes if not each.is_new]
    rate = sum(each.labelled or 0 for each in known) / max(sum(c.size or 0 for c in known), 1)
    expected = rate * (info.size or 0)
    if info.labelled < MIN_AGAINST * expected:
        return ""  # no more than some wrong labels would be
    have = plural(info.labelled, "of its nodes has", "of its nodes have")
    about = f"a known class of this size has about {expected:,.0f}"
    return f"{have} a label of yours; {about}."


def labels_in_new_classes(classes: Sequence[ClassInfo]) -> str:
    """A sentence on labelled nodes that look like discovered classes; "" if they are few.

    Args:
        classes: What `class_info(model, graph, labelled=...)` gave.

    Returns:
        The sentence, where more than 5 % of the user's labelled nodes are in discovered classes.

    Examples:
        >>> old = ClassInfo(0, "oak", "oak", "known", 0, labelled=90)
        >>> new = ClassInfo(1, "new-1", "elm", "discovered", 1, labelled=10)
        >>> labels_in_new_classes([old, new]).split(";")[0]
        "10 of your 100 labelled nodes look like discovered classes, most in 'new-1' (10)"
    """
    total = sum(info.labelled or 0 for info in classes)
    new = sorted(
        (info for info in classes if info.is_new and info.labelled),
        key=lambda info: -(info.labelled or 0),
    )
    inside = sum(info.labelled or 0 for info in new)
    if inside <= MAX_CONTRADICTED * total:
        return ""
    most = ", ".join(f"{info.name!r} ({info.labelled:,})" for info in new[:MAX_NAMED])
    return (
        f"{inside:,} of your {plural(total, 'labelled node looks', 'labelled nodes look')} "
        f"like discovered classes, most in {most}; either such a class is a known one (merge or "
        "reject it, or look for fewer with --num-new), or these labels are wrong"
    )
