"""nodenova predict and export: a saved model on the graph it knows, or on a later one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from nodenova.cli import graph_options
from nodenova.cli.app import (
    OWN,
    DataRoot,
    Quiet,
    RayAddress,
    Threads,
    app,
    check_saved,
    err,
    fail,
    listed_names,
    loading,
    out,
    print_notes,
    use_cluster,
)
from nodenova.cli.output import SafeCsv, one_line_table
from nodenova.cli.progress import Bars
from nodenova.display import percent
from nodenova.errors import SettingError
from nodenova.files.atomic import write_atomically
from nodenova.files.content import table_content, to_json
from nodenova.files.documents import has_safe_csv
from nodenova.runs.diff import Drift, no_predictions
from nodenova.runs.run_dir import is_discovery, prediction_columns, run_document
from nodenova.settings import check_probability

if TYPE_CHECKING:
    from nodenova.model.model import Model
    from nodenova.runs.new_graph import PredictInput
    from nodenova.runs.predictions import Predictions

WARNED_DRIFT = 0.1  # change above which a warning is printed without --max-drift
MAX_LISTED = 20  # nodes that are printed
MIN_CONFIDENCE = 0.5  # of a saved model, which remembers none
FORMS = (
    "table", "networkx", "pyg", "csv", "embeddings", "atlas", "datamapplot", "gephi", "onnx",
    "model",
)  # fmt: skip
OF_MODEL = ("onnx", "model")  # forms without a graph

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
    typer.Option("--none-share", help="As for `nodenova discover` (default: as in the run)."),
]
Relabel = Annotated[
    bool,
    typer.Option(
        "--relabel",
        help="Let predictions override labels (default: labelled nodes keep their labels).",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Seed of the model, for a folder of `nodenova run` (default: the first)."),
]
Only = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="FILE|IDS",
        help="Predict only these nodes: a file with one id per line, or a,b,c.",
    ),
]
Add = Annotated[
    bool,
    typer.Option(
        "--add",
        help="The files hold only nodes and edges that came or changed: add them to the graph of "
        "the run, and predict only them.",
    ),
]
MaxDrift = Annotated[
    float | None,
    typer.Option(
        help="End with exit code 3 if the shares of the classes, or of unsure nodes, differ by "
        "more than this from those of the run, and by more than chance."
    ),
]
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
        help="For --to table: leave the class empty for nodes that you did not label and whose "
        "class is less probable than this."
    ),
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
    min_confidence: Annotated[float | None, typer.Option(help="Mark nodes whose class is less probable than this as unsure (default: as in the run, else 0.5).")] = None,
    relabel: Relabel = False,
    none_share: NoneShare = None,
    max_unsure: Annotated[float | None, typer.Option(help="End with exit code 3 if more than this share of the nodes is unsure.")] = None,
    max_drift: MaxDrift = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the summary as JSON.")] = None,
    threads: Threads = "auto",
    ray: RayAddress = None,
    safe_csv: SafeCsv = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Predict the class and its probability for every node.

    Without files, the graph of the run is predicted. A changed or grown graph is given as for
    `nodenova discover`: options that the run was made with apply unless they are given again, and
    features are matched by name. Labels are kept, those in the files and those of the same nodes in
    the run, unless --relabel is given. Exit code 0, or 3 if --max-unsure or --max-drift is
    exceeded: a new discovery may be due. Few unsure nodes prove nothing, because nodes of a new
    class may be put into a known class with confidence.
    """
    if min_confidence is not None:
        check_probability(min_confidence, "--min-confidence")
    ids = parse_ids(only)
    has_files = files.is_given or dataset is not None
    for option, most in (("--max-unsure", max_unsure), ("--max-drift", max_drift)):
        _check_limit(option, most, ids is not None or add)
    if max_drift is not None:
        _check_drift(run_path, has_files, relabel)
    if add and (not is_discovery(run_path) or files.graph is not None or files.nodes is None):
        raise SettingError("--add needs a run, and --nodes FILE (and --edges FILE) with what came")
    if min_confidence is None:
        is_run = is_discovery(run_path)
        min_confidence = run_document(run_path)["unsure_below"] if is_run else MIN_CONFIDENCE
    safe_csv = has_safe_csv(run_path) if safe_csv is None else safe_csv
    output = _Output(path, json_path, min_confidence, safe_csv, quiet)
    is_stored = not has_files and not relabel and not none_share and is_discovery(run_path)
    if ids is not None and not add and is_stored and (run_path / "graph.npz").is_file():
        output.write_some(prediction_columns(run_path, ids, min_confidence), "kept", ())
        return
    what = _open_input(run_path, seed, dataset, data_root, files, quiet, relabel, add)
    from nodenova.model.model import MAX_FEW

    model = what.model
    use_cluster(ray, model.aligned(what.graph), files.graph, model.frozen_encoder().spec.name)
    numbers = what.nodes if ids is None else what.graph.numbers_of(ids)
    found = what.predict(min_confidence, fits_none=what.fits_none(none_share), only=numbers)
    if numbers is not None:
        how = "neighborhood" if len(numbers) <= MAX_FEW else "whole graph"
        output.write_some(found.columns(), how, what.notes)
        return
    compares = has_files and not relabel
    drift = Drift.since(run_path, found, min_confidence) if compares else None
    output.write_all(found, drift, what.notes)
    _check_result(found, drift, max_unsure, max_drift, quiet)


