"""Encoders of one's own that tests use: those of the page, and small ones."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

PAGE = Path(__file__).parent.parent.parent / "docs" / "own-encoder.md"


def of_page(title: str) -> str:
    """The file of a title on the page about encoders of one's own."""
    found = re.search(rf'```python title="{title}"\n(.*?)```', PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def module_of_page(title: str) -> ModuleType:
    """The same file as a module."""
    module = ModuleType("of_page")
    sys.modules["of_page"] = module
    exec(compile(of_page(title), title, "exec"), module.__dict__)
    return module


Jumping = module_of_page("mine.py").Net


class Still(nn.Module):
    """Features as they are: nothing to train."""

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x[:, : self.hidden]


class Half(nn.Module):
    """A frozen layer below a trained one, with a normalization that keeps running means."""

    def __init__(self, num_features: int, hidden: int, scale: float = 1.0) -> None:
        super().__init__()
        self.body = nn.Linear(num_features, hidden).requires_grad_(False)
        self.norm = nn.BatchNorm1d(hidden)
        self.top = nn.Linear(hidden, hidden)
        self.again = self.top  # one module at two places
        self.scale = scale

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        h = self.norm(self.body(x))
        h = h + torch.zeros_like(h).index_add(0, target, h[source])
        return self.again(self.top(h * self.scale).relu())


class Weighted(nn.Module):
    """A sum over neighbors by the weights of edges."""

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()
        self.layer = nn.Linear(num_features, hidden)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        h = self.layer(x)
        source, target = edge_index
        part = h[source] if edge_weight is None else h[source] * edge_weight[:, None]
        return h + torch.zeros_like(h).index_add(0, target, part)
