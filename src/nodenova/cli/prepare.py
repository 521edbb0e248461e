"""nodenova prepare: a graph as a folder that every command reads without loading it whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nodenova.cli import graph_options
from nodenova.cli.app import (
    OWN,
    DataRoot,
    Quiet,
    app,
    fail,
    listed_names,
    loading,
    out,
    print_notes,
)
from nodenova.cli.progress import Bars
from nodenova.errors import SettingError


@app.command(rich_help_panel=OWN)
def prepare(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the graph.")],
    graph: graph_options.GraphPath = None,
    nodes: graph_options.NodesPath = None,
    edges: graph_options.EdgesPath = None,
    id_column: graph_options.IdColumn = None,
    label_column: graph_options.LabelColumn = None,
    text_columns: graph_options.TextColumns = None,
    features: graph_options.Features = None,
    new_nodes: graph_options.NewNodes = None,
    new_column: graph_options.NewColumn = None,
    source_column: graph_options.SourceColumn = None,
    target_column: graph_options.TargetColumn = None,
    weight_column: graph_options.WeightColumn = None,
    min_weight: graph_options.MinWeight = None,
    weights: graph_options.Weights = None,
    edge_type_column: graph_options.EdgeTypeColumn = None,
    edge_types: graph_options.EdgeTypes = None,
    drop_unknown_edges: graph_options.DropUnknown = False,
    delimiter: graph_options.Delimiter = None,
    encoding: graph_options.Encoding = None,
    text_vectors: graph_options.TextVectors = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Instead of files: a dataset by name.")] = None,
    data_root: DataRoot = None,
    memory: Annotated[str, typer.Option(help="What the sorting of tables may use before it goes to disk.")] = "1GB",
    overwrite: Annotated[bool, typer.Option(help="Replace the graph that --out holds.")] = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Write a graph folder, which every command takes as --graph and none reads whole into memory.

    CSV and Parquet tables become one in bounded memory, however large they are (with DuckDB: pip
    install 'nodenova\\[scale]'); other graphs and datasets are converted. The graph is the same as
    the one that the other commands would read from these files.
    """
    given = graph is not None or nodes is not None or edges is not None
    if given == (dataset is not None) or (
        graph is not None and (nodes is not None or edges is not None)
    ):
        raise SettingError(
            "give --graph FILE, or --nodes FILE and --edges FILE, or --dataset NAME, and one of them"
        )
    with loading(quiet, "loading"):
        from nodenova.io.datasets import load_dataset
        from nodenova.io.graph_folder.prepare import convert, prepare_graph
        from nodenova.io.load import load_graph
    try:
        if dataset is not None:
            convert(load_dataset(dataset, data_root), folder, overwrite)
            made = load_graph(folder)
        else:
            with Bars(not quiet, "reading files") as bars:
                made = prepare_graph(
                    folder, graph, nodes=nodes, edges=edges, id_column=id_column,
                    label_column=label_column, text_columns=tuple(text_columns or ()),
                    features=None if features is None else listed_names(features),
                    new_nodes=new_nodes, new_column=new_column, source_column=source_column,
                    target_column=target_column, weight_column=weight_column,
                    min_weight=min_weight, weights=weights, edge_type_column=edge_type_column,
                    edge_types=edge_types, text_vectors=text_vectors,
                    drop_unknown_edges=drop_unknown_edges,
                    delimiter=delimiter, encoding=encoding, memory=memory, overwrite=overwrite,
                    progress=bars,
                )  # fmt: skip
    except KeyboardInterrupt:
        fail("stopped; nothing was written", 130)
    if not quiet:
        print_notes(made.notes)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
        out.print(
            f"{made.graph}: {escape(str(folder))}, {size:,.1f} MiB", highlight=False, soft_wrap=True
        )
