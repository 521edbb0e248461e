"""What is said of edges that were left out, repaired, or there more than once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nodenova.errors import GraphError
from nodenova.io.edge_options import EdgeOptions
from nodenova.io.names import plain_texts
from nodenova.io.nodes import Nodes
from nodenova.io.tables import Rows, clipped


def no_counts() -> dict[str, Any]:
    """What is counted of edges, for `say`: nothing so far."""
    keys = ("rows", "unknown", "light", "repaired", "line", "loops", "again", "both_ways")
    return {**dict.fromkeys(keys, 0), "first": ()}


def say(
    rows: Rows,
    nodes: Nodes | None,
    counts: dict[str, Any],
    options: EdgeOptions,
    notes: list[str],
) -> None:
    """Note what was left out or repaired.

    Raises:
        GraphError: Edges name nodes that are not there, and are not to be dropped.
    """
    source = rows.source
    if counts["unknown"]:
        known = nodes.table.source if nodes is not None else ""
        first = " -> ".join(map(clipped, counts["first"]))
        said = f"{source}: {counts['unknown']:,} edges name nodes that {known} does not have"
        if not options.drop_unknown:
            drop = "give drop_unknown_edges (--drop-unknown-edges) to leave them out"
            hint = _other_ids(nodes, counts["first"]) or drop
            raise GraphError(f"{said}, first: {first} ({rows.unit} {counts['line']}); {hint}")
        notes.append(f"{said}; dropped, first: {first}")
    if counts["repaired"]:
        notes.append(f"{source}: {counts['repaired']:,} ids like '12.0' are read as '12'")
    least = options.min_weight
    if counts["light"]:
        limit = "no positive weight"
        if least is not None:
            limit += f", or one below {least:g},"
        notes.append(f"{source}: {counts['light']:,} edges with {limit} were dropped")
    if options.counts_weights:
        notes.append(f"{source}: weights of edges count: heavier neighbors are heard more")
    elif options.columns.weight is not None:
        notes.append(f"{source}: weights decide which edges are kept; the kept ones count alike")
    if counts["loops"]:
        notes.append(f"{source}: {counts['loops']:,} self-loops were dropped")
    if counts["again"]:
        kept = "their weights are added" if options.counts_weights else "each is kept once"
        notes.append(f"{source}: {counts['again']:,} edges are there more than once; {kept}")
    if counts["both_ways"]:
        said = "edges have no direction here"
        if options.counts_weights:
            said += ", weights are added unless all edges weigh the same both ways"
        notes.append(
            f"{source}: {counts['both_ways']:,} edges are there in both directions; {said}"
        )


def _other_ids(nodes: Nodes | None, ends: Sequence[str]) -> str:
    """A hint where another column than that of the ids has both ends of an edge."""
    for name, cells in () if nodes is None else nodes.table.columns.items():
        if {*ends} <= {*plain_texts(cells)}:
            return f"column {name!r} has these ids: give it as id_column (--id-column)"
    return ""


def count_repeated(ends: np.ndarray, counts: dict[str, Any]) -> None:
    """Count self-loops, edges that are there again, and those that are there both ways."""
    a, b = ends
    loops = a == b
    low = np.minimum(a, b)[~loops]
    high = np.maximum(a, b)[~loops]
    n = int(ends.max(initial=0)) + 1
    distinct = len(np.unique(low * n + high))
    directed = len(np.unique(a[~loops] * n + b[~loops]))
    counts |= {"loops": int(loops.sum()), "again": len(low) - directed}
    counts["both_ways"] = directed - distinct
