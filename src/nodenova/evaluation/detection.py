"""Old or new, as detectors of what training had not are graded: a score, no threshold."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from nodenova.errors import SettingError

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
