"""nodenova inspect: what was understood of a graph of one's own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from nodenova.cli import files
from nodenova.cli.app import OWN, Quiet, app, out
from nodenova.cli.estimate import entries_of, estimate, sentence


@app.command(rich_help_panel=OWN)
def inspect(
    graph: files.GraphPath = None,
    nodes: files.NodesPath = None,
    edges: files.EdgesPath = None,
    id_column: files.IdColumn = None,
    label_column: files.LabelColumn = None,
    text_columns: files.TextColumns = None,
    features: files.Features = None,
    new_nodes: files.NewNodes = None,
    new_column: files.NewColumn = None,
    source_column: files.SourceColumn = None,
    target_column: files.TargetColumn = None,
    weight_column: files.WeightColumn = None,
    min_weight: files.MinWeight = None,
    weights: files.Weights = None,
    edge_type_column: files.EdgeTypeColumn = None,
    edge_types: files.EdgeTypes = None,
    drop_unknown_edges: files.DropUnknown = False,
    delimiter: files.Delimiter = None,
    encoding: files.Encoding = None,
    text_vectors: files.TextVectors = None,
    json_path: Annotated[
        Path | None, typer.Option("--json", help="Write the same as JSON.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """What was understood of a graph of your own, and what looks wrong with it.

    Its nodes, edges, features and classes.
    """
    loaded = files.load_files(
        graph,
        nodes,
        edges,
        id_column=id_column,
        label_column=label_column,
        text_columns=text_columns,
        features=features,
        new_nodes=new_nodes,
        new_column=new_column,
        source_column=source_column,
        target_column=target_column,
        weight_column=weight_column,
        min_weight=min_weight,
        weights=weights,
        edge_type_column=edge_type_column,
        edge_types=edge_types,
        text_vectors=text_vectors,
        drop_unknown_edges=drop_unknown_edges,
        delimiter=delimiter,
        encoding=encoding,
        show=not quiet,
    )
    from nodenova.io.describe import describe, lines_of

    description, data = describe(loaded), loaded.graph
    if json_path is not None:
        from nodenova.files import to_json, write_atomically

        seconds, gb = estimate(data.num_nodes, data.num_edges, entries_of(data))
        takes_json = {"seconds_of_one_core": round(seconds), "gb_of_memory": round(gb, 2)}
        write_atomically(json_path, to_json({**asdict(description), "discover_takes": takes_json}))
    if not quiet:
        for line in lines_of(description):
            out.print(line, markup=False, highlight=False, soft_wrap=True)
        takes = f"nodenova discover takes {sentence(data)}"
        out.print(takes, markup=False, highlight=False, soft_wrap=True)
