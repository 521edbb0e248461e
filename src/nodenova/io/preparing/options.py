"""Options of tables that become graph folders."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TypedDict

from nodenova.io.edge_options import EdgeColumns, EdgeOptions, EdgeTypes, shares_of
from nodenova.io.tables import Progress
from nodenova.io.text_vectors import TextVectors


class TableOptions(TypedDict):
    """Options of `load_graph` for tables."""

    id_column: str | None
    label_column: str | None
    text_columns: Sequence[str]
    features: Sequence[str] | None
    new_nodes: str | PathLike[str] | Sequence[object] | None
    new_column: str | None
    source_column: str | None
    target_column: str | None
    weight_column: str | None
    min_weight: float | None
    weights: str | None
    edge_type_column: str | None
    edge_types: EdgeTypes | None
    drop_unknown_edges: bool
    delimiter: str | None
    encoding: str | None
    max_words: int
    text_vectors: TextVectors | None
    name: str | None
    progress: Progress


def edge_options(options: TableOptions) -> EdgeOptions:
    """What they say of edges."""
    columns = EdgeColumns(
        options["source_column"],
        options["target_column"],
        options["weight_column"],
        options["edge_type_column"],
    )
    return EdgeOptions(
        columns,
        options["min_weight"],
        options["weights"] or "count",
        shares_of(options["edge_types"]),
        options["drop_unknown_edges"],
    )


def why_in_memory(options: TableOptions) -> str:
    """Why tables that could stay on disk are read into memory; "" where they are not."""
    if options["edge_type_column"] is not None:
        return "edges with types are"
    return "" if options["text_vectors"] is None else "tables with vectors of texts are"
