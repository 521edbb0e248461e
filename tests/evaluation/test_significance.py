"""Paired tests against scipy and against counting by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from nodenova.evaluation.significance import holm, paired_t, signed_rank


def counted(differences: np.ndarray) -> float:
    """Wilcoxon's p-value by going through every choice of signs."""
    d = differences[differences != 0]
    ranks = stats.rankdata(np.abs(d))
    sums = [float(ranks[list(signs)].sum()) for signs in product([False, True], repeat=len(d))]
    w = ranks[d > 0].sum()
    less, more = np.mean([s <= w + 1e-9 for s in sums]), np.mean([s >= w - 1e-9 for s in sums])
    return min(1.0, 2 * min(less, more))


@pytest.mark.parametrize("n", [2, 5, 6, 10])
@pytest.mark.parametrize("shift", [0.0, 0.7, -2.0])
def test_agree_with_scipy(n: int, shift: float) -> None:
    a = np.random.default_rng([n, int(10 * shift) + 100]).normal(size=n)
    b = a + shift + 0.3 * np.random.default_rng([n, 7]).normal(size=n)
    assert paired_t(b - a) == pytest.approx(stats.ttest_rel(b, a).pvalue, rel=1e-9)
    assert signed_rank(b - a) == pytest.approx(
        stats.wilcoxon(b - a, method="exact").pvalue, rel=1e-12
    )


@pytest.mark.parametrize("seed", range(20))
def test_ranks_that_are_shared_and_differences_of_zero(seed: int) -> None:
    d = np.random.default_rng(seed).integers(-3, 5, size=9).astype(float)
    assert signed_rank(d) == pytest.approx(counted(d), rel=1e-12)


def test_five_pairs_cannot_reach_one_in_twenty() -> None:
    assert signed_rank([1, 2, 3, 4, 5]) == 0.0625
    assert signed_rank([1, 2, 3, 4, 5, 6]) == 0.03125


def test_no_difference_and_the_same_difference() -> None:
    assert paired_t([0, 0, 0]) == signed_rank([0, 0, 0]) == 1.0
    assert paired_t([0.1 + 0.2, 0.3, 0.3]) == 0.0


def test_one_sided_data_is_the_same_both_ways() -> None:
    d = [0.4, -1.0, 2.0, 3.1, 0.2]
    assert paired_t(d) == paired_t([-x for x in d])
    assert signed_rank(d) == signed_rank([-x for x in d])


@pytest.mark.parametrize("wrong", [[], [1.0], [1.0, float("nan")]])
def test_too_little_to_test(wrong: list[float]) -> None:
    for test in (paired_t, signed_rank):
        with pytest.raises(ValueError, match="at least two finite"):
            test(wrong)


def test_holm_by_hand() -> None:
    assert holm([]) == []
    assert holm([0.03]) == [0.03]
    # sorted 0.01, 0.02, 0.03, 0.5 times 4, 3, 2, 1, never falling
    assert holm([0.5, 0.01, 0.03, 0.02]) == pytest.approx([0.5, 0.04, 0.06, 0.06])
    assert max(holm([0.4, 0.6, 0.9])) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_holm_is_the_closed_test_of_bonferroni(seed: int) -> None:
    """p of i: the largest, over all sets with i in them, of size times smallest p of the set."""
    p = np.random.default_rng(seed).uniform(0, 0.3, size=6)
    sets = [np.flatnonzero(s) for s in product([0, 1], repeat=6) if any(s)]
    naive = [max(min(1.0, len(s) * p[s].min()) for s in sets if i in s) for i in range(6)]
    assert holm(p.tolist()) == pytest.approx(naive)
