"""Labels for the next discovery, out of what people have decided of this one.

Labels that their user takes back, in the file where a run keeps them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from nodenova.errors import SettingError
from nodenova.files import write_atomically
from nodenova.graph import Graph
from nodenova.model.classes import has_own_name
from nodenova.model.decisions import Relabel
from nodenova.review.user_labels import NO_LABEL
from nodenova.runs.run import DiscoveryRun

LABELS = "labels.npz"  # of a run, beside its model


def corrected(
    kept: Mapping[str, np.ndarray], graph: Graph, decisions: Iterable[Relabel]
) -> dict[str, np.ndarray]:
    """The labels of a run after some of them were corrected.

    Args:
        kept: What `LABELS` holds: y, (N,) ids of classes, and names, what the user calls them.
        graph: Whose nodes these are.
        decisions: Taken in order.

    Returns:
        What `LABELS` holds from now on; "told" are the labels as they were at first.

    Raises:
        SettingError: A node is not in the graph.

    Examples:
        >>> graph = Graph.of(np.eye(2), [[0], [1]], node_ids=["a", "b"])
        >>> kept = {"y": np.array([0, -1]), "names": np.array(["oak"])}
        >>> after = corrected(kept, graph, [Relabel(("b",), 2)])
        >>> after["y"].tolist(), after["names"].tolist(), after["told"].tolist()
        ([0, 2], ['oak', '', ''], [0, -1])
    """
    place = {str(node): i for i, node in enumerate(graph.node_ids.tolist())}
    y, names = kept["y"].copy(), [str(name) for name in kept["names"]]
    for decision in decisions:
        for node in decision.nodes:
            if str(node) not in place:
                raise SettingError(f"relabel: there is no node {node!r} in the graph of the run")
            y[place[str(node)]] = decision.class_id
        names += [""] * (decision.class_id + 1 - len(names))
    return {"y": y, "names": np.array(names, dtype=str), "told": kept.get("told", kept["y"])}


def no_labels(graph: Graph) -> dict[str, np.ndarray]:
    """What a run holds of labels where nobody has said anything of a node."""
    return {"y": np.full(graph.num_nodes, NO_LABEL), "names": np.zeros(0, dtype=str)}


def read_labels(folder: Path) -> dict[str, np.ndarray] | None:
    """What a run's folder keeps of the user's labels; None where it keeps nothing."""
    path = folder / LABELS
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    if "names" not in kept:  # a run that kept numbers alone
        kept["names"] = np.full(int(kept["y"].max(initial=NO_LABEL)) + 1, "", dtype=str)
    return kept


def write_labels(folder: Path, labels: Mapping[str, np.ndarray]) -> None:
    """Keep these labels in a run's folder, whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(content, **labels)  # type: ignore[arg-type]
    write_atomically(folder / LABELS, content.getvalue())


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
