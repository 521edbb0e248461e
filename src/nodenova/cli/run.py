"""nodenova run, report and datasets: run a method and grade it against held-out labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from nodenova.cli.app import (
    RESEARCH,
    DataRoot,
    Device,
    Quiet,
    RunPath,
    app,
    check_method,
    check_saved,
    fail,
    load_named,
    loading,
    old_classes,
    out,
    print_notes,
    seeds_of,
    settings_of,
)
from nodenova.cli.output import SafeCsv
from nodenova.errors import SettingError, StorageError, brief
from nodenova.methods.registry import METHODS
from nodenova.supervised import LABELLED

if TYPE_CHECKING:
    from nodenova.bench.plan import Plan
    from nodenova.bench.render import Summary
    from nodenova.bench.row import Row
    from nodenova.data.labels import LabelledGraph


METHOD_HELP = (
    f"Method: {', '.join(METHODS)}; given labels (†): {', '.join(LABELLED)}; "
    "or your own, path/to/mine.py:Mine, whose file is run."
)


@app.command(rich_help_panel=RESEARCH)
def datasets(data_root: DataRoot = None) -> None:
    """List the datasets, their sizes, and whether they are on this machine."""
    from nodenova.io.dataset_table import DATASETS, find_root, is_on_disk

    root = find_root(data_root)
    table = Table("name", "nodes", "edges", "features", "classes", "old / new", "where", box=None)
    for name, d in DATASETS.items():
        here = root is not None and is_on_disk(d, root)
        missing = "ships" if d.ships else "by hand" if d.collection else "download"
        counts = [f"{count:,}" for count in (d.nodes, d.edges, d.features, d.classes)]
        sides = f"{d.num_old} / {d.classes - d.num_old}"
        table.add_row(name, *counts, sides, "here" if here else missing)
    out.print(table)
    out.print(
        "\nsynthetic  generated: --dataset synthetic:nodes=5000,classes=8\n"
        "ships      comes with nodenova\n"
        "here       raw files are below --data-root (or $NODENOVA_DATA)\n"
        "download   not here; is downloaded into --data-root on first use\n"
        "by hand    not here; put its raw files below --data-root",
        highlight=False,
    )


@app.command(rich_help_panel=RESEARCH)
def run(
    dataset: Annotated[str | None, typer.Option(help="Name of a dataset; see `nodenova datasets`.")] = None,
    graph: Annotated[Path | None, typer.Option(help="Your own graph: npz (x, edge_index, y), GraphML, GML, a folder with nodes.* and edges.*, or one written by `nodenova prepare`.")] = None,
    data_root: DataRoot = None,
    split: Annotated[int, typer.Option(help="Number of the published split, where there are several (Wiki-CS).")] = 0,
    num_old: Annotated[int | None, typer.Option(help="Number of old classes, the first ones (default: as in the paper).")] = None,
    old: Annotated[str | None, typer.Option(help="Ids of the old classes: 0,2,5. Instead of --num-old.")] = None,
    num_new: Annotated[int | None, typer.Option(help="Number of new classes to find (default: the true number).")] = None,
    method: Annotated[str, typer.Option(help=METHOD_HELP)] = "prism",
    set_: Annotated[list[str] | None, typer.Option("--set", help="Setting name=value of the method. Repeatable.")] = None,
    encoder: Annotated[str | None, typer.Option(help="Encoder: prism, gcn, gat or sage; or your own, path/to/mine.py:Net, whose file is run (default: the one that the method prefers).")] = None,
    hidden: Annotated[int | None, typer.Option(help="Size of the representation of an encoder that is trained (default 16).")] = None,
    layers: Annotated[int | None, typer.Option(help="Depth of the encoder, 1 to 64 (default 2).")] = None,
    dropout: Annotated[float | None, typer.Option(help="Dropout between layers (default 0.5).")] = None,
    fit_epochs: Annotated[int | None, typer.Option(help="Maximum number of epochs of phase 1 (default 200).")] = None,
    batch: Annotated[int | None, typer.Option(help="Train on this number of nodes at a time, with drawn neighbors, instead of the whole graph.")] = None,
    fit_set: Annotated[list[str] | None, typer.Option("--fit-set", help="Setting name=value of phase 1, or of your own encoder. Repeatable.")] = None,
    setting: Annotated[str, typer.Option(help="transductive (see the whole graph) or inductive (only classes met).")] = "transductive",
    per_class: Annotated[int, typer.Option(help="Training nodes per class, for a graph without a published split.")] = 20,
    seeds: Annotated[str, typer.Option(help="Number of seeds, or a list: 3 means 0,1,2; 4,7 means those.")] = "1",
    device: Device = "auto",
    folder: Annotated[Path | None, typer.Option("--out", help="Folder for models and report; a stopped run is resumed there.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that --out holds.")] = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html into --out.")] = True,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write rows and summary to this file.")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Fit the old classes, discover the new ones, and grade the result against held-out labels.

    Phase 2 never sees a label. Accuracies are percentages; "block" is the headline: discovered
    classes are matched to the true new ones, old ones keep their ids, and a new node called old is
    wrong.
    """
    seed_list = seeds_of(seeds)
    settings = dict(settings_of(set_ or []))
    check_method(method, settings, encoder)
    if old is not None and num_old is not None:
        raise SettingError("give either --old or --num-old, not both")
    if json_path is not None and json_path.is_dir():
        raise SettingError(f"--json takes a file, and {json_path} is a folder")
    if folder is not None:
        names = {"dataset": dataset, "method": method, "encoder": encoder}
        _check_run_place(folder, names, overwrite)
    with loading(quiet, "loading the graph and PyTorch"):
        labelled, default_old = load_named(dataset, graph, data_root, split)
        from nodenova.bench.folder import GradedFolder
        from nodenova.bench.plan import Plan
        from nodenova.bench.registry import encoder_for, get_method
        from nodenova.bench.render import summarize
        from nodenova.bench.run_page import write_report
        from nodenova.files.atomic import write_atomically
        from nodenova.files.content import to_json
        from nodenova.fitting import settings_from_text

    chosen = old_classes(labelled, old, num_old if num_old is not None or old else default_old)
    encoder = encoder_for(method, encoder)
    options = settings_from_text(dict(settings_of(fit_set or [], "--fit-set")), [encoder])
    named = {"hidden": hidden, "layers": layers, "dropout": dropout, "epochs": fit_epochs}
    named["batch"] = batch
    options |= {name: value for name, value in named.items() if value is not None}
    plan = Plan(
        dataset=labelled.name,
        method=get_method(method, settings),
        encoder=encoder,
        old=chosen,
        num_new=num_new if num_new is not None else labelled.num_classes - len(chosen),
        fit_settings=tuple(options.items()),
        visibility=setting,
        per_class=per_class,
        device=device,
    )
    _check(labelled, plan)
    rows = _run_seeds(labelled, plan, seed_list, folder, overwrite, quiet)
    summary = summarize(rows)
    if json_path is not None:
        document = {"rows": [_row_document(row) for row in rows], "summary": summary.to_json()}
        write_atomically(json_path, to_json(document))
    if not quiet:
        print_scores(summary)
    if folder is not None and report:
        page = write_report(GradedFolder.open(folder))
        if not quiet:
            out.print(f"\nReport: {escape(str(page))}", soft_wrap=True)


