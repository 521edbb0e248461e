"""Synthetic graphs of any size with known classes: planted partition and bags of words."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import LabelledGraph
from nodenova.errors import SettingError, check_seed
from nodenova.graph import Graph
from nodenova.settings import check_arguments


def synthetic(
    nodes: int = 1000,
    classes: int = 6,
    words: int = 500,
    degree: float = 6.0,
    homophily: float = 0.8,
    words_per_node: int = 20,
    topic_share: float = 0.4,
    seed: int = 0,
) -> LabelledGraph:
    """Make a graph with known classes: planted partition and bags of words.

    Classes are equally likely; a feature is 1 where a node has a word.

    Args:
        nodes: Number of nodes; at least 2 per class.
        classes: Number of classes; at least 2.
        words: Number of features; at least 2 per class.
        degree: Average degree before duplicates and self-loops are dropped.
        homophily: Probability that a neighbor is drawn from the node's own class; otherwise it is
            drawn from all nodes.
        words_per_node: Number of words drawn for each node, some more than once.
        topic_share: Probability that a word is drawn from the class's own words; otherwise it is
            drawn from all words.
        seed: Seed of the draw.

    Returns:
        The graph with all labels and no split.

    Raises:
        SettingError: If a number is out of range.

    Examples:
        >>> import nodenova as nova
        >>> labelled = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> labelled.class_names, labelled.graph.x.shape
        (('class-0', 'class-1', 'class-2', 'class-3'), (200, 500))
    """
    check_arguments(synthetic, locals())
    if classes < 2 or nodes < 2 * classes:
        raise SettingError(
            "synthetic needs at least 2 classes and 2 nodes per class, "
            f"not {nodes} nodes, {classes} classes"
        )
    if words < 2 * classes or words_per_node < 1:
        raise SettingError(
            f"synthetic needs at least 2 words per class and 1 per node, not {words} words"
        )
    if not (0 <= homophily <= 1 and 0 <= topic_share <= 1 and degree >= 0):
        raise SettingError(
            "synthetic: homophily and topic_share lie in 0..1, and degree is not negative"
        )
    check_seed(seed, 0)
    rng = np.random.default_rng([seed, 1618])
    # Each class has at least two nodes, whatever the draw.
    rest = rng.integers(classes, size=nodes - 2 * classes)
    y = np.concatenate([np.repeat(np.arange(classes), 2), rest])
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
    word = np.where(rng.random((nodes, words_per_node)) < topic_share, topical, general)
    rows = np.repeat(np.arange(nodes), words_per_node)
    entries = (np.ones(word.size, dtype=np.float32), (rows, word.ravel()))
    x = sp.csr_array(entries, shape=(nodes, words))
    x.data[:] = 1.0  # present or not, as in Cora and CiteSeer

    names = [f"word-{w}" for w in range(words)]
    graph = Graph.of(x, np.stack([source, target]), feature_names=names)
    return LabelledGraph(graph, y, tuple(f"class-{c}" for c in range(classes)), name="synthetic")
