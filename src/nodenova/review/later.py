"""A graph given to a model after it was made: its features, and what is known of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nodenova.data.labels import UserGraph
from nodenova.graph import Graph
from nodenova.model.model import Model
from nodenova.review.predictions import with_known_features
from nodenova.review.run import DiscoveryRun
from nodenova.review.user_labels import UserLabels, labels_of_later


@dataclass(frozen=True, eq=False)
class LaterGraph:
    """A graph, and what was said of its nodes.

    Attributes:
        graph: With the features that the model knows.
        labels: What the user said: in the graph, or before of nodes of the same ids.
        notes: What did not match, a sentence each.
        asked: (n,) numbers of the nodes that are asked for; None for all.
    """

    graph: Graph
    labels: UserLabels | None = None
    notes: Sequence[str] = ()
    asked: np.ndarray | None = None


def later_graph(
    model: Model,
    names: Sequence[str],
    loaded: UserGraph,
    *,
    features: Sequence[str] | None = None,
    earlier: DiscoveryRun | None = None,
    relabel: bool = False,
    is_told: bool = True,
) -> LaterGraph:
    """What a graph brings, as a model knows it.

    Args:
        model: Which.
        names: What its classes are called.
        loaded: The graph as it was read.
        features: Names of those that the model knows, where it does not know them itself.
        earlier: The run of the model, if that keeps its graph.
        relabel: Whether labelled nodes are put where the model does.
        is_told: Whether labels of the graph are a user's word.
    """
    data, unmatched = with_known_features(loaded.graph, features)
    if earlier is not None and (earlier.graph.edge_weight is None) != (data.edge_weight is None):
        now, then = ("do not count", "did") if data.edge_weight is None else ("count", "did not")
        unmatched.append(f"weights of edges {now} here; when the model was made they {then}")
    before, keep = None, not relabel
    if earlier is not None and earlier.labels is not None:
        before = (earlier.graph.node_ids.tolist(), earlier.labels)
        keep = keep and earlier.keep_labels
    said = ["" if c < 0 or not is_told else loaded.class_names[c] for c in loaded.y.tolist()]
    labels, strange = labels_of_later(model, names, data.node_ids.tolist(), said, before, keep)
    return LaterGraph(data, labels, [*unmatched, *strange])


def same_graph(run: DiscoveryRun, relabel: bool = False) -> LaterGraph:
    """The graph that a run keeps, as a later one."""
    kept = run.labels
    if kept is not None and relabel:
        kept = replace(kept, keep=False)
    return LaterGraph(run.graph, kept)
