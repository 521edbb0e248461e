"""nodenova predict and export: a saved model on the graph it knows, or on one that has grown.

nodenova predict --only, --add and --max-drift: some nodes, and how much has changed since.

Forms of `nodenova export`, and the one that is the user's own table of nodes.

A saved model, and the graph to use it on: of its run, of a dataset or of files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from nodenova.cli import graph_options
from nodenova.cli.app import (
    OWN,
    DataRoot,
    Quiet,
    Threads,
    app,
    check_probability,
    check_saved,
    err,
    fail,
    listed_names,
    loading,
    out,
    print_notes,
)
from nodenova.cli.cluster import RayAddress, use_cluster
from nodenova.cli.output import one_line_table
from nodenova.cli.progress import Bars
from nodenova.display import percent
from nodenova.errors import GraphError, SettingError
from nodenova.io.table_options import TableOptions
from nodenova.model.classes import normalize_kind
from nodenova.runs.drift import Drift, Shares, kept_predictions
from nodenova.runs.run_dir import is_discovery

if TYPE_CHECKING:
    import numpy as np

    from nodenova.graph import Graph
    from nodenova.model.model import Model
    from nodenova.review.user_labels import UserLabels
    from nodenova.runs.predictions import Predictions
    from nodenova.runs.run import DiscoveryRun


Only = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="FILE|IDS",
        help="Only these nodes, by what is near them: a file with an id a line, or a,b,c.",
    ),
]
Add = Annotated[
    bool,
    typer.Option(
        "--add",
        help="The files hold only nodes and edges that came or changed: they are added to the "
        "graph of the run, and they alone are classified.",
    ),
]
MaxDrift = Annotated[
    float | None,
    typer.Option(
        help="End with exit code 3 if the shares of the classes, or of unsure nodes, differ by "
        "more than this from when the run was made or reviewed, and by more than chance."
    ),
]
WARNED_DRIFT = 0.1  # above which a change is a warning, whether or not --max-drift is given
NO_PREDICTIONS = "{} keeps no predictions of the graph it was made on: no change can be told"
MAX_LISTED = 20  # nodes whose classes are printed


def ids_of(only: str | None) -> list[str] | None:
    """The nodes that --only names.

    Raises:
        SettingError: It names none, or a file that cannot be read.

    Examples:
        >>> ids_of("cat, dog")
        ['cat', 'dog']
    """
    if only is None:
        return None
    path = Path(only)
    if path.is_file():
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, ValueError) as error:
            raise SettingError(f"--only: {path} cannot be read ({error})") from error
        ids = [line.strip() for line in lines if line.strip()]
    else:
        ids = listed_names(only)
    if not ids:
        raise SettingError(f"--only names no node: {only!r}")
    return ids


def check_shares(shares: Mapping[str, float | None], some: bool) -> None:
    """Refuse what is no share, or asks about all nodes where some are asked for.

    Args:
        shares: By the name of the option.
        some: Whether some nodes are asked for.

    Raises:
        SettingError: It is so.
    """
    for option, most in shares.items():
        if most is not None and not 0 <= most <= 1:
            raise SettingError(f"{option} is a share from 0 to 1, not {most}")
        if most is not None and some:
            raise SettingError(f"{option} is about all nodes: not with --only or --add")


def check_comparable(run: Path, files_given: bool, relabel: bool) -> None:
    """Refuse --max-drift where nothing can be compared, before anything is computed.

    Raises:
        SettingError: It is so.
    """
    if not files_given:
        raise SettingError("--max-drift: give files; the graph of the run is what is compared with")
    if relabel:
        raise SettingError("--max-drift compares labels as they are: not with --relabel")
    if not (run / "predictions.csv").is_file():
        raise SettingError(f"--max-drift: {NO_PREDICTIONS.format(run)}")


def kept_rows(run: Path, ids: Sequence[str], min_confidence: float) -> dict[str, list[object]]:
    """What a run has said of nodes of its own graph, by column. Needs no PyTorch.

    Args:
        run: Its folder.
        ids: Of the nodes.
        min_confidence: Below which a node is unsure.

    Raises:
        GraphError: The run has no such node.
    """
    known = {line["node"]: line for line in kept_predictions(run)}
    unknown = [node for node in ids if node not in known]
    if unknown:
        more = f", nor {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        raise GraphError(f"{run} has no node {unknown[0]!r}{more}")
    rows = [known[node] for node in ids]
    columns: dict[str, list[object]] = {name: [row[name] for row in rows] for name in rows[0]}
    sure = [float(row["probability"]) for row in rows]
    columns["class"] = [int(row["class"]) for row in rows]
    columns["kind"] = [normalize_kind(row["kind"]) for row in rows]
    columns["probability"] = list(sure)
    columns["unsure"] = ["yes" if p < min_confidence else "no" for p in sure]
    return columns


def write_asked(
    columns: Mapping[str, list[object]], path: Path | None, json_path: Path | None,
    min_confidence: float, how: str, notes: Sequence[str], quiet: bool,
) -> None:  # fmt: skip
    """Say and write what is said of some nodes.

    Args:
        columns: As predictions.csv has them.
        path: --out, if it was given.
        json_path: --json, if it was given.
        min_confidence: Below which a node is unsure.
        how: "kept" where the run had said it, "neighborhood" where it was computed by what is near,
            "whole graph" where there were many.
        notes: On what was repaired.
        quiet: Whether nothing is printed.
    """
    from nodenova.files import to_json, write_atomically

    if path is not None:
        from nodenova.files import table_content

        write_atomically(path, table_content(dict(columns), path))
    if json_path is not None:
        names = list(columns)
        lines = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        unsure = sum(cell == "yes" for cell in columns["unsure"])
        summary: dict[str, Any] = {"nodes": len(lines), "unsure": unsure, "how": how}
        summary |= {"min_confidence": min_confidence, "predictions": lines, "notes": list(notes)}
        write_atomically(json_path, to_json(summary))
    if quiet:
        return
    table = one_line_table("node", "class", "name", "", "probability", "")
    shown = ("node", "class", "name", "kind", "probability", "unsure")
    for row in list(zip(*(columns[name] for name in shown), strict=True))[:MAX_LISTED]:
        said = "unsure" if row[5] == "yes" else ""
        table.add_row(*(escape(str(cell)) for cell in row[:4]), percent(row[4]), said)
    out.print(table)
    more = len(columns["node"]) - MAX_LISTED
    if more > 0:
        out.print(f"and {more:,} more")
    if path is not None:
        out.print(f"Predictions: {escape(str(path))}", soft_wrap=True)


def drift_of(run: Path, found: Predictions, min_confidence: float) -> Drift | str:
    """How far predictions are from those that a run keeps; a sentence where nobody can tell.

    Args:
        run: Of the model, or of a saved model.
        found: Of the graph as it is now.
        min_confidence: Below which a node is unsure.
    """
    if not (run / "predictions.csv").is_file():
        return NO_PREDICTIONS.format(run)
    before = Shares.read(run, min_confidence)
    ids = {c.id for c in found.model.classes}
    if not set(before.counts) <= ids:
        return f"{run} was reviewed without its graph: no change can be told"
    counts = {c.id: n for c, n in zip(found.model.classes, found.counts.tolist(), strict=True)}
    return Drift(before, Shares(counts, int(found.unsure.sum())))


def judge(drift: Drift, max_drift: float | None, quiet: bool) -> None:
    """Warn of a change, and end with exit code 3 where that was asked for.

    Args:
        drift: How far shares are from before.
        max_drift: --max-drift.
        quiet: Whether only an error is said.
    """
    far, chance = percent(drift.distance, 1), percent(drift.by_chance, 1)
    said = f"shares changed by {far} (by chance at most {chance}): {drift.sentence()}"
    if max_drift is not None and drift.exceeds(max_drift):
        fail(f"{said}; more than --max-drift {max_drift:g} allows", 3)
    if max_drift is None and not quiet and drift.exceeds(WARNED_DRIFT):
        hint = "a new discovery may be due; --max-drift makes this exit code 3"
        err.print(f"[yellow]warning:[/] {escape(said)}; {hint}", highlight=False, soft_wrap=True)


FORMS = ("table", "networkx", "pyg", "csv", "embeddings")
TablePath = Annotated[
    Path | None,
    typer.Option(
        "--table",
        help="For --to table: your table of nodes, CSV, TSV, Parquet or JSON lines "
        "(default: --nodes).",
    ),
]
Settled = Annotated[
    float,
    typer.Option(
        help="For --to table: nodes whose class is less probable than this, and that you did not "
        "label, get none."
    ),
]


def check_form(to: str, table: Path | None, settled: float) -> None:
    """Refuse options of `nodenova export` that cannot be used, before anything is loaded.

    Raises:
        SettingError: There is no such form, no table, or no probability.
    """
    if to not in FORMS:
        raise SettingError(f"--to is one of {', '.join(FORMS)}, not {to!r}")
    if to == "table" and table is None:
        raise SettingError("--to table needs your table of nodes: give --table FILE")
    if not 0 <= settled <= 1:
        raise SettingError(f"--settled is a probability from 0 to 1, not {settled}")


def write_table(*parts: Any, table: Path, settled: float, quiet: bool) -> None:
    """Write the table with the classes beside it, and say what was assumed."""
    from nodenova.runs.tables import to_table

    notes = to_table(*parts, table=table, settled=settled)
    print_notes([] if quiet else notes)


@dataclass(frozen=True, eq=False)
class PredictInput:
    """A model, and what to use it on.

    Attributes:
        model: Which.
        graph: With the features that the model knows.
        names: What its classes are called.
        labels: What the user said of nodes: in a run, by the ids of its nodes, and in files.
        notes: What did not match.
        run: The run of the model, with the graph that it keeps; None where there is none.
        asked: (n,) numbers of the nodes that came, where they were added; else None.
    """

    model: Model
    graph: Graph
    names: Sequence[str]
    labels: UserLabels | None = None
    notes: Sequence[str] = ()
    run: DiscoveryRun | None = None
    asked: np.ndarray | None = None

    def fits_none(self, share: float | None) -> np.ndarray | None:
        """(N,) which nodes without a label fit none of the classes; None if nobody asks.

        Args:
            share: As --none-share.

        Raises:
            SettingError: There are no labelled nodes that could tell.
        """
        from nodenova.review.cross_validation import spare_fit

        share = (self.run.none_share if self.run else 0.0) if share is None else share
        graph_options.check_none_share(share)
        if share == 0:
            return None
        judged = None if self.run is None else self.run.held_out
        fit = spare_fit(self.model, self.model.embed(self.graph), judged, share)
        assert fit is not None
        return fit < 0 if self.labels is None else (fit < 0) & ~self.labels.labelled


def given_graph(
    run_path: Path,
    seed: int | None,
    dataset: str | None,
    data_root: Path | None,
    files: graph_options.GraphFiles,
    quiet: bool,
    relabel: bool,
    add: bool = False,
) -> PredictInput:
    """The saved model and the graph to use it on: of the run, of a dataset or of files."""
    check_saved(run_path)
    if dataset is not None and files.is_given:
        raise SettingError("give either --dataset or files of your own, not both")
    with loading(quiet):
        from nodenova.bench.folder import RunFolder
        from nodenova.io.datasets import load_dataset
        from nodenova.io.load import notes_on_files
        from nodenova.io.networkx_scipy import is_table
        from nodenova.io.recipe import TableEncoder
        from nodenova.model.loading import load_model
        from nodenova.runs.folder import DiscoveryFolder
        from nodenova.runs.run_dir import is_discovery
        from nodenova.runs.saved_run import later_graph, same_graph, with_added

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
        return PredictInput(model, load_dataset(dataset, data_root).graph, called)
    if not files.is_given:
        if own is None:
            raise SettingError(
                f"{run_path} keeps no graph: give --dataset NAME, --graph FILE, "
                "or --nodes FILE and --edges FILE"
            )
        run = own.run()
        same = same_graph(run, relabel)
        return PredictInput(model, same.graph, called, same.labels, run=run)
    known, recipe = (None, None) if own is None else own.features()
    if recipe is None and model.recipe is not None:
        recipe = TableEncoder.from_json(model.recipe)
    asked = None
    if add:
        assert own is not None
        remembered = TableOptions.from_json(own.document.get("reading", {}))
        options = remembered.merged_with(files.options, needs_labels=False)
        reading = {**options.to_json(), "text_vectors": options.text_vectors}
        with Bars(not quiet, "reading files"):
            loaded, asked = with_added(own.graph(), files.nodes, files.edges, recipe, **reading)
    else:
        is_tables = files.graph is None or is_table(files.graph)
        loaded = files.load(not quiet, recipe=recipe if is_tables else None)
    earlier = own.run() if own is not None and own.keeps_graph else None
    # A model of `nodenova run` is graded by labels of the file; they are no user's word.
    is_told = own is not None or files.options.label_column is not None
    later = later_graph(
        model, called, loaded, features=known, earlier=earlier, relabel=relabel, is_told=is_told
    )
    notes = [*notes_on_files(loaded), *later.notes]
    if not quiet:
        print_notes(notes)
    return PredictInput(model, later.graph, called, later.labels, notes, earlier, asked)


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
@graph_options.takes_graph(graph_options.LATER)
def predict(
    run_path: AnyRun,
    files: graph_options.GraphFiles,
    dataset: DatasetName = None,
    data_root: DataRoot = None,
    only: Only = None,
    add: Add = False,
    path: Annotated[Path | None, typer.Option("--out", help="Table of predictions: .csv or .parquet (default: predictions.csv; with --only or --add they are printed).")] = None,
    seed: Seed = None,
    min_confidence: Annotated[float, typer.Option(help="Mark nodes whose class is less probable than this as unsure.")] = 0.5,
    relabel: Relabel = False,
    none_share: NoneShare = None,
    max_unsure: Annotated[float | None, typer.Option(help="End with exit code 3 if more than this share of the nodes is unsure.")] = None,
    max_drift: MaxDrift = None,
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
    ids = ids_of(only)
    files_given = files.is_given or dataset is not None
    shares = {"--max-unsure": max_unsure, "--max-drift": max_drift}
    check_shares(shares, some=ids is not None or add)
    if max_drift is not None:
        check_comparable(run_path, files_given, relabel)
    if add and (not is_discovery(run_path) or files.graph is not None or files.nodes is None):
        raise SettingError("--add takes a run, and --nodes FILE (and --edges FILE) that came")
    is_kept = not files_given and not relabel and not none_share and is_discovery(run_path)
    if ids is not None and not add and is_kept and (run_path / "graph.npz").is_file():
        columns = kept_rows(run_path, ids, min_confidence)
        write_asked(columns, path, json_path, min_confidence, "kept", (), quiet)
        return
    given = given_graph(run_path, seed, dataset, data_root, files, quiet, relabel, add)
    from nodenova.model.model import MAX_FEW
    from nodenova.runs.predictions import Predictions

    model, data, notes = given.model, given.graph, given.notes
    use_cluster(ray, model.aligned(data), files.graph, model.frozen_encoder().spec.name)
    numbers = given.asked if ids is None else data.numbers_of(ids)
    found = Predictions.of(
        model, data, min_confidence, names=given.names, labels=given.labels,
        fits_none=given.fits_none(none_share), only=numbers,
    )  # fmt: skip
    if numbers is not None:
        how = "neighborhood" if len(numbers) <= MAX_FEW else "whole graph"
        write_asked(found.columns(), path, json_path, min_confidence, how, notes, quiet)
        return
    path = path or Path("predictions.csv")
    write_atomically(path, found.content(path))
    drift = drift_of(run_path, found, min_confidence) if files_given and not relabel else None
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
            cells.append(percent(c["nodes"] / max(total, 1)))
            if isinstance(drift, Drift):
                cells.append(percent(drift.before.of(c["id"])))
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
        judge(drift, max_drift, quiet)
    elif max_drift is not None:
        raise SettingError(f"--max-drift: {drift}")


@app.command(rich_help_panel=OWN)
@graph_options.takes_graph(("graph", "nodes", "edges", "label_column"))
def export(
    run_path: AnyRun,
    to: Annotated[str, typer.Option("--to", help="table (yours, with the classes beside it), networkx (GraphML), pyg (tensors for PyTorch Geometric), csv (nodes.csv, edges.csv) or embeddings.")],
    path: Annotated[Path, typer.Option("--out", help="File to write; a folder for csv. Table: .csv, .tsv, .parquet or .jsonl. Embeddings: .npz, .csv or .parquet.")],
    files: graph_options.GraphFiles,
    table: TablePath = None,
    settled: Settled = 0.0,
    dataset: DatasetName = None,
    data_root: DataRoot = None,
    seed: Seed = None,
    relabel: Relabel = False,
    none_share: NoneShare = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """The graph with its classes for other tools, or the embeddings of its nodes."""
    table = table or files.nodes
    check_form(to, table, settled)
    given = given_graph(run_path, seed, dataset, data_root, files, quiet, relabel)
    from nodenova.runs.export import EXPORTS, Exported

    none = given.fits_none(none_share)
    told = (given.names, given.labels, none)
    if to == "table" and table is not None:
        parts = (given.model, given.graph, path, *told)
        write_table(*parts, table=table, settled=settled, quiet=quiet)
    else:
        EXPORTS[to](Exported(given.model, given.graph, *told), path)
    if not quiet:
        out.print(f"Written: {escape(str(path))}", soft_wrap=True)