def _run_seeds(
    labelled: LabelledGraph,
    plan: Plan,
    seeds: Sequence[int],
    folder: Path | None,
    overwrite: bool,
    quiet: bool,
) -> list[Row]:
    """Run a plan for each seed, in a folder if there is one, and print scores as they come."""
    from nodenova.bench.folder import GradedFolder
    from nodenova.bench.run import run_one
    from nodenova.cli.progress import Bars
    from nodenova.progress import add_prefix

    rows: list[Row] = []
    try:
        with Bars(not quiet) as bars:
            if folder is not None:
                place = GradedFolder.create(folder, plan, labelled.fingerprint(), overwrite)
                return place.run(labelled, plan, seeds, bars, bars.print_scores)
            for seed in seeds:
                rows.append(run_one(labelled, plan, seed, add_prefix(bars, f"seed {seed}: ")).row)
                bars.print_scores(rows[-1])
    except KeyboardInterrupt:
        resume = "; finished seeds are stored, the same command resumes from there"
        fail("stopped" if folder is None else "stopped" + resume, 130)
    return rows


@app.command("report", rich_help_panel=RESEARCH)
def report_command(
    run_path: RunPath,
    private: Annotated[bool, typer.Option("--private/--no-private", help="Whether the page has ids, texts, labels and edges of nodes. Without them it can be passed on: it is written to --out.")] = True,
    path: Annotated[Path | None, typer.Option("--out", help="With --no-private: HTML file to write.")] = None,
    safe_csv: SafeCsv = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Write the report.html of a run again: one file that opens offline.

    The tables of a discovery are written again too; --safe-csv holds for its later reviews. With
    --no-private, the run stays as it is, and a page to pass on is written to --out: it has no ids,
    texts, labels and edges of nodes, and no decisions can be made on it.
    """
    if private != (path is None):
        raise SettingError(
            "--out is for the page that --no-private writes: give both, or neither of them"
        )
    check_saved(run_path)
    from nodenova.bench.folder import GradedFolder
    from nodenova.bench.render import summarize
    from nodenova.bench.run_page import write_report
    from nodenova.cli.progress import Bars
    from nodenova.runs.folder import open_run
    from nodenova.runs.run_dir import is_discovery

    if path is not None:
        if not is_discovery(run_path):
            raise SettingError(
                f"--no-private is for runs of `nodenova discover`, and {run_path} is none"
            )
        with Bars(not quiet) as bars:
            notes = open_run(run_path).public_report(path, progress=bars)
        if not quiet:
            print_notes(notes)
            out.print(f"Report: {escape(str(path))}", soft_wrap=True)
        return
    if is_discovery(run_path):
        with Bars(not quiet) as bars:
            page = open_run(run_path).report(safe_csv=safe_csv, progress=bars)
        if not quiet:
            out.print(f"Report: {escape(str(page))}", soft_wrap=True)
        return
    if safe_csv is not None:
        raise SettingError(f"--safe-csv is for runs of `nodenova discover`, and {run_path} is none")
    place = GradedFolder.open(run_path)
    page = write_report(place)
    if not quiet:
        print_scores(summarize(place.rows()))
        out.print(f"\nReport: {escape(str(page))}", soft_wrap=True)


def _check_run_place(folder: Path, names: Mapping[str, object], overwrite: bool) -> None:
    """Raise if a folder holds something else or another run, before anything is loaded.

    `names` are the options given by name. `GradedFolder.create` compares the rest.
    """
    from nodenova.files.documents import read_json
    from nodenova.files.folders import is_empty

    if folder.is_file():
        raise StorageError(f"{folder} is a file, not a folder for a run")
    if not folder.is_dir() or is_empty(folder):
        return
    if not (folder / "run.json").is_file():
        raise StorageError(
            f"{folder} exists and is not a run (it has no run.json); nothing was written"
        )
    plan = read_json(folder / "run.json").get("plan")
    if overwrite or not isinstance(plan, dict):
        return
    for name, value in names.items():
        if value is not None and plan.get(name) not in (None, value) and ":" not in str(value):
            raise StorageError(
                f"{folder} holds another run ({name}: {brief(plan[name])} there, {brief(value)} now); "
                "choose another --out, or replace it with --overwrite"
            )


def _check(labelled: LabelledGraph, plan: Plan) -> None:
    """Raise for anything that is wrong with a plan before something is written."""
    from nodenova.data.splits import split
    from nodenova.fitting import check_fit_settings
    from nodenova.nn.seeding import pick_device

    check_fit_settings(plan.encoder, dict(plan.fit_settings))
    pick_device(plan.device)
    split(
        labelled, plan.old, num_new=plan.num_new, setting=plan.visibility, per_class=plan.per_class
    )


def _row_document(row: Row) -> dict[str, object]:
    """Return a row with its scores, for readers without nodenova."""
    from nodenova.evaluation.metrics import MATCHINGS

    scores = {matching: row.scores(matching) for matching in MATCHINGS}
    return {**row.to_json(), "scores": scores, **row.once}


def print_scores(summary: Summary) -> None:
    """Print what was run, and its scores as a table."""
    from nodenova.bench.render import describe, scores_table

    header, rows = scores_table(summary)
    out.print(escape(describe(summary)), highlight=False)
    columns = [Column(name, style="bold" if name == "block" else "dim") for name in header[1:]]
    table = Table(header[0], *columns, box=None)
    for row in rows:
        table.add_row(*row)
    out.print(table)
