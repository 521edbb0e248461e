"""The rules `nodenova check-method` and `nodenova check-encoder` look after.

A good method keeps them all, and each is broken by one made for it.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import nodenova as nova
from nodenova.testing import ADVICE, CHECKS, ENCODER_CHECKS, encoder_problem, problem
from tests.encoders.own import Half, Jumping, Still, Weighted


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    ("method", "encoder"), [(nova.FrozenKMeans(), "gcn"), (nova.Prism(), "prism")]
)
def test_a_good_method_keeps_every_rule(method: nova.Method, encoder: str, check: str) -> None:
    assert problem(method, check, encoder) is None


def changed(model: nova.Model, by: torch.Tensor) -> nova.Model:
    head = model.head()
    with torch.no_grad():
        head.linear.weight.add_(by)
    return replace(model, _head=head.eval())


@dataclass(frozen=True)
class Restless:
    """Draws from a generator that nobody has seeded."""

    def discover(self, model: nova.Model, task: nova.NewTask) -> nova.Model:
        return changed(
            nova.FrozenKMeans().discover(model, task),
            torch.tensor(np.random.default_rng().random()),
        )


@dataclass(frozen=True)
class Peeping:
    """Looks for answers in the variables of whoever called it."""

    def discover(self, model: nova.Model, task: nova.NewTask) -> nova.Model:
        values = [value for frame in inspect.stack() for value in frame.frame.f_locals.values()]
        found = next((value for value in values if type(value) is nova.LabelledGraph), None)
        seen = 0.0 if found is None else float((found.y[task.ids] * np.arange(len(task.ids))).sum())
        grown = nova.FrozenKMeans().discover(model, task)
        noise = torch.linspace(-1, 1, grown.head().linear.weight.numel()).view_as(
            grown.head().linear.weight
        )
        return changed(grown, seen * 1e-3 * noise)


@dataclass(frozen=True)
class Fussy:
    """Cannot do with one class, nor with few nodes."""

    def discover(self, model: nova.Model, task: nova.NewTask) -> nova.Model:
        if task.num_new == 1 or len(task.ids) < 20:
            raise IndexError("too small for me")
        return nova.FrozenKMeans().discover(model, task)


@pytest.mark.parametrize(
    ("method", "check", "sentence"),
    [
        (Restless(), "the same seed gives the same result", "two different results"),
        (
            Peeping(),
            "no label of a new node reaches it",
            "when the labels of new nodes were scrambled",
        ),
        (Fussy(), "one new class", "raised IndexError: too small for me"),
        (Fussy(), "an isolated node", "raised IndexError: too small for me"),
    ],
)
def test_each_rule_can_be_broken(method: nova.Method, check: str, sentence: str) -> None:
    found = problem(method, check, "gcn")
    assert found is not None
    assert sentence in found


# The rules `nodenova check-encoder` looks after.


@pytest.mark.parametrize("check", ENCODER_CHECKS)
@pytest.mark.parametrize("encoder", ["sage", Jumping, Still, Half, Weighted])
def test_a_good_encoder_keeps_every_rule(encoder: str | type, check: str) -> None:
    assert encoder_problem(encoder, check, {}) is None


class Fixed(Still):
    """Has one size of z."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x[:, :8]


class Dividing(Still):
    """Divides by the number of neighbors."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x[:, : self.hidden] / torch.bincount(edge_index[1], minlength=len(x))[:, None]


class Unused(Still):
    """Has a layer that it does not use."""

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__(num_features, hidden)
        self.spare = nn.Linear(2, 2)


class Rolling(nn.Linear):
    """Draws from a generator that nobody has seeded, in training alone."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        noise = np.random.default_rng().random() if self.training else 0.0
        return super().forward(x) * (1 + noise)


class Counting(nn.Linear):
    """Remembers how often it was called."""

    calls = 0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(x) * self.calls


class Numbered(Still):
    """Knows its nodes by their numbers."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x[:, : self.hidden] + torch.arange(len(x))[:, None]


class Forgetful(nn.Linear):
    """Keeps what it learned of the graph where no saved model finds it."""

    mean: Tensor | float = 0.0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.training and len(x) > 9:
            self.mean = x.mean(dim=0)
        return super().forward(x - self.mean if len(x) > 9 else x)


class Shared(nn.Module):
    """All copies have one weight."""

    weights: ClassVar[dict[tuple[int, int], nn.Parameter]] = {}

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()
        start = torch.linspace(-1, 1, num_features * hidden).view(num_features, hidden)
        self.weight = self.weights.setdefault((num_features, hidden), nn.Parameter(start))

    def __deepcopy__(self, memo: object) -> Shared:
        return Shared(*self.weight.shape)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x @ self.weight


class Broken(Still):
    """Does not run."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        raise RuntimeError("out of order")


class Spying(nn.Linear):
    """Looks for answers in the variables of whoever called it."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        values = [value for frame in inspect.stack(0) for value in frame.frame.f_locals.values()]
        found = next((value for value in values if type(value) is nova.LabelledGraph), None)
        if found is None or len(found.y) != len(x):
            return super().forward(x)
        return super().forward(x) + torch.from_numpy(found.y)[:, None]


@pytest.mark.parametrize(
    ("encoder", "check", "sentence"),
    [
        (Fixed, "z has the right shape and is finite", r"\(160, 8\), not numbers of the shape"),
        (Dividing, "nodes without edges", "z of 2 of 160 nodes is not finite in training mode"),
        (Unused, "a gradient reaches every weight", "no gradient reaches module.spare.weight, mod"),
        (Rolling, "the same seed gives the same result", "two different results"),
        (Counting, "no chance in evaluation mode", "differs between two passes"),
        (Numbered, "the order of the nodes changes nothing", "depends on the order of the nodes"),
        (Forgetful, "a saved model gives the same result", "gives other probabilities"),
        (Shared, "a copy is independent", "training a copy of the encoder changed the model"),
        (Spying, "no label of a new node reaches it", "when the labels of new nodes were scrambl"),
        (Broken, "a copy is independent", "raised RuntimeError: out of order"),
    ],
)
def test_each_rule_of_an_encoder_can_be_broken(encoder: type, check: str, sentence: str) -> None:
    found = encoder_problem(encoder, check, {})
    assert found is not None
    assert re.search(sentence, found), found


def test_only_the_order_of_nodes_is_advice() -> None:
    assert ADVICE == ("the order of the nodes changes nothing",)
    assert set(ADVICE) < set(ENCODER_CHECKS)
