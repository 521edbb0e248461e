"""Old or new, as detectors of what training had not are graded: a score, no threshold.

Scores as functions of a confusion matrix (true classes x predicted classes), in percent.

Classes come phase by phase on both sides: labelled ones first, which keep their ids, then those of
each stage of discovery. Discovered classes have arbitrary ids, so they are matched to the true new
classes before they are scored; the three ways of doing so are `MATCHINGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import average_precision_score, roc_auc_score

from nodenova.errors import SettingError


def confusion_matrix(
    y: np.ndarray, predicted: np.ndarray, n_true: int, n_predicted: int
) -> np.ndarray:
    """(n_true, n_predicted) counts."""
    flat = np.bincount(y * n_predicted + predicted, minlength=n_true * n_predicted)
    return flat.reshape(n_true, n_predicted)


Sizes: TypeAlias = "Sequence[int]"
"""How many classes each phase brought, (labelled, stage 1, ...), on the true or predicted side."""


def match_identity(confusion: np.ndarray, true_sizes: Sizes, predicted_sizes: Sizes) -> np.ndarray:
    """The i-th class of a phase means the i-th true class of that phase.

    For a label-free method this is a lottery.
    """
    matched = np.full(confusion.shape[1], -1)
    for true, predicted in zip(_blocks(true_sizes), _blocks(predicted_sizes), strict=False):
        n = min(len(true), len(predicted))
        matched[predicted[:n]] = true[:n]
    return matched


def match_block(confusion: np.ndarray, true_sizes: Sizes, predicted_sizes: Sizes) -> np.ndarray:
    """Labelled classes keep their ids; within each stage, the best one-to-one matching (Hungarian).

    The headline.
    """
    matched = match_identity(confusion, true_sizes[:1], predicted_sizes[:1])
    blocks = list(zip(_blocks(true_sizes), _blocks(predicted_sizes), strict=False))
    for true, predicted in blocks[1:]:
        rows, columns = linear_sum_assignment(confusion[np.ix_(true, predicted)], maximize=True)
        matched[predicted[columns]] = true[rows]
    return matched


def match_global(confusion: np.ndarray, true_sizes: Sizes, predicted_sizes: Sizes) -> np.ndarray:
    """One best one-to-one matching over everything, as in generalized category discovery."""
    matched = np.full(confusion.shape[1], -1)
    true, predicted = linear_sum_assignment(confusion, maximize=True)
    matched[predicted] = true
    return matched


def _blocks(sizes: Sizes) -> list[np.ndarray]:
    """The ids of each phase's classes."""
    ends = np.cumsum(sizes)
    return [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]


MATCHINGS: dict[str, Callable[[np.ndarray, Sizes, Sizes], np.ndarray]] = {
    "block": match_block,
    "identity": match_identity,
    "global": match_global,
}


def matched_confusion(confusion: np.ndarray, matched: np.ndarray) -> np.ndarray:
    """The confusion matrix with each predicted class moved to the true class it is matched to.

    Predicted classes without a partner keep columns of their own behind the true classes.
    """
    n_true = confusion.shape[0]
    extra = np.flatnonzero(matched < 0)
    moved = np.zeros((n_true, n_true + len(extra)), dtype=confusion.dtype)
    moved[:, matched[matched >= 0]] = confusion[:, matched >= 0]
    moved[:, n_true:] = confusion[:, extra]
    return moved


def percentage(part: float, whole: float) -> float:
    """100 part / whole; nothing out of nothing is nan, never 0."""
    return 100.0 * float(part) / float(whole) if whole else float("nan")


def harmonic_mean(a: float, b: float) -> float:
    """2ab / (a + b); nan where either is."""
    if np.isnan(a) or np.isnan(b):
        return float("nan")
    return 2 * a * b / (a + b) if a + b > 0 else 0.0


def accuracies(confusion: np.ndarray, n_old: int, matched: np.ndarray) -> dict[str, float]:
    """Old, New, All (micro accuracies on the test nodes of those classes), and H.

    H is the harmonic mean of Old and New.
    """
    pairs = np.flatnonzero(matched >= 0)
    right = np.zeros(confusion.shape[0])
    right[matched[pairs]] = confusion[matched[pairs], pairs]
    count = confusion.sum(axis=1)
    old = percentage(right[:n_old].sum(), count[:n_old].sum())
    new = percentage(right[n_old:].sum(), count[n_old:].sum())
    return {
        "old": old,
        "new": new,
        "all": percentage(right.sum(), count.sum()),
        "h": harmonic_mean(old, new),
    }


def right_of(confusion: np.ndarray, matched: np.ndarray) -> tuple[int, int]:
    """How many nodes are right, of how many."""
    pairs = np.flatnonzero(matched >= 0)
    return int(confusion[matched[pairs], pairs].sum()), int(confusion.sum())


def new_alone(confusion: np.ndarray, n_old: int) -> float:
    """Accuracy on the nodes of new classes when these alone are matched, to any output at all.

    How POWN grades its unknown classes: an output that old nodes are in may stand for a new class,
    and what it says of old nodes does not count.

    Args:
        confusion: (true classes, predicted classes), old classes first.
        n_old: How many of the true classes are old.

    Returns:
        Percent of the nodes of new classes; nan if there are none.

    Examples:
        >>> new_alone(np.array([[9, 0, 0], [8, 2, 0], [0, 1, 3]]), n_old=1)
        78.57142857142857
    """
    new = confusion[n_old:]
    true, predicted = linear_sum_assignment(new, maximize=True)
    return percentage(new[true, predicted].sum(), new.sum())


