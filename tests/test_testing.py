"""The rules `nodenova check-method` looks after.

A good method keeps them all, and each is broken by one made for it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.testing import CHECKS, problem


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
