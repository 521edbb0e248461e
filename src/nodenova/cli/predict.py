"""nodenova predict and export: a saved model on the graph it knows, or on one that has grown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer
from rich.markup import escape
from rich.table import Table

from nodenova.cli import files, own_table
from nodenova.cli.app import (
    OWN,
    DataRoot,
    Quiet,
    Threads,
    app,
    check_probability,
    check_saved,
    fail,
    loading,
    out,
    print_notes,
)
from nodenova.errors import SettingError

if TYPE_CHECKING:
    import numpy as np

    from nodenova.graph import Graph
    from nodenova.model.model import Model
    from nodenova.review.run import DiscoveryRun
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
    drop_unknown_edges: files.DropUnknown = False,
    delimiter: files.Delimiter = None,
    encoding: files.Encoding = None,
    dataset: DatasetName = None,
    data_root: DataRoot = None,
    path: Annotated[Path, typer.Option("--out", help="Table of predictions: .csv or .parquet.")] = Path("predictions.csv"),
    seed: Seed = None,
    min_confidence: Annotated[float, typer.Option(help="Mark nodes whose class is less probable than this as unsure.")] = 0.5,
    relabel: Relabel = False,
    none_share: NoneShare = None,
    max_unsure: Annotated[float | None, typer.Option(help="End with exit code 3 if more than this share of the nodes is unsure.")] = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the summary as JSON, for machines.")] = None,
    threads: Threads = "auto",
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Classify every node: node, class id, name, old or new, probability, unsure, label, agrees.

    Without files, on the graph that the run keeps. A changed or grown graph is given as for
    `nodenova discover`; its features are matched by name. Labels are kept, those in the files and
    those that the run was given for nodes of the same ids, unless --relabel is said. Exit code 0,
    or 3 when --max-unsure is exceeded: a hint that a new discovery may be due. Nodes of a kind that
    was never met may also be put into a known class with confidence; few unsure nodes prove
    nothing.
    """
    from nodenova.files import to_json, write_atomically

    check_probability(min_confidence)
    if max_unsure is not None and not 0 <= max_unsure <= 1:
        raise SettingError(f"--max-unsure is a share from 0 to 1, not {max_unsure}")
    given = _given(
        run_path, seed, dataset, data_root, graph, nodes, edges, quiet, relabel,
        id_column=id_column, label_column=label_column, source_column=source_column,
        target_column=target_column, weight_column=weight_column, min_weight=min_weight,
        drop_unknown_edges=drop_unknown_edges, delimiter=delimiter, encoding=encoding,
    )  # fmt: skip
    from nodenova.review.predictions import Predictions

    model, data, notes = given.model, given.graph, given.notes
    found = Predictions.of(
        model, data, min_confidence, names=given.names, labels=given.labels,
        fits_none=given.fits_none(none_share),
    )  # fmt: skip
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
            "fits_none": None if found.fits_none is None else int(found.fits_none.sum()),
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
        if found.fits_none is not None:
            none = int(found.fits_none.sum())
            out.print(f"{none:,} of {total:,} nodes fit none of the classes.")
        out.print(f"Predictions: {escape(str(path))}", soft_wrap=True)
    if max_unsure is not None and unsure > max_unsure * total:
        fail(f"{share} are unsure, more than --max-unsure {max_unsure:g} allows", 3)


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
    given = _given(
        run_path, seed, dataset, data_root, graph, nodes, edges, quiet, relabel,
        label_column=label_column,
    )  # fmt: skip
    from nodenova.review.export import EXPORTS

    none = given.fits_none(none_share)
    parts = (given.model, given.graph, path, given.names, given.labels, none)
    if to == "table" and table is not None:
        own_table.write_table(*parts, table=table, settled=settled, quiet=quiet)
    else:
        EXPORTS[to](*parts)
    if not quiet:
        out.print(f"Written: {escape(str(path))}", soft_wrap=True)


@dataclass(frozen=True, eq=False)
class Given:
    """A model, and what to use it on.

    Attributes:
        model: Which.
        graph: With the features that the model knows.
        names: What its classes are called.
        labels: What the user said of nodes: in a run, by the ids of its nodes, and in files.
        notes: What did not match.
        run: The run of the model, with the graph that it keeps; None where there is none.
    """

    model: Model
    graph: Graph
    names: Sequence[str]
    labels: UserLabels | None = None
    notes: Sequence[str] = ()
    run: DiscoveryRun | None = None

    def fits_none(self, share: float | None) -> np.ndarray | None:
        """(N,) which nodes without a label fit none of the classes; None if nobody asks.

        Args:
            share: As --none-share.

        Raises:
            SettingError: There are no labelled nodes that could tell.
        """
        from nodenova.review.held_out import spare_fit

        share = (self.run.none_share if self.run else 0.0) if share is None else share
        files.check_none_share(share)
        if share == 0:
            return None
        judged = None if self.run is None else self.run.held_out
        fit = spare_fit(self.model, self.model.embed(self.graph), judged, share)
        assert fit is not None
        return fit < 0 if self.labels is None else (fit < 0) & ~self.labels.labelled


def _given(
    run_path: Path,
    seed: int | None,
    dataset: str | None,
    data_root: Path | None,
    graph: Path | None,
    nodes: Path | None,
    edges: Path | None,
    quiet: bool,
    relabel: bool,
    **options: Unpack[files.FileOptions],
) -> Given:
    """The saved model and the graph to use it on: of the run, of a dataset or of files."""
    check_saved(run_path)
    files_given = graph is not None or nodes is not None or edges is not None
    if dataset is not None and files_given:
        raise SettingError("give either --dataset or files of your own, not both")
    with loading(quiet):
        from nodenova.bench.folder import RunFolder
        from nodenova.io.datasets import load_dataset
        from nodenova.io.foreign import is_table
        from nodenova.model.loading import load_model
        from nodenova.review.folder import DiscoveryFolder
        from nodenova.review.place import is_discovery
        from nodenova.review.predictions import with_known_features
        from nodenova.review.user_labels import labels_of_later

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
    if dataset is not None:
        return Given(model, load_dataset(dataset, data_root).graph, called)
    if not files_given:
        if own is None:
            raise SettingError(
                f"{run_path} keeps no graph: give --dataset NAME, --graph FILE, "
                "or --nodes FILE and --edges FILE"
            )
        run = own.run()
        kept = run.labels
        if kept is not None and relabel:
            kept = replace(kept, keep=False)
        return Given(model, run.graph, called, kept, run=run)
    known, recipe = (None, None) if own is None else own.features()
    if recipe is not None and (graph is None or is_table(graph)):
        options["recipe"] = recipe
    loaded = files.load_files(graph, nodes, edges, show=not quiet, **options)
    data, unmatched = with_known_features(loaded.graph, known)
    earlier = own.run() if own is not None and own.keeps_graph else None
    before, keep = None, not relabel
    if earlier is not None and earlier.labels is not None:
        before, keep = (
            (earlier.graph.node_ids.tolist(), earlier.labels),
            keep and earlier.keep_labels,
        )
    # A model of `nodenova run` is graded by labels of the file; they are no user's word.
    is_told = own is not None or options.get("label_column") is not None
    said = ["" if c < 0 or not is_told else loaded.class_names[c] for c in loaded.y.tolist()]
    labels, strange = labels_of_later(model, called, data.node_ids.tolist(), said, before, keep)
    notes = [*loaded.notes, *unmatched, *strange]
    if not quiet:
        print_notes(notes)
    return Given(model, data, called, labels, notes, earlier)
