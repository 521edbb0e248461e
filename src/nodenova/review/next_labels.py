"""Labels for the next discovery, out of what people have decided of this one."""

from __future__ import annotations

import numpy as np

from nodenova.model.classes import has_own_name
from nodenova.model.decisions import Relabel
from nodenova.review.run import DiscoveryRun

MIN_SETTLED = 0.9  # probability from which on a node of a named class takes its name as a label


def next_labels(run: DiscoveryRun) -> dict[str, list[object]]:
    """A table of labels: the user's own, those of nodes moved by hand, those of settled classes.

    A discovered class is settled when somebody has named it; its surer nodes are labelled so.

    Args:
        run: With the decisions in it.

    Returns:
        Columns node, label and why (yours, moved or settled): what `nodenova discover --labels`
        reads.
    """
    moved = {str(n) for d in run.history.decisions if isinstance(d, Relabel) for n in d.nodes}
    found = run.predictions
    named = np.array([c.is_new and has_own_name(c) for c in run.model.classes], dtype=bool)
    settled = named[found.row] & (found.probability >= MIN_SETTLED)
    if found.fits_none is not None:
        settled &= ~found.fits_none
    table: dict[str, list[object]] = {"node": [], "label": [], "why": []}
    rows = zip(found.node_ids.tolist(), found.label, settled.tolist(), found.row, strict=True)
    for node, label, is_settled, row in rows:
        if label:
            line = (node, label, "moved" if str(node) in moved else "yours")
        elif is_settled:
            line = (node, found.names[row], "settled")
        else:
            continue
        for column, value in zip(table.values(), line, strict=True):
            column.append(value)
    return table
