"""Prism's representation against the plain formula."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.encoders.prism.encoder import (
    AVERAGED,
    CENTERING,
    DEPTHS,
    WORD_VIEWS,
    PrismEncoder,
    PrismEncoderSpec,
    word_weights,
)
from nodenova.nn.sparse import gcn_operator

CPU = torch.device("cpu")


def dense_words(graph: nova.Graph, kind: int) -> np.ndarray:
    has = (graph.x.toarray() != 0).astype(float)
    df = np.maximum(has.sum(0), 1)
    if kind == 0:
        return has * df**-0.25 / np.sqrt(np.maximum(has.sum(1, keepdims=True), 1))
    return has * np.log(len(has) / df) ** 2


def test_each_view_is_the_truncated_svd_of_the_smoothed_features() -> None:
    graph = nova.synthetic(nodes=300, classes=4, words=150).graph
    views = PrismEncoder.fit(graph, CPU)
    z = views(graph).numpy()
    size = views.spec.view_size
    assert z.shape == (300, 7 * size)
    smooth = gcn_operator(graph, CPU).csr.to_dense().double().numpy()
    for number, (depth, kind) in enumerate((depth, kind) for depth in DEPTHS for kind in range(2)):
        steps = [np.linalg.matrix_power(smooth, step) for step in range(depth + 1)]
        plain = (np.mean(steps, axis=0) if depth == AVERAGED else steps[-1]) @ dense_words(
            graph, kind
        )
        left, value, _ = np.linalg.svd(plain, full_matrices=False)
        ours = z[:, number * size : (number + 1) * size] + views.shift[number].numpy()
        # Directions with well separated singular values are found one by one, up to their sign.
        top = left[:, :3] * value[:3]
        assert np.abs(np.abs((top * ours[:, :3]).sum(0)) / (value[:3] ** 2) - 1).max() < 0.02
        assert np.allclose(np.linalg.norm(ours, axis=0)[:8], value[:8], rtol=0.05)
        assert np.allclose(views.shift[number], CENTERING * ours.mean(0), atol=1e-4)


def test_a_model_saved_before_there_was_an_average_keeps_its_own_views(tmp_path: Path) -> None:
    graph = nova.synthetic(nodes=120, classes=3, words=150)
    model = nova.fit(nova.split(graph, old=[0, 1])[0])
    model.save(tmp_path / "model")
    path = tmp_path / "model/model.json"
    document = json.loads(path.read_text())
    assert document["encoder"].pop("averaged") is True
    path.write_text(json.dumps(document))
    new, old = (
        m.frozen_encoder()(graph.graph) for m in (model, nova.load_model(tmp_path / "model"))
    )
    size = model.frozen_encoder().spec.view_size
    middle = torch.zeros(new.shape[1], dtype=torch.bool)
    middle[2 * size : 4 * size] = True
    assert torch.equal(new[:, ~middle], old[:, ~middle])
    basis, words = (
        model.frozen_encoder().basis[2],
        torch.from_numpy(dense_words(graph.graph, 0)).float(),
    )
    smooth = gcn_operator(graph.graph, CPU).csr.to_dense()
    shift = model.frozen_encoder().shift[2]
    assert torch.allclose(
        old[:, 2 * size : 3 * size], smooth @ smooth @ words @ basis - shift, atol=1e-4
    )


def test_the_last_view_has_the_principal_components_of_the_bumps_of_counts() -> None:
    graph = nova.synthetic(nodes=300, classes=4, words=150).graph
    views = PrismEncoder.fit(graph, CPU)
    ours = views(graph)[:, WORD_VIEWS * views.spec.view_size :].numpy()
    bumps = views.counts(graph).double().numpy()
    left, value, _ = np.linalg.svd(bumps - bumps.mean(axis=0), full_matrices=False)
    assert np.allclose(np.linalg.norm(ours, axis=0)[:20], value[:20], rtol=1e-3)
    assert np.allclose(np.abs((left[:, 0] * ours[:, 0]).sum()), value[0], rtol=1e-3)
    assert np.allclose(ours.mean(axis=0), 0, atol=1e-5)
    assert not ours[:, bumps.shape[1] :].any()


def test_a_model_saved_before_there_were_counts_has_six_views() -> None:
    graph = nova.synthetic(nodes=120, classes=3, words=60).graph
    seven = PrismEncoder.fit(graph, CPU)
    six = PrismEncoder(PrismEncoderSpec("prism", 60, seven.spec.view_size, views=6, averaged=True))
    six.load_state_dict(
        {
            name: value
            for name, value in seven.state_dict().items()
            if "count" not in name and name != "shift"
        }
        | {"shift": seven.shift[:6]}
    )
    z, y = seven(graph), torch.arange(120) % 3
    old = six(graph)
    assert old.shape == (120, 6 * six.spec.view_size)
    assert torch.equal(old, z[:, : old.shape[1]])
    assert torch.equal(six.whitened(old, y)[1], seven.whitened(z, y)[1][:, : old.shape[1]])


def test_whitened_views_embed_as_whitening_says() -> None:
    """Folding the factor into every basis, that of counts too, is the same as whitening z."""
    graph = nova.synthetic(nodes=200, classes=3, words=80).graph
    views = PrismEncoder.fit(graph, CPU)
    white, z_white = views.whitened(views(graph), torch.arange(200) % 3)
    assert torch.allclose(white(graph), z_white, atol=1e-3)


def test_views_are_a_function_of_the_graph_alone() -> None:
    graph = nova.synthetic(nodes=120, classes=3, words=60).graph
    torch.manual_seed(1)
    first = PrismEncoder.fit(graph, CPU)(graph)
    torch.manual_seed(2)
    assert torch.equal(first, PrismEncoder.fit(graph, CPU)(graph))


def test_a_grown_graph_is_embedded_with_the_same_basis() -> None:
    """Nodes far from what is new keep their place."""
    data = nova.synthetic(nodes=200, classes=4, words=120, degree=0.5)
    graph = data.graph
    views = PrismEncoder.fit(graph, CPU)
    x = np.vstack([graph.x.toarray(), np.ones((1, 120), dtype=np.float32)])
    grown = nova.Graph.of(x, graph.edge_index)
    assert np.allclose(views(grown)[:200].numpy(), views(graph).numpy(), atol=1e-5)


@pytest.mark.parametrize("features", ["dense", "one word", "few nodes", "isolated", "empty row"])
def test_odd_graphs(features: str) -> None:
    rng = np.random.default_rng(0)
    x, edges = (rng.random((60, 40)) < 0.1).astype(float), rng.integers(60, size=(2, 150))
    if features == "dense":
        x = rng.normal(size=(60, 10))
    if features == "one word":
        x = (rng.random((60, 1)) < 0.2).astype(float)
    if features == "few nodes":
        x, edges = x[:5], edges[:, (edges < 5).all(axis=0)]
    if features == "isolated":
        edges = edges[:, :0]
    if features == "empty row":
        x[7] = 0
    graph = nova.Graph.of(x, edges)
    z = PrismEncoder.fit(graph, CPU)(graph)
    assert z.isfinite().all()
    assert z.shape[0] == graph.num_nodes


def test_measurements_are_not_taken_for_words() -> None:
    x = np.random.default_rng(0).normal(size=(50, 4)) * [1, 10, 100, 0]
    weights = word_weights(nova.Graph.of(x, np.zeros((2, 0), dtype=int)))
    assert np.allclose(weights[0], 1)
    assert np.allclose(weights[1, :3] * x[:, :3].std(axis=0), 1, rtol=1e-4)
    assert weights[1, 3] == 0


def test_fitting_says_of_nodes_what_a_pass_says_however_many_columns_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = nova.synthetic(nodes=300, classes=4, words=150).graph
    ids = torch.tensor([5, 250, 31])
    views, z = PrismEncoder.fit_rows(graph, ids, CPU)
    assert torch.allclose(z, views(graph)[ids], atol=1e-3)
    assert torch.equal(views.rows(graph, ids), views(graph)[ids])
    monkeypatch.setattr("nodenova.encoders.prism.svd.CHUNK", 0)  # as few columns as may be
    few, z_few = PrismEncoder.fit_rows(graph, ids, CPU)
    assert torch.equal(z_few, z)
    assert torch.equal(few(graph), views(graph))
    cut = list(views.each_view(graph, rank=6))
    assert all(
        torch.equal(view, whole[:, :6])
        for view, whole in zip(cut, views.places(views(graph)), strict=True)
    )


def test_directions_that_smoothing_leaves_nothing_of_are_dropped_and_no_class_misses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = nova.synthetic(nodes=3000, classes=5, words=200, degree=60, seed=0)
    old, new, _ = nova.split(data, [0, 1, 2])
    found = {}
    for share in (0.0, 1e-6):
        monkeypatch.setattr("nodenova.encoders.prism.svd.NEGLIGIBLE", share)
        model = nova.discover(nova.fit(old), new)
        basis = model.frozen_encoder().state_dict()["basis"]
        found[share] = model, [int(view.any(dim=0).sum()) for view in basis]
    assert found[0.0][1] == [128] * 6
    own, averaged, deep = found[1e-6][1][:2], found[1e-6][1][2:4], found[1e-6][1][4:]
    assert own == averaged == [128, 128]
    assert all(columns <= 32 and columns % 8 == 0 for columns in deep)
    p, q = (model.predict_proba(data.graph) for model, _ in found.values())
    assert np.abs(p - q).max() < 0.02
    assert (p.argmax(axis=1) == q.argmax(axis=1)).all()


def test_all_directions_stay_where_each_says_something(labelled: nova.LabelledGraph) -> None:
    basis = nova.fit(nova.split(labelled, [0, 1])[0]).frozen_encoder().state_dict()["basis"]
    assert all(view.any(dim=0).all() for view in basis[:4])
