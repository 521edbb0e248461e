"""Dense products on all threads, with the same result whatever their number."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nodenova.nn.seeding import on_threads

MIN_MULTIPLICATIONS = 2**28  # from which on a product is divided: a tenth of a second of one core
PIECE = 2048  # rows of a product that one thread makes at a time


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x W^T, with its gradient. Each piece of rows is one thread's: no sum is divided.

    Args:
        x: (N, in).
        weight: (out, in).

    Returns:
        (N, out).

    Examples:
        >>> linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([[11.]])
    """
    if x.numel() * len(weight) < MIN_MULTIPLICATIONS or x.device.type != "cpu":
        return x @ weight.t()
    return _Linear.apply(x, weight)  # type: ignore[no-untyped-call]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x, weight)
        return _by_rows(x, weight.t())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:  # type: ignore[no-untyped-def]
        x, weight = ctx.saved_tensors
        d_x = _by_rows(grad, weight) if ctx.needs_input_grad[0] else None
        d_weight = None
        if ctx.needs_input_grad[1]:
            # Rows of this product are few and long.
            d_weight = _by_rows(grad.t(), x, max(1, min(PIECE, len(weight) // 8)))
        return d_x, d_weight


def _by_rows(a: Tensor, b: Tensor, piece: int = PIECE) -> Tensor:
    out = a.new_empty(a.shape[0], b.shape[1])

    def part(start: int) -> None:
        rows = slice(start, start + piece)
        torch.mm(a[rows], b, out=out[rows])

    on_threads(part, range(0, len(a), piece))
    return out
