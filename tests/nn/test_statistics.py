from __future__ import annotations

import pytest
import torch

from nodenova.nn.statistics import Prototypes, ladder, low_rank, rung_columns


def bare(mean: torch.Tensor, var: torch.Tensor) -> Prototypes:
    """Prototypes whose ladder says nothing."""
    d = mean.shape[1]
    return Prototypes(
        mean,
        var,
        torch.zeros_like(mean),
        torch.zeros(1, d),
        torch.ones(d),
        torch.tensor(5.0),
        torch.tensor(1.0),
        torch.ones(1),
    )


def test_eq_9_mean_and_variance_are_the_loops() -> None:
    z, y = torch.randn(12, 3), torch.arange(12) % 4
    prototypes = Prototypes.of(z, y, 4, z.shape[1], (z.shape[1],))
    for c in range(4):
        members = [z[i] for i in range(12) if y[i] == c]
        mean = sum(members) / len(members)
        var = sum((m - mean) ** 2 for m in members) / len(members)
        assert torch.allclose(prototypes.mean[c], mean, atol=1e-6)
        assert torch.allclose(prototypes.var[c], var, atol=1e-6)


def test_a_class_of_one_node_has_no_variance_and_a_class_of_none_gets_the_overall_mean() -> None:
    z = torch.tensor([[0.0, 2.0], [4.0, 6.0]])
    prototypes = Prototypes.of(z, torch.tensor([0, 0]), 2, z.shape[1], (z.shape[1],))
    assert prototypes.mean[1].tolist() == [2.0, 4.0]
    one = Prototypes.of(z, torch.tensor([0, 1]), 2, z.shape[1], (z.shape[1],))
    assert one.mean.tolist() == z.tolist()
    assert not one.var.any()
    assert torch.isfinite(one.draw(torch.randn(5, 2, 2))[0]).all()


def test_prototypes_hold_no_gradient() -> None:
    z = torch.randn(6, 2, requires_grad=True)
    assert not Prototypes.of(z, torch.arange(6) % 2, 2, z.shape[1], (z.shape[1],)).mean.requires_grad


def test_eq_10_draws_are_mean_plus_deviation_times_noise() -> None:
    prototypes = bare(torch.randn(3, 2), torch.rand(3, 2))
    noise = torch.randn(4, 3, 2)
    z, y = prototypes.draw(noise)
    assert z.shape == (12, 2)
    assert y.tolist() == [0, 1, 2] * 4
    for i in range(12):
        draw, c = divmod(i, 3)
        assert torch.allclose(z[i], prototypes.mean[c] + prototypes.var[c].sqrt() * noise[draw, c])


def test_draws_with_a_shared_sigma_have_the_mean_of_the_deviations() -> None:
    prototypes = bare(torch.randn(3, 2), torch.rand(3, 2))
    noise = torch.randn(4, 3, 2)
    z, y = prototypes.draw(noise, "shared")
    assert torch.equal(y, prototypes.draw(noise)[1])
    for i in range(12):
        draw, c = divmod(i, 3)
        for d in range(2):
            sigma = sum(float(prototypes.var[k, d]) ** 0.5 for k in range(3)) / 3
            assert float(z[i, d]) == pytest.approx(float(prototypes.mean[c, d] + sigma * noise[draw, c, d]), abs=1e-6)


def test_draws_have_the_moments_they_are_asked_for() -> None:
    prototypes = bare(torch.tensor([[1.0, -2.0]]), torch.tensor([[4.0, 0.25]]))
    z, _ = prototypes.draw(torch.randn(20000, 1, 2, generator=torch.Generator().manual_seed(0)))
    assert torch.allclose(z.mean(0), prototypes.mean[0], atol=0.06)
    assert torch.allclose(z.var(0), prototypes.var[0], rtol=0.05)


def test_followed_by_keeps_the_order_of_the_stages() -> None:
    first, second = bare(torch.zeros(2, 3), torch.zeros(2, 3)), bare(torch.ones(1, 3), torch.ones(1, 3))
    both = first.followed_by(second)
    assert both.mean[:, 0].tolist() == [0, 0, 1]
    assert both.var[:, 0].tolist() == [0, 0, 1]
    assert first.mean.shape == (2, 3)


def test_ladder_is_each_view_at_each_rank_to_unit_length() -> None:
    z = torch.randn(5, 6)
    u = ladder(z, 3, (1, 3))
    expected = [view[:, :r] / view[:, :r].norm(dim=1, keepdim=True) for view in (z[:, :3], z[:, 3:]) for r in (1, 3)]
    assert torch.allclose(u, torch.cat(expected, dim=1))
    assert torch.equal(u[:, rung_columns(2, (1, 3), (3,))], ladder(z, 3, (3,)))
    assert ladder(torch.zeros(1, 6), 3, (3,)).isfinite().all()


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
        assert torch.allclose(factor.square().sum(), best if n > 6 else rows.square().sum(), rtol=1e-4)


@pytest.mark.parametrize("shape", [(90, 60), (60, 90)])
def test_large_matrices_have_the_same_factors_as_small_ones(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = torch.randn(*shape, generator=torch.Generator().manual_seed(1))
    plain, plain_rest = low_rank(rows, factors=6)
    monkeypatch.setattr("nodenova.nn.statistics.LARGE", 10)
    factor, rest = low_rank(rows, factors=6)
    assert torch.allclose(factor.t() @ factor, plain.t() @ plain, atol=1e-3)  # eigenvectors have no sign
    assert torch.allclose(rest, plain_rest, atol=1e-3)
    again, _ = low_rank(rows, factors=6)
    assert torch.equal(factor, again)


def test_covariance_is_the_pooled_within_class_covariance_shrunk_to_a_sphere() -> None:
    z, y = torch.randn(40, 4), torch.arange(40) % 2
    u = ladder(z, 4, (4,))
    residual = u - torch.stack([u[y == c].mean(0) for c in range(2)])[y]
    within = residual.t() @ residual / 38
    found = Prototypes.of(z, y, 2, 4, (4,)).covariance(torch.ones(4, dtype=torch.bool), 38.0, torch.ones(4))
    assert torch.allclose(found.float(), 0.5 * within + 0.5 * within.diagonal().mean() * torch.eye(4), atol=1e-5)


def test_a_later_stage_speaks_for_its_classes_and_no_more() -> None:
    y = torch.arange(40) % 4
    first = Prototypes.of(torch.randn(40, 3), y, 4, 3, (3,))
    many = Prototypes.of(torch.randn(4000, 3), torch.zeros(4000, dtype=torch.long), 1, 3, (3,))
    both = first.followed_by(many)
    assert float(both.dof) == pytest.approx(36 + 36 / 4)
    assert both.centre.shape == (5, 3)
