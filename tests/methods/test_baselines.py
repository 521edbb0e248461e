"""AutoNovel, ResTune, NCL, DTC and k-means on a frozen encoder.

At their edges, and where they should find something.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.methods._centers import start_centers
from nodenova.methods._two_heads import match_logit_scale, nearest_mean, new_head
from nodenova.nn.class_memory import Memory
from nodenova.nn.heads import UnitLinearHead, as_nearest_mean
from nodenova.nn.multirank import MultiRank

FAST: dict[str, Any] = {
    "autonovel": nova.AutoNovel(epochs=4),
    "restune": nova.ResTune(epochs=7),
    "ncl": nova.NCL(epochs=4),
    "dtc": nova.DTC(epochs=7, warmup=2),
    "frozen_kmeans": nova.FrozenKMeans(),
}
every_method = pytest.mark.parametrize("name", list(FAST))


@every_method
def test_another_seed_gives_another_result(name: str, fitted, tasks) -> None:
    a, b = (nova.discover(fitted, tasks[1], FAST[name], seed=seed) for seed in (3, 4))
    # Drawn with dropout, by all of them.
    assert not np.array_equal(a.memory.replay.mean, b.memory.replay.mean)


@pytest.mark.parametrize("name", ["autonovel", "restune", "ncl", "dtc"])
def test_of_one_new_class_nothing_is_learnt_and_the_encoder_stays(name: str, labelled) -> None:
    old, new, _ = nova.split(labelled, [0, 1, 2])
    fitted = nova.fit(old, "gcn", hidden=8, epochs=20)
    model = nova.discover(fitted, new, FAST[name])
    assert model.stages[-1].history == {}
    assert np.array_equal(model.embed(new.graph), fitted.embed(new.graph))


@every_method
def test_only_what_is_around_the_new_nodes_is_trained_on(name: str, labelled) -> None:
    """Two more such graphs beside it, which no new node reaches, change not a bit.

    Not even dropout is drawn there.
    """
    alone = labelled.graph
    edges = np.concatenate([alone.edge_index + 120 * part for part in range(3)], axis=1)
    beside = nova.Graph.of(np.tile(alone.x.toarray(), (3, 1)), edges)
    old, new, _ = nova.split(labelled, [0, 1])
    fitted = nova.fit(old, "gcn", hidden=8, epochs=5)
    a, b = (
        nova.discover(fitted, nova.NewTask(graph, new.ids, 2), FAST[name])
        for graph in (alone, beside)
    )
    assert np.array_equal(a.predict_proba(alone), b.predict_proba(alone))


@every_method
def test_saving_keeps_every_answer(name: str, fitted, tasks, tmp_path) -> None:
    new = tasks[1]
    model = nova.discover(fitted, new, FAST[name])
    model.save(tmp_path / "m")
    again = nova.load_model(tmp_path / "m")
    assert np.array_equal(model.predict_proba(new.graph), again.predict_proba(new.graph))
    assert np.array_equal(model.predict_new(new.graph), again.predict_new(new.graph))


TERMS = {
    "autonovel": {"pairwise": "pairwise", "omega": "consistency"},
    "restune": {
        "clustering": "clustering",
        "consistency": "consistency",
        "pairwise": "pairwise",
        "alpha": "distill",
    },
    "ncl": {"pairwise": "pairwise", "omega": "consistency", "contrast": "contrast"},
    "dtc": {"clustering": "clustering", "omega": "consistency"},
}


@pytest.mark.parametrize(
    ("name", "weight"), [(name, weight) for name, weights in TERMS.items() for weight in weights]
)
def test_a_zero_weight_removes_its_term(name: str, weight: str, fitted, tasks) -> None:
    history = nova.discover(fitted, tasks[1], FAST[name]).stages[-1].history
    assert set(history) == set(TERMS[name].values())
    assert all(
        len(values) == FAST[name].epochs and np.isfinite(values).all()
        for values in history.values()
    )
    without = (
        nova.discover(fitted, tasks[1], replace(FAST[name], **{weight: 0.0})).stages[-1].history
    )
    assert set(without) == set(history) - {TERMS[name][weight]}


@pytest.mark.parametrize("name", list(TERMS))
def test_without_any_weight_the_encoder_stays(name: str, fitted, tasks) -> None:
    model = nova.discover(fitted, tasks[1], replace(FAST[name], **dict.fromkeys(TERMS[name], 0.0)))
    assert np.array_equal(model.embed(tasks[1].graph), fitted.embed(tasks[1].graph))


@every_method
def test_strict_keeps_the_untrained_rows_and_never_says_new(name: str, fitted, tasks) -> None:
    new = tasks[1]
    model = nova.discover(fitted, new, replace(FAST[name], new_rows="untrained"))
    assert model.predict(new.graph).max() < 2
    assert (model.head().linear.bias[2:] == fitted.head().linear.bias.min() - 1.0).all()


@every_method
def test_joining_leaves_the_old_rows_alone(name: str, fitted, tasks) -> None:
    head = nova.discover(fitted, tasks[1], replace(FAST[name], new_rows="concatenated")).head()
    assert torch.equal(head.linear.weight[:2], fitted.head().linear.weight)
    assert torch.equal(head.linear.bias[:2], fitted.head().linear.bias)


@every_method
def test_concatenated_finds_planted_classes_and_strict_restune_keeps_the_old_ones(
    name: str,
) -> None:
    """Classes that are easy to tell apart.

    AutoNovel, NCL and DTC hold nothing old, so nothing is asked of their Old.
    """
    easy = nova.synthetic(
        nodes=300, classes=4, words=80, degree=10, homophily=0.95, topic_share=0.9
    )
    old, new, exam = nova.split(easy, [0, 1])
    fitted = nova.fit(old, "gcn", hidden=16, epochs=50)

    def scores(new_rows: str) -> dict[str, float]:
        return nova.grade(
            nova.discover(fitted, new, type(FAST[name])(new_rows=new_rows)), exam
        ).scores("block")

    concatenated, strict = scores("concatenated"), scores("untrained")
    assert concatenated["new"] > 20
    assert concatenated["new_n"] >= 50
    assert strict["new"] == 0
    if name in {"restune", "frozen_kmeans"}:
        assert strict["old"] > 90
    if name == "frozen_kmeans":
        assert concatenated["old"] > 90


def test_restune_keeps_the_old_classes_unless_told_otherwise() -> None:
    assert nova.ResTune().new_rows == "untrained"
    assert {
        nova.AutoNovel().new_rows,
        nova.NCL().new_rows,
        nova.DTC().new_rows,
        nova.FrozenKMeans().new_rows,
    } == {"concatenated"}


def test_dtc_warms_up_on_the_first_target_without_consistency(fitted, tasks) -> None:
    history = nova.discover(fitted, tasks[1], nova.DTC(epochs=6, warmup=4)).stages[-1].history
    assert history["consistency"][:4] == [0.0] * 4
    assert min(history["consistency"][4:]) > 0


def test_restune_trains_the_last_layer_only_and_distillation_holds_the_old_answers(
    fitted, tasks
) -> None:
    new = tasks[1]

    def moved(alpha: float) -> tuple[nova.Model, float]:
        model = nova.discover(fitted, new, nova.ResTune(epochs=200, alpha=alpha))
        before, after = fitted.predict_proba(new.graph), model.predict_proba(new.graph)[:, :2]
        return model, float(np.abs(after / after.sum(axis=1, keepdims=True) - before).mean())

    (held, with_it), (_, without) = moved(1.0), moved(0.0)
    assert with_it < without
    was, now = fitted.frozen_encoder().state_dict(), held.frozen_encoder().state_dict()
    same = {key for key in was if torch.equal(was[key], now[key])}
    assert same == {key for key in was if key.startswith("convs.0.")}


@pytest.mark.parametrize("encoder", ["gcn", "sage"])
def test_restune_s_residual_is_where_the_old_head_does_not_look(encoder: str, tasks) -> None:
    fitted = nova.fit(tasks[0], encoder, hidden=8, epochs=5)
    model = nova.discover(fitted, tasks[1], nova.ResTune(epochs=10))
    was, now = (torch.from_numpy(m.embed(tasks[1].graph)) for m in (fitted, model))
    w = fitted.head().linear.weight.detach()
    assert float((now - was).abs().max()) > 0.01
    assert torch.allclose(now @ w.t(), was @ w.t(), atol=1e-5)


def test_restune_without_room_for_a_residual_leaves_the_encoder(tasks) -> None:
    fitted = nova.fit(tasks[0], "gcn", hidden=2, epochs=5)
    model = nova.discover(fitted, tasks[1], nova.ResTune(epochs=10))
    assert np.allclose(model.embed(tasks[1].graph), fitted.embed(tasks[1].graph), atol=1e-6)


def test_dtc_s_head_decides_as_its_centres_do(fitted, tasks) -> None:
    new = tasks[1]
    model = nova.discover(fitted, new, FAST["dtc"])
    z, mu = torch.from_numpy(model.embed(new.graph)), model.novel_head().weight.detach()
    assert np.array_equal(
        model.predict_new(new.graph), 2 + torch.cdist(z, mu).argmin(dim=1).numpy()
    )


def test_centres_are_means_of_groups_and_sigma_is_their_spread() -> None:
    z = torch.tensor([[0.0, 0.0], [0.0, 2.0], [9.0, 0.0], [9.0, 2.0]])
    centers = start_centers(z, 2, restarts=3)
    assert sorted(centers.h_u.weight.tolist()) == [[0.0, 1.0], [9.0, 1.0]]
    assert centers.sigma == pytest.approx(1.0)
    assert start_centers(z[:2], 2, restarts=3).sigma > 0


def test_the_length_of_z_does_not_matter_to_dtc() -> None:
    """The length of z means nothing to a head on z/|z|: sigma takes it out of Student's t."""
    z = (
        torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
        + 3 * torch.eye(4)[torch.arange(12) % 2]
    )

    def assigned(z: torch.Tensor) -> torch.Tensor:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return start_centers(z, 2, restarts=5).assign(z)

    assert torch.allclose(assigned(z), assigned(100 * z), atol=1e-4)


