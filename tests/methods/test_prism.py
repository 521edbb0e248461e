"""Prism as a method: planted classes, settings, calibration, view weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova import fitting
from nodenova.encoders.prism import lda
from nodenova.encoders.prism.calibration import (
    TEMPERATURE,
    VIEW_WEIGHT_L2,
    calibrate_temperature,
    learn_view_scale,
)
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.encoders.prism.lda import LDASettings
from nodenova.errors import SettingError
from nodenova.methods import get_method
from nodenova.nn import statistics
from nodenova.nn.kmeans import cluster, subsampled_kmeans
from nodenova.nn.seeding import repeatable


def planted(**options) -> nova.LabelledGraph:
    return nova.synthetic(**({"nodes": 400, "classes": 6, "words": 300, "seed": 1} | options))


def test_planted_classes_are_found() -> None:
    old, new, exam = nova.split(planted(), old=[0, 1, 2])
    scores = nova.grade(nova.discover(nova.fit(old), new), exam).scores("block")
    assert scores["old"] > 90
    assert scores["new"] > 90


def test_the_head_is_the_gaussian_classifier_with_the_pooled_shrunk_covariance(monkeypatch) -> None:
    """The formula of the docstring, written out with dense matrices in NumPy.

    With all factors the two are equal.
    """
    monkeypatch.setattr(statistics, "FACTORS", 10_000)
    monkeypatch.setattr(fitting, "learn_view_scale", lambda *_: torch.linspace(0.2, 1.5, 7))
    old, new, exam = nova.split(planted(nodes=200), old=[0, 1, 2])
    method = nova.Prism(refit=False)
    model = nova.discover(nova.fit(old, prior=30.0), new, method, seed=4)
    g = model.frozen_encoder()
    used = g.spec.multirank.nearest((6, 48))
    scale = model.memory.classes.view_scale.repeat_interleave(sum(used.ranks))
    u = (used(g(old.graph)) * scale).double().numpy()
    with repeatable(4, "discover-1"):
        groups = cluster(torch.from_numpy(u[new.ids]).float(), 3, method.restarts).numpy()
    ids, y = np.concatenate([old.train_ids, new.ids]), np.concatenate([old.train_y, 3 + groups])
    mean = np.stack([u[ids][y == c].mean(0) for c in range(6)])
    residual = u[ids] - mean[y]
    is_new = y >= 3
    dof_old, dof_new = (~is_new).sum() - 3, is_new.sum() - 3
    share = min(1.0, dof_old * 3 / 3 / dof_new)
    weight = np.where(is_new, share, 1.0)
    dof = dof_old + share * dof_new
    scatter = (residual * weight[:, None]).T @ residual / dof
    s = 30.0 / (30.0 + dof)
    covariance = (1 - s) * scatter + s * np.trace(scatter) / len(scatter) * np.eye(len(scatter))
    w = np.linalg.solve(covariance, mean.T)
    logits = (u @ w - 0.5 * (mean.T * w).sum(0)) / float(model.memory.classes.temperature)
    expected = np.exp(logits - logits.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    assert np.abs(model.predict_proba(exam.graph) - expected).max() < 1e-3


@pytest.mark.parametrize("chunk", [65536, 37])
def test_the_refitted_head_is_the_ridge_regression_of_what_all_nodes_were_given(
    monkeypatch, chunk: int
) -> None:
    """The formula written out in NumPy.

    The logits are its fit, stretched, however many nodes are taken at once.
    """
    monkeypatch.setattr(lda, "CHUNK", chunk)
    monkeypatch.setattr(fitting, "learn_view_scale", lambda *_: torch.linspace(0.2, 1.5, 7))
    old, new, exam = nova.split(planted(nodes=200), old=[0, 1, 2])
    fitted = nova.fit(old)
    before = nova.discover(fitted, new, nova.Prism(refit=False), seed=4)
    after = nova.discover(fitted, new, nova.Prism(ridge=5.0, n_resamples=0), seed=4)
    head = after.head()
    z = after.frozen_encoder()(exam.graph)
    scale = after.memory.classes.view_scale.repeat_interleave(sum(head.multirank.ranks))
    u = (head.multirank(z) * scale).double().numpy()
    p = before.predict_proba(exam.graph).astype(float)
    hold = 5.0 * (u**2).sum(1).mean() * np.eye(u.shape[1])
    fit = u @ np.linalg.solve(u.T @ u + hold, u.T @ (p - p.mean(0))) + p.mean(0)
    logits = head(z).detach().double().numpy()
    tau = (logits * fit).sum() / (fit * fit).sum()
    assert np.abs(logits / tau - fit).max() < 1e-4

    def loss(stretch: float) -> float:
        return float(
            torch.nn.functional.cross_entropy(torch.from_numpy(stretch * fit), torch.from_numpy(p))
        )

    assert loss(tau) < min(loss(0.9 * tau), loss(1.1 * tau))


def test_groupings_of_parts_are_numbered_alike_and_leave_no_group_empty() -> None:
    torch.manual_seed(0)
    y = torch.arange(120) % 4
    rows = torch.eye(4)[y] * 10 + torch.randn(120, 4)
    groups = cluster(rows, 4)
    others = subsampled_kmeans(rows, groups, 4, times=5)
    assert len(others) == 5
    for other in others:  # the groups are far apart, so every part shows the same ones
        assert torch.equal(other, groups)
    torch.manual_seed(0)
    vague = subsampled_kmeans(torch.randn(40, 6), torch.arange(40) % 6, 6, times=8)
    assert vague
    assert all(len(other.unique()) == 6 for other in vague)
    assert any(not torch.equal(vague[0], other) for other in vague)


def test_rows_too_alike_to_be_grouped_again_are_left_alone() -> None:
    alike = torch.eye(3)[torch.tensor([0, 0, 0, 0, 0, 1])]
    assert subsampled_kmeans(alike, torch.tensor([0, 0, 0, 1, 1, 2]), 3, times=4) == []


def test_what_several_groupings_say_is_averaged() -> None:
    old, new, exam = nova.split(planted(nodes=300, words=60), old=[0, 1, 2])
    fitted = nova.fit(old)
    one, many = (
        nova.discover(fitted, new, nova.Prism(n_resamples=n)).predict_proba(exam.graph)
        for n in (0, 12)
    )
    assert not np.array_equal(one, many)
    assert (one.argmax(1) == many.argmax(1)).mean() > 0.8


@pytest.mark.parametrize("encoder", ["prism", "gcn", "gat", "sage"])
def test_works_on_every_encoder_and_for_one_new_class(encoder: str) -> None:
    old, new, exam = nova.split(planted(classes=3, nodes=150), old=[0, 1])
    settings = {} if encoder == "prism" else {"epochs": 5, "hidden": 8}
    model = nova.discover(nova.fit(old, encoder, **settings), new, nova.Prism())
    assert len(model.classes) == 3
    assert nova.grade(model, exam).confusion.sum() == len(exam.ids)


def test_stages_and_saving(tmp_path) -> None:
    old, news, exams = nova.split_stages(planted(), [0, 1], [[2, 3], [4, 5]])
    model = nova.fit(old)
    for new in news:
        model = nova.discover(model, new, nova.Prism())
    assert model.classes_per_stage == (2, 2, 2)
    assert nova.grade(model, exams[1]).scores()["all"] > 85
    model.save(tmp_path / "m")
    again = nova.load_model(tmp_path / "m")
    assert np.array_equal(model.predict_proba(exams[1].graph), again.predict_proba(exams[1].graph))
    assert nova.discover(again, news[1], nova.Prism()).classes_per_stage == (2, 2, 2, 2)


def test_a_model_keeps_no_node_of_phase_1() -> None:
    old, _, _ = nova.split(planted(nodes=333, words=207), old=[0, 1], per_class=19)
    model = nova.fit(old)
    tensors = [*model.frozen_encoder().state_dict().values(), *model.memory.tensors().values()]
    assert not {333, len(old.train_ids)} & {size for tensor in tensors for size in tensor.shape}


def test_a_class_with_two_nodes_an_isolated_node_and_visibility() -> None:
    data = planted(nodes=150, classes=4)
    y = np.where((data.y == 3) & (np.cumsum(data.y == 3) > 2), -1, data.y)
    edges = data.graph.edge_index[:, (data.graph.edge_index != 5).all(axis=0)]
    small = replace(data, y=y, graph=nova.Graph.of(data.graph.x, edges))
    for visibility in ("transductive", "inductive"):
        old, new, exam = nova.split(small, old=[0, 1, 2], setting=visibility)
        model = nova.discover(nova.fit(old), new)
        assert np.isfinite(model.predict_proba(exam.graph)).all()


def test_bad_settings() -> None:
    for name in ("rank_low", "rank_high", "prior"):
        with pytest.raises(SettingError, match=f"{name} must be positive"):
            nova.fit(nova.split(planted(), old=[0, 1])[0], **{name: 0})
    with pytest.raises(SettingError, match="restarts must be at least 1"):
        nova.Prism(restarts=0)


def test_calibration_follows_how_well_held_out_nodes_are_told_apart() -> None:
    """Classes that overlap want a higher temperature; too few nodes give the default."""
    y = torch.arange(80) % 2
    spec = nova.fit(nova.split(planted(), old=[0, 1])[0]).frozen_encoder().spec
    noise = torch.randn(80, spec.hidden, generator=torch.Generator().manual_seed(0))
    apart = noise.clone()
    apart[:, 0] += 40.0 * y
    together = noise.clone()
    together[:, 0] += 0.5 * y
    even, read, lda = torch.ones(spec.views), spec.multirank, LDASettings()
    warm = calibrate_temperature(read, together, y, 2, even, lda)
    assert warm > calibrate_temperature(read, apart, y, 2, even, lda)
    assert calibrate_temperature(read, noise[:6], y[:6], 2, even, lda) == TEMPERATURE


def test_the_temperature_is_calibrated_for_the_prior_it_is_used_with() -> None:
    old, new, _ = nova.split(planted(words=60, topic_share=0.3), old=[0, 1, 2])
    models = [nova.fit(old, prior=prior) for prior in (5.0, 5000.0)]
    few, many = (float(model.memory.classes.temperature) for model in models)
    assert few != many
    found = nova.discover(models[0], new, nova.Prism(restarts=2, n_resamples=0))
    assert found.lda.prior == 5.0
    assert float(found.memory.classes.temperature) == few


def test_settings_of_phase_1_are_refused_in_phase_2() -> None:
    with pytest.raises(SettingError, match="prior"):
        get_method("prism", {"prior": "30"})


def test_a_view_weighs_what_it_tells_of_pairs() -> None:
    """Only one view knows the classes; and no weights near are better.

    In the formula written out pair by pair.
    """
    spec = replace(
        nova.fit(nova.split(planted(), old=[0, 1])[0]).frozen_encoder().spec, view_size=8
    )
    z, y = (
        torch.randn(30, spec.hidden, generator=torch.Generator().manual_seed(0)),
        torch.arange(30) % 3,
    )
    z[torch.arange(30), 2 * spec.view_size + y] += 3.0
    weight = learn_view_scale(spec.multirank, z, y, 3, spec.prior_weight, LDASettings()).square()
    assert weight.argmax() == 2
    assert weight[2] > 2
    assert (weight >= 0).all()
    assert weight.mean() == pytest.approx(1.0, abs=1e-5)
    used = spec.multirank.nearest((3, 24))
    unit = used(z).double().reshape(30, spec.views, -1)

    def loss(weight: np.ndarray, bias: float) -> float:
        total = {True: [], False: []}
        for i in range(30):
            for j in range(i):
                same = bool(y[i] == y[j])
                said = bias + sum(
                    w * float(unit[i, v] @ unit[j, v]) / len(used.ranks)
                    for v, w in enumerate(weight)
                )
                total[same].append(np.log1p(np.exp(-said if same else said)))
        likely = weight / np.array(spec.prior_weight)  # in multiples of what is expected of a view
        pull = VIEW_WEIGHT_L2 / 9 * ((likely - likely.mean()) ** 2).sum()
        return np.mean(total[True]) / 2 + np.mean(total[False]) / 2 + pull

    # Weights are kept up to a factor: find the factor and the bias that suit them; then no other
    # weight is better.
    options = [
        (loss(a * weight.double().numpy(), b), a, b)
        for a in np.linspace(0.5, 4, 8)
        for b in np.linspace(-3, 0, 7)
    ]
    least, factor, bias = min(options)
    for view in range(spec.views):
        for step in (-0.7, 0.7):
            changed = factor * weight.double().numpy()
            changed[view] = max(changed[view] + step, 0.0)
            assert loss(changed, bias) > least - 0.01


def test_views_weigh_what_is_expected_when_there_is_nothing_to_learn_from() -> None:
    spec = nova.fit(nova.split(planted(), old=[0, 1])[0]).frozen_encoder().spec
    z = torch.randn(6, spec.hidden, generator=torch.Generator().manual_seed(0))
    expected = torch.tensor([1.0] * 6 + [0.5]) * 7 / 6.5
    # One class; no two nodes of one class.
    for y in (
        torch.zeros(6, dtype=torch.long),
        torch.arange(6),
    ):
        n, read = int(y.max()) + 1, spec.multirank
        scale = learn_view_scale(read, z, y, n, spec.prior_weight, LDASettings())
        assert torch.allclose(scale.square(), expected)


def test_whitening_takes_the_spread_within_classes_out_and_keeps_leading_columns_leading() -> None:
    graph = planted().graph
    views = PrismEncoder.fit(graph, torch.device("cpu"))
    z, y = views(graph)[:60], torch.arange(60) % 3
    white, z_white = views.whiten(z, y)
    assert torch.allclose(z_white, white(graph)[:60], atol=1e-3)
    size = views.spec.view_size
    part, got = z[:, :size].double(), white(graph)[:60, :size].double()
    centre = torch.stack([part[y == c].mean(0) for c in range(3)])
    within = (part - centre[y]).t() @ (part - centre[y]) / 57
    soft = within.diagonal().cumsum(0) / torch.arange(1, size + 1)
    for r in (3, 10, size):
        # Lengths in the first r columns are Mahalanobis lengths of the first r columns.
        expected = (
            part[:, :r] @ torch.linalg.inv((within + soft.diag())[:r, :r]) * part[:, :r]
        ).sum(1)
        assert torch.allclose(got[:, :r].square().sum(1), expected, rtol=1e-2)


@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage"])
def test_a_gnn_distilled_from_prism_says_what_prism_says(encoder: str) -> None:
    old, new, exam = nova.split(planted(), old=[0, 1, 2])
    fitted = nova.fit(old)
    teacher = nova.discover(fitted, new).predict(exam.graph)
    model = nova.discover(fitted, new, nova.DistilledGNN(encoder=encoder, hidden=16, epochs=60))
    assert model.frozen_encoder().spec.name == encoder
    assert (model.predict(exam.graph) == teacher).mean() > 0.9


def test_unsure_nodes_are_those_with_a_low_probability() -> None:
    old, new, exam = nova.split(planted(topic_share=0.1, homophily=0.3), old=[0, 1, 2])
    model = nova.discover(nova.fit(old), new)
    sure, top = (
        model.predict(exam.graph, min_confidence=0.6),
        model.predict_proba(exam.graph).max(axis=1),
    )
    assert (sure == -1).any()
    assert np.array_equal(sure == -1, top < 0.6)
    assert np.array_equal(sure[top >= 0.6], model.predict(exam.graph)[top >= 0.6])


@pytest.mark.parametrize("setting", [{"n_resamples": 1.5}, {"restarts": True}, {"restarts": "20"}])
def test_a_count_that_is_not_a_whole_number_is_named(setting: dict) -> None:
    (name,) = setting
    with pytest.raises(SettingError, match=f"{name} must be a whole number"):
        nova.Prism(**setting)
