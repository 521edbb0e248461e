"""nodenova count: how many unknown classes there seem to be in a graph of one's own, if any.

nodenova inspect: what was understood of a graph of one's own.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from nodenova.cli import graph_options
from nodenova.cli.app import OWN, Quiet, Threads, app, fail, loading, out, print_notes
from nodenova.cli.graph_options import entries_of, estimate, sentence
from nodenova.display import percent

if TYPE_CHECKING:
    from nodenova.open_world.count import ClassCountEstimate

if TYPE_CHECKING:
    pass


@app.command(rich_help_panel=OWN)
def inspect(
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
    json_path: Annotated[
        Path | None, typer.Option("--json", help="Write the same as JSON.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """What was understood of a graph of your own, and what looks wrong with it.

    Its nodes, edges, features and classes.
    """
    loaded = graph_options.load_files(
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


@app.command(rich_help_panel=OWN)
def count(
    graph: graph_options.GraphPath = None,
    nodes: graph_options.NodesPath = None,
    edges: graph_options.EdgesPath = None,
    id_column: graph_options.IdColumn = None,
    label_column: graph_options.LabelColumn = None,
    text_columns: graph_options.TextColumns = None,
    features: graph_options.Features = None,
    new_nodes: graph_options.NewNodes = None,
    new_column: graph_options.NewColumn = None,
    all_new: graph_options.AllNew = False,
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
    seed: Annotated[int, typer.Option(help="The same seed gives the same answer.")] = 0,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the answer as JSON, for machines.")] = None,
    threads: Threads = "auto",
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Say how many unknown classes there seem to be in a graph of your own, and write no model.

    Takes what `nodenova discover` takes, and tells what that would look for by --num-new auto: the
    likeliest number, and how likely its neighbors are. 0 means that all seems to be known.
    """
    mixed = graph_options.is_mixed(all_new, new_nodes, new_column)
    loaded = graph_options.load_files(
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
        from nodenova.nn.encode_cache import shared_passes
    old, new, _ = tasks_from_labels(loaded, mixed=mixed, seed=seed)
    try:
        with shared_passes(), Bars(not quiet) as bars:
            model = fit(old, seed=seed, progress=bars)
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


def print_numbers(found: ClassCountEstimate) -> None:
    """How likely each number is, from one below to one above those that are likely."""
    table = Table("unknown classes", "probability", box=None, pad_edge=False)
    most = len(found.probabilities) - 1
    for number in range(max(found.low - 1, 0), min(found.high + 1, most) + 1):
        table.add_row(str(number), percent(found.probabilities[number]))
    out.print(table)
