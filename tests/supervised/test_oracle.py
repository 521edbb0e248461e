"""The ceiling: a GNN with all labels, from scratch, stopped on validation nodes of all classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.data.labels import LabelledNewTask
from nodenova.data.splits import labelled_new_task
from nodenova.nn.heads import LinearHead
from nodenova.supervised.entrance import discover_supervised
from nodenova.supervised.oracle import Oracle


@pytest.fixture(scope="module")
def given(labelled) -> LabelledNewTask:
    return labelled_new_task(labelled, [0, 1])


def test_nothing_of_phase_1_is_used_but_the_kind_and_depth_of_its_encoder(tasks, given) -> None:
    """Other weights, another head, hidden size and dropout: the same seed gives the same model."""
    phase_1 = [
        nova.fit(tasks[0], "gcn", epochs=1, seed=0),
        nova.fit(tasks[0], "gcn", epochs=9, seed=5),
        nova.fit(tasks[0], "gcn", epochs=2, head="cosine", hidden=4, dropout=0.1),
    ]
    assert (
        phase_1[0].predict_proba(given.graph).tobytes()
        != phase_1[1].predict_proba(given.graph).tobytes()
    )
    taught = [discover_supervised(model, given, Oracle(epochs=3), seed=2) for model in phase_1]
    for other in taught[1:]:
        assert (
            other.predict_proba(given.graph).tobytes()
            == taught[0].predict_proba(given.graph).tobytes()
        )
        assert other.stages[-1].history == taught[0].stages[-1].history
        assert torch.equal(other.memory.replay.mean, taught[0].memory.replay.mean)
    deeper = (
        discover_supervised(nova.fit(tasks[0], "sage", epochs=1, layers=3), given, Oracle(epochs=3))
        .frozen_encoder()
        .spec
    )
    assert (deeper.name, deeper.layers) == ("sage", 3)


def test_it_is_well_made(fitted, given) -> None:
    model = discover_supervised(fitted, given, Oracle(epochs=3))
    spec = model.frozen_encoder().spec
    assert (spec.hidden, spec.dropout, spec.input_dropout) == (64, 0.8, 0.8)
    assert type(model.head()) is LinearHead
    assert (Oracle().hidden, Oracle().epochs, Oracle().patience) == (64, 400, 100)
    assert (
        discover_supervised(fitted, given, Oracle(epochs=3, hidden=8)).embed(given.graph).shape[1]
        == 8
    )


def test_it_stops_on_validation_nodes_of_all_classes(fitted, given) -> None:
    assert set(given.val_y.tolist()) == {0, 1, 2, 3}
    method = Oracle(epochs=80, patience=5, lr=0.05)
    stopped = discover_supervised(fitted, given, method)
    assert len(stopped.stages[-1].history["ce"]) < 80
    for wrong in (given.val_y < 2, given.val_y >= 2):  # old ones count, and so do new ones
        turned = replace(given, val_y=np.where(wrong, given.val_y ^ 1, given.val_y))
        assert (
            discover_supervised(fitted, turned, method).predict_proba(given.graph).tobytes()
            != stopped.predict_proba(given.graph).tobytes()
        )


def test_it_ends_in_the_epoch_that_was_best_on_them(fitted, given) -> None:
    """Each epoch's model is what as many epochs without validation nodes give.

    The best by accuracy, then loss, is kept.
    """
    none = replace(given, val_ids=given.val_ids[:0], val_y=given.val_y[:0])
    given = replace(
        given, val_y=np.where(np.arange(len(given.val_y)) % 3 == 0, given.val_y ^ 1, given.val_y)
    )

    def score(model: nova.Model) -> tuple[float, float]:
        p = model.predict_proba(given.graph)[given.val_ids]
        return float((p.argmax(axis=1) == given.val_y).mean()), float(
            np.log(p[np.arange(len(p)), given.val_y]).mean()
        )

    ends = [
        discover_supervised(fitted, none, Oracle(epochs=epochs, lr=0.05)) for epochs in range(1, 16)
    ]
    # None stops by itself.
    assert [len(model.stages[-1].history["ce"]) for model in ends] == list(range(1, 16))
    best = max(ends, key=score)
    assert best is not ends[-1]
    kept = discover_supervised(fitted, given, Oracle(epochs=15, lr=0.05))
    # The whole graph here, the part around all nodes there: the same z but for the last digits.
    assert np.allclose(kept.predict_proba(given.graph), best.predict_proba(given.graph), atol=1e-4)


def test_all_labels_train_it(fitted, given) -> None:
    plain = discover_supervised(fitted, given, Oracle(epochs=5))
    for other in (replace(given, y=1 - given.y), replace(given, old_y=1 - given.old_y)):
        assert (
            discover_supervised(fitted, other, Oracle(epochs=5)).stages[-1].history
            != plain.stages[-1].history
        )
    assert plain.stages[-1].sees == (
        "graph",
        "new_ids",
        "new_labels",
        "old_nodes",
        "old_labels",
        "validation",
    )


def test_it_remembers_all_classes_by_its_own_z(fitted, given) -> None:
    model = discover_supervised(fitted, given, Oracle(epochs=5))
    z = model.embed(given.graph)
    for c, ids in ((0, given.old_ids[given.old_y == 0]), (2, given.ids[given.y == 0])):
        assert np.allclose(model.memory.replay.mean[c].numpy(), z[ids].mean(axis=0), atol=1e-5)
