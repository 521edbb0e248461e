"""Vectors of texts: from a language model, a function, an array or a file."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.errors import GraphError, NodenovaError, SettingError
from nodenova.io import vectors
from nodenova.io.describe import describe, lines_of
from nodenova.io.graph_folder.prepare import convert
from nodenova.io.npz import graph_npz
from nodenova.io.recipe import TableEncoder
from nodenova.io.vectors import LanguageModel
from nodenova.progress import no_progress
from tests.io.tiny_model import make_model

TEXTS = ["word1 word2 word3", "word2 word3 word4", "word1 word4 word5", "", "word3 word5 word1"]
IDS = list("abcde")
EDGES = "source,target\na,b\nb,c\nc,d\nd,e\n"


def write(folder: Path, order: list[int] | None = None) -> dict[str, Path]:
    lines = [f"{IDS[i]},{'red' if i % 2 else 'blue'},{TEXTS[i]}" for i in order or range(5)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,text", *lines]) + "\n")
    (folder / "edges.csv").write_text(EDGES)
    return {"nodes": folder / "nodes.csv", "edges": folder / "edges.csv"}


def lengths(texts: list[str]) -> list[list[float]]:
    """How long texts are."""
    return [[len(text), text.count("word1")] for text in texts]


def test_a_function_is_given_the_texts_and_words_stay(tmp_path: Path) -> None:
    seen: list[str] = []

    def watched(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return np.array(lengths(texts))

    files = write(tmp_path)
    loaded = nova.load_graph(**files, text_columns=["text"], text_vectors=watched)
    plain = nova.load_graph(**files, text_columns=["text"])
    assert seen == [text for text in TEXTS if text]
    assert loaded.graph.vectors is not None
    assert loaded.graph.vectors[:, 0].tolist() == [17, 17, 17, 17, 17]
    assert loaded.graph.vectors[:, 1].tolist() == [1, 0, 1, 0.75, 1]  # no text: in the middle
    assert loaded.graph.feature_names == plain.graph.feature_names
    assert (loaded.graph.x != plain.graph.x).nnz == 0
    assert loaded.fingerprint() != plain.fingerprint()
    assert "vectors of 2 numbers by watched, beside words; 1 node without" in loaded.notes[-1]
    assert "vectors    2 numbers per node, beside its features" in lines_of(describe(loaded))


def test_a_file_has_a_row_for_each_node_or_ids(tmp_path: Path) -> None:
    files, vectors = write(tmp_path), np.arange(10.0).reshape(5, 2)
    np.save(tmp_path / "v.npy", vectors)
    by_row = nova.load_graph(**files, text_vectors=tmp_path / "v.npy")
    assert np.array_equal(by_row.graph.vectors, vectors)
    order = [4, 2, 0, 1, 3]
    ids = [*(IDS[i] for i in order), "zz"]
    np.savez(tmp_path / "v.npz", ids=ids, vectors=[*vectors[order], [9, 9]])
    by_id = nova.load_graph(**files, text_vectors=str(tmp_path / "v.npz"))
    assert np.array_equal(by_id.graph.vectors, vectors)
    assert any("1 vector is of nodes not in nodes.csv" in note for note in by_id.notes)
    whole = nova.load_graph(**files, text_vectors=vectors)
    assert np.array_equal(whole.graph.vectors, vectors)


def test_a_graph_that_is_ready_takes_a_file_and_keeps_it(tmp_path: Path) -> None:
    graph = nova.synthetic(nodes=30, classes=2).graph
    vectors = np.random.default_rng(0).random((30, 3)).astype(np.float32)
    loaded = nova.load_graph(graph, text_vectors=vectors)
    (tmp_path / "g.npz").write_bytes(graph_npz(loaded.graph))
    convert(loaded, tmp_path / "folder")
    for path in ("g.npz", "folder"):
        again = nova.load_graph(tmp_path / path).graph
        assert np.array_equal(again.vectors, vectors)
        assert np.array_equal(again.subgraph(np.array([1, 5])).vectors, vectors[[1, 5]])
    with pytest.raises(SettingError, match="has no texts to read"):
        nova.load_graph(graph, text_vectors=lengths)


WRONG: dict[str, tuple[Any, str]] = {
    "too few rows": (np.zeros((4, 2)), "text_vectors: 4 rows for 5 nodes of nodes.csv: "),
    "one dimension": (np.zeros(5), r"vectors have shape \(5,\), but 5 nodes"),
    "not a number": (np.full((5, 2), np.nan), "the vector of node 0 has a number that is not"),
    "texts": (np.full((5, 2), "x"), "vectors are not a table of numbers"),
    "a function that drops one": (lambda texts: np.zeros((3, 2)), "shape .3, 2., but 4"),
    "no such file": ("none.npy", "none.npy: no such file"),
    "a name of a model": ("all-MiniLM-L6-v2", "neither a folder of a language model nor"),
    "a number": (7, "is a folder, a file, an array or a function, not int"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_what_gives_no_vectors_gets_one_sentence(tmp_path: Path, kind: str) -> None:
    given, said = WRONG[kind]
    with pytest.raises(NodenovaError, match=said) as caught:
        nova.load_graph(**write(tmp_path), text_columns=["text"], text_vectors=given)
    assert "\n" not in str(caught.value)


def test_ids_without_a_vector_and_files_without_ids_are_named(tmp_path: Path) -> None:
    files = write(tmp_path)
    np.savez(tmp_path / "v.npz", ids=["a", "b"], vectors=np.zeros((2, 2)))
    with pytest.raises(GraphError, match=r"v.npz: 3 nodes of nodes.csv have no vector, first: 'c'"):
        nova.load_graph(**files, text_vectors=tmp_path / "v.npz")
    np.savez(tmp_path / "v.npz", x=np.zeros((2, 2)))
    with pytest.raises(GraphError, match=r"v.npz: has no arrays ids and vectors"):
        nova.load_graph(**files, text_vectors=tmp_path / "v.npz")
    (tmp_path / "v.npy").write_bytes(b"none")
    with pytest.raises(GraphError, match=r"v.npy: not an array as NumPy writes it"):
        nova.load_graph(**files, text_vectors=tmp_path / "v.npy")
    with pytest.raises(SettingError, match="has no texts to read: name a text column"):
        nova.load_graph(edges=files["edges"], text_vectors=lengths)


def test_the_recipe_remembers_the_model_and_refuses_another(tmp_path: Path) -> None:
    files = write(tmp_path)
    model = make_model(tmp_path / "models" / "tiny")
    loaded = nova.load_graph(**files, text_columns=["text"], text_vectors=model)
    document = json.dumps(loaded.recipe.as_json())
    assert str(tmp_path) not in document
    recipe = TableEncoder.from_json(json.loads(document))
    assert recipe == loaded.recipe
    assert recipe.vectors is not None
    assert (recipe.vectors.kind, recipe.vectors.name, recipe.vectors.width) == ("model", "tiny", 16)
    later = nova.load_graph(**write(tmp_path, [2, 0, 1, 4, 3]), recipe=recipe, text_vectors=model)
    assert later.graph.vectors is not None
    assert np.allclose(later.graph.vectors, loaded.graph.vectors[[2, 0, 1, 4, 3]], atol=1e-6)
    other = make_model(tmp_path / "models" / "other", seed=1)
    with pytest.raises(SettingError, match=r"other .* is another language model than tiny"):
        nova.load_graph(**files, recipe=recipe, text_vectors=other)
    wide = make_model(tmp_path / "models" / "wide", size=32)
    with pytest.raises(SettingError, match=r"wide gives vectors of 32 numbers, .* of 16 \(tiny\)"):
        nova.load_graph(**files, recipe=recipe, text_vectors=wide)
    with pytest.raises(SettingError, match=r"vectors of texts \(tiny, 16 numbers\): give"):
        nova.load_graph(**files, recipe=recipe)
    plain = nova.load_graph(**files, text_columns=["text"]).recipe
    with pytest.raises(SettingError, match="learned without vectors of texts"):
        nova.load_graph(**files, recipe=plain, text_vectors=model)


def test_a_recipe_without_vectors_is_written_as_it_was(tmp_path: Path) -> None:
    recipe = nova.load_graph(**write(tmp_path), text_columns=["text"]).recipe
    assert recipe is not None
    assert "vectors" not in recipe.as_json()


SENTENCES = ["word1 word2 word3", "word4", "word1 word2 word3", "unheard of", "word5 " * 60]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny-bert")


def modules(pooling: dict[str, Any], *more: str) -> list[Any]:
    parts = [("Transformer", "", None), ("Pooling", "1_Pooling", pooling)]
    return [*parts, *((kind, f"{number}_{kind}", None) for number, kind in enumerate(more, 2))]


def tokens_of(folder: Path, text: str) -> torch.Tensor:
    """What the model itself says of each token of one text."""
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=32,
                                                   return_tensors="pt")  # fmt: skip
    with torch.no_grad():
        return AutoModel.from_pretrained(folder).eval()(**tokens).last_hidden_state[0]


def test_a_text_is_the_mean_of_its_tokens_whatever_it_stands_beside(folder: Path) -> None:
    vectors = LanguageModel(folder).encode(SENTENCES, no_progress)
    assert vectors.shape == (5, 16)
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors[0], vectors[2])
    assert not np.allclose(vectors[0], vectors[1], atol=1e-3)
    for text, vector in zip(SENTENCES, vectors, strict=True):
        assert np.allclose(tokens_of(folder, text).mean(dim=0), vector, atol=1e-5)


@pytest.mark.parametrize(
    ("pooling", "pooled"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, lambda t: t.mean(0)),
        ({"pooling_mode_cls_token": True}, lambda t: t[0]),
        ({"pooling_mode": "max", "word_embedding_dimension": 16}, lambda t: t.amax(0)),
    ],
)
def test_the_layout_of_sentence_transformers_says_how_tokens_become_one(
    tmp_path: Path, pooling: dict[str, Any], pooled: Any
) -> None:
    folder = make_model(tmp_path / "sentences", modules=modules(pooling, "Normalize"))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 32}))
    vectors = LanguageModel(folder).encode(SENTENCES, no_progress)
    for text, vector in zip(SENTENCES, vectors, strict=True):
        expected = torch.nn.functional.normalize(pooled(tokens_of(folder, text)), dim=0)
        assert np.allclose(expected, vector, atol=1e-5)


def test_the_fingerprint_is_of_what_the_model_is(folder: Path, tmp_path: Path) -> None:
    again = make_model(tmp_path / "renamed")
    other = make_model(tmp_path / "other", seed=1)
    first = LanguageModel(folder).fingerprint()
    assert LanguageModel(again).fingerprint() == first
    assert LanguageModel(other).fingerprint() != first
    (again / "README.md").write_text("about it")
    assert LanguageModel(again).fingerprint() == first


def test_nothing_asks_the_network(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert len(LanguageModel(folder).encode(SENTENCES, no_progress)) == 5
    with pytest.raises(SettingError, match=r"'no/such-model' is neither .* nothing is downloaded"):
        LanguageModel(Path("no/such-model"))


def refused(folder: Path) -> str:
    with pytest.raises(SettingError) as caught:
        LanguageModel(folder).encode(SENTENCES, no_progress)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_folders_that_are_no_model_get_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "empty is no folder of a language model: it has no config.json" in refused(
        tmp_path / "empty"
    )
    dense = make_model(tmp_path / "dense", modules=modules({"pooling_mode": "mean"}, "Dense"))
    assert "dense has the part 'Dense', which is not supported" in refused(dense)
    odd = make_model(tmp_path / "odd", modules=modules({"pooling_mode": "lasttoken"}))
    assert "odd has the pooling 'lasttoken'" in refused(odd)
    (odd / "modules.json").write_text("[")
    assert "odd: modules.json cannot be read" in refused(odd)
    cut = make_model(tmp_path / "cut")
    (cut / "model.safetensors").write_bytes(b"none")
    assert "cut cannot be read" in refused(cut)


def test_without_transformers_the_extra_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(SettingError, match=r"pip install 'nodenova\[text\]'"):
        LanguageModel(folder)


def test_padding_makes_no_difference(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = LanguageModel(folder).encode(SENTENCES, no_progress)
    monkeypatch.setattr(vectors, "BATCH_TEXTS", 1)
    assert np.allclose(LanguageModel(folder).encode(SENTENCES, no_progress), whole, atol=1e-5)


def test_files_of_vectors_that_are_damaged_or_hold_something_else(tmp_path: Path) -> None:
    files = write(tmp_path)
    path = tmp_path / "v.npz"
    cases: list[tuple[dict[str, Any] | bytes, str]] = [
        (b"PK\x03\x04 and no archive", "v.npz: not a readable npz file"),
        (b"neither", "v.npz: not an array as NumPy writes it"),
        ({"ids": np.array([IDS]), "vectors": np.zeros((1, 5))}, "ids must be a list"),
        ({"ids": np.array(IDS), "vectors": np.zeros(5)}, "vectors a table"),
        ({"ids": np.array(IDS), "vectors": np.full((5, 2), "1")}, "not a table of numbers"),
        ({"ids": np.array(IDS), "vectors": np.full((5, 2), 1j)}, "holds complex numbers"),
        ({"ids": np.array(IDS), "vectors": np.full((5, 2), np.nan)}, "is not finite"),
    ]
    for content, expected in cases:
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            np.savez(path, **content)
        with pytest.raises(GraphError) as caught:
            nova.load_graph(**files, text_vectors=path)
        assert expected in str(caught.value)
