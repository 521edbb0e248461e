"""The contrasts of NCL, against loops that say what they mean."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.losses import l_neighborhood, l_same_class, mixed_negatives

TAU = 0.5


def unit(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


def naive_losses(
    z: Tensor, z_prime: Tensor, i: int, negatives: Tensor
) -> tuple[float, dict[int, float]]:
    """l(z_i, z'_i), and l(z_i, z_j) of every other node j."""
    others = {j: math.exp(float(z[i] @ z[j]) / TAU) for j in range(len(z)) if j != i}
    view = math.exp(float(z[i] @ z_prime[i]) / TAU)
    everything = (
        view + sum(others.values()) + sum(math.exp(float(z[i] @ one) / TAU) for one in negatives)
    )
    return -math.log(view / everything), {
        j: -math.log(value / everything) for j, value in others.items()
    }


def naive_neighborhood(z: Tensor, z_prime: Tensor, old: Tensor, m: int, alpha: float) -> float:
    total = 0.0
    for i in range(len(z)):
        hard = mixed_negatives(z, z, old, len(old))[i] if len(old) else z[:0]
        of_view, of_others = naive_losses(z, z_prime, i, hard)
        near = sorted(of_others, key=lambda j: -float(z[i] @ z[j]))[:m]
        total += alpha * of_view + (1 - alpha) * sum(of_others[j] for j in near) / len(near)
    return total / len(z)


def naive_same_class(z: Tensor, z_prime: Tensor, y: list[int]) -> float:
    total = 0.0
    for i in range(len(z)):
        of_view, of_others = naive_losses(z, z_prime, i, z[:0])
        losses = [of_view, *(loss for j, loss in of_others.items() if y[j] == y[i])]
        total += sum(losses) / len(losses)
    return total / len(z)


@pytest.mark.parametrize(("m", "alpha", "e"), [(1, 0.2, 0), (3, 0.2, 4), (3, 1.0, 4), (50, 0.0, 2)])
def test_l_neighbourhood_is_the_naive_twin(m: int, alpha: float, e: int) -> None:
    z, z_prime, old = unit(7, 3), unit(7, 3, seed=1), unit(e, 3, seed=2)
    expected = naive_neighborhood(z, z_prime, old, m, alpha)
    assert float(l_neighborhood(z, z_prime, old, m, alpha, TAU)) == pytest.approx(expected)


def test_l_same_class_is_the_naive_twin() -> None:
    z, z_prime = unit(6, 3), unit(6, 3, seed=1)
    y = [0, 1, 0, 2, 1, 0]  # class 2 has one node: its view is all it has
    expected = naive_same_class(z, z_prime, y)
    assert float(l_same_class(z, z_prime, torch.tensor(y), TAU)) == pytest.approx(expected)


def test_gradient_flows_into_z_only_and_a_single_node_is_no_trouble() -> None:
    for n in (1, 5):
        z, z_prime, old = (
            unit(n, 3).requires_grad_(),
            unit(n, 3, seed=1).requires_grad_(),
            unit(2, 3, seed=2).requires_grad_(),
        )
        loss = l_neighborhood(z, z_prime, old, 2, 0.2, TAU) + l_same_class(
            z, z_prime, torch.zeros(n), TAU
        )
        loss.backward()
        assert torch.isfinite(z.grad).all()
        assert z.grad.abs().sum() > 0
        assert z_prime.grad is None
        assert old.grad is None
