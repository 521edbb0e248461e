"""SWORD's loss, all of it, against a twin written from the text a node at a time.

The default, as printed, as released.
The twin begins where SWORD begins and draws the same noise, and goes three epochs its own way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import nodenova as nova
from nodenova.methods import get_method
from nodenova.nn.training import History
from tests.recorded import (
    Recorded,
    apart,
    cross_entropy,
    far_as_a_whole,
    on_sphere,
    ramp,
    record,
    train,
)

EPOCHS, HIDDEN, OLD, NEW = 3, 6, 3, 2
# Ten times the noise and a short ramp: what they weigh must show in three epochs.
ETA = 2.0
RAMP = 2


@pytest.fixture(scope="module")
def begun() -> tuple[nova.Model, nova.NewTask]:
    """Three old classes, two new ones; no dropout, so that noise is all the randomness there is."""
    data = nova.synthetic(nodes=50, classes=5, words=40, words_per_node=8)
    old, new, _ = nova.split(data, [0, 1, 2], per_class=5)
    return nova.fit(old, "gcn", hidden=HIDDEN, epochs=30, dropout=0.0), new


def same_sets(z: list[Tensor], i: int, j: int) -> bool:
    """Eq. 3: are the three most active dimensions the same?"""
    tops = [
        set(sorted(range(HIDDEN), key=lambda d, at=at: -float(z[at][d].detach()))[:3])
        for at in (i, j)
    ]
    return tops[0] == tops[1]


def pairs(z: list[Tensor], similarity: Callable[[int, int], Tensor]) -> Tensor:
    """Eq. 4: mean over all pairs of the cross-entropy of their similarity."""
    n = range(len(z))
    terms = [similarity(i, j) if same_sets(z, i, j) else 1 - similarity(i, j) for i in n for j in n]
    return sum(-(term + 1e-7).log() for term in terms) / len(terms)  # type: ignore[return-value]


def verdicts(logits: list[Tensor]) -> list[int]:
    """Eq. 5."""
    return [OLD + int(row.argmax()) for row in logits]


def sigmas(z: Tensor) -> Tensor:
    """Of every dimension over the nodes, with the number of nodes below."""
    return (z - z.mean(0)).square().mean(0).sqrt()


def replayed(
    model: nova.Model, noise: Tensor, sigma: Callable[[int], Tensor]
) -> tuple[list[Tensor], list[int]]:
    mean, found, y = model.memory.replay.mean, [], []
    for draw in range(len(noise)):
        for c in range(OLD):
            found.append(mean[c] + sigma(c) * noise[draw, c])
            y.append(c)
    return found, y


def softmax_rows(rows: list[Tensor]) -> list[Tensor]:
    return [row.exp() / row.exp().sum() for row in rows]


def default(model: nova.Model, task: nova.NewTask, seen: Recorded) -> History:
    g, h_a, h_u = seen.modules
    z_old = model.frozen_encoder()(task.graph)
    noise = iter(seen.noise)
    var = model.memory.replay.var

    def terms(epoch: int) -> dict[str, Tensor]:
        everybody = g(task.graph)
        z = [everybody[i] for i in task.ids.tolist()]
        shaken = torch.stack(z) + ETA * sigmas(torch.stack(z).detach()) * next(noise)
        mine, others = [h_u(row) for row in z], [h_u(row) for row in shaken]
        p, q = softmax_rows(mine), softmax_rows(others)
        old, y_old = replayed(model, next(noise), lambda c: var[c].sqrt())
        return {
            "pseudo": pairs(z, lambda i, j: p[i] @ q[j]),
            "self": 0.08
            * ramp(epoch, RAMP)
            * cross_entropy([on_sphere(h_a.linear, row, 0.1) for row in z], verdicts(mine)),
            "perturb": 5.0 * ramp(epoch, RAMP) * apart(mine, others),
            "replay": 0.4 * cross_entropy([on_sphere(h_a.linear, row, 1.0) for row in old], y_old),
            "distill": 0.4 * 10.0 * far_as_a_whole(z_old, everybody),
        }

    return train(terms, [g, h_a, h_u], EPOCHS)


def printed(model: nova.Model, task: nova.NewTask, seen: Recorded) -> History:
    g, h_a, h_u = seen.modules
    z_old = model.frozen_encoder()(task.graph)
    noise = iter(seen.noise)
    var = model.memory.replay.var

    def terms(epoch: int) -> dict[str, Tensor]:
        everybody = g(task.graph)
        z = [everybody[i] for i in task.ids.tolist()]
        shaken = torch.stack(z) + ETA * sigmas(torch.stack(z).detach()) * next(noise)
        mine = [h_u(row) for row in z]
        joint = [h_a.linear(row) for row in z]
        old, y_old = replayed(model, next(noise), lambda c: var[c].sqrt())
        far = [((z_old[i] - everybody[i]).square().sum() + 1e-12).sqrt() for i in task.ids.tolist()]
        return {
            "pseudo": pairs(z, lambda i, j: 1 / (1 + (-(mine[i] @ mine[j])).exp())),
            "self": 0.08 * ramp(epoch, RAMP) * cross_entropy(joint, verdicts(mine)) / (OLD + NEW),
            "perturb": 5.0 * ramp(epoch, RAMP) * apart(joint, [h_a.linear(row) for row in shaken]),
            "replay": 0.4 * cross_entropy([h_a.linear(row) for row in old], y_old) / (OLD + NEW),
            "distill": 0.4 * 10.0 * sum(far) / len(far),
        }

    return train(terms, [g, h_a, h_u], EPOCHS)


def released(model: nova.Model, task: nova.NewTask, seen: Recorded) -> History:
    g, h_a, h_u = seen.modules
    z_old, noise = model.frozen_encoder()(task.graph), iter(seen.noise)
    shared = sum(model.memory.replay.var[c].sqrt() for c in range(OLD)) / OLD

    def terms(epoch: int) -> dict[str, Tensor]:
        everybody = g(task.graph)
        z = [everybody[i] for i in task.ids.tolist()]
        mine, size = [h_u(row) for row in z], h_u(everybody).detach().std()
        others = [row + ETA * size * shake for row, shake in zip(mine, next(noise), strict=True)]
        p, q = softmax_rows(mine), softmax_rows(others)
        old, y_old = replayed(model, next(noise), lambda c: shared)
        on_unit = [on_sphere(h_a.linear, row, 0.1) for row in z]
        return {
            "pseudo": 1.2 * pairs(z, lambda i, j: p[i] @ q[j]),
            "self": 1.2 * 0.08 * ramp(epoch, RAMP) * cross_entropy(on_unit, verdicts(mine)),
            "perturb": 1.2 * 5.0 * ramp(epoch, RAMP) * apart(mine, others),
            "replay": 0.5 * cross_entropy([on_sphere(h_a.linear, row, 1.0) for row in old], y_old),
            "distill": 0.5 * 10.0 * far_as_a_whole(z_old, everybody),
        }

    return train(terms, [g, h_a, h_u], EPOCHS)


READINGS = {"": (default, 20), "printed": (printed, 20), "released": (released, 2)}


@pytest.mark.parametrize("reading", list(READINGS))
def test_every_term_of_every_epoch_is_the_twins(
    begun, reading: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, task = begun
    settings = {"epochs": str(EPOCHS), "eta": str(ETA), "rampup_epochs": str(RAMP)}
    settings |= {"reading": reading} if reading else {}
    method = get_method("sword", settings)
    found, seen = record(monkeypatch, lambda: nova.discover(model, task, method, seed=1))
    twin, draws = READINGS[reading]
    assert [tuple(noise.shape) for noise in seen.noise[1::2]] == [(draws, OLD, HIDDEN)] * EPOCHS
    history = twin(model, task, seen)
    said = found.stages[-1].history
    assert said.keys() == history.keys() == {"pseudo", "self", "perturb", "replay", "distill"}
    for term, values in history.items():
        assert said[term] == pytest.approx(values, rel=1e-3, abs=1e-12), term
    # Three steps down these terms lead to the same place, so their gradients are the same too.
    g, h_a, h_u = seen.modules
    assert np.allclose(found.embed(task.graph), g(task.graph).detach().numpy(), atol=1e-4)
    for ours, theirs in ((found.head().linear, h_a.linear), (found.novel_head(), h_u)):
        assert isinstance(theirs, nn.Linear)
        assert torch.allclose(ours.weight, theirs.weight, atol=1e-4)
        assert torch.allclose(ours.bias, theirs.bias, atol=1e-4)
