"""nodenova predict and export: a saved model on the graph it knows, or on one that has grown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer
from rich.markup import escape
from rich.table import Table

from nodenova.cli import files
from nodenova.cli.app import (
    OWN,
    DataRoot,
    Quiet,
    app,
    check_probability,
    err,
    fail,
    out,
    print_notes,
)
from nodenova.errors import SettingError

if TYPE_CHECKING:
    from nodenova.graph import Graph
    from nodenova.model.model import Model
    from nodenova.review.user_labels import UserLabels

AnyRun = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="A folder of `nodenova discover`, `demo` or `run`, or a saved model."
    ),
]
DatasetName = Annotated[
    str | None, typer.Option("--dataset", help="Instead of files: a dataset by name.")
]
Seed = Annotated[
    int | None,
    typer.Option(help="Which seed's model, for a folder of `nodenova run` (default: the first)."),
]
FORMS = ("networkx", "pyg", "csv", "embeddings")


@app.command(rich_help_panel=OWN)
def predict(
    run_path: AnyRun,
    graph: files.GraphPath = None,
    nodes: files.NodesPath = None,
    edges: files.EdgesPath = None,
    id_column: files.IdColumn = None,
    source_column: files.SourceColumn = None,
    target_column: files.TargetColumn = None,
    weight_column: files.WeightColumn = None,
    min_weight: files.MinWeight = None,
    drop_unknown_edges: files.DropUnknown = False,
    delimiter: files.Delimiter = None,
    encoding: files.Encoding = None,
    dataset: DatasetName = None,
    data_root: DataRoot = None,
    path: Annotated[Path, typer.Option("--out", help="Table of predictions: .csv or .parquet.")] = Path("predictions.csv"),
    seed: Seed = None,
    min_confidence: Annotated[float, typer.Option(help="Mark nodes whose class is less probable than this as unsure.")] = 0.5,
    max_unsure: Annotated[float | None, typer.Option(help="End with exit code 3 if more than this share of the nodes is unsure.")] = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the summary as JSON, for machines.")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Classify every node: node, class id, name, old or new, probability, unsure, label, agrees.

    Without files, on the graph that the run keeps; labels that it was given are kept, unless
    `discover` was told otherwise. A changed or grown graph is given as for
    `nodenova discover`; its features are matched by name. Exit code 0, or 3 when --max-unsure is
    exceeded: a hint that a new discovery may be due. Nodes of a kind that was never met may also be
    put into a known class with confidence; few unsure nodes prove nothing.
    """
    from nodenova.files import to_json, write_atomically
    from nodenova.review.predictions import Predictions

    check_probability(min_confidence)
    if max_unsure is not None and not 0 <= max_unsure <= 1:
        raise SettingError(f"--max-unsure is a share from 0 to 1, not {max_unsure}")
    model, data, names, labels, notes = _model_and_graph(
        run_path, seed, dataset, data_root, graph, nodes, edges, quiet, id_column=id_column,
        source_column=source_column, target_column=target_column, weight_column=weight_column,
        min_weight=min_weight, drop_unknown_edges=drop_unknown_edges, delimiter=delimiter,
        encoding=encoding,
    )  # fmt: skip
    found = Predictions.of(model, data, min_confidence, names=names, labels=labels)
    write_atomically(path, found.content(path))
    unsure = int(found.unsure.sum())
    total = data.num_nodes
    share = f"{unsure:,} of {total:,} nodes"
    counts = [
        {"id": c.id, "name": name, "kind": "new" if c.is_new else "old", "nodes": count}
        for c, name, count in zip(model.classes, found.names, found.counts.tolist(), strict=True)
    ]
    if json_path is not None:
        summary = {
            "nodes": total,
            "unsure": unsure,
            "min_confidence": min_confidence,
            "classes": counts,
            "notes": notes,
        }
        write_atomically(json_path, to_json(summary))
    if not quiet:
        table = Table("class", "name", "", "nodes", box=None)
        for c in counts:
            table.add_row(str(c["id"]), escape(c["name"]), c["kind"], f"{c['nodes']:,}")
        out.print(table)
        out.print(f"\n{share} are unsure (probability below {min_confidence:g}).")
        out.print(f"Predictions: {escape(str(path))}", soft_wrap=True)
    if max_unsure is not None and unsure > max_unsure * total:
        fail(f"{share} are unsure, more than --max-unsure {max_unsure:g} allows", 3)


@app.command(rich_help_panel=OWN)
def export(
    run_path: AnyRun,
    to: Annotated[str, typer.Option("--to", help="networkx (GraphML), pyg (tensors for PyTorch Geometric), csv (nodes.csv, edges.csv) or embeddings.")],
    path: Annotated[Path, typer.Option("--out", help="File to write; a folder for csv. Embeddings: .npz, .csv or .parquet.")],
    graph: files.GraphPath = None,
    nodes: files.NodesPath = None,
    edges: files.EdgesPath = None,
    dataset: DatasetName = None,
    data_root: DataRoot = None,
    seed: Seed = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """The graph with its classes for other tools, or the embeddings of its nodes."""
    from nodenova.review.export import EXPORTS

    if to not in FORMS:
        raise SettingError(f"--to is one of {', '.join(FORMS)}, not {to!r}")
    model, data, names, labels, _ = _model_and_graph(
        run_path, seed, dataset, data_root, graph, nodes, edges, quiet
    )
    EXPORTS[to](model, data, path, names, labels)
    if not quiet:
        out.print(f"Written: {escape(str(path))}", soft_wrap=True)


def _model_and_graph(
    run_path: Path,
    seed: int | None,
    dataset: str | None,
    data_root: Path | None,
    graph: Path | None,
    nodes: Path | None,
    edges: Path | None,
    quiet: bool,
    **options: Unpack[files.FileOptions],
) -> tuple[Model, Graph, Sequence[str], UserLabels | None, list[str]]:
    """The saved model, the graph to use it on, what its classes are called, what did not match.

    The graph has the features that the model knows. On the graph that a run keeps, the labels that
    its user gave come along.
    """
    from nodenova.bench.folder import RunFolder
    from nodenova.io.datasets import load_dataset
    from nodenova.model.loading import load_model
    from nodenova.review.folder import DiscoveryFolder, is_discovery
    from nodenova.review.predictions import with_known_features

    own = DiscoveryFolder(run_path) if is_discovery(run_path) else None
    if own is not None:
        model = own.model()
    else:
        model = (
            load_model(run_path)
            if (run_path / "model.json").is_file()
            else RunFolder.open(run_path).model(seed)
        )
    called = model.class_names if own is None else own.names(model)
    files_given = graph is not None or nodes is not None or edges is not None
    if dataset is not None and files_given:
        raise SettingError("give either --dataset or files of your own, not both")
    if dataset is not None:
        return model, load_dataset(dataset, data_root).graph, called, None, []
    if not files_given:
        if own is None:
            raise SettingError(
                f"{run_path} keeps no graph: give --dataset NAME, --graph FILE, "
                "or --nodes FILE and --edges FILE"
            )
        run = own.run()
        return model, run.graph, called, run.labels, []
    known, recipe = (None, None) if own is None else own.features()
    is_table = (
        nodes is not None
        or edges is not None
        or (graph is not None and graph.suffix.lower() != ".npz")
    )
    if is_table and recipe is not None:
        options["recipe"] = recipe
    loaded = files.load_files(graph, nodes, edges, show=not quiet and err.is_terminal, **options)
    data, unmatched = with_known_features(loaded.graph, known)
    notes = [*loaded.notes, *unmatched]
    if not quiet:
        print_notes(notes)
    return model, data, called, None, notes
