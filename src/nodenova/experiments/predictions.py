"""Predictions for every node of a graph as CSV."""

from __future__ import annotations

import csv
import io

import numpy as np

from nodenova.graph import Graph
from nodenova.model import Model


def predictions_csv(model: Model, graph: Graph, unsure_below: float = 0.0) -> tuple[bytes, np.ndarray, int]:
    """The file's content (node, class, name, kind, probability, unsure), nodes in each class, and how many are unsure."""
    probabilities = model.predict_proba(graph)
    predicted = probabilities.argmax(axis=1)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["node", "class", "name", "kind", "probability", "unsure"])
    for node, c, p in zip(graph.node_ids, predicted, probabilities.max(axis=1), strict=True):
        found = model.classes[c]
        writer.writerow(
            [node, found.id, found.name, "new" if found.is_new else "old", f"{p:.4f}", "yes" if p < unsure_below else "no"]
        )
    counts = np.bincount(predicted, minlength=len(model.classes))
    return text.getvalue().encode(), counts, int((probabilities.max(axis=1) < unsure_below).sum())
