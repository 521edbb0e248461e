"""Eq. 10-11 and learning without forgetting against loops that say what they mean."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from nodenova.losses import l_distill, l_distill_global, l_replay, l_soft_targets


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def naive_l_replay(logits: Tensor, y: Tensor) -> Tensor:
    total = torch.zeros((), dtype=logits.dtype)
    for i in range(len(y)):
        total = total - (logits[i, y[i]].exp() / sum(value.exp() for value in logits[i])).log()
    return total / len(y)


def naive_l_distill(z_old: Tensor, z: Tensor) -> Tensor:
    total = torch.zeros((), dtype=z.dtype)
    for i in range(z.shape[0]):
        total = total + sum((z_old[i, k] - z[i, k]) ** 2 for k in range(z.shape[1])) ** 0.5
    return total / z.shape[0]


def naive_l_distill_global(z_old: Tensor, z: Tensor) -> Tensor:
    n, hidden = z.shape
    length_old = sum(z_old[i, k] ** 2 for i in range(n) for k in range(hidden)) ** 0.5
    length = sum(z[i, k] ** 2 for i in range(n) for k in range(hidden)) ** 0.5
    apart = [
        (z_old[i, k] / length_old - z[i, k] / length) ** 2 for i in range(n) for k in range(hidden)
    ]
    return torch.stack(apart).sum() ** 0.5


def naive_l_soft_targets(logits: Tensor, logits_old: Tensor, temperature: float) -> float:
    total = 0.0
    for new, old in zip(logits.tolist(), logits_old.tolist(), strict=True):
        sum_new = sum(math.exp(value / temperature) for value in new)
        sum_old = sum(math.exp(value / temperature) for value in old)
        for a, b in zip(new, old, strict=True):
            total -= (
                math.exp(b / temperature) / sum_old * math.log(math.exp(a / temperature) / sum_new)
            )
    return total / len(logits)


def test_eq_10_value_and_gradient_are_the_naive_twins() -> None:
    logits, y = random(9, 5).requires_grad_(), torch.arange(9) % 5
    ours, twin = l_replay(logits, y), naive_l_replay(logits, y)
    assert torch.allclose(ours, twin)
    assert torch.allclose(
        torch.autograd.grad(ours, logits)[0], torch.autograd.grad(twin, logits)[0]
    )


def test_eq_11_value_and_gradient_are_the_naive_twins() -> None:
    z_old, z = random(7, 4), random(7, 4, seed=1).requires_grad_()
    ours, twin = l_distill(z_old, z), naive_l_distill(z_old, z)
    assert torch.allclose(ours, twin)
    assert torch.allclose(torch.autograd.grad(ours, z)[0], torch.autograd.grad(twin, z)[0])
    assert torch.autograd.gradcheck(lambda t: l_distill(z_old, t), z)


def test_eq_11_by_hand() -> None:
    """Distances 5 and 0: their mean, not the norm of everything (5) nor the mean square."""
    assert float(
        l_distill(torch.zeros(2, 2), torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    ) == pytest.approx(2.5, abs=1e-5)


def test_eq_11_has_a_plus_sign_a_step_down_the_gradient_brings_the_encoders_together() -> None:
    z_old, z = random(7, 4), random(7, 4, seed=1).requires_grad_()
    before = l_distill(z_old, z)
    before.backward()
    assert l_distill(z_old, z.detach() - 0.1 * z.grad) < before


def test_eq_11_has_a_finite_gradient_where_training_starts() -> None:
    z = random(7, 4).requires_grad_()
    loss = l_distill(z.detach().clone(), z)
    loss.backward()
    assert math.isclose(float(loss.detach()), 0, abs_tol=1e-5)
    assert torch.isfinite(z.grad).all()


def test_eq_11_as_a_whole_value_and_gradient_are_the_naive_twins() -> None:
    z_old, z = random(7, 4), random(7, 4, seed=1).requires_grad_()
    ours, twin = l_distill_global(z_old, z), naive_l_distill_global(z_old, z)
    assert torch.allclose(ours, twin)
    assert torch.allclose(torch.autograd.grad(ours, z)[0], torch.autograd.grad(twin, z)[0])
    assert torch.autograd.gradcheck(lambda t: l_distill_global(z_old, t), z)


def test_eq_11_as_a_whole_by_hand() -> None:
    """Lengths 5 and 10 of the whole.

    (3, 4)/5 and (6, 0, 0, 8)/10 lie |(0.6 - 0.6, 0.8, 0, -0.8)| apart.
    """
    z_old, z = torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([[6.0, 0.0], [0.0, 8.0]])
    assert float(l_distill_global(z_old, z)) == pytest.approx(math.sqrt(2 * 0.8**2))


def test_eq_11_as_a_whole_is_blind_to_one_scale_for_all_nodes_and_to_nothing_else() -> None:
    z = random(7, 4)
    assert float(l_distill_global(z, 17.0 * z)) == pytest.approx(0, abs=2e-6)
    one_longer = z * torch.where(torch.arange(7) == 3, 2.0, 1.0)[:, None]
    assert float(l_distill_global(z, one_longer)) > 0.1
    assert float(l_distill_global(z, -z)) == pytest.approx(2.0)  # as far apart as can be


def test_eq_11_as_a_whole_has_a_finite_gradient_where_training_starts() -> None:
    z = random(7, 4).requires_grad_()
    l_distill_global(z.detach().clone(), z).backward()
    assert torch.isfinite(z.grad).all()


def test_eq_11_as_a_whole_where_all_of_z_is_zero() -> None:
    for z_old, z in ((random(5, 3), torch.zeros(5, 3)), (torch.zeros(5, 3), random(5, 3))):
        z.requires_grad_()
        loss = l_distill_global(z_old, z)
        loss.backward()
        assert float(loss.detach()) == pytest.approx(1.0)
        assert z.grad is not None
        assert z.grad.isfinite().all()


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_l_soft_targets_is_the_naive_twin(temperature: float) -> None:
    new, old = random(6, 4), random(6, 4, seed=1)
    assert float(l_soft_targets(new, old, temperature)) == pytest.approx(
        naive_l_soft_targets(new, old, temperature)
    )
    assert torch.autograd.gradcheck(
        lambda t: l_soft_targets(t, old, temperature), new.requires_grad_()
    )


def test_l_soft_targets_is_least_where_nothing_changed() -> None:
    old = random(6, 4)
    logits = old.clone().requires_grad_()
    l_soft_targets(logits, old, 2.0).backward()
    assert logits.grad.abs().max() < 1e-12
