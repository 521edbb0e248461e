"""A model folder that a user brings: what becomes of texts, and folders that are none."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nodenova.errors import SettingError
from nodenova.io import vectors
from nodenova.io.vectors import LanguageModel
from nodenova.progress import no_progress
from tests.io.tiny_model import make_model

TEXTS = ["word1 word2 word3", "word4", "word1 word2 word3", "unheard of", "word5 " * 60]


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
    vectors = LanguageModel(folder).encode(TEXTS, no_progress)
    assert vectors.shape == (5, 16)
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors[0], vectors[2])
    assert not np.allclose(vectors[0], vectors[1], atol=1e-3)
    for text, vector in zip(TEXTS, vectors, strict=True):
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
    vectors = LanguageModel(folder).encode(TEXTS, no_progress)
    for text, vector in zip(TEXTS, vectors, strict=True):
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
    assert len(LanguageModel(folder).encode(TEXTS, no_progress)) == 5
    with pytest.raises(SettingError, match=r"'no/such-model' is neither .* nothing is downloaded"):
        LanguageModel(Path("no/such-model"))


def refused(folder: Path) -> str:
    with pytest.raises(SettingError) as caught:
        LanguageModel(folder).encode(TEXTS, no_progress)
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
    whole = LanguageModel(folder).encode(TEXTS, no_progress)
    monkeypatch.setattr(vectors, "BATCH_TEXTS", 1)
    assert np.allclose(LanguageModel(folder).encode(TEXTS, no_progress), whole, atol=1e-5)
