"""Prism's encoder against the plain formulas."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import nodenova as nova
from nodenova.encoders.prism.degree import COLUMNS, RBF_CENTERS, STEPS, DegreeFeatures
from nodenova.encoders.prism.encoder import (
    AVERAGED,
    CENTERING,
    DEPTHS,
    WORD_VIEWS,
    PrismEncoder,
    PrismEncoderSpec,
    word_weights,
)
from nodenova.encoders.prism.local_inference import encode_few, receptive_field
from nodenova.errors import GraphError
from nodenova.growth import refit_encoder
from nodenova.nn.sparse import gcn_operator
from tests.encoders.own import Jumping

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
    assert torch.equal(six.whiten(old, y)[1], seven.whiten(z, y)[1][:, : old.shape[1]])


def test_whitened_views_embed_as_whitening_says() -> None:
    """Folding the factor into every basis, that of counts too, is the same as whitening z."""
    graph = nova.synthetic(nodes=200, classes=3, words=80).graph
    views = PrismEncoder.fit(graph, CPU)
    white, z_white = views.whiten(views(graph), torch.arange(200) % 3)
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


def words_of(rate: np.ndarray, words: int, edges: int) -> nova.Graph:
    """Nodes that have each word with a probability of their own, linked at random."""
    rng = np.random.default_rng(0)
    x = sp.csr_array(rng.random((len(rate), words)) < rate[:, None], dtype=np.float32)
    return nova.Graph.of(x, rng.integers(len(rate), size=(2, edges)))


def random_graph() -> nova.Graph:
    return words_of(np.linspace(0.02, 0.4, 80), words=30, edges=200)


def test_it_is_the_plain_formula() -> None:
    graph = random_graph()
    a = graph.adjacency.toarray()
    walk = (a + np.eye(80)) / (a.sum(axis=1, keepdims=True) + 1)
    log = np.log1p(np.stack([a.sum(axis=1), (graph.x != 0).sum(axis=1)], axis=1))
    number = np.hstack([np.linalg.matrix_power(walk, step) @ log for step in STEPS])
    c = (number - number.mean(axis=0)) / number.std(axis=0)
    plain = np.hstack([np.exp(-((c - at) ** 2) / 2) for at in RBF_CENTERS])
    ours = DegreeFeatures.fit(graph, CPU)(graph).numpy()
    assert ours.shape == (80, COLUMNS)
    assert np.allclose(ours, plain, atol=1e-4)


def test_dense_features_are_counted_alike() -> None:
    graph = random_graph()
    dense = nova.Graph.of(graph.x.toarray(), graph.edge_index, dense=True)
    assert torch.equal(DegreeFeatures.fit(graph, CPU)(graph), DegreeFeatures.fit(dense, CPU)(dense))


def test_what_is_said_does_not_matter_only_how_much() -> None:
    graph = random_graph()
    other = nova.Graph.of(7.0 * graph.x[:, ::-1], graph.edge_index)
    counts = DegreeFeatures.fit(graph, CPU)
    assert torch.equal(counts(graph), counts(other))


@pytest.mark.parametrize("kind", ["measurements", "one length", "no edges", "one node"])
def test_counts_that_do_not_differ_say_nothing(kind: str) -> None:
    rng = np.random.default_rng(1)
    x, edges = np.eye(20), np.stack([np.arange(20), (np.arange(20) + 1) % 20])
    if kind == "measurements":
        x = rng.normal(size=(20, 5))
    if kind == "no edges":
        edges = edges[:, :0]
    if kind == "one node":
        x, edges = x[:1], edges[:, :0]
    graph = nova.Graph.of(x, edges)
    bumps = DegreeFeatures.fit(graph, CPU)(graph)
    assert torch.equal(bumps, bumps[:1].expand_as(bumps))  # a ring, or no edge: all nodes are alike


def test_a_class_told_by_its_number_of_words_alone_is_found() -> None:
    """Four classes that use the same words and link at random, and write more or less of them."""
    y = np.arange(800) % 4
    graph = words_of(np.array([0.02, 0.07, 0.16, 0.35])[y], words=300, edges=1600)
    old, new, exam = nova.split(nova.LabelledGraph(graph, y, tuple("abcd")), old=[0, 2])
    # 71 without counts.
    assert nova.grade(nova.discover(nova.fit(old), new), exam).scores("block")["all"] > 80


def long_path(weighted: bool = False, nodes: int = 60) -> nova.Graph:
    """A path, on which eight steps are far from everything."""
    rng = np.random.default_rng(3)
    ends = np.stack([np.arange(nodes - 1), np.arange(1, nodes)])
    weight = rng.random(nodes - 1) + 0.1 if weighted else None
    x = (rng.random((nodes, 40)) < 0.2).astype(np.float32)
    return nova.Graph.of(x, ends, edge_weight=weight, dense=False)


@pytest.mark.parametrize("kind", ["sparse", "dense", "path", "weighted path"])
def test_z_of_a_few_nodes_is_that_of_the_pass_over_all(
    kind: str, make_graph: Callable[..., nova.Graph]
) -> None:
    if "path" in kind:
        graph = long_path("weighted" in kind)
    else:
        graph = make_graph(nodes=80, features=30, sparse=kind == "sparse", edges=200)
    encoder = PrismEncoder.fit(graph, CPU)
    ids = np.array([graph.num_nodes - 1, 1, 30, 5])  # the last one of some stands alone
    z, few = encoder(graph)[torch.from_numpy(ids)], encode_few(encoder, graph, ids)
    torch.testing.assert_close(few, z, rtol=1e-4, atol=1e-5)
    assert encode_few(encoder, graph, ids[:0]).shape == (0, encoder.spec.hidden)


def test_views_of_models_saved_before_there_were_averages_are_read_too() -> None:
    graph = long_path()
    encoder = PrismEncoder.fit(graph, CPU)
    before = PrismEncoder(
        type(encoder.spec)("prism", graph.num_features, encoder.spec.view_size, 6)
    )
    state = {k: v for k, v in encoder.state_dict().items() if not k.startswith("count")}
    before.load_state_dict({**state, "shift": state["shift"][:6]})
    ids = np.array([3, 50])
    torch.testing.assert_close(
        encode_few(before, graph, ids), before(graph)[torch.from_numpy(ids)], rtol=1e-4, atol=1e-5
    )


def test_counts_that_hardly_differ_are_those_of_the_pass_over_all() -> None:
    # On a dense graph averages over eight steps are nearly the same for all nodes.
    graph = nova.synthetic(nodes=3_000, classes=2, words=40, degree=60).graph
    encoder = PrismEncoder.fit(graph, CPU)
    ids = np.arange(0, 3_000, 100)
    z, few = encoder(graph)[torch.from_numpy(ids)], encode_few(encoder, graph, ids)
    place = slice(6 * encoder.spec.view_size, 7 * encoder.spec.view_size)
    torch.testing.assert_close(few[:, place], z[:, place], rtol=0, atol=1e-5)


def test_only_nodes_within_reach_are_looked_at() -> None:
    path = long_path()
    field = receptive_field(path, np.array([30]), 8, CPU)
    assert field.nodes is not None
    assert field.nodes.tolist() == list(range(22, 39))
    whole = gcn_operator(path, CPU)
    column = torch.eye(60)[:, [30]]
    near = torch.eye(len(field.nodes))[:, [8]]
    for _ in range(8):
        column, near = whole @ column, field.smooth @ near
    torch.testing.assert_close(near, column[torch.from_numpy(field.nodes)])


@pytest.mark.parametrize("encoder", ["prism", "gcn", "gat", "sage"])
def test_a_model_says_the_same_of_some_nodes_as_of_all(
    labelled: nova.LabelledGraph,
    tasks: tuple[nova.OldTask, nova.NewTask, nova.Exam],
    encoder: str,
) -> None:
    settings = {} if encoder == "prism" else {"hidden": 8, "epochs": 3}
    model, graph = nova.fit(tasks[0], encoder, **settings), labelled.graph
    asked = [117, 3, 3, 40]
    p = model.predict_proba(graph)
    np.testing.assert_allclose(model.predict_proba(graph, only=asked), p[asked], atol=1e-5)
    assert (model.predict(graph, only=map(str, asked)) == model.predict(graph)[asked]).all()
    half = float(np.median(p.max(axis=1)[asked]))
    unsure = model.predict(graph, half, only=asked) == -1
    assert unsure.tolist() == (p.max(axis=1)[asked] < half).tolist()
    many = np.arange(120).repeat(2)  # more than few: one pass over all
    np.testing.assert_array_equal(model.predict(graph, only=many), model.predict(graph)[many])


def test_a_node_that_the_graph_lacks_is_named(labelled: nova.LabelledGraph) -> None:
    with pytest.raises(GraphError, match="no node 'x', nor 1 more"):
        labelled.graph.numbers_of([1, "x", "y"])


def with_vectors(width: int = 7, seed: int = 0, nodes: int = 160) -> nova.LabelledGraph:
    labelled = nova.synthetic(nodes=nodes, classes=4, words=80, seed=3)
    rng = np.random.default_rng(seed)
    center = rng.standard_normal((4, width))
    vectors = center[labelled.y] + rng.standard_normal((nodes, width)) + 5
    return nova.LabelledGraph(
        labelled.graph.with_vectors(vectors), labelled.y, labelled.class_names
    )


def test_words_and_counts_say_what_they_said_without_vectors_bit_for_bit() -> None:
    graph = with_vectors().graph
    ids = torch.tensor([3, 50, 7])
    plain, z_plain = PrismEncoder.fit_rows(nova.Graph(*vars_of(graph)), ids, CPU)
    views, z = PrismEncoder.fit_rows(graph, ids, CPU)
    size = plain.spec.hidden
    assert views.spec.hidden == size + 3 * views.spec.view_size
    assert torch.equal(z[:, :size], z_plain)
    assert torch.equal(views(graph)[:, :size], plain(graph))
    assert torch.allclose(views(graph)[ids], z, atol=1e-5)


def vars_of(graph: nova.Graph) -> tuple[object, ...]:
    return graph.x, graph.edge_index, graph.node_ids, graph.feature_names


def test_a_view_is_the_main_part_of_smoothed_centered_vectors() -> None:
    graph = with_vectors().graph
    assert graph.vectors is not None
    encoder = PrismEncoder.fit(graph, CPU)
    a = graph.adjacency.toarray() + np.eye(graph.num_nodes)
    root = a.sum(axis=1) ** -0.5
    s = root[:, None] * a * root
    v = graph.vectors - graph.vectors.mean(axis=0)
    smoothed = (v, (v + s @ v + s @ s @ v) / 3, np.linalg.matrix_power(s, 8) @ v)
    found = encoder.places(encoder(graph))[WORD_VIEWS + 1 :]
    assert len(found) == len(DEPTHS)
    for view, m in zip(found, smoothed, strict=True):
        main = np.linalg.svd(m, full_matrices=False)[2].T
        expected = m @ main - (m @ main).mean(axis=0)
        # But for the sign of each column; and there are no more than a vector has numbers.
        assert np.allclose(np.abs(view[:, :7].numpy()), np.abs(expected), atol=2e-3)
        assert not view[:, 7:].any()


def test_a_few_nodes_are_those_of_the_full_pass() -> None:
    graph = with_vectors().graph
    encoder = PrismEncoder.fit(graph, CPU)
    ids = np.array([0, 17, 99])
    few, full = encode_few(encoder, graph, ids), encoder(graph)[ids]
    assert torch.allclose(few, full, atol=1e-4)
    beside = slice((WORD_VIEWS + 1) * encoder.spec.view_size, None)
    assert torch.allclose(few[:, beside], full[:, beside], atol=1e-6)
    assert torch.equal(encoder.rows(graph, torch.from_numpy(ids)), encoder(graph)[ids])


def test_a_model_is_saved_and_loaded_with_them(tmp_path: Path) -> None:
    labelled = with_vectors()
    old, new, _ = nova.split(labelled, [0, 1])
    model = nova.discover(nova.fit(old), new, nova.Prism(n_resamples=0))
    model.save(tmp_path / "m")
    document = json.loads((tmp_path / "m" / "model.json").read_text())
    assert (document["version"], document["encoder"]["vector_size"]) == (5, 7)
    again = nova.load_model(tmp_path / "m")
    p = model.predict_proba(labelled.graph)
    assert np.array_equal(again.predict_proba(labelled.graph), p)
    plain = nova.synthetic(nodes=160, classes=4, words=80, seed=3)
    nova.fit(nova.split(plain, [0, 1])[0]).save(tmp_path / "plain")
    assert "vector_size" not in (tmp_path / "plain" / "model.json").read_text()


def test_other_vectors_and_none_are_refused_with_one_sentence() -> None:
    labelled = with_vectors()
    model = nova.fit(nova.split(labelled, [0, 1])[0])
    with pytest.raises(GraphError, match=r"vectors have 9 numbers.* 7"):
        model.predict(with_vectors(width=9).graph)
    with pytest.raises(GraphError, match=r"vectors of 7 numbers.*this graph has none"):
        model.predict(nova.synthetic(nodes=160, classes=4, words=80, seed=3).graph)


def test_a_representation_is_fitted_anew_with_them() -> None:
    whole = with_vectors(nodes=240)
    part = np.arange(160)
    early = nova.LabelledGraph(whole.graph.subgraph(part), whole.y[part], whole.class_names)
    model = nova.fit(nova.split(early, [0, 1])[0])
    again, _ = refit_encoder(model, whole.graph, "80 nodes came")
    assert again.frozen_encoder().spec.vector_size == 7  # type: ignore[attr-defined]


def synonyms(seed: int) -> nova.LabelledGraph:
    """Six classes of texts in words that hardly repeat; vectors know which words mean the same."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 6, 420)
    meaning = np.where(rng.random((420, 4)) < 0.6, y[:, None], rng.integers(0, 6, (420, 4)))
    word = meaning * 120 + rng.integers(0, 120, (420, 4))
    x = np.zeros((420, 720), dtype=np.float32)
    np.put_along_axis(x, word, 1.0, axis=1)
    sense = rng.standard_normal((6, 24))
    vectors = sense[meaning].mean(axis=1) + 0.3 * rng.standard_normal((420, 24))
    graph = nova.Graph.of(x, rng.integers(0, 420, (2, 420)), vectors=vectors)
    return nova.LabelledGraph(graph, y, tuple("abcdef"))


