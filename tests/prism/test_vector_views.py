"""Vectors of texts as views beside words: what they are, and that nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.encoders.prism.encoder import WORD_VIEWS, PrismEncoder
from nodenova.encoders.prism.local_inference import few_rows
from nodenova.encoders.prism.svd import DEPTHS
from nodenova.errors import GraphError
from nodenova.growth import refit_encoder

CPU = torch.device("cpu")


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
    few, full = few_rows(encoder, graph, ids), encoder(graph)[ids]
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
    with pytest.raises(
        GraphError, match=r"have 9 numbers, those that the model was made with .* 7"
    ):
        model.predict(with_vectors(width=9).graph)
    with pytest.raises(GraphError, match=r"vectors of texts \(7 numbers\), this graph has none"):
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


def test_vectors_help_where_words_of_the_same_meaning_differ() -> None:
    labelled = synonyms(0)
    scores = []
    for graph in (nova.Graph(*vars_of(labelled.graph)), labelled.graph):
        old, new, exam = nova.split(
            nova.LabelledGraph(graph, labelled.y, tuple("abcdef")), [0, 1, 2]
        )
        model = nova.discover(nova.fit(old), new, nova.Prism(n_resamples=0))
        scores.append(nova.grade(model, exam).scores("block")["all"])
    assert scores[1] > scores[0] + 20
