"""Eq. 6-8 against loops that say what they mean."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from nodenova.losses import l_perturb, l_self, perturb, perturb_logits


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def naive_l_self(logits: Tensor, y: Tensor) -> Tensor:
    total = torch.zeros((), dtype=logits.dtype)
    for i in range(len(y)):
        total = total - (logits[i, y[i]].exp() / sum(value.exp() for value in logits[i])).log()
    return total / len(y)


def naive_perturbed(z: Tensor, noise: Tensor, eta: float) -> Tensor:
    n, hidden = z.shape
    out = torch.empty_like(z)
    for k in range(hidden):
        column = z[:, k].tolist()
        mean = sum(column) / n
        sigma = math.sqrt(sum((value - mean) ** 2 for value in column) / n)
        for i in range(n):
            out[i, k] = z[i, k] + eta * sigma * noise[i, k]
    return out


def naive_perturbed_logits(logits: Tensor, everywhere: Tensor, noise: Tensor, eta: float) -> Tensor:
    values = everywhere.flatten().tolist()
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    sigma = math.sqrt(variance)  # torch.std, as released
    out = torch.empty_like(logits)
    for i in range(logits.shape[0]):
        for c in range(logits.shape[1]):
            out[i, c] = logits[i, c] + eta * sigma * noise[i, c]
    return out


def naive_l_perturb(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros((), dtype=a.dtype)
    for i in range(a.shape[0]):
        p, q = a[i].exp() / a[i].exp().sum(), b[i].exp() / b[i].exp().sum()
        for c in range(a.shape[1]):
            total = total + (p[c] - q[c]) ** 2
    return total / a.numel()


def test_eq_6_value_and_gradient_are_the_naive_twins() -> None:
    logits, y = random(9, 5).requires_grad_(), torch.arange(9) % 5
    ours, twin = l_self(logits, y), naive_l_self(logits, y)
    assert torch.allclose(ours, twin)
    assert torch.allclose(
        torch.autograd.grad(ours, logits)[0], torch.autograd.grad(twin, logits)[0]
    )


def test_eq_6_by_hand() -> None:
    """Two equal logits: the right one of two has probability one half."""
    assert float(l_self(torch.zeros(1, 2), torch.tensor([1]))) == pytest.approx(math.log(2))


def test_eq_7_is_the_naive_twin() -> None:
    z, noise = random(11, 4), random(11, 4, seed=1)
    assert torch.allclose(perturb(z, noise, 0.2), naive_perturbed(z, noise, 0.2))


def test_eq_7_a_constant_dimension_and_a_single_node_are_not_perturbed() -> None:
    z = torch.ones(5, 2)
    z[:, 1] = torch.arange(5)
    moved = perturb(z, torch.ones(5, 2), 0.5)
    assert torch.equal(moved[:, 0], z[:, 0])
    assert (moved[:, 1] > z[:, 1]).all()
    assert torch.equal(perturb(z[:1], torch.ones(1, 2), 0.5), z[:1])


def test_eq_7_the_size_of_the_noise_is_a_constant_for_the_gradient() -> None:
    z, noise = random(6, 3).requires_grad_(), random(6, 3, seed=1)
    (gradient,) = torch.autograd.grad(perturb(z, noise, 0.3).sum(), z)
    assert torch.equal(gradient, torch.ones_like(z))


def test_eq_7_on_logits_is_the_naive_twin() -> None:
    everywhere, noise = random(11, 4), random(5, 4, seed=1)
    logits = everywhere[:5]
    assert torch.allclose(
        perturb_logits(logits, everywhere, noise, 0.2),
        naive_perturbed_logits(logits, everywhere, noise, 0.2),
    )


def test_eq_7_on_logits_by_hand() -> None:
    """All logits of all nodes are 0, 0, 3 and 3.

    Their standard deviation is sqrt(3), whichever class they are of.
    """
    everywhere = torch.tensor([[0.0, 3.0], [0.0, 3.0]])
    moved = perturb_logits(everywhere[:1], everywhere, torch.ones(1, 2), 0.5)
    assert moved.tolist() == [pytest.approx([0.5 * math.sqrt(3), 3 + 0.5 * math.sqrt(3)])]


def test_eq_7_on_logits_the_size_of_the_noise_is_a_constant_for_the_gradient() -> None:
    logits, noise = random(6, 3).requires_grad_(), random(6, 3, seed=1)
    (gradient,) = torch.autograd.grad(perturb_logits(logits, logits, noise, 0.3).sum(), logits)
    assert torch.equal(gradient, torch.ones_like(logits))


def test_eq_8_value_and_gradient_are_the_naive_twins() -> None:
    a, b = random(6, 4).requires_grad_(), random(6, 4, seed=1).requires_grad_()
    ours, twin = l_perturb(a, b), naive_l_perturb(a, b)
    assert torch.allclose(ours, twin)
    for one, other in zip(
        torch.autograd.grad(ours, (a, b)), torch.autograd.grad(twin, (a, b)), strict=True
    ):
        assert torch.allclose(one, other)
    assert torch.autograd.gradcheck(l_perturb, (a, b))


def test_eq_8_is_zero_for_equal_views_and_blind_to_a_shift_of_all_logits() -> None:
    a = random(5, 3)
    assert float(l_perturb(a, a)) == 0
    assert float(l_perturb(a, a + 7.0)) == pytest.approx(0, abs=1e-20)
    assert float(l_perturb(a, -a)) > 0
