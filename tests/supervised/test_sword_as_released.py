"""The released script's loss against a twin written a node at a time, and what it keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import nodenova as nova
from nodenova.data.labels import LabelledNewTask
from nodenova.data.splits import labelled_new_task
from nodenova.nn.training import History
from nodenova.supervised.entrance import discover_supervised
from nodenova.supervised.sword_as_released import SwordAsReleased
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
METHOD = SwordAsReleased(epochs=EPOCHS, eta=ETA, rampup_epochs=RAMP)


@pytest.fixture(scope="module")
def begun() -> tuple[nova.Model, LabelledNewTask]:
    """Three old classes of five nodes each, two new ones.

    No dropout, so that noise is all the randomness there is.
    """
    data = nova.synthetic(nodes=80, classes=5, words=40, words_per_node=8)
    old, _, _ = nova.split(data, [0, 1, 2], per_class=5)
    model = nova.fit(old, "gcn", hidden=HIDDEN, epochs=30, dropout=0.0)
    return model, labelled_new_task(data, [0, 1, 2], per_class=5)


def shared_sigma(model: nova.Model, given: LabelledNewTask) -> Tensor:
    """From the old training nodes themselves.

    Each class's unbiased variance + 1e-5, and the mean of the square roots.
    """
    z = model.embed(given.graph)[given.old_ids].astype(np.float64)
    total = np.zeros(HIDDEN)
    for c in range(OLD):
        mine = z[given.old_y == c]
        assert len(mine) == 5
        total += np.sqrt(((mine - mine.mean(axis=0)) ** 2).sum(axis=0) / (len(mine) - 1) + 1e-5)
    return torch.from_numpy(total / OLD).float()


def twin(model: nova.Model, given: LabelledNewTask, seen: Recorded, sigma: Tensor) -> History:
    g, h_a, h_u = seen.modules
    z_old = model.frozen_encoder()(given.graph)
    noise = iter(seen.noise)
    mean = model.memory.replay.mean

    def terms(epoch: int) -> dict[str, Tensor]:
        everybody = g(given.graph)
        z = [everybody[i] for i in given.ids.tolist()]
        mine, size = [h_u(row) for row in z], h_u(everybody).detach().std()
        others = [row + ETA * size * shake for row, shake in zip(mine, next(noise), strict=True)]
        joint = [on_sphere(h_a.linear, row, 0.1) for row in z]
        drawn = next(noise)
        old = [mean[c] + sigma * drawn[draw, c] for draw in range(2) for c in range(OLD)]
        return {
            "ce": 1.8 * cross_entropy(joint, [OLD + c for c in given.y.tolist()]),
            "self": 1.8
            * 0.08
            * ramp(epoch, RAMP)
            * cross_entropy(joint, [OLD + int(row.argmax()) for row in mine]),
            "perturb": 1.8 * 5.0 * ramp(epoch, RAMP) * apart(mine, others),
            "replay": 0.5
            * cross_entropy([on_sphere(h_a.linear, row, 1.0) for row in old], [0, 1, 2] * 2),
            "distill": 0.5 * 10.0 * far_as_a_whole(z_old, everybody),
        }

    return train(terms, [g, h_a, h_u], EPOCHS)


def test_every_term_of_every_epoch_is_the_twins(begun, monkeypatch: pytest.MonkeyPatch) -> None:
    model, given = begun
    found, seen = record(monkeypatch, lambda: discover_supervised(model, given, METHOD, seed=1))
    assert [tuple(noise.shape) for noise in seen.noise] == [
        (len(given.ids), NEW),
        (2, OLD, HIDDEN),
    ] * EPOCHS
    history, said = twin(model, given, seen, shared_sigma(model, given)), found.stages[-1].history
    assert said.keys() == history.keys()  # no L_Pseudo among them
    for term, values in history.items():
        assert said[term] == pytest.approx(values, rel=1e-3, abs=1e-12), term
    # Three steps down these terms lead to the same place, so their gradients are the same too.
    g, h_a, h_u = seen.modules
    assert np.allclose(found.embed(given.graph), g(given.graph).detach().numpy(), atol=1e-4)
    for ours, theirs in ((found.head().linear, h_a.linear), (found.novel_head(), h_u)):
        assert torch.allclose(ours.weight, theirs.weight, atol=1e-4)
        assert torch.allclose(ours.bias, theirs.bias, atol=1e-4)


def test_sigma_has_a_floor(begun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes whose nodes are all alike are drawn with a deviation of sqrt(1e-5)."""
    model, given = begun
    memory = model.memory
    still = replace(memory.replay, var=torch.zeros_like(memory.replay.var))
    alike = replace(model, _memory=replace(memory, replay=still))
    found, seen = record(monkeypatch, lambda: discover_supervised(alike, given, METHOD, seed=1))
    history = twin(alike, given, seen, torch.full((HIDDEN,), 1e-5).sqrt())
    assert found.stages[-1].history["replay"] == pytest.approx(history["replay"], rel=1e-3)


def test_new_labels_reach_it_and_nothing_else_does(begun) -> None:
    model, given = begun
    plain = discover_supervised(model, given, METHOD)
    other = discover_supervised(model, replace(given, y=1 - given.y), METHOD)
    assert plain.stages[-1].history["ce"] != other.stages[-1].history["ce"]
    bare = replace(given, old_ids=None, old_y=None, val_ids=None, val_y=None)
    again = discover_supervised(model, bare, METHOD)
    assert plain.predict_proba(given.graph).tobytes() == again.predict_proba(given.graph).tobytes()
    assert plain.stages[-1].sees == ("graph", "new_ids", "new_labels")


def test_the_scripts_numbers_are_the_defaults() -> None:
    s = SwordAsReleased()
    assert (s.epochs, s.draws, s.novel, s.base) == (530, 2, 1.8, 0.5)
    assert (s.alpha1, s.alpha2, s.rampup_epochs, s.eta, s.omega) == (0.08, 5.0, 50, 0.2, 10.0)
