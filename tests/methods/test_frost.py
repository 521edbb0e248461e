"""FRoST against a twin written from its formulas a node at a time, and what its settings do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import nodenova as nova
from nodenova.nn.training import History
from tests.recorded import (
    Recorded,
    apart,
    cross_entropy,
    far_as_a_whole,
    ramp,
    record,
    softmax,
    train,
)

EPOCHS, HIDDEN, OLD, NEW, DRAWS = 3, 6, 3, 2, 20
# Weights and noise that show in three epochs.
SHOWN: dict[str, Any] = {"epochs": EPOCHS, "eta": 2.0, "rampup_epochs": 2, "omega_st": 0.5}


@pytest.fixture(scope="module")
def begun() -> tuple[nova.Model, nova.NewTask]:
    """Three old classes, two new ones; no dropout, so that noise is all the randomness there is."""
    data = nova.synthetic(nodes=50, classes=5, words=40, words_per_node=8)
    old, new, _ = nova.split(data, [0, 1, 2], per_class=5)
    return nova.fit(old, "gcn", hidden=HIDDEN, epochs=30, dropout=0.0), new


def top(z: Tensor) -> set[int]:
    return set(sorted(range(HIDDEN), key=lambda d: -float(z[d].detach()))[:5])


def twin(model: nova.Model, task: nova.NewTask, seen: Recorded, released: bool) -> History:
    g, h_a, h_u = seen.modules
    ids, noise = task.ids.tolist(), iter(seen.noise)
    z_old = model.frozen_encoder()(task.graph)
    mean, var = model.memory.replay.mean, model.memory.replay.var
    deviation = [row.sqrt() for row in var]
    if released:
        deviation = [sum(deviation) / OLD] * OLD  # type: ignore[list-item]

    def terms(epoch: int) -> dict[str, Tensor]:
        everybody = g(task.graph)
        z = everybody[ids]
        spread = (z - z.mean(0)).square().mean(0).sqrt().detach()
        shaken = z + 2.0 * spread * next(noise)
        mine, others = [h_u(row) for row in z], [h_u(row) for row in shaken]
        p, q = [softmax(row) for row in mine], [softmax(row) for row in others]
        pairs = []
        for i in range(len(ids)):
            for j in range(len(ids)):
                s = p[i] @ q[j]
                pairs.append(-((s if top(z[i]) == top(z[j]) else 1 - s) + 1e-7).log())
        label = [OLD + int(row.argmax()) for row in mine]
        draws, y, rows = next(noise), [], []
        for draw in range(DRAWS):
            for c in range(OLD):
                rows.append(h_a(mean[c] + deviation[c] * draws[draw, c]))
                y.append(c)
        return {
            "pairwise": sum(pairs) / len(pairs),  # type: ignore[dict-item]
            "consistency": 5.0 * ramp(epoch, 2) * apart(mine, others),
            "self": 0.5 * ramp(epoch, 2) * cross_entropy([h_a(row) for row in z], label),
            "replay": cross_entropy(rows, y),
            "distill": 10.0
            * (far_as_a_whole(z_old[ids], z) if released else far_as_a_whole(z_old, everybody)),
        }

    return train(terms, [g, h_a, h_u], EPOCHS)


@pytest.mark.parametrize("released", [False, True])
def test_every_term_of_every_epoch_is_the_twins(
    begun, released: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, task = begun
    settings = {"sigma": "shared", "distill": "new"} if released else {}
    method = nova.FRoST(**SHOWN, **settings)
    found, seen = record(monkeypatch, lambda: nova.discover(model, task, method, seed=1))
    history = twin(model, task, seen, released)
    said = found.stages[-1].history
    assert said.keys() == history.keys() == {"pairwise", "consistency", "self", "replay", "distill"}
    for term, values in history.items():
        assert said[term] == pytest.approx(values, rel=1e-3, abs=1e-12), term
    # Three steps down these terms lead to the same place, so their gradients are the same too.
    g, h_a, h_u = seen.modules
    assert np.allclose(found.embed(task.graph), g(task.graph).detach().numpy(), atol=1e-4)
    for ours, theirs in ((found.head().linear, h_a.linear), (found.novel_head(), h_u)):
        assert isinstance(theirs, nn.Linear)
        assert torch.allclose(ours.weight, theirs.weight, atol=1e-4)
        assert torch.allclose(ours.bias, theirs.bias, atol=1e-4)


@pytest.mark.parametrize(
    ("weight", "term"),
    [
        ("pairwise", "pairwise"),
        ("omega_mse", "consistency"),
        ("omega_st", "self"),
        ("replay", "replay"),
        ("omega_fd", "distill"),
    ],
)
def test_a_weight_of_zero_leaves_its_term_out(begun, weight: str, term: str) -> None:
    model, task = begun
    with_all = nova.discover(model, task, nova.FRoST(epochs=2)).stages[-1].history
    without = nova.discover(model, task, nova.FRoST(epochs=2, **{weight: 0.0})).stages[-1].history
    assert with_all.keys() - without.keys() == {term}


def test_distillation_of_all_nodes_is_another_number(begun) -> None:
    model, task = begun
    first, second = (
        nova.discover(model, task, nova.FRoST(epochs=2, distill=nodes)).stages[-1].history
        for nodes in ("new", "all")
    )
    assert first["pairwise"][0] == second["pairwise"][0]
    assert first["distill"][1] != second["distill"][1]


def test_it_finds_planted_classes_and_keeps_the_old_ones() -> None:
    planted = nova.synthetic(300, 4, words=80, degree=10, homophily=0.95, topic_share=0.9)
    old, new, exam = nova.split(planted, [0, 1])
    model = nova.discover(nova.fit(old, "gcn", epochs=50), new, nova.FRoST())
    scores = nova.grade(model, exam).scores()
    assert scores["new"] > 40  # chance: 25, never new: 0
    assert scores["old"] > 90
