"""Neighbors, mixed negatives and the contrastive loss, against loops that say what they mean."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.losses import l_contrast, mixed_negatives, nearest, same_direction


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unit(*shape: int, seed: int = 0) -> Tensor:
    return F.normalize(random(*shape, seed=seed), dim=-1)


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def naive_same_direction(z: Tensor, threshold: float) -> Tensor:
    rows = z.tolist()
    same = [
        [1.0 if dot(a, b) / math.sqrt(dot(a, a) * dot(b, b)) > threshold else 0.0 for b in rows]
        for a in rows
    ]
    return torch.tensor(same, dtype=z.dtype)


def naive_nearest(s: Tensor, m: int) -> Tensor:
    near = torch.zeros_like(s)
    for i in range(len(s)):
        others = sorted((j for j in range(len(s)) if j != i), key=lambda j: -float(s[i, j]))
        for j in others[:m]:
            near[i, j] = 1.0
    return near


def naive_mixed_negatives(z: Tensor, memory: Tensor, old: Tensor, hard: int) -> Tensor:
    kept = []
    for i in range(len(z)):
        by_similarity = sorted(memory.tolist(), key=lambda entry: dot(entry, z[i].tolist()))
        mixtures = []
        for share in (1, 2):
            for easy, foreign in zip(by_similarity, old.tolist(), strict=False):
                mixture = [share * a + (3 - share) * b for a, b in zip(easy, foreign, strict=True)]
                length = math.sqrt(dot(mixture, mixture))
                mixtures.append([value / length for value in mixture])
        mixtures.sort(key=lambda mixture: -dot(mixture, z[i].tolist()))
        kept.append(mixtures[:hard])
    return torch.tensor(kept, dtype=z.dtype)


def naive_l_contrast(s: Tensor, positive: Tensor) -> float:
    total = 0.0
    for row, mask in zip(s.tolist(), positive.tolist(), strict=True):
        everything = sum(math.exp(value) for value in row)
        chosen = [
            -math.log(math.exp(value) / everything)
            for value, yes in zip(row, mask, strict=True)
            if yes
        ]
        total += sum(chosen) / len(chosen) if chosen else 0.0
    return total / len(s)


@pytest.mark.parametrize("threshold", [-0.2, 0.0, 0.6])
def test_same_direction_is_the_naive_twin(threshold: float) -> None:
    z = random(15, 4)
    assert torch.equal(same_direction(z, threshold), naive_same_direction(z, threshold))


def test_same_direction_is_above_the_threshold_and_not_at_it() -> None:
    assert same_direction(torch.eye(3), 0.0).tolist() == torch.eye(3).tolist()


def test_same_direction_has_a_diagonal_of_ones_even_for_a_zero_row_and_no_gradient() -> None:
    y = same_direction(torch.zeros(3, 2).requires_grad_(), 0.9)
    assert torch.equal(y, torch.eye(3))
    assert not y.requires_grad


@pytest.mark.parametrize("m", [1, 3, 11, 50])
def test_nearest_is_the_naive_twin(m: int) -> None:
    s = random(12, 12)
    assert torch.equal(nearest(s, m), naive_nearest(s, m))


def test_nearest_of_a_single_node_is_nobody() -> None:
    assert nearest(torch.ones(1, 1), 3).tolist() == [[0.0]]


@pytest.mark.parametrize("hard", [1, 4, 6, 99])
def test_mixed_negatives_are_the_naive_twins(hard: int) -> None:
    z, memory, old = unit(5, 4), unit(9, 4, seed=1), unit(3, 4, seed=2)
    assert torch.allclose(
        mixed_negatives(z, memory, old, hard), naive_mixed_negatives(z, memory, old, hard)
    )


def test_mixed_negatives_have_unit_length_no_gradient_and_need_no_more_memory_than_there_is() -> (
    None
):
    z, memory, old = unit(2, 3).requires_grad_(), unit(2, 3, seed=1), unit(7, 3, seed=2)
    mixed = mixed_negatives(z, memory, old, 99)
    assert mixed.shape == (2, 4, 3)
    assert torch.allclose(mixed.norm(dim=2), torch.ones(2, 4, dtype=mixed.dtype))
    assert not mixed.requires_grad


def test_l_contrast_is_the_naive_twin_in_value_and_gradient() -> None:
    s, positive = random(6, 8).requires_grad_(), (random(6, 8, seed=1) > 0.5).double()
    assert float(l_contrast(s, positive).detach()) == pytest.approx(naive_l_contrast(s, positive))
    assert torch.autograd.gradcheck(lambda t: l_contrast(t, positive), s)


def test_l_contrast_leaves_out_what_does_not_take_part() -> None:
    s, positive = random(3, 5), torch.eye(3, 5, dtype=torch.float64)
    out = torch.cat([s, torch.full((3, 1), -torch.inf, dtype=s.dtype)], dim=1).requires_grad_()
    loss = l_contrast(out, F.pad(positive, (0, 1)))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(naive_l_contrast(s, positive))
    assert torch.isfinite(out.grad).all()


def test_l_contrast_of_nodes_without_positives_is_zero() -> None:
    assert float(l_contrast(random(3, 4), torch.zeros(3, 4))) == 0.0
