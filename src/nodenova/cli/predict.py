"""nodenova predict: a saved model on a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from nodenova.cli.app import DataRoot, Quiet, RunPath, app, load_named, out
from nodenova.errors import SettingError


@app.command()
def predict(
    run_path: RunPath,
    graph: Annotated[Path | None, typer.Option(help="The graph to classify, as npz.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Or a dataset by name.")] = None,
    data_root: DataRoot = None,
    path: Annotated[Path, typer.Option("--out", help="CSV file for the predictions.")] = Path("predictions.csv"),
    seed: Annotated[int | None, typer.Option(help="Which seed's model (default: the first).")] = None,
    unsure_below: Annotated[float, typer.Option(help="Mark nodes whose class is less probable than this as unsure.")] = 0.5,
    quiet: Quiet = False,
) -> None:
    """Classify every node of a graph with a saved model: node, class id, class name, old or new, probability, unsure."""
    from nodenova.experiments.folder import RunFolder
    from nodenova.experiments.predictions import predictions_csv
    from nodenova.storage import load_model, write_atomically

    model = load_model(run_path) if (run_path / "model.json").is_file() else RunFolder.open(run_path).model(seed)
    labelled, _ = load_named(dataset, graph, data_root, 0)
    if not 0 <= unsure_below <= 1:
        raise SettingError(f"--unsure-below is a probability from 0 to 1, not {unsure_below}")
    content, counts, unsure = predictions_csv(model, labelled.graph, unsure_below)
    write_atomically(path, content)
    if not quiet:
        table = Table("class", "name", "", "nodes", box=None)
        for c, count in zip(model.classes, counts, strict=True):
            table.add_row(str(c.id), escape(c.name), "new" if c.is_new else "old", f"{count:,}")
        out.print(table)
        out.print(
            f"\n{unsure:,} of {len(labelled.graph.node_ids):,} nodes are unsure (probability below {unsure_below:g})."
        )
        out.print(f"Predictions: {escape(str(path))}", soft_wrap=True)
