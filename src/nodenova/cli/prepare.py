"""nodenova prepare: convert a graph to a folder that is read from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nodenova.cli.app import OWN, DataRoot, Quiet, app, loading, out, print_notes
from nodenova.cli.graph_options import GraphFiles, takes_graph
from nodenova.cli.progress import Bars
from nodenova.errors import SettingError


@app.command(rich_help_panel=OWN)
@takes_graph()
def prepare(
    folder: Annotated[Path, typer.Option("--out", help="Folder to write the graph to.")],
    files: GraphFiles,
    dataset: Annotated[str | None, typer.Option(help="Instead of files: a dataset by name.")] = None,
    data_root: DataRoot = None,
    memory: Annotated[str, typer.Option(help="Memory for sorting tables before it uses the disk.")] = "1GB",
    overwrite: Annotated[bool, typer.Option(help="Replace the graph folder at --out.")] = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Convert a large graph to an on-disk folder (use it with --graph).

    CSV and Parquet tables are converted in bounded memory, however large they are (needs DuckDB:
    pip install 'nodenova\\[scale]'). Other graphs and datasets are read into memory first. The
    result is the same graph that other commands would read from these files.
    """
    has_tables = files.nodes is not None or files.edges is not None
    if (files.graph is not None) + has_tables + (dataset is not None) != 1:
        raise SettingError(
            "give one of --graph FILE, --nodes FILE with --edges FILE, or --dataset NAME"
        )
    with loading(quiet, "loading"):
        from nodenova.io.datasets import load_dataset
        from nodenova.io.graph_folder.prepare import convert, prepare_graph
        from nodenova.io.load import load_graph
    if dataset is not None:
        convert(load_dataset(dataset, data_root), folder, overwrite)
        graph = load_graph(folder)
    else:
        with Bars(not quiet, "reading files") as progress:
            graph = prepare_graph(
                folder, files.graph, nodes=files.nodes, edges=files.edges, memory=memory,
                overwrite=overwrite, progress=progress, **vars(files.options),
            )  # fmt: skip
    if not quiet:
        print_notes(graph.notes)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
        text = f"{graph.graph}: {escape(str(folder))}, {size:,.1f} MiB"
        out.print(text, highlight=False, soft_wrap=True)
