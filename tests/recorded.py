"""A method's training seen from outside: its modules when it began, and the noise it drew.

With these a twin can go the same way by its own formulas.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nodenova.nn import training
from nodenova.nn.training import History


@dataclass
class Recorded:
    modules: list[nn.Module] = field(default_factory=list)
    noise: list[Tensor] = field(default_factory=list)


def record(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> tuple[Any, Recorded]:
    """What `run` returns, and how its method began.

    Its encoder must have no dropout: that is not recorded.
    """
    seen = Recorded()
    minimize, randn, randn_like = training.minimize, torch.randn, torch.randn_like

    def kept(draw: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def drawn(*args: Any, **options: Any) -> Tensor:
            seen.noise.append(draw(*args, **options))
            return seen.noise[-1]

        return drawn

    def begun(terms: Any, modules: list[nn.Module], **options: Any) -> Any:
        seen.modules += copy.deepcopy(modules)
        return minimize(terms, modules, **options)

    with monkeypatch.context() as patch:
        patch.setattr(training, "minimize", begun)
        patch.setattr(torch, "randn", kept(randn))
        patch.setattr(torch, "randn_like", kept(randn_like))
        return run(), seen


def train(
    terms: Callable[[int], Mapping[str, Tensor]], modules: list[nn.Module], epochs: int
) -> History:
    """Adam at rate 0.01 with weight decay 5e-4 on the sum of the terms, and what they were."""
    optimizer = torch.optim.Adam(
        [p for m in modules for p in m.parameters()], lr=0.01, weight_decay=5e-4
    )
    history: History = {}
    for epoch in range(1, epochs + 1):
        optimizer.zero_grad()
        parts = terms(epoch)
        sum(parts.values(), torch.zeros(())).backward()
        optimizer.step()
        for name, part in parts.items():
            history.setdefault(name, []).append(float(part.detach()))
    return history


# Formulas as one would say them, a node at a time.


def ramp(epoch: int, length: int) -> float:
    return math.exp(-5 * (1 - min(epoch, length) / length) ** 2)


def softmax(row: Tensor) -> Tensor:
    e = (row - row.detach().max()).exp()
    return e / sum(e)


def cross_entropy(rows: list[Tensor], y: list[int]) -> Tensor:
    """Mean over rows of logits of - log p of the class."""
    return sum(-softmax(row)[c].log() for row, c in zip(rows, y, strict=True)) / len(rows)  # type: ignore[return-value]


def apart(a: list[Tensor], b: list[Tensor]) -> Tensor:
    """Mean over nodes and classes of the squared difference of two softmaxes."""
    return sum((softmax(p) - softmax(q)).square().mean() for p, q in zip(a, b, strict=True)) / len(
        a
    )  # type: ignore[return-value]


def on_sphere(linear: nn.Linear, z: Tensor, temperature: float) -> Tensor:
    """A head's logits of one node, read on unit length."""
    return (linear.weight @ (z / z.norm()) + linear.bias) / temperature


def far_as_a_whole(z_old: Tensor, z: Tensor) -> Tensor:
    """Both brought to length 1 as one long vector, and how far these are apart."""
    old, new = z_old.flatten(), z.flatten()
    return ((old / old.norm() - new / new.norm()).square().sum() + 1e-12).sqrt()