def old_new_accuracy(confusion: np.ndarray, n_old: int, n_old_predicted: int) -> float:
    """How many test nodes are put on the right side, old or new, whichever class it is."""
    right = confusion[:n_old, :n_old_predicted].sum() + confusion[n_old:, n_old_predicted:].sum()
    return percentage(right, confusion.sum())


def new_used(confusion: np.ndarray, n_old_predicted: int) -> int:
    """How many of the discovered classes are said of at least one test node.

    They come behind the old ones.
    """
    return int((confusion[:, n_old_predicted:].sum(axis=0) > 0).sum())


def new_largest(confusion: np.ndarray, n_old_predicted: int) -> float:
    """The largest discovered class's share of the test nodes put in any of them; nan if none is."""
    count = confusion[:, n_old_predicted:].sum(axis=0)
    return percentage(count.max(initial=0), count.sum())


# Has phase 2 collapsed into few classes? Both are functions of the confusion matrix and of how many
# columns are old.
COLLAPSE: dict[str, Callable[[np.ndarray, int], float]] = {
    "new_used": new_used,
    "new_largest": new_largest,
}


def nmi(confusion: np.ndarray) -> float:
    """Normalized mutual information of true and predicted classes.

    Normalized by the arithmetic mean of the entropies.
    """
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
    """Adjusted Rand index of true and predicted classes."""
    if not confusion.sum():
        return float("nan")

    def pairs(counts: np.ndarray) -> float:
        counts = counts.astype(float)
        return float((counts * (counts - 1) / 2).sum())

    both = pairs(confusion)
    true = pairs(confusion.sum(axis=1))
    predicted = pairs(confusion.sum(axis=0))
    everything = pairs(confusion.sum())
    expected = true * predicted / everything if everything else 0.0
    highest = (true + predicted) / 2
    return 100.0 * (both - expected) / (highest - expected) if highest != expected else 100.0


def average_accuracy(phases: Sequence[Sequence[float]]) -> float:
    """AA of the last phase: the mean of the last row of the phase matrix M.

    M_ij is the accuracy after phase i on phase j's classes.
    """
    return float(np.mean(phases[-1]))


def average_forgetting(phases: Sequence[Sequence[float]]) -> float:
    """AF of the last phase: the mean of M_ij - M_jj over j < i; 0 for the first phase.

    Negative means forgotten.
    """
    i = len(phases) - 1
    return float(np.mean([phases[i][j] - phases[j][j] for j in range(i)])) if i else 0.0


def expected_calibration_error(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error (ECE) in percent.

    How far the probability of the predicted class is from how often it is right, in equal bins.
    """
    number = np.minimum((confidence * bins).astype(int), bins - 1)
    count = np.bincount(number, minlength=bins)
    gap = np.abs(
        np.bincount(number, confidence, bins) - np.bincount(number, right.astype(float), bins)
    )
    return percentage(gap[count > 0].sum(), len(confidence))


RECALL = 0.95


def detection_scores(p_new: np.ndarray, is_new: np.ndarray) -> Mapping[str, float]:
    """AUROC, AUPR and FPR95 of a probability of being new, in percent.

    Nodes of old classes are the positives, as GNNSafe's code has it: AUPR depends on that.

    Args:
        p_new: (n,) how probable it is that a node is of no old class.
        is_new: (n,) whether that is true.

    Returns:
        `auroc`: how often an old node has a lower score than a new one. `aupr`: average precision
        of finding old nodes. `fpr95`: how many new nodes pass for old where 95 % of the old ones
        do; lower is better.

    Raises:
        SettingError: There are no old nodes, or no new ones.

    Examples:
        >>> scores = detection_scores(np.array([0.1, 0.2, 0.9]), np.array([False, False, True]))
        >>> scores["auroc"], scores["fpr95"]
        (100.0, 0.0)
    """
    is_old = ~is_new
    if is_old.all() or is_new.all():
        raise SettingError("telling old from new can be graded where there are nodes of both")
    return {
        "auroc": 100.0 * float(roc_auc_score(is_old, -p_new)),
        "aupr": 100.0 * float(average_precision_score(is_old, -p_new)),
        "fpr95": 100.0 * _passes(p_new, is_old),
    }


def _passes(p_new: np.ndarray, is_old: np.ndarray) -> float:
    """The share of new nodes at the threshold whose recall of old nodes is nearest to 95 %.

    Of two thresholds that are as near, the one that lets more nodes pass, as in GNNSafe's code.
    """
    order = np.argsort(p_new, kind="stable")
    last = np.append(np.flatnonzero(np.diff(p_new[order])), len(order) - 1)  # of nodes that tie
    old = np.cumsum(is_old[order])[last]
    new = last + 1 - old
    distance = np.abs(old / is_old.sum() - RECALL)[::-1]
    # From the first threshold on at which every old node has passed, more of them say nothing.
    first_full = len(old) - 1 - int(np.searchsorted(old, old[-1]))
    place = first_full + int(np.argmin(distance[first_full:]))
    return float(new[::-1][place] / (~is_old).sum())
