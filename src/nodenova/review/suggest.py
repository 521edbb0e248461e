"""Suggestions computed from a model, a graph and the user's labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodenova.graph import Graph
from nodenova.model.decisions import Relabel
from nodenova.model.model import Model
from nodenova.model.similarity import MergeSplit, estimate_merge_split
from nodenova.review.cross_validation import HeldOut, cross_validate, spare_fit
from nodenova.review.suggestions import (
    MIN_SAME,
    MIN_TWO,
    MIN_WRONG,
    LabelSuggestion,
    MergeSuggestion,
    Node,
    SplitSuggestion,
    Suggestions,
    without_reversals,
)
from nodenova.review.user_labels import UserLabels
from nodenova.settings import check_arguments


def suggest(
    model: Model, graph: Graph, labels: Sequence[int] | None = None, none_share: float = 0.0
) -> Suggestions:
    """Suggest merges, splits, label corrections and outliers for review.

    No suggestion reverses an edit of the model: parts of a split are not suggested to be one, nor a
    class that was named or merged to be two, nor two named classes to be one.

    Args:
        model: Model whose classes are compared.
        graph: Graph whose nodes are used.
        labels: (N,) class id that the user gave each node, -1 for none. Needed to find labels that
            look wrong and nodes that fit none of the classes.
        none_share: Share of known-class nodes that may be flagged as "none of these" by mistake; 0
            flags no nodes.

    Returns:
        Pairs of classes that look like one, classes that look like two, labels that look wrong, and
        nodes that fit none of the classes.

    Raises:
        SettingError: If `none_share` is outside [0, 1) or there are too few labels for it.

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
    check_arguments(suggest, locals())
    z, p = model.embed_and_predict(graph)
    user = held_out = None
    if labels is not None:
        names = [""] * (1 + max(c.id for c in model.classes))
        user = UserLabels(np.asarray(labels), names)
        held_out = cross_validate(model, z, user.label_rows(model, p))
    fit = spare_fit(model, z, held_out, none_share)
    merge_split = estimate_merge_split(model, z, p)
    return build_suggestions(model, merge_split, held_out, user, graph.node_ids, fit, none_share)


def build_suggestions(
    model: Model,
    merge_split: MergeSplit | None,
    held_out: HeldOut | None,
    labels: UserLabels | None,
    node_ids: np.ndarray,
    fit: np.ndarray | None = None,
    none_share: float = 0.0,
    moves: Sequence[Relabel] = (),
) -> Suggestions:
    """Suggestions from `estimate_merge_split`, `cross_validate` and `spare_fit`; see `suggest`.

    `moves` are the relabels of a person, in order, which are not among the edits of a model.
    """
    none = () if fit is None else _fit_none(fit, labels, node_ids)
    wrong: tuple[LabelSuggestion, ...] = ()
    if held_out is not None and labels is not None:
        wrong = _wrong_labels(model, held_out, labels, node_ids)
    merges: list[MergeSuggestion] = []
    splits: list[SplitSuggestion] = []
    if merge_split is not None:
        merges, splits = _similar(model, merge_split)
    found = Suggestions(tuple(merges), tuple(splits), wrong, none, none_share)
    known = [c.id for c in model.classes if not c.is_new]
    return without_reversals(found, (*model.edits, *moves), known)


def _similar(
    model: Model, merge_split: MergeSplit
) -> tuple[list[MergeSuggestion], list[SplitSuggestion]]:
    """Classes that look like one, and classes that look like two, the most probable first."""
    ids = [c.id for c in model.classes]
    pairs = np.argwhere(np.triu(np.nan_to_num(merge_split.together)) >= MIN_SAME).tolist()
    same = merge_split.together
    merges = [MergeSuggestion((ids[a], ids[b]), float(same[a, b])) for a, b in pairs]
    twos = np.flatnonzero(np.nan_to_num(merge_split.two) >= MIN_TWO).tolist()
    splits = [SplitSuggestion(ids[c], float(merge_split.two[c])) for c in twos]
    merges.sort(key=lambda one: -one.probability)
    splits.sort(key=lambda one: -one.probability)
    return merges, splits


def _wrong_labels(
    model: Model, held_out: HeldOut, labels: UserLabels, node_ids: np.ndarray
) -> tuple[LabelSuggestion, ...]:
    """Labels whose nodes are confidently put into another class, the most probable first."""
    p = np.nan_to_num(held_out.p)
    best, mask = p.argmax(axis=1), labels.class_mask(model)[labels.class_ids[held_out.ids]]
    at = np.arange(len(best))
    wrong = np.flatnonzero(~mask[at, best] & (p[at, best] >= MIN_WRONG))
    texts = labels.texts(model)
    return tuple(
        LabelSuggestion(
            node_ids[held_out.ids[i]].item(),
            texts[held_out.ids[i]],
            model.classes[best[i]].id,
            float(p[i, best[i]]),
        )
        for i in wrong[np.argsort(-p[wrong, best[wrong]], kind="stable")]
    )


def _fit_none(fit: np.ndarray, labels: UserLabels | None, node_ids: np.ndarray) -> tuple[Node, ...]:
    """Unlabelled nodes that fit none of the classes, the farthest first."""
    far = np.flatnonzero(fit < 0 if labels is None else (fit < 0) & ~labels.labelled)
    return tuple(node_ids[far[np.argsort(fit[far], kind="stable")]].tolist())
