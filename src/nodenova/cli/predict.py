"""nodenova predict and export: a saved model on the graph it knows, or on one that has grown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nodenova.cli import asked, files, own_table
from nodenova.cli.app import (
    OWN,
    DataRoot,
    Quiet,
    Threads,
    app,
    check_probability,
    fail,
    out,
)
from nodenova.cli.cluster import RayAddress, use_cluster
from nodenova.cli.given import given_graph
from nodenova.cli.written import one_line_table
from nodenova.errors import SettingError
from nodenova.review.place import is_discovery
from nodenova.review.shares import Drift

AnyRun = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="A folder of `nodenova discover`, `demo` or `run`, or a saved model."
    ),
]
DatasetName = Annotated[
    str | None, typer.Option("--dataset", help="Instead of files: a dataset by name.")
]
NoneShare = Annotated[
    float | None,
    typer.Option(
        "--none-share",
        help="As for `nodenova discover` (default: what the run was made with).",
    ),
]
Relabel = Annotated[
    bool,
    typer.Option(
        "--relabel",
        help="Put labelled nodes where the model does (default: they keep their labels).",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Which seed's model, for a folder of `nodenova run` (default: the first)."),
]


@app.command(rich_help_panel=OWN)
def predict(
    run_path: AnyRun,
    graph: files.GraphPath = None,
    nodes: files.NodesPath = None,
    edges: files.EdgesPath = None,
    id_column: files.IdColumn = None,
    label_column: files.LabelColumn = None,
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
    dataset: DatasetName = None,
    data_root: DataRoot = None,
    only: asked.Only = None,
    add: asked.Add = False,
    path: Annotated[Path | None, typer.Option("--out", help="Table of predictions: .csv or .parquet (default: predictions.csv; with --only or --add they are printed).")] = None,
    seed: Seed = None,
    min_confidence: Annotated[float, typer.Option(help="Mark nodes whose class is less probable than this as unsure.")] = 0.5,
    relabel: Relabel = False,
    none_share: NoneShare = None,
    max_unsure: Annotated[float | None, typer.Option(help="End with exit code 3 if more than this share of the nodes is unsure.")] = None,
    max_drift: asked.MaxDrift = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the summary as JSON, for machines.")] = None,
    threads: Threads = "auto",
    ray: RayAddress = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Say of every node its class, known or discovered, and how probable that is.

    Without files, on the graph that the run keeps. A changed or grown graph is given as for
    `nodenova discover`; its features are matched by name. Labels are kept, those in the files and
    those that the run was given for nodes of the same ids, unless --relabel is said. Exit code 0,
    or 3 when --max-unsure or --max-drift is exceeded: a hint that a new discovery may be due. Nodes
    of a kind that was never met may also be put into a known class with confidence; few unsure
    nodes prove nothing.
    """
    from nodenova.files import to_json, write_atomically

    check_probability(min_confidence)
    ids = asked.ids_of(only)
    files_given = any(given is not None for given in (graph, nodes, edges, dataset))
    shares = {"--max-unsure": max_unsure, "--max-drift": max_drift}
    asked.check_shares(shares, some=ids is not None or add)
    if max_drift is not None:
        asked.check_comparable(run_path, files_given, relabel)
    if add and (not is_discovery(run_path) or graph is not None or nodes is None):
        raise SettingError("--add takes a run, and --nodes FILE (and --edges FILE) that came")
    is_kept = not files_given and not relabel and not none_share and is_discovery(run_path)
    if ids is not None and not add and is_kept and (run_path / "graph.npz").is_file():
        columns = asked.kept_rows(run_path, ids, min_confidence)
        asked.write_asked(columns, path, json_path, min_confidence, "kept", (), quiet)
        return
    given = given_graph(
        run_path, seed, dataset, data_root, graph, nodes, edges, quiet, relabel, add,
        id_column=id_column, label_column=label_column, source_column=source_column,
        target_column=target_column, weight_column=weight_column, min_weight=min_weight,
        weights=weights, edge_type_column=edge_type_column, edge_types=edge_types,
        text_vectors=text_vectors, drop_unknown_edges=drop_unknown_edges, delimiter=delimiter,
        encoding=encoding,
    )  # fmt: skip
    from nodenova.model.parts import MAX_FEW
    from nodenova.review.predictions import Predictions

    model, data, notes = given.model, given.graph, given.notes
    use_cluster(ray, model.aligned(data), graph, model.frozen_encoder().spec.name)
    numbers = given.asked if ids is None else data.numbers_of(ids)
    found = Predictions.of(
        model, data, min_confidence, names=given.names, labels=given.labels,
        fits_none=given.fits_none(none_share), only=numbers,
    )  # fmt: skip
    if numbers is not None:
        how = "neighborhood" if len(numbers) <= MAX_FEW else "whole graph"
        asked.write_asked(found.columns(), path, json_path, min_confidence, how, notes, quiet)
        return
    path = path or Path("predictions.csv")
    write_atomically(path, found.content(path))
    drift = asked.drift_of(run_path, found, min_confidence) if files_given and not relabel else None
    unsure = int(found.unsure.sum())
    total = data.num_nodes
    share = f"{unsure:,} of {total:,} nodes"
    counts = [
        {
            "id": c.id,
            "name": name,
            "kind": c.kind,
            "stage": c.stage,
            "nodes": count,
        }
        for c, name, count in zip(model.classes, found.names, found.counts.tolist(), strict=True)
    ]
    if json_path is not None:
        summary = {
            "nodes": total,
            "unsure": unsure,
            "min_confidence": min_confidence,
            "fits_none": None if found.fits_none is None else int(found.fits_none.sum()),
            "classes": counts,
            "drift": drift.to_json() if isinstance(drift, Drift) else None,
            "notes": notes,
        }
        write_atomically(json_path, to_json(summary))
    if not quiet:
        heads = ("", "class", "name", "nodes", "share", "before")
        table = one_line_table(*(heads if isinstance(drift, Drift) else heads[:-1]))
        for c in counts:
            cells = [c["kind"], str(c["id"]), escape(c["name"]), f"{c['nodes']:,}"]
            cells.append(f"{c['nodes'] / max(total, 1):.0%}")
            if isinstance(drift, Drift):
                cells.append(f"{drift.before.of(c['id']):.0%}")
            table.add_row(*cells)
        out.print(table)
        out.print(f"\n{share} are unsure (probability below {min_confidence:g}).")
        if drift is not None:
            said = drift.sentence() if isinstance(drift, Drift) else drift
            out.print(f"{escape(said)}.", highlight=False, soft_wrap=True)
        if found.fits_none is not None:
            none = int(found.fits_none.sum())
            out.print(f"{none:,} of {total:,} nodes fit none of the classes.")
        out.print(f"Predictions: {escape(str(path))}", soft_wrap=True)
    if max_unsure is not None and unsure > max_unsure * total:
        fail(f"{share} are unsure, more than --max-unsure {max_unsure:g} allows", 3)
    if isinstance(drift, Drift):
        asked.judge(drift, max_drift, quiet)
    elif max_drift is not None:
        raise SettingError(f"--max-drift: {drift}")


