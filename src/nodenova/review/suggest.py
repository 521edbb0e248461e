"""From a model, a graph and the user's labels to suggestions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodenova.graph import Graph
from nodenova.model.model import Model
from nodenova.model.similarity import MergeSplit, estimate_merge_split
from nodenova.review.cross_validation import HeldOut, held_out, spare_fit
from nodenova.review.suggestions import (
    LabelSuggestion,
    MergeSuggestion,
    Node,
    SplitSuggestion,
    Suggestions,
)
from nodenova.review.user_labels import UserLabels

MIN_ONE = 0.5  # probability from which on two classes are suggested to be one
MIN_TWO = 0.3  # and one to be two, which is seldom much surer
MIN_WRONG = 0.9  # probability of another class from which on a label looks wrong


def suggest(
    model: Model, graph: Graph, labels: Sequence[int] | None = None, none_share: float = 0.0
) -> Suggestions:
    """What a model and a graph suggest to the person who decides.

    Args:
        model: Whose classes are looked at.
        graph: Whose nodes.
        labels: (N,) the id of the class that the user has said of each node, -1 for none; for
            labels that look wrong, and for nodes that fit none of the classes.
        none_share: About so many nodes of the known classes may be called "none of these".

    Returns:
        Pairs that look like one, classes that look like two, labels that look wrong, nodes that fit
        none of the classes.

    Raises:
        SettingError: `none_share` is no share, or there are too few labels to tell it.

    Examples:
        >>> import nodenova as nova
        >>> data = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> old, new, exam = nova.split(data, [0, 1])
        >>> model = nova.discover(nova.fit(old), new)
        >>> y = np.where(data.y < 2, data.y, -1)
        >>> y[old.train_ids[0]] = 1 - y[old.train_ids[0]]
        >>> wrong = nova.suggest(model, data.graph, y).labels[0]
        >>> bool(wrong.node == data.graph.node_ids[old.train_ids[0]])
        True
    """
    z, p = model.embed_and_predict(graph)
    user = None
    if labels is not None:
        called = [""] * (1 + max(c.id for c in model.classes))
        user = UserLabels(np.asarray(labels), called)
    judged = None if user is None else held_out(model, z, user.said_rows(model, p))
    fit = spare_fit(model, z, judged, none_share)
    likeness = estimate_merge_split(model, z, p)
    return suggestions(model, likeness, judged, user, graph.node_ids, fit, none_share)


def suggestions(
    model: Model,
    likeness: MergeSplit | None,
    judged: HeldOut | None,
    labels: UserLabels | None,
    node_ids: np.ndarray,
    fit: np.ndarray | None = None,
    none_share: float = 0.0,
) -> Suggestions:
    """Suggestions from what is known already; see `suggest`.

    Args:
        model: Whose classes are looked at.
        likeness: What `estimate_merge_split` gave.
        judged: What `held_out` gave.
        labels: The user's.
        node_ids: (N,) names of the nodes.
        fit: (N,) what `spare_fit` gave.
        none_share: With which.
    """
    none = () if fit is None else _fit_none(fit, labels, node_ids)
    wrong = () if judged is None or labels is None else _wrong(model, judged, labels, node_ids)
    if likeness is None:
        return Suggestions((), (), wrong, none, none_share)
    ids = [c.id for c in model.classes]
    pairs = np.argwhere(np.triu(np.nan_to_num(likeness.together)) >= MIN_ONE).tolist()
    merges = [MergeSuggestion((ids[a], ids[b]), float(likeness.together[a, b])) for a, b in pairs]
    twos = np.flatnonzero(np.nan_to_num(likeness.two) >= MIN_TWO).tolist()
    splits = [SplitSuggestion(ids[c], float(likeness.two[c])) for c in twos]
    return Suggestions(
        tuple(sorted(merges, key=lambda one: -one.probability)),
        tuple(sorted(splits, key=lambda one: -one.probability)),
        wrong,
        none,
        none_share,
    )


def _wrong(
    model: Model, judged: HeldOut, labels: UserLabels, node_ids: np.ndarray
) -> tuple[LabelSuggestion, ...]:
    p = np.nan_to_num(judged.p)
    best, meant = p.argmax(axis=1), labels.meant(model)[labels.class_ids[judged.ids]]
    at = np.arange(len(best))
    wrong = np.flatnonzero(~meant[at, best] & (p[at, best] >= MIN_WRONG))
    texts = labels.texts(model)
    found = [
        LabelSuggestion(
            node_ids[judged.ids[i]].item(),
            texts[judged.ids[i]],
            model.classes[best[i]].id,
            float(p[i, best[i]]),
        )
        for i in wrong[np.argsort(-p[wrong, best[wrong]], kind="stable")]
    ]
    return tuple(found)


def _fit_none(fit: np.ndarray, labels: UserLabels | None, node_ids: np.ndarray) -> tuple[Node, ...]:
    """The nodes without a label that fit none of the classes, the farthest first."""
    far = np.flatnonzero(fit < 0 if labels is None else (fit < 0) & ~labels.labelled)
    return tuple(node_ids[far[np.argsort(fit[far], kind="stable")]].tolist())
