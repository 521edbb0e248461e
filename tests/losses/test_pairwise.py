"""Eq. 2-4 against loops that say what they mean."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nodenova import losses
from nodenova.losses import (
    l_pairs,
    l_pseudo,
    same_top_k,
    similarity_sigmoid,
    similarity_softmax,
    top_k_sets,
)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def naive_same_top_k(z: Tensor, k: int) -> Tensor:
    tops = []
    for row in z.tolist():
        order = sorted(range(len(row)), key=lambda dimension: -row[dimension])
        tops.append(set(order[:k]))
    return torch.tensor([[1.0 if a == b else 0.0 for b in tops] for a in tops], dtype=z.dtype)


def naive_softmax(row: list[float]) -> list[float]:
    total = sum(math.exp(value) for value in row)
    return [math.exp(value) / total for value in row]


def naive_l_pseudo(s: Tensor, y: Tensor) -> Tensor:
    total = torch.zeros((), dtype=s.dtype)
    for i in range(s.shape[0]):
        for j in range(s.shape[1]):
            total = total - (y[i, j] * s[i, j].log() + (1 - y[i, j]) * (1 - s[i, j]).log())
    return total / s.numel()


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_eq_3_same_top_k_is_the_naive_twin(k: int) -> None:
    z = random(40, 6)
    assert torch.equal(same_top_k(z, k), naive_same_top_k(z, k))


def test_eq_3_compares_sets_not_orders() -> None:
    z = torch.tensor([[3.0, 2.0, 0.0, -9.0], [2.0, 3.0, 0.0, 9e-9], [0.0, 2.0, 3.0, 0.5]])
    assert same_top_k(z, 2).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_eq_3_activations_are_signed() -> None:
    """A large negative value is not an active dimension."""
    z = torch.tensor([[1.0, 0.5, -100.0], [1.0, -0.5, 100.0]])
    assert same_top_k(z, 1).tolist() == [[1, 0], [0, 1]]


def test_eq_3_k_above_the_number_of_dimensions_calls_every_pair_the_same() -> None:
    assert same_top_k(random(5, 3), 99).min() == 1


def test_eq_3_is_symmetric_has_a_diagonal_of_ones_and_gives_no_gradient() -> None:
    z = random(20, 5).requires_grad_()
    y = same_top_k(z, 2)
    assert torch.equal(y, y.t())
    assert y.diagonal().min() == 1
    assert not y.requires_grad


def test_eq_2_softmax_is_the_naive_twin() -> None:
    a, b = random(7, 4), random(7, 4, seed=1)
    p, q = [naive_softmax(row) for row in a.tolist()], [naive_softmax(row) for row in b.tolist()]
    twin = [[sum(p_i[c] * q_j[c] for c in range(4)) for q_j in q] for p_i in p]
    assert torch.allclose(similarity_softmax(a, b), torch.tensor(twin, dtype=a.dtype))


def test_eq_2_sigmoid_is_the_naive_twin() -> None:
    a, b = random(7, 4), random(7, 4, seed=1)
    twin = [
        [1 / (1 + math.exp(-sum(x * y for x, y in zip(r, s, strict=True)))) for s in b.tolist()]
        for r in a.tolist()
    ]
    assert torch.allclose(similarity_sigmoid(a, b), torch.tensor(twin, dtype=a.dtype))


@pytest.mark.parametrize("similarity", [similarity_softmax, similarity_sigmoid])
def test_eq_2_gradient(similarity) -> None:  # type: ignore[no-untyped-def]
    assert torch.autograd.gradcheck(
        similarity, (random(4, 3).requires_grad_(), random(4, 3, seed=1).requires_grad_())
    )


def test_eq_4_value_and_gradient_are_the_naive_twins() -> None:
    s = torch.sigmoid(random(6, 6)).requires_grad_()
    y = (random(6, 6, seed=1) > 0).double()
    ours, twin = l_pseudo(s, y), naive_l_pseudo(s, y)
    assert torch.allclose(ours, twin, atol=1e-5)
    (ours_grad,) = torch.autograd.grad(ours, s)
    (twin_grad,) = torch.autograd.grad(twin, s)
    assert torch.allclose(ours_grad, twin_grad, rtol=1e-4)
    assert torch.autograd.gradcheck(lambda t: l_pseudo(t, y), s)


def test_eq_4_by_hand() -> None:
    s = torch.tensor([[0.9, 0.2]])
    y = torch.tensor([[1.0, 0.0]])
    assert float(l_pseudo(s, y)) == pytest.approx(-(math.log(0.9) + math.log(0.8)) / 2, abs=1e-5)


def test_eq_4_a_pair_that_is_surely_wrong_costs_much_but_not_infinitely() -> None:
    s = torch.tensor([[0.0, 1.0]], requires_grad=True)
    loss = l_pseudo(s, torch.tensor([[1.0, 0.0]]))
    loss.backward()
    assert 10 < float(loss.detach()) < 30
    assert torch.isfinite(s.grad).all()


def test_eq_2_to_4_together_gradient_reaches_both_views() -> None:
    z = random(8, 5)
    y = same_top_k(z, 2)
    a, b = random(8, 3, seed=2).requires_grad_(), random(8, 3, seed=3).requires_grad_()
    assert torch.autograd.gradcheck(lambda p, q: l_pseudo(similarity_softmax(p, q), y), (a, b))


OF = {"softmax": similarity_softmax, "sigmoid": similarity_sigmoid}


def sides(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of n nodes and of their perturbed selves, and z."""
    return (
        random(n, 3, seed=2).requires_grad_(),
        random(n, 3, seed=3).requires_grad_(),
        random(n, 5),
    )


