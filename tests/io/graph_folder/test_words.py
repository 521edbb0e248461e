"""Words of texts on disk are chosen as those of texts in memory are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from nodenova.io.graph_folder import store
from nodenova.io.graph_folder.features import choose_words, tfidf_totals
from nodenova.io.words import WEIGHT_STEPS, select_words, word_analyzer
from nodenova.progress import no_progress


def texts_of(seed: int, nodes: int = 150) -> list[str]:
    rng = np.random.default_rng(seed)
    drawn = (rng.pareto(0.7, size=(nodes, 12)) * 8).astype(int) % 300
    words = [" ".join(f"w{number}" for number in row[: 3 + row[0] % 9]) for row in drawn]
    return ["", *words, "Übung ßtraße übung", "übung"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[store.Store]:
    monkeypatch.setattr(store, "MAX_HELD", 100)
    made = store.Store(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("most", [7, 40, 90, 10_000])
def test_the_same_words_by_the_same_weights(place: store.Store, most: int) -> None:
    texts = texts_of(most)

    def pieces() -> Iterator[Sequence[str]]:
        return (texts[start : start + 31] for start in range(0, len(texts), 31))

    notes: list[str] = []
    words = choose_words(pieces, len(texts), most, "nodes.csv", notes, place, no_progress)
    expected: list[str] = []
    assert words == select_words(texts, most, "nodes.csv", expected, no_progress)[0]
    assert notes == expected


def test_weights_are_those_of_scikit_learn_in_any_order(place: store.Store) -> None:
    texts = texts_of(3)
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    expected = np.asarray(vectorizer.fit_transform(texts).sum(axis=0)).ravel()
    tally = place.tally()
    tally.add(word for text in texts for word in dict.fromkeys(word_analyzer()(text)))
    halves = [texts[:60], texts[60:]]
    words = vectorizer.get_feature_names_out().tolist()
    given = (lambda: iter(halves), words, len(texts), tally.table(), place, no_progress)
    totals = tfidf_totals(*given)
    np.testing.assert_allclose(totals / WEIGHT_STEPS, expected, rtol=1e-5)
    turned = (lambda: iter([texts[::-1]]), *given[1:])
    assert np.array_equal(totals, tfidf_totals(*turned))


def test_texts_without_words_are_said(place: store.Store) -> None:
    notes: list[str] = []
    texts = [["", "!"], ["?"]]
    assert choose_words(lambda: iter(texts), 3, 9, "nodes.csv", notes, place, no_progress) == ()
    assert notes == ["nodes.csv: the text columns hold no words"]
