"""Grading a model against an exam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nodenova.data.labels import Exam
from nodenova.display import html_table
from nodenova.errors import one_of
from nodenova.evaluation import metrics
from nodenova.model.decisions import Split
from nodenova.model.model import Model
from nodenova.model.similarity import NODES_AT_ONCE
from nodenova.nn.encode_cache import encode_rows, shared_passes
from nodenova.nn.seeding import fixed_threads
from nodenova.settings import check_arguments


@dataclass(frozen=True, eq=False)
class Grade:
    """Predictions for the test nodes as counts, from which scores are computed.

    Attributes:
        confusion: (true classes, predicted classes) counts over all test nodes, by the joint head.
        confusion_new: (newest true classes, newest predicted classes) counts of test nodes of the
            newest stage, by the head for new classes; None if nothing has been discovered.
        sizes: Number of true classes of each phase.
        predicted: Number of predicted classes of each phase.
        confusion_old: (older true classes, older predicted classes) counts of test nodes of earlier
            stages, by the joint head restricted to those classes; None if nothing has been
            discovered.

    Examples:
        Two old classes and two new ones, which the model numbers the other way round:

        >>> import numpy as np
        >>> import nodenova as nova
        >>> confusion = np.array([[9, 1, 0, 0], [0, 10, 0, 0], [0, 0, 2, 8], [0, 2, 8, 0]])
        >>> made = nova.Grade(confusion, None, sizes=(2, 2), predicted=(2, 2))
        >>> made.matched().tolist()
        [0, 1, 3, 2]
        >>> made.scores()["old"], made.scores()["new"]
        (95.0, 80.0)
    """

    confusion: np.ndarray
    confusion_new: np.ndarray | None
    sizes: tuple[int, ...]
    predicted: tuple[int, ...]
    confusion_old: np.ndarray | None = None

    def scores(self, matching: str = "block") -> dict[str, float]:
        """Return every score in percent, by name.

        Args:
            matching: "block", the headline, "identity" or "global"; see `metrics.MATCHINGS`.

        Returns:
            old, new, all, h, old_new_accuracy, nmi and ari; if something has been discovered also
            old_n, new_n and all_n: accuracies when it is known which nodes are of old classes.

        Raises:
            SettingError: If the matching is unknown.
        """
        n_old = sum(self.sizes[:-1])
        n_old_predicted = sum(self.predicted[: len(self.sizes) - 1])
        scores = metrics.accuracies(self.confusion, n_old, self.matched(matching))
        scores |= {
            "old_new_accuracy": metrics.old_new_accuracy(self.confusion, n_old, n_old_predicted),
            "nmi": metrics.nmi(self.confusion),
            "ari": metrics.ari(self.confusion),
        }
        sides = self._count_sides(matching)
        scores |= {f"{side}_n": metrics.percentage(*counts) for side, counts in sides.items()}
        if len(sides) == 2:
            scores["all_n"] = metrics.percentage(*np.sum(list(sides.values()), axis=0))
        return scores

    def _count_sides(self, matching: str) -> dict[str, tuple[int, int]]:
        """Return correct and all test nodes of each side, classified within that side."""
        found, match = {}, metrics.MATCHINGS[matching]
        if (old := self.confusion_old) is not None:
            matched = match(old, self.sizes[:-1], self.predicted[: len(self.sizes) - 1])
            found["old"] = metrics.count_right(old, matched)
        if (new := self.confusion_new) is not None:
            true, predicted = new.shape
            # An empty first phase makes this a block that is matched like any other stage.
            found["new"] = metrics.count_right(new, match(new, (0, true), (0, predicted)))
        return found

    def _repr_html_(self) -> str:
        of = {matching: self.scores(matching) for matching in metrics.MATCHINGS}
        rows = [(name, *(f"{of[m][name]:.1f}" for m in of)) for name in of["block"]]
        caption = f"{int(self.confusion.sum()):,} test nodes, percent, by matching"
        return html_table(("score", *of), rows, caption)

    @property
    def collapse(self) -> dict[str, float]:
        """Measures of a collapse of phase 2 into few classes.

        `new_used` is the number of discovered classes that are predicted for any test node,
        `new_largest` the share of the largest of them in percent.
        """
        n_old = sum(self.predicted[: len(self.sizes) - 1])
        return {name: measure(self.confusion, n_old) for name, measure in metrics.COLLAPSE.items()}

    def matched(self, matching: str = "block") -> np.ndarray:
        """Return the true class that each predicted class is matched to.

        Args:
            matching: Name in `metrics.MATCHINGS`.

        Returns:
            (predicted classes,) numbers of true classes, -1 for none.

        Raises:
            SettingError: If the matching is unknown.
        """
        if matching not in metrics.MATCHINGS:
            raise one_of("matching", matching, metrics.MATCHINGS)
        return metrics.MATCHINGS[matching](self.confusion, self.sizes, self.predicted)

    def phase_row(self, matching: str = "block") -> list[float]:
        """Return a row of the phase matrix M: the accuracy on test nodes of each phase's classes.

        Args:
            matching: Name in `metrics.MATCHINGS`.
        """
        moved = metrics.matched_confusion(self.confusion, self.matched(matching))
        row, start = [], 0
        for size in self.sizes:
            block = slice(start, start + size)
            right, count = np.trace(moved[block, block]), self.confusion[block].sum()
            row.append(metrics.percentage(right, count))
            start += size
        return row


def grade(model: Model, exam: Exam) -> Grade:
    """Classify the test nodes of an exam with the joint head, without task ids, and count.

    Args:
        model: Model after phase 1 or any stage of phase 2.
        exam: Test nodes with their classes.

    Returns:
        Counts, from which every score is computed.

    Examples:
        >>> import nodenova as nova
        >>> labelled = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> old, new, exam = nova.split(labelled, old=[0, 1])
        >>> graded = nova.grade(nova.discover(nova.fit(old), new), exam)
        >>> graded.confusion.shape, graded.collapse["new_used"]
        ((4, 4), 2)
    """
    check_arguments(grade, locals())
    with shared_passes(exam.graph):
        return _count(model, exam)


def _count(model: Model, exam: Exam) -> Grade:
    """Return the grade; later stages than those of the model have empty columns."""
    per_stage = model.classes_per_stage
    predicted = (exam.sizes[0], *per_stage[1:], *exam.sizes[len(per_stage) :])
    places = _places(model, exam.sizes[0])

    def columns_of(class_ids: np.ndarray) -> np.ndarray:
        return np.array([places[c] for c in class_ids.tolist()], dtype=np.int64)

    prediction = columns_of(model.predict(exam.graph)[exam.ids])
    confusion = metrics.confusion_matrix(exam.y, prediction, sum(exam.sizes), sum(predicted))
    confusion_new = confusion_old = None
    if len(per_stage) == len(exam.sizes) > 1:
        n_old = sum(exam.sizes[:-1])
        is_new = exam.y >= n_old
        new_ids = [c.id for c in model.classes[model.num_old :]]
        prediction = np.searchsorted(new_ids, model.predict_new(exam.graph)[exam.ids[is_new]])
        confusion_new = metrics.confusion_matrix(
            exam.y[is_new] - n_old, prediction, exam.sizes[-1], per_stage[-1]
        )
        prediction = columns_of(_predict_old(model, exam)[~is_new])
        confusion_old = metrics.confusion_matrix(
            exam.y[~is_new], prediction, n_old, sum(predicted[:-1])
        )
    return Grade(confusion, confusion_new, exam.sizes, predicted, confusion_old)


def _predict_old(model: Model, exam: Exam) -> np.ndarray:
    """Return (test nodes,) ids of the most likely class before the newest stage."""
    # The softmax is over the old columns only: over all columns, a confident head may round the
    # old ones to 0.
    ids = [c.id for c in model.classes[: model.num_old]]
    columns = [j for j, class_id in enumerate(model.column_class_ids) if class_id in ids]
    with torch.no_grad(), fixed_threads():
        nodes = torch.from_numpy(exam.ids).to(model.device)
        (z,) = encode_rows(model.frozen_encoder(), model.aligned(exam.graph), nodes)
        head = model.head()  # its input is wide: not for all nodes at once
        logits = torch.cat([head(some)[:, columns] for some in torch.split(z, NODES_AT_ONCE)])
        p = logits.softmax(dim=1).cpu().numpy()  # (test nodes, old columns)
    owner = np.array([ids.index(model.column_class_ids[j]) for j in columns])
    # (test nodes, old classes)
    whole = np.stack([p[:, owner == i].sum(axis=1) for i in range(len(ids))], axis=1)
    return np.array(ids)[whole.argmax(axis=1)]


def _places(model: Model, n_old: int) -> dict[int, int]:
    """Return the column of each class: its id, for parts of a split class the id of the whole.

    Discovered classes have the columns behind them.
    """
    whole = {
        part: edit.class_id
        for edit in model.edits
        if isinstance(edit, Split)
        for part in edit.parts
    }
    places: dict[int, int] = {}
    for c in model.classes:
        origin = c.id
        while c.stage == 0 and origin in whole:
            origin = whole[origin]
        places[c.id] = (
            n_old + sum(place >= n_old for place in places.values()) if c.is_new else origin
        )
    return places


def forgetting(grades: Sequence[Grade], matching: str = "block") -> tuple[float, float]:
    """Return average accuracy (AA) and average forgetting (AF) after the last of several grades.

    Args:
        grades: One grade per phase, the first of the model that `fit` returned.
        matching: Name in `metrics.MATCHINGS`.

    Returns:
        AA, the mean accuracy over the classes of each phase, and AF, the mean change of a phase's
        accuracy since that phase; negative values mean forgetting. Both in percent.

    Examples:
        >>> import numpy as np
        >>> import nodenova as nova
        >>> before = nova.Grade(np.array([[10, 0], [0, 0]]), None, (1, 1), (1, 1))
        >>> after = nova.Grade(np.array([[9, 1], [2, 8]]), None, (1, 1), (1, 1))
        >>> nova.forgetting([before, after])
        (85.0, -10.0)
    """
    phases = [grade.phase_row(matching)[: i + 1] for i, grade in enumerate(grades)]
    return metrics.average_accuracy(phases), metrics.average_forgetting(phases)
