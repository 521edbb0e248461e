"""Scores as functions of a confusion matrix (true classes x predicted classes), in percent.

Classes come phase by phase on both sides: labelled ones first, which keep their ids, then those of
each stage of discovery. Discovered classes have arbitrary ids, so they are matched to the true new
classes before they are scored, in one of the three ways in `MATCHINGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import average_precision_score, roc_auc_score

from nodenova.errors import SettingError


def confusion_matrix(
    y: np.ndarray, prediction: np.ndarray, n_true: int, n_predicted: int
) -> np.ndarray:
    """Return (n_true, n_predicted) counts."""
    flat = np.bincount(y * n_predicted + prediction, minlength=n_true * n_predicted)
    return flat.reshape(n_true, n_predicted)


Sizes: TypeAlias = "Sequence[int]"
"""Number of classes of each phase, (labelled, stage 1, ...), on the true or predicted side."""


def match_identity(confusion: np.ndarray, true_sizes: Sizes, predicted_sizes: Sizes) -> np.ndarray:
    """Match the i-th class of a phase to the i-th true class of that phase.

    For a method without labels the result is a matter of luck.
    """
    matches = np.full(confusion.shape[1], -1)
    for true, predicted in zip(_blocks(true_sizes), _blocks(predicted_sizes), strict=False):
        n = min(len(true), len(predicted))
        matches[predicted[:n]] = true[:n]
    return matches


def match_block(confusion: np.ndarray, true_sizes: Sizes, predicted_sizes: Sizes) -> np.ndarray:
    """Keep labelled classes; match each stage one to one as well as possible (Hungarian).

    This is the headline.
    """
    matches = match_identity(confusion, true_sizes[:1], predicted_sizes[:1])
    blocks = list(zip(_blocks(true_sizes), _blocks(predicted_sizes), strict=False))
    for true, predicted in blocks[1:]:
        rows, columns = linear_sum_assignment(confusion[np.ix_(true, predicted)], maximize=True)
        matches[predicted[columns]] = true[rows]
    return matches


def match_global(confusion: np.ndarray, true_sizes: Sizes, predicted_sizes: Sizes) -> np.ndarray:
    """Match all classes one to one as well as possible, as in generalized category discovery."""
    matches = np.full(confusion.shape[1], -1)
    true, predicted = linear_sum_assignment(confusion, maximize=True)
    matches[predicted] = true
    return matches


def _blocks(sizes: Sizes) -> list[np.ndarray]:
    """Return the ids of the classes of each phase."""
    ends = np.cumsum(sizes)
    return [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]


MATCHINGS: dict[str, Callable[[np.ndarray, Sizes, Sizes], np.ndarray]] = {
    "block": match_block,
    "identity": match_identity,
    "global": match_global,
}


def matched_confusion(confusion: np.ndarray, matches: np.ndarray) -> np.ndarray:
    """Return the confusion matrix with each predicted class in the column of its true class.

    Predicted classes without a match have columns behind the true classes.
    """
    n_true = confusion.shape[0]
    extra = np.flatnonzero(matches < 0)
    moved = np.zeros((n_true, n_true + len(extra)), dtype=confusion.dtype)
    moved[:, matches[matches >= 0]] = confusion[:, matches >= 0]
    moved[:, n_true:] = confusion[:, extra]
    return moved


def percentage(part: float, whole: float) -> float:
    """Return 100 part / whole, nan if whole is 0."""
    return 100.0 * float(part) / float(whole) if whole else float("nan")


def harmonic_mean(a: float, b: float) -> float:
    """Return 2ab / (a + b), nan if a or b is nan."""
    if np.isnan(a) or np.isnan(b):
        return float("nan")
    return 2 * a * b / (a + b) if a + b > 0 else 0.0


def accuracies(confusion: np.ndarray, n_old: int, matches: np.ndarray) -> dict[str, float]:
    """Return Old, New and All, micro accuracies on test nodes, and their H, the harmonic mean."""
    pairs = np.flatnonzero(matches >= 0)
    right = np.zeros(confusion.shape[0])
    right[matches[pairs]] = confusion[matches[pairs], pairs]
    count = confusion.sum(axis=1)
    old = percentage(right[:n_old].sum(), count[:n_old].sum())
    new = percentage(right[n_old:].sum(), count[n_old:].sum())
    return {
        "old": old,
        "new": new,
        "all": percentage(right.sum(), count.sum()),
        "h": harmonic_mean(old, new),
    }


def count_right(confusion: np.ndarray, matches: np.ndarray) -> tuple[int, int]:
    """Return the number of correct nodes and the number of all nodes."""
    pairs = np.flatnonzero(matches >= 0)
    return int(confusion[matches[pairs], pairs].sum()), int(confusion.sum())


def new_alone(confusion: np.ndarray, n_old: int) -> float:
    """Return the accuracy on nodes of new classes when only these are matched, to any output.

    POWN grades unknown classes this way: an output that holds old nodes may be matched to a new
    class, and its old nodes do not count.

    Args:
        confusion: (true classes, predicted classes) counts, old classes first.
        n_old: Number of old classes among the true ones.

    Returns:
        Percentage of the nodes of new classes, nan if there are none.

    Examples:
        >>> new_alone(np.array([[9, 0, 0], [8, 2, 0], [0, 1, 3]]), n_old=1)
        78.57142857142857
    """
    new = confusion[n_old:]
    true, predicted = linear_sum_assignment(new, maximize=True)
    return percentage(new[true, predicted].sum(), new.sum())


def old_new_accuracy(confusion: np.ndarray, n_old: int, n_old_predicted: int) -> float:
    """Return the percentage of test nodes on the right side, old or new, regardless of class."""
    right = confusion[:n_old, :n_old_predicted].sum() + confusion[n_old:, n_old_predicted:].sum()
    return percentage(right, confusion.sum())


def new_used(confusion: np.ndarray, n_old_predicted: int) -> int:
    """Return the number of discovered classes that are predicted for at least one test node."""
    return int((confusion[:, n_old_predicted:].sum(axis=0) > 0).sum())


def new_largest(confusion: np.ndarray, n_old_predicted: int) -> float:
    """Return the share of the largest discovered class among test nodes in discovered classes."""
    count = confusion[:, n_old_predicted:].sum(axis=0)
    return percentage(count.max(initial=0), count.sum())


# Has phase 2 collapsed into few classes? Functions of the confusion matrix and the number of old
# columns.
COLLAPSE: dict[str, Callable[[np.ndarray, int], float]] = {
    "new_used": new_used,
    "new_largest": new_largest,
}


def nmi(confusion: np.ndarray) -> float:
    """Return the mutual information of true and predicted classes over their mean entropy."""
    if not confusion.sum():
        return float("nan")
    p = confusion / confusion.sum()
    p_true, p_predicted = p.sum(axis=1), p.sum(axis=0)
    seen = p > 0
    mutual = (p[seen] * np.log(p[seen] / np.outer(p_true, p_predicted)[seen])).sum()
    mean_entropy = (_entropy(p_true) + _entropy(p_predicted)) / 2
    return 100.0 * float(mutual / mean_entropy) if mean_entropy > 0 else 100.0


def _entropy(p: np.ndarray) -> float:
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def ari(confusion: np.ndarray) -> float:
    """Return the adjusted Rand index of true and predicted classes."""
    if not confusion.sum():
        return float("nan")

    def pairs(counts: np.ndarray) -> float:
        counts = counts.astype(float)
        return float((counts * (counts - 1) / 2).sum())

    both, everything = pairs(confusion), pairs(confusion.sum())
    true, predicted = pairs(confusion.sum(axis=1)), pairs(confusion.sum(axis=0))
    expected = true * predicted / everything if everything else 0.0
    highest = (true + predicted) / 2
    return 100.0 * (both - expected) / (highest - expected) if highest != expected else 100.0


def average_accuracy(phases: Sequence[Sequence[float]]) -> float:
    """Return AA of the last phase: the mean of the last row of the phase matrix M.

    M_ij is the accuracy after phase i on phase j's classes.
    """
    return float(np.mean(phases[-1]))


def average_forgetting(phases: Sequence[Sequence[float]]) -> float:
    """Return AF of the last phase: the mean of M_ij - M_jj over j < i; 0 for the first phase.

    Negative values mean forgetting.
    """
    i = len(phases) - 1
    return float(np.mean([phases[i][j] - phases[j][j] for j in range(i)])) if i else 0.0


def expected_calibration_error(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """Return the expected calibration error (ECE) in percent.

    It is the mean gap between the probability of the predicted class and its accuracy, in bins of
    equal width.
    """
    number = np.minimum((confidence * bins).astype(int), bins - 1)
    count = np.bincount(number, minlength=bins)
    hits = np.bincount(number, right.astype(float), bins)
    gap = np.abs(np.bincount(number, confidence, bins) - hits)
    return percentage(gap[count > 0].sum(), len(confidence))


def calibration_scores(p: np.ndarray, y: np.ndarray, matches: np.ndarray) -> Mapping[str, float]:
    """Return the Brier score times 100 and the expected calibration error in percent.

    Args:
        p: (n, k) probabilities of the predicted classes.
        y: (n,) true classes.
        matches: (k,) true class that each predicted class is matched to, -1 for none.

    Returns:
        `brier`: 100 times the mean over nodes of the sum over classes of (p - [class is true])^2;
        0 is best, 200 worst. A predicted class without a partner is never true. `ece`: see
        `expected_calibration_error`.

    Raises:
        SettingError: If there is no node.

    Examples:
        >>> p = np.array([[0.8, 0.2], [0.4, 0.6]])
        >>> calibration_scores(p, np.array([1, 0]), np.array([1, 0]))["brier"]
        20.0
    """
    if not len(y):
        raise SettingError("calibration scores need at least one node")
    is_true = matches == y[:, None]  # (n, k); a class is matched once at most
    brier = np.square(p - is_true).sum(axis=1) + ~is_true.any(axis=1)
    right = is_true[np.arange(len(y)), p.argmax(axis=1)]
    ece = expected_calibration_error(p.max(axis=1), right)
    return {"brier": 100.0 * float(brier.mean()), "ece": ece}


RECALL = 0.95


def detection_scores(p_new: np.ndarray, is_new: np.ndarray) -> Mapping[str, float]:
    """Return AUROC, AUPR and FPR95 of a probability of being new, in percent.

    Nodes of old classes are the positives, as in GNNSafe's code: AUPR depends on that.

    Args:
        p_new: (n,) probability that a node is of no old class.
        is_new: (n,) truth values of the same.

    Returns:
        `auroc`: frequency with which an old node has a lower score than a new one. `aupr`: average
        precision of finding old nodes. `fpr95`: share of new nodes below the threshold that 95% of
        the old ones are below; lower is better.

    Raises:
        SettingError: If there are no old nodes, or no new ones.

    Examples:
        >>> scores = detection_scores(np.array([0.1, 0.2, 0.9]), np.array([False, False, True]))
        >>> scores["auroc"], scores["fpr95"]
        (100.0, 0.0)
    """
    is_old = ~is_new
    if is_old.all() or is_new.all():
        raise SettingError("detection scores need nodes of old and of new classes")
    return {
        "auroc": 100.0 * float(roc_auc_score(is_old, -p_new)),
        "aupr": 100.0 * float(average_precision_score(is_old, -p_new)),
        "fpr95": 100.0 * _false_positive_rate(p_new, is_old),
    }


def _false_positive_rate(p_new: np.ndarray, is_old: np.ndarray) -> float:
    """Return the share of new nodes at the threshold whose recall of old nodes is nearest 95%."""
    # Of two thresholds that are equally near, the higher one counts, as in GNNSafe's code.
    order = np.argsort(p_new, kind="stable")
    last = np.append(np.flatnonzero(np.diff(p_new[order])), len(order) - 1)  # of nodes that tie
    old = np.cumsum(is_old[order])[last]
    new = last + 1 - old
    distance = np.abs(old / is_old.sum() - RECALL)[::-1]
    # Beyond the first threshold that all old nodes pass, recall does not change.
    first_full = len(old) - 1 - int(np.searchsorted(old, old[-1]))
    place = first_full + int(np.argmin(distance[first_full:]))
    return float(new[::-1][place] / (~is_old).sum())
