"""Dense products by pieces against the plain product."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nodenova.nn import threaded_matmul
from nodenova.nn.seeding import fixed_threads
from nodenova.nn.threaded_matmul import cross_products, linear


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every product is divided, into pieces that do not fit evenly."""
    monkeypatch.setattr(threaded_matmul, "MIN_MULTIPLICATIONS", 0)
    monkeypatch.setattr(threaded_matmul, "PIECE", 4)


@pytest.mark.parametrize("out", [1, 3, 17])
@pytest.mark.usefixtures("divided")
def test_value_and_gradient_by_pieces_are_the_plain_products(out: int) -> None:
    x, weight = random(11, 5), random(out, 5, seed=1)
    ours, plain = linear(x, weight), x @ weight.t()
    assert ours.grad_fn is not None
    assert "_Linear" in ours.grad_fn.name()
    assert torch.allclose(ours, plain)
    upstream = random(11, out, seed=2).detach()
    for one, other in zip(
        torch.autograd.grad(ours, (x, weight), upstream),
        torch.autograd.grad(plain, (x, weight), upstream),
        strict=True,
    ):
        assert torch.allclose(one, other)


@pytest.mark.usefixtures("divided")
def test_the_number_of_threads_makes_no_difference() -> None:
    x, weight = random(50, 7).float(), random(9, 7, seed=1).float()
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()

    def run(threads: int) -> list[Tensor]:
        with fixed_threads(threads):
            out = linear(x, weight)
            return [out, *torch.autograd.grad(out.square().sum(), (x, weight))]

    assert all(map(torch.equal, run(1), run(3)))


@pytest.mark.usefixtures("divided")
def test_constant_features_get_no_gradient() -> None:
    x, weight = random(6, 3).detach(), random(2, 3, seed=1)
    linear(x, weight).sum().backward()
    assert x.grad is None
    assert torch.allclose(weight.grad, x.sum(0).expand(2, 3))


def test_a_small_product_is_the_plain_one_bit_for_bit() -> None:
    x, weight = random(6, 3).float(), random(2, 3, seed=1).float()
    assert torch.equal(linear(x, weight), x @ weight.t())


@pytest.mark.parametrize("shape", [(3, 2), (50, 256), (40, 257), (7, 600), (900, 700)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_cross_products_are_those_of_the_rows_on_any_number_of_threads(
    shape: tuple[int, int], threads: int
) -> None:
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    with fixed_threads(1):
        one = cross_products(rows)
    with fixed_threads(threads):
        found = cross_products(rows)
    assert torch.equal(found, one)
    assert torch.allclose(found.double(), rows.double().t() @ rows.double(), atol=1e-3)
