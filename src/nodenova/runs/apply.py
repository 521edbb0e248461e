"""Decisions of reviews: made part of a model and its labels, or taken back.

Beside the model, the folder of a reviewed run has `decisions.json`, and `origin/` with the model
and the labels before the first review: to undo a decision, all others are applied to these again.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from nodenova.errors import NodenovaError, SettingError, StorageError
from nodenova.files.arrays import read_npz
from nodenova.files.atomic import write_atomically
from nodenova.graph import Graph
from nodenova.model.classes import has_own_name
from nodenova.model.decisions import Create, Decision, Relabel, Unlabel
from nodenova.model.edits import apply_decision, places_of
from nodenova.model.loading import load_model
from nodenova.model.model import Model
from nodenova.model.saving import weights_digest
from nodenova.review.review_file import History, Review
from nodenova.review.user_labels import NO_LABEL
from nodenova.runs.run import DiscoveryRun
from nodenova.settings import check_arguments

LABELS = "labels.npz"
MIN_SETTLED = 0.9  # probability from which on a node of a named class gets its name as a label
ORIGIN = "origin"


def apply_review(model: Model, review: Review | object, graph: Graph | None = None) -> Model:
    """Apply all decisions of a review to a model, or none of them if one cannot be applied.

    A relabel or unlabel changes labels, which are not part of a model: it is only checked here, and
    is applied by the run that has the labels (`nova.open_run(...).apply`).

    Args:
        model: Model that was reviewed. It is not changed.
        review: The review, or its document: the content of review.json.
        graph: Graph of the model; needed only for splits and created classes.

    Returns:
        A model with the decisions applied.

    Raises:
        SettingError: If the review is of another model, or a decision cannot be applied.

    Examples:
        >>> import nodenova as nova
        >>> from nodenova.model.decisions import Rename
        >>> from nodenova.model.saving import weights_digest
        >>> from nodenova.review.review_file import Review
        >>> old, new, _ = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), old=[0, 1])
        >>> model = nova.discover(nova.fit(old), new)
        >>> review = Review(weights_digest(model), (Rename(class_id=2, name="plants"),))
        >>> nova.apply_review(model, review).class_names
        ('class-0', 'class-1', 'plants', 'new-3')
    """
    check_arguments(apply_review, locals())
    review = review if isinstance(review, Review) else Review.from_json(review)
    if review.model != weights_digest(model):
        raise SettingError("the review was made for another model (its sha256 is not this model's)")
    for number, decision in enumerate(review.decisions, start=1):
        try:
            model = apply_decision(model, decision, graph)
        except NodenovaError as error:
            raise SettingError(f"decision {number} ({decision.do}): {error}") from error
    return model


def with_ids(decisions: Sequence[Decision], before: Model, after: Model) -> list[Decision]:
    """The decisions that lead from one model to another, created classes with their ids."""
    made = iter(one for one in after.edits[len(before.edits) :] if isinstance(one, Create))
    return [
        replace(one, class_id=next(made).class_id) if isinstance(one, Create) else one
        for one in decisions
    ]


def undo_decisions(folder: Path, history: History, graph: Graph | None) -> Model:
    """The model of a run folder with the decisions of `history` alone, applied to its origin."""
    model = load_model(folder / ORIGIN / "model")
    for decision in history.decisions:
        model = apply_decision(model, decision, graph)
    return model


def relabel_all(
    decisions: Iterable[Decision], graph: Graph | None, labels: Mapping[str, np.ndarray] | None
) -> dict[str, np.ndarray] | None:
    """Content of labels.npz after decisions about nodes; None if there are none of these."""
    relabels = [one for one in decisions if isinstance(one, Relabel | Unlabel | Create)]
    if not relabels:
        return None
    if graph is None:
        do = relabels[0].do
        raise SettingError(f"{do}: the run has no graph, and no labels that could be corrected")
    if labels is None:
        labels = {"y": np.full(graph.num_nodes, NO_LABEL), "names": np.zeros(0, dtype=str)}
    return relabel_nodes(labels, graph, relabels)


def relabel_nodes(
    labels: Mapping[str, np.ndarray],
    graph: Graph,
    decisions: Iterable[Relabel | Unlabel | Create],
) -> dict[str, np.ndarray]:
    """Content of labels.npz after corrections; "told" are the labels of the first discovery.

    A created class must have its id.

    Examples:
        >>> graph = Graph.of(np.eye(2), [[0], [1]], node_ids=["a", "b"])
        >>> labels = {"y": np.array([0, -1]), "names": np.array(["oak"])}
        >>> after = relabel_nodes(labels, graph, [Relabel(("b",), 2)])
        >>> after["y"].tolist(), after["names"].tolist(), after["told"].tolist()
        ([0, 2], ['oak', '', ''], [0, -1])
    """
    y, names = labels["y"].copy(), [str(name) for name in labels["names"]]
    for decision in decisions:
        try:
            nodes = places_of(decision.nodes, graph)
        except SettingError as error:
            raise SettingError(f"{decision.do}: {error}") from error
        label = NO_LABEL if isinstance(decision, Unlabel) else decision.class_id
        if label is None:
            raise SettingError("create: the id of the class is missing")
        y[nodes] = label
        names += [""] * (label + 1 - len(names))
    return {"y": y, "names": np.array(names, dtype=str), "told": labels.get("told", labels["y"])}


def read_labels(folder: Path, graph: Graph | None = None) -> dict[str, np.ndarray] | None:
    """Content of a run's labels.npz: (N,) class ids `y` and their `names`; None without one."""
    labels = read_arrays(folder / LABELS, graph)
    if labels is not None and "names" not in labels:  # a run that stored numbers only
        labels["names"] = np.full(int(labels["y"].max(initial=NO_LABEL)) + 1, "", dtype=str)
    return labels


