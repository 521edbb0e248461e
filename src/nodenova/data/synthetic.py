"""A graph with known classes, of any size, made in a second: planted partition and bags of words."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import Labelled
from nodenova.errors import SettingError
from nodenova.graph import Graph


def synthetic(
    nodes: int = 1000,
    classes: int = 6,
    words: int = 500,
    degree: float = 6.0,
    homophily: float = 0.8,
    words_per_node: int = 20,
    topic_share: float = 0.4,
    seed: int = 0,
) -> Labelled:
    """Nodes of equally likely classes; neighbours are of the same class with probability `homophily` (or by chance),
    and each word of a node comes with probability `topic_share` from its class's own words, else from all words."""
    if classes < 2 or nodes < 2 * classes:
        raise SettingError(f"synthetic needs at least 2 classes and 2 nodes a class, not {nodes} nodes, {classes} classes")
    if words < 2 * classes or words_per_node < 1:
        raise SettingError(f"synthetic needs at least 2 words a class and one a node, not {words} words")
    if not (0 <= homophily <= 1 and 0 <= topic_share <= 1 and degree >= 0):
        raise SettingError("synthetic: homophily and topic_share lie in 0..1, and degree is not negative")
    rng = np.random.default_rng([seed, 1618])
    # Every class has two nodes at least, whatever the draw.
    y = np.concatenate([np.repeat(np.arange(classes), 2), rng.integers(classes, size=nodes - 2 * classes)])
    rng.shuffle(y)

    count = round(nodes * degree / 2)
    source = rng.integers(nodes, size=count)
    target = rng.integers(nodes, size=count)
    same = rng.random(count) < homophily
    by_class = np.argsort(y, kind="stable")
    size = np.bincount(y, minlength=classes)
    start = np.concatenate([[0], np.cumsum(size)[:-1]])
    c = y[source[same]]
    target[same] = by_class[start[c] + (rng.random(same.sum()) * size[c]).astype(np.int64)]

    # Class c's own words are every `classes`-th word from c on.
    own = words // classes
    general = rng.integers(words, size=(nodes, words_per_node))
    topical = rng.integers(own, size=(nodes, words_per_node)) * classes + y[:, None]
    drawn = np.where(rng.random((nodes, words_per_node)) < topic_share, topical, general)
    rows = np.repeat(np.arange(nodes), words_per_node)
    x = sp.csr_array((np.ones(drawn.size, dtype=np.float32), (rows, drawn.ravel())), shape=(nodes, words))
    x.data[:] = 1.0  # present or not, as in Cora and CiteSeer

    graph = Graph.of(x, np.stack([source, target]), feature_names=[f"word-{w}" for w in range(words)])
    return Labelled(graph, y, tuple(f"class-{c}" for c in range(classes)), name="synthetic")
