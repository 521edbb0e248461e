"""Paired tests of two methods on the same seeds, Holm's correction, and bootstrap intervals.

All p-values are two-sided. If all differences are zero, p = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

import numpy as np
from scipy import stats


def paired_t(differences: Sequence[float]) -> float:
    """Return the p-value of Student's paired t-test, which assumes normal differences.

    Raises:
        ValueError: If there are fewer than two differences, or one is not finite.

    Examples:
        >>> round(paired_t([1.0, 2.0, 3.0]), 4)
        0.0742
    """
    d = _as_array(differences)
    if not d.any():
        return 1.0
    # The same difference every time: what is left is rounding, not spread.
    if float(d.std(ddof=1)) <= 1e-12 * float(np.abs(d).max()):
        return 0.0
    return float(stats.ttest_1samp(d, 0.0).pvalue)


def signed_rank(differences: Sequence[float]) -> float:
    """Return the exact p-value of Wilcoxon's signed-rank test; ties share their rank.

    Differences of zero are left out. Five pairs cannot get below 2/2^5 = 0.0625,
    six reach 0.03125.

    Raises:
        ValueError: If there are fewer than two differences, or one is not finite.

    Examples:
        >>> signed_rank([1.0, 2.0, 3.0, 4.0, 5.0])
        0.0625
    """
    d = _as_array(differences)
    d = d[d != 0]
    if not len(d):
        return 1.0
    if len(np.unique(np.abs(d))) < len(d):
        return _with_shared_ranks(d)
    return float(stats.wilcoxon(d, method="exact").pvalue)


def _with_shared_ranks(d: np.ndarray) -> float:
    """Return the exact p-value with shared ranks, by counting all 2^n signs of the ranks."""
    # SciPy is exact for distinct ranks only; for shared ones it enumerates the signs, a tenth of a
    # second for ten pairs, and a table has hundreds of cells.
    ranks = np.rint(2 * stats.rankdata(np.abs(d))).astype(int)  # doubled: ties end in a half
    ways = np.zeros(ranks.sum() + 1)  # ways[w]: number of sign choices with positive rank sum w
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] += ways[:-rank].copy()
    w = ranks[d > 0].sum()
    tail = min(ways[: w + 1].sum(), ways[w:].sum()) / 2.0 ** len(d)
    return min(1.0, 2.0 * float(tail))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values after Holm's step-down correction, to be compared with 0.05 each.

    Examples:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    m = len(p_values)
    adjusted = [0.0] * m
    largest = 0.0
    for step, i in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (m - step) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def bootstrap_interval(
    values: Sequence[Sequence[float]],
    statistic: Callable[[np.ndarray], np.ndarray],
    draws: int = 10_000,
) -> tuple[float, float]:
    """Return the 95% percentile interval of a statistic of means over runs.

    Runs are drawn with replacement, with a fixed seed. With five runs the interval is too narrow:
    it cannot reach beyond the best and the worst of them.

    Args:
        values: For each run the scores that the statistic uses.
        statistic: Function of (draws, scores) means that returns (draws,) numbers.
        draws: Number of bootstrap samples.

    Raises:
        ValueError: If there are fewer than two runs.

    Examples:
        >>> low, high = bootstrap_interval([[1.0], [2.0], [3.0]], lambda means: means[:, 0])
        >>> low < 2.0 < high
        True
    """
    x = np.asarray(values, dtype=float)
    if len(x) < 2:
        raise ValueError(f"an interval needs at least two runs, there is {len(x)}")
    picked = np.random.default_rng(0).integers(len(x), size=(draws, len(x)))
    low, high = np.percentile(statistic(x[picked].mean(axis=1)), [2.5, 97.5])
    return float(low), float(high)


def _as_array(differences: Sequence[float]) -> np.ndarray:
    """Return differences as an array; raise unless there are two or more, all finite."""
    if len(differences) < 2 or not all(map(isfinite, differences)):
        raise ValueError(
            f"a paired test needs at least two finite differences, these are {list(differences)}"
        )
    return np.asarray(differences, dtype=float)