@pytest.mark.parametrize("name", ["autonovel", "ncl"])
def test_h_u_and_the_joint_head_agree_on_which_new_class(name: str, fitted, tasks) -> None:
    new = tasks[1]
    model = nova.discover(fitted, new, FAST[name])
    assert np.array_equal(
        model.predict_new(new.graph), 2 + model.predict_proba(new.graph)[:, 2:].argmax(axis=1)
    )


@pytest.mark.parametrize("name", ["autonovel", "restune", "ncl"])
def test_pairs_of_a_sample_of_the_new_nodes(name: str, fitted, tasks) -> None:
    sampled = nova.discover(fitted, tasks[1], replace(FAST[name], pair_nodes=7)).stages[-1].history
    assert np.isfinite(sampled["pairwise"]).all()
    assert (
        sampled["pairwise"]
        != nova.discover(fitted, tasks[1], FAST[name]).stages[-1].history["pairwise"]
    )


def test_ncl_s_hard_negatives_make_the_contrast_harder(fitted, tasks) -> None:
    first = replace(FAST["ncl"], epochs=1)
    with_them = nova.discover(fitted, tasks[1], first).stages[-1].history["contrast"][0]
    without = (
        nova.discover(fitted, tasks[1], replace(first, hard=0.0)).stages[-1].history["contrast"][0]
    )
    assert with_them > without


