"""Soft assignments, their target and the two losses, against loops that say what they mean."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from nodenova.losses import l_cluster, student_t, target_distribution


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def distribution(*shape: int, seed: int = 0) -> Tensor:
    return random(*shape, seed=seed).softmax(dim=1)


def naive_student_t(z: Tensor, mu: Tensor, alpha: float) -> Tensor:
    rows = []
    for i in range(len(z)):
        row = []
        for j in range(len(mu)):
            squared = sum((float(z[i, d]) - float(mu[j, d])) ** 2 for d in range(z.shape[1]))
            row.append((1 + squared / alpha) ** (-(alpha + 1) / 2))
        rows.append([value / sum(row) for value in row])
    return torch.tensor(rows, dtype=z.dtype)


def naive_target_distribution(q: Tensor) -> Tensor:
    n, c = q.shape
    f = [sum(float(q[i, j]) for i in range(n)) for j in range(c)]
    rows = [[float(q[i, j]) ** 2 / f[j] for j in range(c)] for i in range(n)]
    return torch.tensor([[value / sum(row) for value in row] for row in rows], dtype=q.dtype)


def naive_l_cluster(p: Tensor, q: Tensor) -> float:
    total = 0.0
    for i in range(len(p)):
        for j in range(p.shape[1]):
            total += float(p[i, j]) * math.log(float(p[i, j]) / float(q[i, j]))
    return total / len(p)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_student_t_is_the_naive_twin(alpha: float) -> None:
    z, mu = random(9, 5), random(3, 5, seed=1)
    assert torch.allclose(student_t(z, mu, alpha), naive_student_t(z, mu, alpha))


def test_student_t_of_near_nodes_has_one_degree_of_freedom() -> None:
    z, mu = random(9, 5), random(3, 5, seed=1)
    found = student_t(z / 10, mu / 10)
    assert torch.allclose(found, naive_student_t(z / 10, mu / 10, 1.0))


def test_student_t_gradient_also_where_a_node_lies_on_a_centre() -> None:
    z, mu = random(4, 3), random(2, 3, seed=1)
    assert torch.autograd.gradcheck(
        student_t, (z.clone().requires_grad_(), mu.clone().requires_grad_())
    )
    z.requires_grad_()
    student_t(z, z.detach()[:2])[0, 0].backward()
    assert torch.isfinite(z.grad).all()


def test_student_t_of_one_centre_is_one() -> None:
    assert (student_t(random(4, 3), random(1, 3)) == 1).all()


def test_target_distribution_is_the_naive_twin_and_gives_no_gradient() -> None:
    q = distribution(8, 3).requires_grad_()
    assert torch.allclose(target_distribution(q), naive_target_distribution(q.detach()))
    assert not target_distribution(q).requires_grad


def test_target_distribution_is_surer_than_q_when_clusters_are_of_one_size() -> None:
    q = torch.tensor([[0.7, 0.3], [0.3, 0.7]])
    assert float(target_distribution(q)[0, 0]) == pytest.approx(0.49 / (0.49 + 0.09))


def test_l_cluster_is_the_naive_twin() -> None:
    p, q = distribution(7, 4), distribution(7, 4, seed=1)
    assert float(l_cluster(p, q)) == pytest.approx(naive_l_cluster(p, q))
    assert torch.autograd.gradcheck(lambda t: l_cluster(p, t), q.requires_grad_())


def test_l_cluster_is_zero_at_its_target_and_finite_at_certainty() -> None:
    p = distribution(5, 3)
    assert float(l_cluster(p, p)) == pytest.approx(0.0, abs=1e-9)
    sure, wrong = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    assert 10 < float(l_cluster(sure, wrong)) < 40