@app.command(rich_help_panel=OWN)
def export(
    run_path: AnyRun,
    to: Annotated[str, typer.Option("--to", help="table (yours, with the classes beside it), networkx (GraphML), pyg (tensors for PyTorch Geometric), csv (nodes.csv, edges.csv) or embeddings.")],
    path: Annotated[Path, typer.Option("--out", help="File to write; a folder for csv. Table: .csv, .tsv, .parquet or .jsonl. Embeddings: .npz, .csv or .parquet.")],
    table: own_table.TablePath = None,
    settled: own_table.Settled = 0.0,
    graph: files.GraphPath = None,
    nodes: files.NodesPath = None,
    edges: files.EdgesPath = None,
    label_column: files.LabelColumn = None,
    dataset: DatasetName = None,
    data_root: DataRoot = None,
    seed: Seed = None,
    relabel: Relabel = False,
    none_share: NoneShare = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """The graph with its classes for other tools, or the embeddings of its nodes."""
    table = table or nodes
    own_table.check_form(to, table, settled)
    given = given_graph(
        run_path, seed, dataset, data_root, graph, nodes, edges, quiet, relabel,
        label_column=label_column,
    )  # fmt: skip
    from nodenova.review.export import EXPORTS, Exported

    none = given.fits_none(none_share)
    told = (given.names, given.labels, none)
    if to == "table" and table is not None:
        parts = (given.model, given.graph, path, *told)
        own_table.write_table(*parts, table=table, settled=settled, quiet=quiet)
    else:
        EXPORTS[to](Exported(given.model, given.graph, *told), path)
    if not quiet:
        out.print(f"Written: {escape(str(path))}", soft_wrap=True)
