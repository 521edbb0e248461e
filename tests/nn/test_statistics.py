"""Class statistics against plain formulas."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from nodenova.nn.statistics import ClassStatistics, low_rank


def test_low_rank_keeps_the_diagonal_and_is_exact_when_there_are_few_rows() -> None:
    for n, d in [(4, 9), (60, 9), (20, 50)]:
        rows = torch.randn(n, d, generator=torch.Generator().manual_seed(n))
        factor, rest = low_rank(rows, factors=6)
        scatter = rows.t() @ rows
        again = factor.t() @ factor + rest.diag()
        assert len(factor) == min(n, 6)
        assert torch.allclose(again.diagonal(), scatter.diagonal(), rtol=1e-4)
        if n <= 6:
            assert torch.allclose(again, scatter, atol=1e-4)
        best = torch.linalg.svdvals(rows)[:6].square().sum()
        assert torch.allclose(
            factor.square().sum(), best if n > 6 else rows.square().sum(), rtol=1e-4
        )


@pytest.mark.parametrize("shape", [(90, 60), (60, 90)])
def test_large_matrices_have_the_same_factors_as_small_ones(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = torch.randn(*shape, generator=torch.Generator().manual_seed(1))
    plain, plain_rest = low_rank(rows, factors=6)
    monkeypatch.setattr("nodenova.nn.statistics.MIN_LARGE", 10)
    factor, rest = low_rank(rows, factors=6)
    # Eigenvectors have no sign.
    assert torch.allclose(factor.t() @ factor, plain.t() @ plain, atol=1e-3)
    assert torch.allclose(rest, plain_rest, atol=1e-3)
    again, _ = low_rank(rows, factors=6)
    assert torch.equal(factor, again)


def test_covariance_is_the_pooled_within_class_covariance_shrunk_to_a_sphere() -> None:
    z, y = torch.randn(40, 4), torch.arange(40) % 2
    u = normalize(z, dim=1)
    residual = u - torch.stack([u[y == c].mean(0) for c in range(2)])[y]
    within = residual.t() @ residual / 38
    found = ClassStatistics.estimate(u, y, 2, views=1).covariance(
        torch.ones(4, dtype=torch.bool), 38.0, torch.ones(4)
    )
    assert torch.allclose(
        found.float(), 0.5 * within + 0.5 * within.diagonal().mean() * torch.eye(4), atol=1e-5
    )


def test_a_later_stage_speaks_for_its_classes_and_no_more() -> None:
    y = torch.arange(40) % 4
    first = ClassStatistics.estimate(torch.randn(40, 3), y, 4, views=1)
    many = ClassStatistics.estimate(
        torch.randn(4000, 3), torch.zeros(4000, dtype=torch.long), 1, views=1
    )
    both = first.append(many)
    assert float(both.dof) == pytest.approx(36 + 36 / 4)
    assert both.center.shape == (5, 3)
