from __future__ import annotations

import torch

from nodenova.prototypes import Prototypes


def test_eq_9_mean_and_variance_are_the_loops() -> None:
    z, y = torch.randn(12, 3), torch.arange(12) % 4
    prototypes = Prototypes.of(z, y, 4)
    for c in range(4):
        members = [z[i] for i in range(12) if y[i] == c]
        mean = sum(members) / len(members)
        var = sum((m - mean) ** 2 for m in members) / len(members)
        assert torch.allclose(prototypes.mean[c], mean, atol=1e-6)
        assert torch.allclose(prototypes.var[c], var, atol=1e-6)


def test_a_class_of_one_node_has_no_variance_and_a_class_of_none_gets_the_overall_mean() -> None:
    z = torch.tensor([[0.0, 2.0], [4.0, 6.0]])
    prototypes = Prototypes.of(z, torch.tensor([0, 0]), 2)
    assert prototypes.mean[1].tolist() == [2.0, 4.0]
    one = Prototypes.of(z, torch.tensor([0, 1]), 2)
    assert one.mean.tolist() == z.tolist()
    assert not one.var.any()
    assert torch.isfinite(one.draw(torch.randn(5, 2, 2))[0]).all()


def test_prototypes_hold_no_gradient() -> None:
    z = torch.randn(6, 2, requires_grad=True)
    assert not Prototypes.of(z, torch.arange(6) % 2, 2).mean.requires_grad


def test_eq_10_draws_are_mean_plus_deviation_times_noise() -> None:
    prototypes = Prototypes(torch.randn(3, 2), torch.rand(3, 2))
    noise = torch.randn(4, 3, 2)
    z, y = prototypes.draw(noise)
    assert z.shape == (12, 2)
    assert y.tolist() == [0, 1, 2] * 4
    for i in range(12):
        draw, c = divmod(i, 3)
        assert torch.allclose(z[i], prototypes.mean[c] + prototypes.var[c].sqrt() * noise[draw, c])


def test_draws_have_the_moments_they_are_asked_for() -> None:
    prototypes = Prototypes(torch.tensor([[1.0, -2.0]]), torch.tensor([[4.0, 0.25]]))
    z, _ = prototypes.draw(torch.randn(20000, 1, 2, generator=torch.Generator().manual_seed(0)))
    assert torch.allclose(z.mean(0), prototypes.mean[0], atol=0.06)
    assert torch.allclose(z.var(0), prototypes.var[0], rtol=0.05)


def test_followed_by_keeps_the_order_of_the_stages() -> None:
    first, second = Prototypes(torch.zeros(2, 3), torch.zeros(2, 3)), Prototypes(torch.ones(1, 3), torch.ones(1, 3))
    both = first.followed_by(second)
    assert both.mean[:, 0].tolist() == [0, 0, 1]
    assert both.var[:, 0].tolist() == [0, 0, 1]
    assert first.mean.shape == (2, 3)