@app.command(rich_help_panel=OWN)
@graph_options.takes_graph(("graph", "nodes", "edges", "label_column"))
def export(
    run_path: AnyRun,
    to: Annotated[str, typer.Option("--to", help="table (your table with the classes beside it), networkx (GraphML), pyg (tensors for PyTorch Geometric), csv (nodes.csv, edges.csv), embeddings, atlas (for Embedding Atlas), datamapplot, gephi (GEXF), onnx (embeddings in, classes out), or model (the model alone, without graph, ids and labels).")],
    path: Annotated[Path, typer.Option("--out", help="File to write; a folder for csv and model. Table: .csv, .tsv, .parquet or .jsonl. Embeddings: .npz, .csv or .parquet. Atlas: .parquet or .csv.")],
    files: graph_options.GraphFiles,
    table: TablePath = None,
    settled: Settled = 0.0,
    dataset: DatasetName = None,
    data_root: DataRoot = None,
    seed: Seed = None,
    relabel: Relabel = False,
    none_share: NoneShare = None,
    safe_csv: SafeCsv = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Write the graph with its classes for other tools, the embeddings of its nodes, or the model.

    atlas, datamapplot and gephi have the places of the nodes on the map of the page, and their ids
    and texts. --to model leaves out the graph, the ids and the labels, to pass a model on; `nodenova
    predict` and `load_model` read it. So does --to onnx.
    """
    if to not in FORMS:
        raise SettingError(f"--to is one of {', '.join(FORMS)}, not {to!r}")
    for option, is_given in (("--table", table is not None), ("--settled", settled != 0)):
        if is_given and to != "table":
            raise SettingError(f"{option} is only for --to table, not for --to {to}")
    table = table or files.nodes
    if to == "table" and table is None:
        raise SettingError("--to table needs your table of nodes: give --table FILE")
    check_probability(settled, "--settled")
    if to in OF_MODEL:
        has_files = files.is_given or dataset is not None
        notes = _export_model(run_path, seed, to, path, has_files, quiet)
    else:
        what = _open_input(run_path, seed, dataset, data_root, files, quiet, relabel)
        from nodenova.runs.export import export_input

        safe = has_safe_csv(run_path) if safe_csv is None else safe_csv
        notes = export_input(what, to, path, what.fits_none(none_share), table, settled, safe)
    if not quiet:
        print_notes(notes)
        out.print(f"Written: {escape(str(path))}", soft_wrap=True)


def _export_model(
    run_path: Path, seed: int | None, to: str, path: Path, has_files: bool, quiet: bool
) -> list[str]:
    """Write the model of a run alone; return notes on what it discloses."""
    if has_files:
        raise SettingError(f"--to {to} writes no graph: leave out --graph, --nodes and --dataset")
    check_saved(run_path)
    with loading(quiet):
        from nodenova.runs.export import export_model
        from nodenova.runs.folder import RunFolder
    if is_discovery(run_path):
        return RunFolder(run_path).export(to, path)
    return export_model(_load_model(run_path, seed), path, to)


def parse_ids(only: str | None) -> list[str] | None:
    """Node ids of --only: those in a file, one per line, or a,b,c.

    Examples:
        >>> parse_ids("cat, dog")
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


def _check_limit(option: str, most: float | None, predicts_some: bool) -> None:
    """Validate --max-unsure or --max-drift."""
    if most is not None and not 0 <= most <= 1:
        raise SettingError(f"{option} is a share from 0 to 1, not {most}")
    if most is not None and predicts_some:
        raise SettingError(f"{option} is about all nodes: leave out --only and --add")


def _check_drift(run_path: Path, has_files: bool, relabel: bool) -> None:
    """Raise if --max-drift has nothing to compare."""
    if not has_files:
        raise SettingError("--max-drift: give files, which are compared with the graph of the run")
    if relabel:
        raise SettingError("--max-drift compares labels as they are: leave out --relabel")
    if not (run_path / "predictions.csv").is_file():
        raise SettingError(f"--max-drift: {no_predictions(run_path)}")


def _open_input(
    run_path: Path,
    seed: int | None,
    dataset: str | None,
    data_root: Path | None,
    files: graph_options.GraphFiles,
    quiet: bool,
    relabel: bool,
    add: bool = False,
) -> PredictInput:
    """Open a saved model and a graph: that of the run, of a dataset, or of files."""
    check_saved(run_path)
    if dataset is not None and files.is_given:
        raise SettingError("give either --dataset or files of your own, not both")
    if seed is not None and (is_discovery(run_path) or (run_path / "model.json").is_file()):
        raise SettingError(f"--seed is for a folder of `nodenova run`, and {run_path} is none")
    if files.is_given:
        files.check()
    with loading(quiet):
        from nodenova.io.datasets import load_dataset
        from nodenova.io.recipe import TableEncoder
        from nodenova.runs.folder import RunFolder
        from nodenova.runs.new_graph import PredictInput, TableReader
    run = RunFolder(run_path) if is_discovery(run_path) else None
    model = _load_model(run_path, seed) if run is None else run.model
    if dataset is not None:
        graph = load_dataset(dataset, data_root).graph
        if run is None:
            return PredictInput(model, graph)
        return PredictInput(model, graph, run.class_names, shifts=run.shifts)
    paths = (files.graph, files.nodes, files.edges)
    with Bars(not quiet, "reading files" if files.is_given else "") as bars:
        if run is not None:
            what = run.predict_input(
                *paths, files.options, add=add, relabel=relabel, progress=bars
            )  # fmt: skip
        elif not files.is_given:
            raise SettingError(
                f"{run_path} keeps no graph: give --dataset NAME, --graph FILE, "
                "or --nodes FILE and --edges FILE"
            )
        else:
            recipe = None if model.recipe is None else TableEncoder.from_json(model.recipe)
            loaded = TableReader(recipe, {}, files.options, bars).read(*paths)
            # Labels in the file grade a model of `nodenova run`, unless their column is named.
            use_labels = files.options.label_column is not None
            names = model.class_names
            what = PredictInput.of_graph(
                model, names, loaded, relabel=relabel, use_labels=use_labels
            )
    if not quiet:
        print_notes(what.notes)
    return what


def _load_model(path: Path, seed: int | None) -> Model:
    """The model of a folder of `nodenova run`, or a saved model."""
    from nodenova.bench.folder import GradedFolder
    from nodenova.model.loading import load_model

    if (path / "model.json").is_file():
        return load_model(path)
    return GradedFolder.open(path).model(seed)


class _Output:
    """Writes and prints predictions as --out, --json and --quiet ask for."""

    def __init__(
        self,
        path: Path | None,
        json_path: Path | None,
        min_confidence: float,
        safe_csv: bool,
        quiet: bool,
    ) -> None:
        self._path = path
        self._safe_csv = safe_csv
        self._json_path = json_path
        self._min_confidence = min_confidence
        self._quiet = quiet

    def write_some(
        self, columns: Mapping[str, list[object]], how: str, notes: Sequence[str]
    ) -> None:
        """Write and print some nodes; `how` they were predicted is part of the JSON."""
        if self._path is not None:
            write_atomically(self._path, table_content(dict(columns), self._path, self._safe_csv))
        if self._json_path is not None:
            rows = zip(*columns.values(), strict=True)
            lines = [dict(zip(columns, row, strict=True)) for row in rows]
            summary: dict[str, Any] = {
                "nodes": len(lines),
                "unsure": sum(cell == "yes" for cell in columns["unsure"]),
                "how": how,
                "min_confidence": self._min_confidence,
                "predictions": lines,
                "notes": list(notes),
            }
            write_atomically(self._json_path, to_json(summary))
        if self._quiet:
            return
        table = one_line_table("node", "class", "name", "", "probability", "")
        names = ("node", "class", "name", "kind", "probability", "unsure")
        for row in list(zip(*(columns[name] for name in names), strict=True))[:MAX_LISTED]:
            unsure = "unsure" if row[5] == "yes" else ""
            table.add_row(*(escape(str(cell)) for cell in row[:4]), percent(row[4]), unsure)
        out.print(table)
        if len(columns["node"]) > MAX_LISTED:
            out.print(f"and {len(columns['node']) - MAX_LISTED:,} more")
        if self._path is not None:
            out.print(f"Predictions: {escape(str(self._path))}", soft_wrap=True)

    def write_all(
        self, found: Predictions, drift: Drift | str | None, notes: Sequence[str]
    ) -> None:
        """Write the predictions of all nodes, and print the sizes of the classes."""
        path = self._path or Path("predictions.csv")
        write_atomically(path, found.content(path, self._safe_csv))
        measured = drift if isinstance(drift, Drift) else None
        classes = zip(found.model.classes, found.names, found.counts.tolist(), strict=True)
        counts: list[dict[str, Any]] = [
            {"id": c.id, "name": name, "kind": c.kind, "stage": c.stage, "nodes": count}
            for c, name, count in classes
        ]
        fits_none = None if found.fits_none is None else int(found.fits_none.sum())
        if self._json_path is not None:
            summary = {
                "nodes": len(found.row),
                "unsure": int(found.unsure.sum()),
                "min_confidence": self._min_confidence,
                "fits_none": fits_none,
                "classes": counts,
                "drift": None if measured is None else measured.to_json(),
                "notes": notes,
            }
            write_atomically(self._json_path, to_json(summary))
        if self._quiet:
            return
        total = len(found.row)
        heads = ("", "class", "name", "nodes", "share", "before")
        table = one_line_table(*(heads[:-1] if measured is None else heads))
        for c in counts:
            cells = [c["kind"], str(c["id"]), escape(c["name"]), f"{c['nodes']:,}"]
            cells.append(percent(c["nodes"] / max(total, 1)))
            if measured is not None:
                cells.append(percent(measured.before.of(c["id"])))
            table.add_row(*cells)
        out.print(table)
        low = f"{self._min_confidence:g}"
        out.print(f"\n{_unsure_text(found)} are unsure (probability below {low}).")
        if drift is not None:
            text = drift if measured is None else measured.sentence()
            out.print(f"{escape(str(text))}.", highlight=False, soft_wrap=True)
        if fits_none is not None:
            out.print(f"{fits_none:,} of {total:,} nodes fit none of the classes.")
        out.print(f"Predictions: {escape(str(path))}", soft_wrap=True)


def _unsure_text(found: Predictions) -> str:
    return f"{int(found.unsure.sum()):,} of {len(found.row):,} nodes"


def _check_result(
    found: Predictions,
    drift: Drift | str | None,
    max_unsure: float | None,
    max_drift: float | None,
    quiet: bool,
) -> None:
    """End with exit code 3 if a limit is exceeded; warn of a large drift without a limit."""
    if max_unsure is not None and int(found.unsure.sum()) > max_unsure * len(found.row):
        fail(f"{_unsure_text(found)} are unsure, more than --max-unsure {max_unsure:g} allows", 3)
    if not isinstance(drift, Drift):
        if max_drift is not None:
            raise SettingError(f"--max-drift: {drift}")
        return
    far, chance = percent(drift.distance, 1), percent(drift.by_chance, 1)
    text = f"shares changed by {far} (by chance at most {chance}): {drift.sentence()}"
    if max_drift is not None and drift.exceeds(max_drift):
        fail(f"{text}; more than --max-drift {max_drift:g} allows", 3)
    if max_drift is None and not quiet and drift.exceeds(WARNED_DRIFT):
        hint = "a new discovery may be due; --max-drift makes this exit code 3"
        err.print(f"[yellow]warning:[/] {escape(text)}; {hint}", highlight=False, soft_wrap=True)
