"""Phase 1: which head it trains, when it stops, what it says of itself, and what it refuses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import nodenova as nova
from nodenova.encoders.gnn import GNN, GNNSpec
from nodenova.errors import SettingError
from nodenova.fitting import settings_from_text
from nodenova.model.model import linear_head, trained_head
from nodenova.nn.heads import LinearHead, UnitLinearHead
from nodenova.nn.seeding import repeatable


@pytest.fixture(scope="module")
def old(tasks) -> nova.OldTask:
    return tasks[0]


def without_validation(old: nova.OldTask) -> nova.OldTask:
    none = np.empty(0, dtype=np.int64)
    return dataclasses.replace(old, val_ids=none, val_y=none)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [({}, LinearHead), ({"head": "linear"}, LinearHead), ({"head": "cosine"}, UnitLinearHead)],
)
@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage"])
def test_the_head_is_plain_unless_told_otherwise(
    old, encoder: str, settings: dict[str, str], kind: type
) -> None:
    model = nova.fit(old, encoder, hidden=4, heads=2, epochs=2, **settings)
    assert type(model.head()) is kind
    assert model.stages[0].settings["head"] == settings.get("head", "linear")


def test_it_is_adam_on_the_cross_entropy_of_the_plain_head(old) -> None:
    graph, train, y = old.graph, torch.from_numpy(old.train_ids), torch.from_numpy(old.train_y)
    model = nova.fit(without_validation(old), "gcn", hidden=4, epochs=5, seed=3)
    with repeatable(3, "fit", 1):
        g, linear = GNN(GNNSpec("gcn", graph.num_features, hidden=4)), torch.nn.Linear(4, 2)
        optimizer = torch.optim.Adam(
            [*g.parameters(), *linear.parameters()], lr=0.01, weight_decay=5e-4
        )
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(linear(g(graph)[train]), y)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    assert model.stages[0].history == {"ce": losses}
    assert torch.equal(model.head().linear.weight, linear.weight)
    assert torch.equal(model.frozen_encoder().convs[0].lin.weight, g.convs[0].lin.weight)


def test_without_early_stopping_it_ends_in_the_last_epoch(old) -> None:
    settings = {"hidden": 4, "epochs": 60, "patience": 3}
    stopped, last = (
        nova.fit(old, "gcn", early_stopping=early, **settings) for early in (True, False)
    )
    assert len(stopped.stages[0].history["ce"]) < 60
    assert len(last.stages[0].history["ce"]) == 60
    alone = nova.fit(without_validation(old), "gcn", **settings)
    assert last.predict_proba(old.graph).tobytes() == alone.predict_proba(old.graph).tobytes()
    assert last.predict_proba(old.graph).tobytes() != stopped.predict_proba(old.graph).tobytes()
    assert (
        stopped.stages[0].settings["early_stopping"],
        last.stages[0].settings["early_stopping"],
    ) == (True, False)


def test_with_early_stopping_it_ends_in_the_epoch_that_was_best_on_validation_nodes(old) -> None:
    """Each epoch's model is what as many epochs without stopping give.

    The best of them by accuracy, then loss, is kept.
    """
    some = np.arange(len(old.val_y)) % 3 == 0
    # They disagree with what is learned.
    old = dataclasses.replace(old, val_y=np.where(some, 1 - old.val_y, old.val_y))

    def score(model: nova.Model) -> tuple[float, float]:
        p = model.predict_proba(old.graph)[old.val_ids]
        return float((p.argmax(axis=1) == old.val_y).mean()), float(
            np.log(p[np.arange(len(p)), old.val_y]).mean()
        )

    ends = [
        nova.fit(old, "gcn", hidden=4, lr=0.1, epochs=epochs, early_stopping=False)
        for epochs in range(1, 16)
    ]
    best = max(ends, key=score)
    assert best is not ends[-1]
    kept = nova.fit(old, "gcn", hidden=4, lr=0.1, epochs=15)
    assert kept.predict_proba(old.graph).tobytes() == best.predict_proba(old.graph).tobytes()


LDA = {"rank_low": 1.0, "rank_high": 8.0, "prior": 500.0}


def test_what_it_was_is_in_the_record(old) -> None:
    gcn, gat = (
        nova.fit(old, encoder, hidden=4, heads=2, epochs=1).stages[0].settings
        for encoder in ("gcn", "gat")
    )
    shape = {"hidden": 4, "layers": 2, "dropout": 0.5, "input_dropout": 0.0, "row_normalize": True}
    training = {
        "epochs": 1,
        "lr": 0.01,
        "weight_decay": 5e-4,
        "patience": 100,
        "early_stopping": True,
    }
    assert gcn == shape | training | {"head": "linear", "prototype_passes": 0} | LDA
    assert set(gat) - set(gcn) == {"heads", "attention"}
    assert gat["attention"] == "v1"


def test_the_released_shape_of_gat_can_be_asked_for(old) -> None:
    model = nova.fit(
        old, "gat", hidden=4, heads=2, epochs=2, attention="v2", dropout=0.6, input_dropout=0.6
    )
    spec = model.frozen_encoder().spec
    assert (spec.attention, spec.dropout, spec.input_dropout) == ("v2", 0.6, 0.6)
    assert model.predict_proba(old.graph).tobytes() == model.predict_proba(old.graph).tobytes()


def test_it_reads_the_head_of_phase_1_as_phase_2_asks(old) -> None:
    plain, cosine = (
        nova.fit(old, "gcn", hidden=4, epochs=2, head=head) for head in ("linear", "cosine")
    )
    assert (
        type(trained_head(plain, "sword")) is type(trained_head(cosine, "sword")) is UnitLinearHead
    )
    assert torch.equal(trained_head(plain, "sword").linear.weight, plain.head().linear.weight)
    assert (
        trained_head(plain, "sword").temperature == trained_head(cosine, "sword").temperature == 0.1
    )
    assert type(linear_head(plain, "sword")) is LinearHead
    assert type(linear_head(cosine, "sword")) is UnitLinearHead
    for read in (trained_head, linear_head):
        with pytest.raises(
            SettingError,
            match="sword needs an encoder that can be trained: fit with gcn",
        ):
            read(nova.fit(old), "sword")


def test_settings_in_text_have_the_type_of_their_default() -> None:
    texts = {
        "head": "cosine",
        "layers": "4",
        "early_stopping": "false",
        "weight_decay": "0.002",
        "dropout": "0",
    }
    read = settings_from_text(texts)
    assert read == {
        "head": "cosine",
        "layers": 4,
        "early_stopping": False,
        "weight_decay": 0.002,
        "dropout": 0.0,
    }
    assert isinstance(read["dropout"], float)
    with pytest.raises(SettingError, match=r"epochs must be int \(like 200\), it is 'many'"):
        settings_from_text({"epochs": "many"})
    with pytest.raises(
        SettingError, match=r"early_stopping must be bool \(like True\), it is 'maybe'"
    ):
        settings_from_text({"early_stopping": "maybe"})
    with pytest.raises(
        SettingError,
        match="unknown setting of fit 'num_features'; known: attention, batch, dropout",
    ):
        settings_from_text({"num_features": "3"})


@pytest.mark.parametrize(
    ("encoder", "settings", "sentence"),
    [
        ("gcn", {"head": "sigmoid"}, "unknown head 'sigmoid'; known: cosine, linear"),
        ("gcn", {"head": None}, "unknown head 'None'; known: cosine, linear"),
        ("gcn", {"prototype_passes": -1}, "prototype_passes must not be negative, it is -1"),
        ("gcn", {"epochs": 0}, "epochs must be at least 1, it is 0"),
        ("gcn", {"attention": "v2"}, "attention is a setting of gat, the encoder is gcn"),
        ("gat", {"attention": "v3"}, "unknown attention 'v3'; known: v1, v2"),
        ("sage", {"input_dropout": 1.0}, "input_dropout must be at least 0 and below 1, it is 1.0"),
        (
            "gcn",
            {"row_normalize": False},
            "unknown setting of fit 'row_normalize'; known: attention, batch, dropout",
        ),
        (
            "prism",
            {"head": "linear"},
            r"head: only for encoders that are trained, and prism is computed",
        ),
        ("gnc", {}, "unknown encoder 'gnc'; known: gat, gcn, prism, sage"),
    ],
)
def test_what_it_refuses(old, encoder: str, settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        nova.fit(old, encoder, **settings)
