"""What the league measures: functions of one row, read off its matrices if they can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from nodenova.bench.row import Row
from nodenova.evaluation import metrics
from nodenova.evaluation.grade import Grade


@dataclass(frozen=True)
class Measure:
    """A column of a table of the league.

    Attributes:
        title: What heads it.
        read: Its value of a row; None where there was nothing to measure.
        is_share: A share of the runs, which has no spread.
        tested: Whether differences to Prism are tested in it.
    """

    title: str
    read: Callable[[Row], float | None]
    is_share: bool = False
    tested: bool = False


def session_grades(row: Row) -> list[Grade]:
    """The grade after each phase of a run of many stages.

    Args:
        row: A run with `sessions`.

    Returns:
        The first is that of the model of phase 1.
    """
    sizes, said, found = row.sizes, row.predicted_sizes, []
    for i, counts in enumerate(row.sessions, start=1):
        found.append(Grade(np.array(counts), None, sizes[:i], said[:i]))
    return found


def kept(row: Row) -> float:
    """What labelled classes keep of their first accuracy after the last session.

    Args:
        row: A run of many stages.

    Returns:
        Percent; above 100 where they gained.
    """
    first, *_, last = session_grades(row)
    return metrics.percentage(last.phase_row()[0], first.phase_row()[0])


def average_accuracy(row: Row) -> float:
    """AA: the mean over phases of the accuracy on their classes, after the last session.

    Args:
        row: A run of many stages.

    Returns:
        Percent, matched block by block.
    """
    return metrics.average_accuracy([session_grades(row)[-1].phase_row()])


def _score(name: str, matching: str) -> Callable[[Row], float | None]:
    return lambda row: row.score(name, matching)


def _unknown(row: Row) -> float:
    return metrics.new_alone(np.array(row.confusion), sum(row.sizes[:-1]))


def _known_and_unknown(row: Row) -> float:
    return metrics.harmonic_mean(row.score("old") or 0.0, _unknown(row))


def _of(name: str) -> Callable[[Row], float | None]:
    return lambda row: row.measured.get(name)


def _error(row: Row) -> float:
    return row.measured["counted"] - row.measured["true"]


def in_session(session: int, score: str) -> Callable[[Row], float | None]:
    """Reads a score after a session.

    Args:
        session: Which, from 1.
        score: "all", "old" or "new"; old are all classes met before the session.

    Returns:
        A function of a row; None where the run has no such session.
    """

    def read(row: Row) -> float | None:
        grades = session_grades(row)
        return grades[session].scores("block")[score] if session < len(grades) else None

    return read


def _mean_all(row: Row) -> float:
    return float(np.mean([each.scores("block")["all"] for each in session_grades(row)[1:]]))


POWN: Mapping[str, Measure] = {
    "all": Measure("all", _score("all", "global"), tested=True),
    "known": Measure("known", _score("old", "block")),
    "unknown": Measure("unknown", _unknown),
    "h": Measure("H", _known_and_unknown, tested=True),
}
OPENIMA: Mapping[str, Measure] = {
    "all": Measure("All", _score("all", "global"), tested=True),
    "seen": Measure("Seen", _score("old", "global")),
    "novel": Measure("Novel", _score("new", "global")),
}
GNNSAFE: Mapping[str, Measure] = {
    "auroc": Measure("AUROC", _of("auroc")),
    "aupr": Measure("AUPR", _of("aupr")),
    "fpr95": Measure("FPR95 (less is better)", _of("fpr95")),
    "accuracy": Measure("Accuracy", _score("old_n", "block")),
}
MIXED: Mapping[str, Measure] = {
    "all": Measure("All", _score("all", "block"), tested=True),
    "h": Measure("H", _score("h", "block"), tested=True),
    "side": Measure("Old-new accuracy", _score("old_new_accuracy", "block")),
}
STAGES: Mapping[str, Measure] = {
    "mean_all": Measure("mean All", _mean_all, tested=True),
    "aa": Measure("AA", average_accuracy, tested=True),
    "kept": Measure("kept", kept),
}
COUNT: Mapping[str, Measure] = {
    "exact": Measure("exact", lambda row: 100.0 * (_error(row) == 0), is_share=True),
    "within": Measure("within one", lambda row: 100.0 * (abs(_error(row)) <= 1), is_share=True),
    "error": Measure("error", lambda row: abs(_error(row))),
    "bias": Measure("bias", _error),
    "holds": Measure("set holds", _of("holds"), is_share=True),
    "likely": Measure("set size", _of("likely")),
}
WORTH: Mapping[str, Measure] = {
    "all": Measure("All", _score("all", "block")),
    "h": Measure("H", _score("h", "block")),
    "nmi_all": Measure("NMI", _of("nmi_all")),
    "error": Measure("error", lambda row: abs(_error(row))),
}
ALARM: Mapping[str, Measure] = {
    "new": Measure("says new", lambda row: 100.0 * (row.measured["counted"] > 0), is_share=True),
}
