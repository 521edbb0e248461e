"""nodenova count: how many unknown classes there seem to be in a graph of one's own, if any."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from nodenova.cli import files
from nodenova.cli.app import OWN, Quiet, Threads, app, err, fail, loading, out, print_notes

if TYPE_CHECKING:
    from nodenova.prism.count import Count


@app.command(rich_help_panel=OWN)
def count(
    graph: files.GraphPath = None,
    nodes: files.NodesPath = None,
    edges: files.EdgesPath = None,
    id_column: files.IdColumn = None,
    label_column: files.LabelColumn = None,
    text_columns: files.TextColumns = None,
    features: files.Features = None,
    new_nodes: files.NewNodes = None,
    new_column: files.NewColumn = None,
    all_new: files.AllNew = False,
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
    seed: Annotated[int, typer.Option(help="The same seed gives the same answer.")] = 0,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the answer as JSON, for machines.")] = None,
    threads: Threads = "auto",
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Say how many unknown classes there seem to be in a graph of your own, and write no model.

    Takes what `nodenova discover` takes, and tells what that would look for by --num-new auto: the
    likeliest number, and how likely its neighbors are. 0 means that all seems to be known.
    """
    mixed = files.is_mixed(all_new, new_nodes, new_column)
    loaded = files.load_files(
        graph, nodes, edges, id_column=id_column, label_column=label_column,
        text_columns=text_columns, features=features, new_nodes=new_nodes, new_column=new_column,
        source_column=source_column, target_column=target_column, weight_column=weight_column,
        min_weight=min_weight, weights=weights, edge_type_column=edge_type_column,
        edge_types=edge_types, text_vectors=text_vectors, drop_unknown_edges=drop_unknown_edges,
        delimiter=delimiter, encoding=encoding, show=not quiet,
    )  # fmt: skip
    if not quiet:
        print_notes(loaded.notes)
    with loading(quiet):
        from nodenova.cli.progress import Bars
        from nodenova.data.tasks import tasks_from_labels
        from nodenova.discovery import count_new
        from nodenova.files import to_json, write_atomically
        from nodenova.fitting import fit
        from nodenova.nn.passes import shared_passes
    old, new, _ = tasks_from_labels(loaded, mixed=mixed, seed=seed)
    try:
        with shared_passes(), Bars(err, show=not quiet) as bars:
            model = fit(old, seed=seed, watcher=bars.watcher(seed, "fit"))
            found = count_new(model, new, seed=seed)
    except KeyboardInterrupt:
        fail("stopped; nothing was written", 130)
    if json_path is not None:
        told = {"low": found.low, "high": found.high, "sentence": found.sentence()}
        document = {**asdict(found), **told, "mixed": new.mixed, "seed": seed}
        write_atomically(json_path, to_json(document))
    if not quiet:
        out.print(found.sentence(), markup=False, highlight=False, soft_wrap=True)
        print_numbers(found)


def print_numbers(found: Count) -> None:
    """How likely each number is, from one below to one above those that are likely."""
    table = Table("unknown classes", "probability", box=None, pad_edge=False)
    most = len(found.probabilities) - 1
    for number in range(max(found.low - 1, 0), min(found.high + 1, most) + 1):
        table.add_row(str(number), f"{found.probabilities[number]:.0%}")
    out.print(table)
