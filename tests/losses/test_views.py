"""The losses of SimGCD, against loops that say what they mean."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.losses import l_group_contrast, l_mean_entropy, l_views


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def naive_softmax(row: list[float], tau: float) -> list[float]:
    e = [math.exp(value / tau) for value in row]
    return [value / sum(e) for value in e]


def naive_group_contrast(h: Tensor, y: list[int], tau: float) -> float:
    total, n = 0.0, range(len(y))
    for i in n:
        weight = {j: math.exp(float(h[i] @ h[j]) / tau) for j in n if j != i}
        friends = [j for j in weight if y[j] == y[i]]
        chosen = [-math.log(weight[j] / sum(weight.values())) for j in friends]
        total += sum(chosen) / len(chosen) if chosen else 0.0
    return total / len(y)


def naive_views(logits: Tensor, logits_prime: Tensor, tau_s: float, tau_t: float) -> float:
    total = 0.0
    for a, b in zip(logits.tolist(), logits_prime.tolist(), strict=True):
        for student, teacher in ((a, b), (b, a)):
            p, q = naive_softmax(student, tau_s), naive_softmax(teacher, tau_t)
            total -= sum(qc * math.log(pc) for pc, qc in zip(p, q, strict=True))
    return total / (2 * len(logits))


def naive_mean_entropy(logits: Tensor, tau: float) -> float:
    rows = [naive_softmax(row, tau) for row in logits.tolist()]
    mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    return math.log(len(mean)) + sum(p * math.log(p) for p in mean)


@pytest.mark.parametrize("tau", [0.07, 1.0])
@pytest.mark.parametrize("y", [[0, 0, 1, 1, 1, 2], [0, 1, 2, 0, 1, 2]])
def test_group_contrast_is_the_naive_twin(y: list[int], tau: float) -> None:
    h = F.normalize(random(6, 4), dim=1)
    found = float(l_group_contrast(h, torch.tensor(y), tau))
    assert found == pytest.approx(naive_group_contrast(h, y, tau))


def test_two_views_of_each_node_make_the_contrast_without_labels() -> None:
    """InfoNCE: the other view against all other rows."""
    h, h_prime = (F.normalize(random(5, 4, seed=seed), dim=1) for seed in (0, 1))
    rows = torch.cat([h, h_prime])
    s = (rows @ rows.t()).fill_diagonal_(-torch.inf)
    other = torch.arange(10).roll(5)
    found = l_group_contrast(rows, torch.arange(5).repeat(2), 1.0)
    assert float(found) == pytest.approx(float(F.cross_entropy(s, other)))


def test_group_contrast_has_a_finite_gradient_everywhere() -> None:
    h = F.normalize(random(4, 3), dim=1).requires_grad_()
    l_group_contrast(h, torch.tensor([0, 0, 1, 2]), 0.07).backward()
    assert h.grad is not None
    assert h.grad.isfinite().all()
    assert (h.grad.abs().sum(dim=1) > 0).all()


def test_views_is_the_naive_twin() -> None:
    logits, logits_prime = random(7, 3), random(7, 3, seed=1)
    found = float(l_views(logits, logits_prime, 0.1, 0.04))
    assert found == pytest.approx(naive_views(logits, logits_prime, 0.1, 0.04))
    assert found == pytest.approx(float(l_views(logits_prime, logits, 0.1, 0.04)))


def test_a_teacher_is_not_taught() -> None:
    """The gradient of one view is that of a cross-entropy against fixed targets."""
    logits, logits_prime = random(4, 3).requires_grad_(), random(4, 3, seed=1)
    l_views(logits, logits_prime, 0.1, 0.04).backward()
    q = F.softmax(logits_prime / 0.04, dim=1)
    expected = (F.softmax(logits.detach() / 0.1, dim=1) - q) / 0.1 / (2 * 4)
    assert torch.allclose(logits.grad, expected)


@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_mean_entropy_is_the_naive_twin(tau: float) -> None:
    logits = 0.3 * random(7, 3)
    found = float(l_mean_entropy(logits, tau))
    assert found == pytest.approx(naive_mean_entropy(logits, tau))
    assert found > 0


def test_mean_entropy_is_largest_where_one_class_has_all_nodes() -> None:
    one = torch.tensor([[50.0, 0.0, 0.0]]).repeat(4, 1)
    assert float(l_mean_entropy(one, 1.0)) == pytest.approx(math.log(3))
