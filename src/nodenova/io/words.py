"""Words of texts as features: which words get one, and which node has which.

TF-IDF only chooses the words; how much a word weighs is left to the encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp

from nodenova.io.list_columns import TextListColumn
from nodenova.io.tables import Table
from nodenova.progress import Progress

LARGE = 10_000  # nodes from which on a word must be in 5 of them, not in 2
WEIGHT_STEPS = 2.0**24  # a TF-IDF is rounded to; 2^29 of them are summed without a rounding error
COMMON = 0.5  # a word in more than this share of the nodes gets no feature


def join_texts(table: Table, names: Sequence[str]) -> list[str]:
    """(N,) the text columns of each node joined; a word is the same word in any of them."""
    present = [table.columns[name] for name in names if name in table.columns]
    columns = [cells.join() if isinstance(cells, TextListColumn) else cells for cells in present]
    if len(columns) == 1:
        return list(columns[0])
    return [" ".join(cells) for cells in zip(*columns, strict=True)] or [""] * len(table)


def select_words(
    texts: Sequence[str], most: int, source: str, notes: list[str], progress: Progress
) -> tuple[tuple[str, ...], sp.csr_array | None]:
    """Return the words of highest TF-IDF, and (N, words) 1 where a node has a word."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    progress("choosing words", 0.0)
    least = min_nodes(len(texts))
    vectorizer = CountVectorizer(dtype=np.float32)
    try:
        weights = vectorizer.fit_transform(texts)
    except ValueError:  # no word at all
        notes.append(f"{source}: the text columns hold no words")
        return (), None
    weights.sort_indices()  # rows are summed by word, not by which text had a word first
    weights = TfidfTransformer(sublinear_tf=True).fit(weights).transform(weights, copy=False)
    df = np.bincount(weights.indices, minlength=weights.shape[1])
    total = sum_weights(weights.indices, weights.data, weights.shape[1])
    usable = np.flatnonzero((df >= least) & (df <= COMMON * len(texts)))
    selected = usable[np.argsort(-total[usable], kind="stable")[:most]]
    rare = int((df < least).sum())
    common = int((df > COMMON * len(texts)).sum())
    rest = len(usable) - len(selected)
    note_words(len(selected), len(df), rare, common, rest, len(texts), source, notes)
    selected = np.sort(selected)
    bag = sp.csr_array(weights[:, selected])
    bag.data[:] = 1.0
    return tuple(vectorizer.get_feature_names_out()[selected].tolist()), bag


def sum_weights(indices: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """(size,) sums of weights from 0 to 1 by index, rounded so that they are exact in any order."""
    return np.bincount(indices, weights=np.rint(weights * WEIGHT_STEPS), minlength=size)


def min_nodes(nodes: int) -> int:
    """Number of nodes that must have a word, of N."""
    return 5 if nodes >= LARGE else 2


def note_words(
    features: int, words: int, rare: int, common: int, rest: int, nodes: int, source: str,
    notes: list[str],
) -> None:  # fmt: skip
    """Note how many words have a feature, and why others have none."""
    reasons = [
        f"{rare:,} in fewer than {min_nodes(nodes)} nodes",
        f"{common:,} in more than half of the nodes",
        f"{rest:,} of lowest weight",
    ]
    left = [reason for count, reason in zip((rare, common, rest), reasons, strict=True) if count]
    notes.append(
        f"{source}: text gives {features:,} words of {words:,}"
        + (f"; left out: {', '.join(left)}" if left else "")
    )


def bag_of_words(
    texts: Sequence[str], words: Sequence[str], progress: Progress
) -> tuple[sp.csr_array, int]:
    """(N, words) 1 where a node has a word, and the number of distinct words not among them."""
    analyze = word_analyzer()
    place = {word: number for number, word in enumerate(words)}
    unknown, columns, ends = set[str](), list[int](), [0]
    for row, text in enumerate(texts):
        own = set(analyze(text))
        known = own & place.keys()
        unknown |= own - known
        columns += sorted(place[word] for word in known)
        ends.append(len(columns))
        if row % 5000 == 0:
            progress("counting words", row / len(texts))
    ones = np.ones(len(columns), dtype=np.float32)
    entries = (ones, np.array(columns, dtype=np.int32), np.array(ends))
    return sp.csr_array(entries, shape=(len(texts), len(words))), len(unknown)


def word_analyzer() -> Callable[[str], list[str]]:
    """Return scikit-learn's way to split a text into words: lower case, two letters or more."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer().build_analyzer()