@pytest.fixture
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows of 23 at a time, and two that are left."""
    monkeypatch.setattr(losses, "MAX_PAIRS", 0)
    monkeypatch.setattr(losses, "BLOCK", 3 * 23 + 1)


@pytest.mark.parametrize("similarity", OF)
@pytest.mark.usefixtures("few_at_a_time")
def test_by_blocks_of_rows_value_and_gradient_are_those_of_all_pairs(similarity: str) -> None:
    a, b, z = sides(23)
    whole = l_pseudo(OF[similarity](a, b), same_top_k(z, 2))
    ours = l_pairs(a, b, top_k_sets(z, 2), similarity)
    assert torch.allclose(ours, whole, rtol=1e-12)
    expected = torch.autograd.grad(3 * whole, (a, b))
    for one, other in zip(torch.autograd.grad(3 * ours, (a, b)), expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-9)
    with torch.no_grad():
        assert torch.equal(l_pairs(a, b, top_k_sets(z, 2), similarity), ours)


@pytest.mark.usefixtures("few_at_a_time")
def test_by_blocks_of_rows_one_side_may_be_fixed() -> None:
    a, b, z = sides(23)
    for one, other, side in ((a, b.detach(), a), (a.detach(), b, b)):
        whole = l_pseudo(similarity_sigmoid(one, other), same_top_k(z, 2))
        ours = l_pairs(one, other, top_k_sets(z, 2), "sigmoid")
        gradients = [torch.autograd.grad(loss, side)[0] for loss in (ours, whole)]
        assert torch.allclose(*gradients, rtol=1e-9)


def test_a_block_has_at_least_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "MAX_PAIRS", 0)
    monkeypatch.setattr(losses, "BLOCK", 2)
    a, b, z = sides(5)
    whole = l_pseudo(similarity_softmax(a, b), same_top_k(z, 2))
    assert torch.allclose(l_pairs(a, b, top_k_sets(z, 2)), whole, rtol=1e-12)


def test_blocks_are_for_more_pairs_than_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "MAX_PAIRS", 9)
    monkeypatch.setattr(losses._Pairs, "apply", lambda *parts: "blocks")
    for n, by_blocks in ((2, False), (3, False), (4, True)):
        a, b, z = sides(n)
        assert (l_pairs(a, b, top_k_sets(z, 2)) == "blocks") is by_blocks


def test_4096_nodes_are_the_most_whose_pairs_are_held_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(losses._Pairs, "apply", lambda *parts: "blocks")
    monkeypatch.setattr(losses, "l_pseudo", lambda s, y: "at once")
    ways = [l_pairs(torch.zeros(n, 1), torch.zeros(n, 1), torch.zeros(n)) for n in (4096, 4097)]
    assert ways == ["at once", "blocks"]


@pytest.mark.usefixtures("few_at_a_time")
def test_by_blocks_of_rows_both_sides_may_be_one_tensor() -> None:
    a, _, z = sides(23)
    whole = l_pseudo(similarity_sigmoid(a, a), same_top_k(z, 2))
    ours = l_pairs(a, a, top_k_sets(z, 2), "sigmoid")
    (one,), (other,) = (torch.autograd.grad(loss, a) for loss in (ours, whole))
    assert torch.allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("similarity", OF)
def test_few_pairs_are_compared_all_at_once_bit_for_bit(similarity: str) -> None:
    a, b, z = sides(23)
    whole = l_pseudo(OF[similarity](a, b), same_top_k(z, 2))
    assert torch.equal(l_pairs(a, b, top_k_sets(z, 2), similarity), whole)


MEMORY = """
import torch
from pathlib import Path
from nodenova.losses import l_pairs
def kib(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1])
torch.set_num_threads(1)
for n in (500, 5_000, 10_000):
    logits = torch.randn(n, 4, requires_grad=True)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew here
    before = kib("VmRSS")
    l_pairs(logits, logits, torch.arange(n) % 7).backward()
    print(kib("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux")
def test_memory_grows_with_the_nodes_and_not_with_their_pairs() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    _, some, twice = (int(line) / 1024 for line in done.stdout.split())
    assert twice < 100  # MiB; one matrix of all pairs of 10,000 nodes would be 400
    assert twice < 2.5 * some
