"""The user's own labels: the class each one stands for, and where the model disagrees."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from nodenova.display import plural
from nodenova.model.decisions import trace
from nodenova.model.info import ClassInfo
from nodenova.model.model import Model

NO_LABEL = -1
MAX_CONTRADICTED = 0.05  # share of labelled nodes in discovered classes above which to warn
MIN_AGAINST = 0.1  # of a known class's rate of labels, from which labels contradict a new class
MAX_LISTED = 3  # classes or labels named in a sentence


@dataclass(frozen=True, eq=False)
class UserLabels:
    """The labels that a user gave to nodes."""

    class_ids: np.ndarray  # (N,) id of the labelled class when it was learned, -1 for none
    # The user's names of these classes by id: 0, 1, ...; "" for a discovered class that a label was
    # corrected to, which has the model's name.
    names: Sequence[str]
    keep: bool = True  # whether a labelled node keeps its label where the model disagrees

    @property
    def labelled(self) -> np.ndarray:
        """(N,) whether a node has a label."""
        return self.class_ids != NO_LABEL

    def of_nodes(self, numbers: np.ndarray) -> Self:
        """The labels of the nodes with these (n,) numbers."""
        return replace(self, class_ids=self.class_ids[numbers])

    def texts(self, model: Model | None = None, names: Sequence[str] | None = None) -> list[str]:
        """The label of every node as the user wrote it, "" for none.

        Labels without a user's name get that of the class in `model`, or in `names` if given.
        """
        called = list(self.names)
        if model is not None and "" in called:
            class_names = model.class_names if names is None else names
            for label, mask in enumerate(self.class_mask(model)[:-1]):
                if not called[label] and mask.any():
                    called[label] = class_names[int(mask.argmax())]
        return [called[c] if c != NO_LABEL else "" for c in self.class_ids.tolist()]

    def agrees(self, model: Model, p: np.ndarray) -> list[str]:
        """Whether the model predicts the label of every node: yes, no, or "" without a label."""
        same = self.class_mask(model)[self.class_ids, p.argmax(axis=1)]
        return np.where(self.labelled, np.where(same, "yes", "no"), "").tolist()

    def rows(self, model: Model, p: np.ndarray) -> np.ndarray:
        """(N,) row in `model.classes` of every node: by its label if that is kept."""
        if not self.keep:
            return p.argmax(axis=1)
        mask = self.class_mask(model)[self.class_ids]
        mask[~mask.any(axis=1)] = True  # no label: any class may be the likeliest
        return np.where(mask, p, -np.inf).argmax(axis=1)

    def label_rows(self, model: Model, p: np.ndarray) -> np.ndarray:
        """(N,) row in `model.classes` of every label; -1 where there is none."""
        mask = self.class_mask(model)[self.class_ids]
        row = np.where(mask, p, -np.inf).argmax(axis=1)
        return np.where(mask.any(axis=1), row, NO_LABEL)

    def class_mask(self, model: Model) -> np.ndarray:
        """(labels + 1, classes) which classes a label stands for now; the last row is "no label".

        A review may have merged its class into another one, or split it into several.
        """
        mask = np.zeros((len(self.names) + 1, len(model.classes)), dtype=bool)
        for label in range(len(self.names)):
            ids = trace(label, model.edits)
            mask[label] = [c.id in ids for c in model.classes]
        return mask


def labels_for_graph(
    model: Model,
    names: Sequence[str],
    node_ids: Sequence[object],
    texts: Sequence[str],
    earlier: tuple[Sequence[object], UserLabels] | None = None,
    keep: bool = True,
) -> tuple[UserLabels | None, list[str]]:
    """Labels of a later graph, and notes: its own `texts` first, else those of `earlier` nodes.

    `names` are those of the model's classes, `earlier` the node ids and labels of another graph.
    """
    called = [] if earlier is None else list(earlier[1].names)
    called += [""] * (1 + max(c.id for c in model.classes) - len(called))
    id_of = {name: c.id for c, name in zip(model.classes, names, strict=True)}
    id_of |= {c.name: c.id for c in model.classes}
    id_of |= {name: label for label, name in enumerate(called) if name}
    before = {}
    if earlier is not None:
        before = dict(zip(map(str, earlier[0]), earlier[1].class_ids.tolist(), strict=True))
    pairs = zip(node_ids, texts, strict=True)
    class_ids = [id_of.get(text, before.get(str(node), NO_LABEL)) for node, text in pairs]
    labels = UserLabels(np.array(class_ids, dtype=np.int64), called, keep)
    unknown = [text for text in texts if text and text not in id_of]
    return (labels if labels.labelled.any() else None), _note_unknown(unknown)


def _note_unknown(unknown: Sequence[str]) -> list[str]:
    """A note on labels that are not classes of the model."""
    if not unknown:
        return []
    distinct = sorted(set(unknown))
    listed = ", ".join(map(repr, distinct[:MAX_LISTED]))
    more = len(distinct) - MAX_LISTED
    many = plural(
        len(unknown),
        "label is not a class of the model and is ignored",
        "labels are not classes of the model and are ignored",
    )
    return [f"{many}: {listed}" + (f" and {more:,} more" if more > 0 else "")]


def labels_against(info: ClassInfo, classes: Sequence[ClassInfo]) -> str:
    """Why the user's labels contradict a discovered class; "" if they do not."""
    if not info.is_new or not info.labelled:
        return ""
    known = [each for each in classes if not each.is_new]
    rate = sum(each.labelled or 0 for each in known) / max(sum(c.predicted_size for c in known), 1)
    expected = rate * info.predicted_size
    if info.labelled < MIN_AGAINST * expected:
        return ""  # a few wrong labels would explain it
    return (
        f"Contains {info.labelled:,} of your labelled nodes; a known class of this size has about "
        f"{expected:,.0f}."
    )


def labels_in_new_classes(classes: Sequence[ClassInfo], decided_ids: Collection[int] = ()) -> str:
    """A warning where more than 5% of the labelled nodes are in discovered classes, else "".

    Classes with these ids are a person's own: there is no advice against them.
    """
    total = sum(info.labelled or 0 for info in classes)
    new = [info for info in classes if info.is_new and info.labelled and info.id not in decided_ids]
    new.sort(key=lambda info: -(info.labelled or 0))
    inside = sum(info.labelled or 0 for info in new)
    if inside <= MAX_CONTRADICTED * total:
        return ""
    most = ", ".join(f"{info.name!r} ({info.labelled:,})" for info in new[:MAX_LISTED])
    return (
        f"The model would move {inside:,} of your {plural(total, 'labelled node')} into new "
        f"classes, most into {most}. Either those classes are not really new (merge or reject "
        "them), or the labels are wrong."
    )
