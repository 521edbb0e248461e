"""Old or new without a threshold, against naive counts over pairs and thresholds."""

from __future__ import annotations

import numpy as np
import pytest

from nodenova.errors import SettingError
from nodenova.evaluation.metrics import detection_scores


def drawn(seed: int, ties: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    is_new = rng.random(80) < 0.4
    score = np.clip(rng.normal(0.4 + 0.2 * is_new, 0.2), 0, 1)
    return score.round(1) if ties else score, is_new


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ties", [False, True])
def test_auroc_is_how_often_a_new_node_scores_above_an_old_one(seed: int, ties: bool) -> None:
    score, is_new = drawn(seed, ties)
    pairs = [(n > o) + 0.5 * (n == o) for n in score[is_new] for o in score[~is_new]]
    assert detection_scores(score, is_new)["auroc"] == pytest.approx(100 * np.mean(pairs))


@pytest.mark.parametrize("seed", range(4))
def test_aupr_is_the_mean_precision_at_each_old_node(seed: int) -> None:
    score, is_new = drawn(seed, ties=False)
    order = np.argsort(score)
    precision = [np.mean(~is_new[order[: i + 1]]) for i in range(80) if not is_new[order[i]]]
    assert detection_scores(score, is_new)["aupr"] == pytest.approx(100 * np.mean(precision))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ties", [False, True])
def test_fpr95_counts_new_nodes_where_the_recall_of_old_ones_is_nearest_to_95(
    seed: int, ties: bool
) -> None:
    score, is_new = drawn(seed, ties)
    recall = {t: np.mean(score[~is_new] <= t) for t in np.unique(score)}
    full = min(t for t, r in recall.items() if r == 1)
    nearest = min(abs(r - 0.95) for t, r in recall.items() if t <= full)
    threshold = max(t for t, r in recall.items() if t <= full and abs(r - 0.95) == nearest)
    assert detection_scores(score, is_new)["fpr95"] == pytest.approx(
        100 * np.mean(score[is_new] <= threshold)
    )


def test_one_kind_alone_cannot_be_graded() -> None:
    for is_new in (np.zeros(3, dtype=bool), np.ones(3, dtype=bool)):
        with pytest.raises(SettingError, match="need nodes of old and of new"):
            detection_scores(np.array([0.1, 0.2, 0.3]), is_new)
