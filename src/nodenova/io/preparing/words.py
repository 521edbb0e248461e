"""Which words of texts on disk are worth a feature: as `words.worth_a_feature` chooses them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy.sparse as sp

from nodenova.io.preparing.store import Store
from nodenova.io.tables import Progress
from nodenova.io.words import COMMON, least_nodes, say_words, words_of


def choose_words(
    pieces: Callable[[], Iterator[Sequence[str]]],
    nodes: int,
    most: int,
    source: str,
    notes: list[str],
    store: Store,
    progress: Progress,
) -> tuple[str, ...]:
    """The words that become features, those of highest TF-IDF.

    Words are counted on disk. Where more than `most` could have a feature, the texts are gone
    through once more to weigh them.

    Args:
        pieces: The texts of the nodes, some at a time, as often as it is called.
        nodes: N.
        most: The most words.
        source: What messages call the table.
        notes: Gets a sentence on what was left out.
        store: Where words are counted.
        progress: Called with what is being done and which share of it is done.
    """
    analyse, tally, done = words_of(), store.tally(), 0
    for texts in pieces():
        # In the order in which scikit-learn meets them.
        tally.add(word for text in texts for word in dict.fromkeys(analyse(text)))
        done += len(texts)
        progress("choosing words", done / nodes)
    if not len(tally):
        notes.append(f"{source}: the text columns hold no words")
        return ()
    table, least = tally.table(), least_nodes(nodes)
    counted = (
        f"SELECT count(*), count(*) FILTER (n < {least}), count(*) FILTER (n > ?) FROM {table}"
    )
    total, rare, common = store.rows(counted, [COMMON * nodes])[0]
    fit = f"SELECT value FROM {table} WHERE n >= {least} AND n <= ? ORDER BY value"
    words = [word for (word,) in store.rows(fit, [COMMON * nodes])]
    kept = np.arange(len(words))
    if len(words) > most:
        weight = tfidf_totals(pieces, words, nodes, table, store, progress)
        kept = np.sort(np.argsort(-weight, kind="stable")[:most])
    say_words(len(kept), total, rare, common, len(words) - len(kept), nodes, source, notes)
    return tuple(words[place] for place in kept)


def tfidf_totals(
    pieces: Callable[[], Iterator[Sequence[str]]],
    words: Sequence[str],
    nodes: int,
    table: str,
    store: Store,
    progress: Progress,
) -> np.ndarray:
    """(words,) the sum of each word's TF-IDF over all texts, added up in their order."""
    from sklearn.feature_extraction.text import TfidfTransformer

    analyse, done = words_of(), 0
    place = {word: number for number, word in enumerate(words)}
    total = np.zeros(len(words), dtype=np.float32)
    store.run("CREATE TABLE asked (value VARCHAR, number BIGINT)")
    for texts in pieces():
        counted = [Counter(analyse(text)) for text in texts]
        own = list(dict.fromkeys(word for counts in counted for word in counts))
        done += len(texts)
        progress("weighing words", done / nodes)
        if not own:
            continue
        store.add("asked", {"value": own, "number": np.arange(len(own))})
        found = store.rows(f"SELECT number, n, place FROM asked JOIN {table} USING (value)")
        store.run("DELETE FROM asked")
        _, n, seen = np.array(sorted(found)).T
        order = dict(zip(own, seen.tolist(), strict=True))
        column = {word: c for c, word in enumerate(own)}
        data, indices, indptr = [], [], [0]
        for counts in counted:
            # Rows are summed in scikit-learn's order, which is that of first appearance.
            entries = sorted(counts, key=order.__getitem__)
            indices += [column[word] for word in entries]
            data += [counts[word] for word in entries]
            indptr.append(len(indices))
        parts = (np.array(data, dtype=np.float32), np.array(indices, dtype=np.int32), indptr)
        x = sp.csr_array(parts, shape=(len(texts), len(own)))
        weigh = TfidfTransformer(sublinear_tf=True)
        weigh.idf_ = _idf(n, nodes)
        x = weigh.transform(x)
        target = np.array([place.get(word, -1) for word in own])[x.indices]
        np.add.at(total, target[target >= 0], x.data[target >= 0])
    store.run("DROP TABLE asked")
    return total


def _idf(n: np.ndarray, nodes: int) -> np.ndarray:
    """(words,) as scikit-learn computes it, in its order and with its rounding."""
    df = n.astype(np.float32)
    df += 1.0
    idf = np.full_like(df, fill_value=nodes + 1)
    idf /= df
    np.log(idf, out=idf)
    idf += 1.0
    return idf
