"""Grading a model against an exam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodenova.data.answers import Exam
from nodenova.errors import one_of
from nodenova.evaluation import metrics
from nodenova.model import Model


@dataclass(frozen=True, eq=False)
class Grade:
    """What the model said about the test nodes, and nothing else; scores are computed when asked for.

    confusion:     (true classes, predicted classes) counts over all test nodes, by the joint head.
    confusion_new: (newest true classes, newest predicted classes), test nodes of the newest stage only, by the head for
                   new classes, or None when nothing has been discovered.
    sizes:         how many true classes each phase brought, and
    predicted:     how many classes the model has of each phase.
    """

    confusion: np.ndarray
    confusion_new: np.ndarray | None
    sizes: tuple[int, ...]
    predicted: tuple[int, ...]

    def scores(self, matching: str = "block") -> dict[str, float]:
        """old, new, all, h, gate, nmi, ari (and new_n where there is one), in percent, under one of the matchings."""
        n_old, n_old_predicted = sum(self.sizes[:-1]), sum(self.predicted[: len(self.sizes) - 1])
        scores = metrics.accuracies(self.confusion, n_old, self.matched(matching))
        scores["gate"] = metrics.gate(self.confusion, n_old, n_old_predicted)
        scores["nmi"] = metrics.nmi(self.confusion)
        scores["ari"] = metrics.ari(self.confusion)
        if self.confusion_new is not None:
            true, predicted = self.confusion_new.shape
            # A phase of nothing in front makes this a block of its own, to be matched like any other stage's.
            matched_new = metrics.MATCHINGS[matching](self.confusion_new, (0, true), (0, predicted))
            scores["new_n"] = metrics.accuracies(self.confusion_new, 0, matched_new)["all"]
        return scores

    def matched(self, matching: str = "block") -> np.ndarray:
        """(predicted classes,) the true class each predicted class stands for, -1 for none."""
        if matching not in metrics.MATCHINGS:
            raise one_of("matching", matching, metrics.MATCHINGS)
        return metrics.MATCHINGS[matching](self.confusion, self.sizes, self.predicted)

    def phase_row(self, matching: str = "block") -> list[float]:
        """The row of the phase matrix M this grade gives: accuracy on the test nodes of each phase's classes."""
        matched = self.matched(matching)
        moved = metrics.matched_confusion(self.confusion, matched)
        row, start = [], 0
        for size in self.sizes:
            block = slice(start, start + size)
            row.append(metrics.percent(np.trace(moved[block, block]), self.confusion[block].sum()))
            start += size
        return row


def grade(model: Model, exam: Exam) -> Grade:
    """Let the model classify the exam's test nodes with its joint head, no task id, and count."""
    # For stages the model has not been through it has empty columns: nobody can be said to be in them.
    predicted = (exam.sizes[0], *model.sizes[1:], *exam.sizes[len(model.sizes) :])
    places = _places(model, exam.sizes[0])
    said = np.array([places[c] for c in model.predict(exam.graph)[exam.ids].tolist()], dtype=np.int64)
    confusion = metrics.confusion_matrix(exam.y, said, sum(exam.sizes), sum(predicted))
    confusion_new = None
    if len(model.sizes) == len(exam.sizes) > 1:
        n_old = sum(exam.sizes[:-1])
        is_new = exam.y >= n_old
        new_ids = [c.id for c in model.classes[model.num_old :]]
        said = np.searchsorted(new_ids, model.predict_new(exam.graph)[exam.ids[is_new]])
        confusion_new = metrics.confusion_matrix(exam.y[is_new] - n_old, said, exam.sizes[-1], model.sizes[-1])
    return Grade(confusion, confusion_new, exam.sizes, predicted)


def _places(model: Model, n_old: int) -> dict[int, int]:
    """Where each class is counted: labelled classes at their ids, parts of one at its id, discovered ones behind them."""
    whole = {part: edit["class"] for edit in model.edits if edit["do"] == "split" for part in edit["parts"]}
    places: dict[int, int] = {}
    for c in model.classes:
        origin = c.id
        while c.stage == 0 and origin in whole:
            origin = whole[origin]
        places[c.id] = n_old + sum(place >= n_old for place in places.values()) if c.is_new else origin
    return places


def forgetting(grades: Sequence[Grade], matching: str = "block") -> tuple[float, float]:
    """(AA, AF) after the last of the given grades, one a phase, the first being that of the model `fit` returned."""
    phases = [grade.phase_row(matching)[: i + 1] for i, grade in enumerate(grades)]
    return metrics.average_accuracy(phases), metrics.average_forgetting(phases)