def discovered(labelled: nova.LabelledGraph, graph: nova.Graph, encoder: Any) -> float:
    """All of the method that suits an encoder, on a graph with the same nodes."""
    old, new, exam = nova.split(nova.LabelledGraph(graph, labelled.y, tuple("abcdef")), [0, 1, 2])
    computed = encoder == "prism"
    model = nova.fit(old, encoder, **({} if computed else {"epochs": 60}))
    method = nova.Prism(n_resamples=0) if computed else nova.FrozenKMeans()
    score: float = nova.grade(nova.discover(model, new, method), exam).scores("block")["all"]
    return score


def test_vectors_help_where_words_of_the_same_meaning_differ() -> None:
    labelled = synonyms(0)
    words = nova.Graph(*vars_of(labelled.graph))
    assert discovered(labelled, labelled.graph, "prism") > 20 + discovered(labelled, words, "prism")


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage", Jumping])
def test_they_help_trained_encoders(encoder: Any) -> None:
    """On average over three graphs, four in ten of whose edges are within a class."""
    more = []
    for seed in range(3):
        labelled = synonyms(seed)
        graph, rng = labelled.graph, np.random.default_rng(seed)
        source, target = rng.integers(0, 420, (2, 420))
        same = [rng.choice(np.flatnonzero(labelled.y == c)) for c in labelled.y[source]]
        edges = np.stack([source, np.where(rng.random(420) < 0.4, same, target)])
        both = (nova.Graph.of(graph.x, edges, vectors=v) for v in (None, graph.vectors))
        words, with_meaning = (discovered(labelled, each, encoder) for each in both)
        more.append(with_meaning - words)
    assert np.mean(more) > 8