def test_a_nearest_mean_head_is_read_back_and_new_classes_get_rows_of_the_same_kind() -> None:
    generator = torch.Generator().manual_seed(0)
    z, y = torch.randn(60, 6, generator=generator), torch.arange(60) % 5
    z = z + 3 * torch.randn(5, 6, generator=generator)[y]
    old, new = (
        Memory.of(z[part], y[part] % 3, n, MultiRank.whole(6)).classes
        for part, n in ((y < 3, 3), (y >= 3, 2))
    )
    kappa, v, beta = 2.5, torch.randn(6, generator=generator), 0.3
    head = UnitLinearHead.on_sphere(6, 3)
    with torch.no_grad():
        head.linear.weight.copy_(kappa * old.center + v)
        head.linear.bias.copy_(beta - kappa / 2 * old.center.square().sum(dim=1))
    found = as_nearest_mean(head.linear.weight, head.linear.bias, old.center)
    # The bias is fitted after the scale, so all three come back when the head is of this form.
    for ours, theirs in zip(found, (torch.tensor(kappa), v, torch.tensor(beta)), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
    rows, bias = nearest_mean(head, old.center, new.center)
    centre = torch.cat([old.center, new.center])
    logits = torch.cat([head.linear(centre), centre @ rows.t() + bias], dim=1)
    assert (logits.argmax(dim=1) == torch.arange(5)).all()


def test_a_linear_new_head_is_as_loud_at_home_as_the_old_one() -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(40, 6, generator=generator)
    old, new = (
        Memory.of(part, torch.arange(20) % 2, 2, MultiRank.whole(6)).classes
        for part in (z[:20], z[20:])
    )
    head = UnitLinearHead.on_sphere(6, 2)
    h_u = new_head(head, 2)
    bias = match_logit_scale(head, old.center, new.center, h_u.linear.weight)
    assert bias.shape == ()  # one number for all, so which of them is the likeliest stays
    at_home = (h_u.linear.weight * new.center).sum(dim=1) + bias
    assert torch.allclose(head.linear(old.center).diagonal().mean(), at_home.mean(), atol=1e-6)


BAD = [
    ("autonovel", {"k": 0}, "k must be at least 1, it is 0"),
    ("autonovel", {"omega": -1.0}, "omega must not be negative"),
    ("restune", {"temperature": 0.0}, "temperature must be positive"),
    ("restune", {"update": 0}, "update must be at least 1"),
    ("ncl", {"tau": 0.0}, "tau must be positive"),
    ("ncl", {"lam": 1.0}, "lam is a cosine"),
    ("ncl", {"alpha": 1.5}, "alpha is a share"),
    ("ncl", {"hard": float("nan")}, "hard must not be negative"),
    ("dtc", {"alpha": 0.0}, "alpha must be positive"),
    ("dtc", {"restarts": 0}, "restarts must be at least 1"),
    ("frozen_kmeans", {"restarts": 0}, "restarts must be at least 1"),
    *(
        (
            name,
            {"new_rows": "both"},
            "new_rows must be one of (concatenated, untrained|untrained, concatenated), "
            "it is 'both'",
        )
        for name in FAST
    ),
    *((name, {"epochs": 0}, "epochs must be at least 1") for name in TERMS),
    *((name, {"lr": float("inf")}, "lr must not be negative") for name in TERMS),
]


@pytest.mark.parametrize(("name", "settings", "sentence"), BAD)
def test_bad_settings(name: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        type(FAST[name])(**settings)