def write_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Write an npz file of a run whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    write_atomically(path, content.getvalue(), follow=False)


def read_arrays(
    path: Path, graph: Graph | None, num_classes: int | None = None
) -> dict[str, np.ndarray] | None:
    """Class ids of the nodes of `graph` in an npz file, by array, and `names` of classes.

    None if there is no such file. Ids are below the number of names or, without names, below
    `num_classes`, by default the number of nodes.
    """
    if not path.is_file():
        return None
    arrays = read_npz(path, error=StorageError)
    if "y" not in arrays:
        raise StorageError(f"{path}: damaged, the array y is missing")
    names = arrays.get("names")
    if names is not None and (names.ndim != 1 or (len(names) and names.dtype.kind != "U")):
        raise StorageError(f"{path}: damaged, names must be a list of texts")
    for name, y in arrays.items():
        if name != "names":
            n = y.size if graph is None else graph.num_nodes
            if y.shape != (n,) or y.dtype.kind not in "iu":
                what = f"{name} must be {n:,} whole numbers, it is {y.dtype} of shape {y.shape}"
                raise StorageError(f"{path}: damaged, {what}")
            most = len(names) if names is not None and len(names) else num_classes or n
            if n and (y.min() < NO_LABEL or y.max() >= most):
                what = f"{name} has class ids from {y.min()} to {y.max()}, but {most:,} classes"
                raise StorageError(f"{path}: damaged, {what}")
    return arrays


def next_labels(run: DiscoveryRun) -> dict[str, list[object]]:
    """Columns of labels.csv, for the next discovery: node, label and why.

    `why` is yours (the user's own label), moved (by hand) or settled: a sure node of a discovered
    class that has a name.
    """
    moved = {str(node) for move in run.moves for node in move.nodes}
    found = run.predictions
    named = np.array([c.is_new and has_own_name(c) for c in run.model.classes], dtype=bool)
    settled = named[found.row] & (found.probability >= MIN_SETTLED)
    if found.fits_none is not None:
        settled &= ~found.fits_none
    lines: list[tuple[object, str, str]] = []
    rows = zip(found.node_ids.tolist(), found.label, settled.tolist(), found.row, strict=True)
    for node, label, is_settled, row in rows:
        if label:
            lines.append((node, label, "moved" if str(node) in moved else "yours"))
        elif is_settled:
            lines.append((node, found.names[row], "settled"))
    return {name: [line[i] for line in lines] for i, name in enumerate(("node", "label", "why"))}
