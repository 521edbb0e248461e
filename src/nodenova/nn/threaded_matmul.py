"""Dense products: on all threads, bit-identical for any number of threads; in lower precision."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from itertools import combinations_with_replacement
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nodenova.nn.seeding import on_threads

MIN_MULTIPLICATIONS = 2**28  # above which a product is divided: a tenth of a second of one core
PIECE = 2048  # rows of a product per piece of work
COLUMNS = 256  # columns of a matrix of cross products per piece of work
PRECISION = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


def autocast(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """Compute dense products in a type of `PRECISION`; weights and sums stay in float32."""
    dtype = PRECISION[precision]
    return nullcontext() if dtype is None else torch.autocast(device.type, dtype)


def without_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """Compute in float32: sparse products and attention, which have no lower precision."""
    if not torch.is_autocast_enabled(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x W^T (N, out) of x (N, in) and weight (out, in), with its gradient; no sum is divided."""
    kind = x.device.type
    small = x.numel() * len(weight) < MIN_MULTIPLICATIONS
    if small or kind != "cpu" or torch.is_autocast_enabled(kind):
        return x @ weight.t()
    return _Linear.apply(x, weight)  # type: ignore[no-untyped-call]


def cross_products(rows: Tensor) -> Tensor:
    """rows' rows (c, c) of rows (n, c); only one half of the symmetric result is computed."""
    n, c = rows.shape
    if c <= COLUMNS:
        return rows.t() @ rows
    out = rows.new_empty(c, c)
    places = [slice(start, start + COLUMNS) for start in range(0, c, COLUMNS)]
    pairs = list(combinations_with_replacement(places, 2))

    def part(number: int) -> None:
        a, b = pairs[number]
        out[a, b] = rows[:, a].t() @ rows[:, b]
        if a != b:
            out[b, a] = out[a, b].t()

    if n * c * c < MIN_MULTIPLICATIONS:
        for number in range(len(pairs)):
            part(number)
    else:
        on_threads(part, range(len(pairs)))
    return out


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
