"""What a model says of every node of a graph, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nodenova.files import table_content
from nodenova.graph import Graph
from nodenova.model.model import Model
from nodenova.review.user_labels import NO_LABEL, UserLabels

COLUMNS = ("node", "class", "name", "kind", "probability", "unsure", "label", "agrees")


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of every node: one entry a node.

    Attributes:
        model: Whose classes these are.
        names: What each class is called.
        node_ids: (N,) names of the nodes.
        row: (N,) the class of each, a row of `model.classes`.
        probability: (N,) of that class.
        unsure: (N,) whether that is too little.
        label: (N,) the user's own label of each, "" for none.
        agrees: (N,) whether the model says the same: yes, no, or "" where there is no label.
        fits_none: (N,) whether a node fits none of the classes; None if nobody asked. Its class is
            the likeliest all the same.
    """

    model: Model
    names: tuple[str, ...]
    node_ids: np.ndarray
    row: np.ndarray
    probability: np.ndarray
    unsure: np.ndarray
    label: Sequence[str]
    agrees: Sequence[str]
    fits_none: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        graph: Graph,
        min_confidence: float = 0.0,
        *,
        names: Sequence[str] | None = None,
        p: np.ndarray | None = None,
        labels: UserLabels | None = None,
        fits_none: np.ndarray | None = None,
        only: np.ndarray | None = None,
    ) -> Predictions:
        """Predictions of a model on a graph.

        Args:
            model: Which.
            graph: Of the nodes.
            min_confidence: A node whose class is less likely is unsure.
            names: What each class is called; what the model calls it unless given.
            p: What `model.predict_proba(graph)` gave, where that is known already.
            labels: What the user said of nodes, and whether they keep it; nothing unless given.
            fits_none: (N,) which nodes fit none of the classes, where that was asked.
            only: (n,) numbers of the nodes that are asked for, by what is near them alone; all
                nodes unless given. Then p and what follows from it have n rows.
        """
        node_ids = graph.node_ids if only is None else graph.node_ids[only]
        if p is None:
            p = model.predict_proba(graph, only=None if only is None else node_ids)
        if only is not None:
            labels = None if labels is None else labels.of_nodes(only)
            fits_none = None if fits_none is None else fits_none[only]
        if labels is None:
            labels = UserLabels(np.full(len(p), NO_LABEL), ())
        row = labels.rows(model, p)
        of_it = np.take_along_axis(p, row[:, None], axis=1)[:, 0]
        names = tuple(model.class_names if names is None else names)
        return cls(
            model,
            names=names,
            node_ids=node_ids,
            row=row,
            probability=of_it,
            unsure=of_it < min_confidence,
            label=labels.texts(model, names),
            agrees=labels.agrees(model, p),
            fits_none=fits_none,
        )

    @property
    def counts(self) -> np.ndarray:
        """(classes,) nodes in each class."""
        return np.bincount(self.row, minlength=len(self.model.classes))

    def columns(self) -> dict[str, list[object]]:
        """The table, by column; `fits_none` only where that was asked."""
        classes = [self.model.classes[row] for row in self.row]
        table: dict[str, list[object]] = {
            "node": self.node_ids.tolist(),
            "class": [c.id for c in classes],
            "name": [self.names[row] for row in self.row],
            "kind": [c.kind for c in classes],
            "probability": [round(p, 4) for p in self.probability.tolist()],
            "unsure": ["yes" if unsure else "no" for unsure in self.unsure],
            "label": list(self.label),
            "agrees": list(self.agrees),
        }
        if self.fits_none is not None:
            table["fits_none"] = ["yes" if none else "no" for none in self.fits_none]
        return table

    def content(self, path: Path) -> bytes:
        """The table as a file, Parquet if the name ends so, else CSV."""
        return table_content(self.columns(), path)


def with_known_features(graph: Graph, names: Sequence[str] | None) -> tuple[Graph, list[str]]:
    """The graph with the features that a model knows by their names, in the model's order.

    Args:
        graph: Any.
        names: Of the features that the model knows; None where they have none.

    Returns:
        The graph, and what did not match, as sentences.
    """
    if names is None or graph.feature_names is None or graph.feature_names == tuple(names):
        return graph, []
    matched, ignored, missing = graph.aligned(names)
    said = f"{ignored:,} features are not known to the model and ignored"
    return matched, [f"{said}, {missing:,} that it knows are missing and zero"]


def as_known(graph: Graph, known: Graph) -> Graph:
    """A later graph with the features of one that a model knows, dense or sparse as they are there.

    Words and measurements are read in different ways: few nodes do not decide which it is.
    """
    graph, _ = with_known_features(graph, known.feature_names)
    dense = isinstance(known.x, np.ndarray)
    if isinstance(graph.x, np.ndarray) == dense:
        return graph
    x = Graph.of(graph.x, np.zeros((2, 0), dtype=np.int64), dense=dense).x
    return graph.with_features(x, graph.feature_names)


