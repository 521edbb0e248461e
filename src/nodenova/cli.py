"""The command line: a thin layer over the library, and the only place that prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from nodenova.errors import NodenovaError, SettingError

if TYPE_CHECKING:  # torch takes seconds to import: commands import what they need, so that --help is quick
    from nodenova.data.answers import Labelled
    from nodenova.experiments.run import Plan, Row

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Discover new classes of nodes on a graph.\n\n"
    "Start with [bold]nodenova demo[/]; then [bold]nodenova run --graph my.npz --num-old 5[/] on a graph of your own.",
)
out = Console()
err = Console(stderr=True)

DataRoot = Annotated[
    Path | None, typer.Option(help="Folder with raw dataset files (default: the environment variable NODENOVA_DATA).")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `nodenova run` wrote.")]


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--out", help="Where the run and its report go.")] = Path("nodenova-demo"),
    seeds: Annotated[str, typer.Option(help="How many seeds, or which: 3 means 0,1,2; 4,7 means those.")] = "3",
    quiet: Quiet = False,
) -> None:
    """Discover two classes of CiteSeer that nobody labelled: data that ships, both phases, a table, a report."""
    if not quiet:
        out.print("CiteSeer: papers, citations, words. Four classes are labelled; two are there, but nobody named them.")
        out.print("Phase 1 learns the four and then forgets the nodes. Phase 2 sees 40 unlabelled papers and the graph.\n")
    run(dataset="citeseer", seeds=seeds, folder=folder, quiet=quiet)
    if not quiet:
        out.print(f"\nTry next: nodenova predict {escape(str(folder))} --dataset citeseer --out predictions.csv")


@app.command()
def datasets(data_root: DataRoot = None) -> None:
    """What can be loaded by name, how large it is, and whether it is on this machine."""
    from nodenova.data.datasets import DATASETS, find_root, is_on_disk

    root = find_root(data_root)
    table = Table("name", "nodes", "edges", "features", "classes", "old/new in the paper", "where", box=None)
    for name, d in DATASETS.items():
        here = root is not None and is_on_disk(d, root)
        where = "on this machine" if here else "ships with nodenova" if d.ships else "not here: needs --data-root"
        counts = [f"{count:,}" for count in (d.nodes, d.edges, d.features, d.classes)]
        table.add_row(name, *counts, f"{d.num_old} / {d.classes - d.num_old}", where)
    table.add_row("synthetic", "any", "any", "any", "any", "", "made on the spot: synthetic:nodes=5000,classes=8")
    out.print(table)


@app.command()
def run(
    dataset: Annotated[str | None, typer.Option(help="A dataset by name; see `nodenova datasets`.")] = None,
    graph: Annotated[Path | None, typer.Option(help="A graph of your own as npz (x, edge_index, y).")] = None,
    data_root: DataRoot = None,
    split: Annotated[int, typer.Option(help="Which published split, where there are several (Wiki-CS).")] = 0,
    num_old: Annotated[int | None, typer.Option(help="The first so many classes are old (default: as in the paper).")] = None,
    old: Annotated[str | None, typer.Option(help="Which classes are old, by id: 0,2,5. Instead of --num-old.")] = None,
    num_new: Annotated[int | None, typer.Option(help="How many new classes to find (default: the true number).")] = None,
    method: Annotated[str, typer.Option(help="How to discover: prism, taught, sword; baselines autonovel, restune, ncl, dtc, frozen_kmeans, never_new.")] = "prism",
    set_: Annotated[list[str] | None, typer.Option("--set", help="A setting of the method: name=value. Repeatable.")] = None,
    encoder: Annotated[str | None, typer.Option(help="prism, gcn, gat or sage (default: what the method prefers).")] = None,
    hidden: Annotated[int | None, typer.Option(help="Size of the representation (gcn, gat, sage; default 16).")] = None,
    layers: Annotated[int | None, typer.Option(help="Depth of the encoder, 1 to 64 (default 2).")] = None,
    dropout: Annotated[float | None, typer.Option(help="Dropout between layers (default 0.5).")] = None,
    fit_epochs: Annotated[int | None, typer.Option(help="Epochs of phase 1, at most (default 200).")] = None,
    visibility: Annotated[str, typer.Option(help="transductive (see the whole graph) or induced (only classes met).")] = "transductive",
    per_class: Annotated[int, typer.Option(help="Training nodes a class, for a graph without a published split.")] = 20,
    seeds: Annotated[str, typer.Option(help="How many seeds, or which: 3 means 0,1,2; 4,7 means those.")] = "1",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    folder: Annotated[Path | None, typer.Option("--out", help="Folder for models and report; a stopped run goes on there.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the run that --out holds.")] = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html into --out.")] = True,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write rows and summary to this file.")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Learn the old classes, discover the new ones, and grade the result against the labels held back.

    Phase 2 never sees a label. Accuracies are percentages; "block" is the headline: discovered classes are matched to the
    true new ones, old ones keep their ids, and a new node called old is wrong.
    """
    from nodenova.experiments.folder import RunFolder
    from nodenova.experiments.results import summarise
    from nodenova.experiments.run import Plan, run_one
    from nodenova.methods import choose_encoder, make_method
    from nodenova.progress import Bars
    from nodenova.report.page import write_report
    from nodenova.storage import to_json, write_atomically

    wanted = _seeds(seeds)
    settings = _settings(set_ or [])
    make_method(method, dict(settings))
    labelled, default_old = _load(dataset, graph, data_root, split)
    chosen = _old_classes(labelled, old, num_old if num_old is not None or old else default_old)
    given = {"hidden": hidden, "layers": layers, "dropout": dropout, "epochs": fit_epochs}
    fit_settings = {name: value for name, value in given.items() if value is not None}
    plan = Plan(
        dataset=labelled.name,
        method=method,
        encoder=choose_encoder(method, encoder),
        old=chosen,
        num_new=num_new if num_new is not None else labelled.num_classes - len(chosen),
        method_settings=settings,
        fit_settings=tuple(fit_settings.items()),
        visibility=visibility,
        per_class=per_class,
        device=device,
    )
    _check(labelled, plan)
    if json_path is not None and json_path.is_dir():
        raise SettingError(f"--json takes a file, and {json_path} is a folder")
    rows: list[Row] = []
    try:
        with Bars(err, show=not quiet and err.is_terminal) as bars:
            if folder is None:
                for seed in wanted:
                    rows.append(run_one(labelled, plan, seed, bars.watcher).row)
                    bars.done(rows[-1])
            else:
                place = RunFolder.create(folder, plan, labelled.fingerprint(), overwrite)
                rows = place.run(labelled, plan, wanted, bars.watcher, bars.done)
    except KeyboardInterrupt:
        _fail("stopped" if folder is None else "stopped; finished seeds are kept, the same command goes on from there", 130)
    summary = summarise(rows)
    if json_path is not None:
        write_atomically(json_path, to_json({"rows": rows, "summary": summary}))
    if not quiet:
        _print_scores(summary)
    if folder is not None and report:
        page = write_report(RunFolder.open(folder))
        if not quiet:
            out.print(f"\nReport: {escape(str(page))}", soft_wrap=True)


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
    labelled, _ = _load(dataset, graph, data_root, 0)
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


@app.command("report")
def report_command(run_path: RunPath, quiet: Quiet = False) -> None:
    """Write a run's report.html anew: scores, losses, confusion, map. One file, opens offline."""
    from nodenova.experiments.folder import RunFolder
    from nodenova.experiments.results import summarise
    from nodenova.report.page import write_report

    place = RunFolder.open(run_path)
    page = write_report(place)
    if not quiet:
        _print_scores(summarise(place.rows()))
        out.print(f"\nReport: {escape(str(page))}", soft_wrap=True)


def _load(dataset: str | None, graph: Path | None, data_root: Path | None, split: int) -> tuple[Labelled, int | None]:
    """The graph, and how many of its classes are old by default."""
    from nodenova.data.datasets import DATASETS, load_dataset
    from nodenova.data.npz import load_graph

    if (dataset is None) == (graph is None):
        raise SettingError("give either --dataset NAME or --graph FILE.npz")
    if graph is not None:
        return load_graph(graph), None
    assert dataset is not None
    labelled = load_dataset(dataset, data_root, split=split)
    return labelled, DATASETS[dataset].num_old if dataset in DATASETS else (labelled.num_classes + 1) // 2


def _old_classes(labelled: Labelled, old: str | None, num_old: int | None) -> tuple[int, ...]:
    if old is not None and num_old is not None:
        raise SettingError("give either --old or --num-old, not both")
    if old is not None:
        return tuple(_whole_numbers("--old", old))
    if num_old is None:
        raise SettingError(f"{labelled.name}: say which classes are old, with --num-old N or --old 0,2,5")
    if not 1 <= num_old < labelled.num_classes:
        raise SettingError(
            f"--num-old is {num_old}, but {labelled.name} has {labelled.num_classes} classes: "
            "at least one must be old and at least one new"
        )
    return tuple(range(num_old))


def _check(labelled: Labelled, plan: Plan) -> None:
    """Everything that can be wrong with a plan is found before anything is written."""
    from nodenova.data.splits import split
    from nodenova.fitting import check_settings
    from nodenova.randomness import pick_device

    check_settings(plan.encoder, dict(plan.fit_settings))
    pick_device(plan.device)
    split(labelled, plan.old, num_new=plan.num_new, visibility=plan.visibility, per_class=plan.per_class)


def _settings(pairs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    for pair in pairs:
        if "=" not in pair:
            raise SettingError(f"--set takes name=value, not {pair!r}")
    return tuple((name, value) for name, _, value in (pair.partition("=") for pair in pairs))


def _seeds(text: str) -> list[int]:
    numbers = _whole_numbers("--seeds", text)
    seeds = numbers if "," in text else list(range(numbers[0]))
    if not seeds:
        raise SettingError("--seeds must be at least 1")
    return sorted(set(seeds))


def _whole_numbers(option: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise SettingError(f"{option} takes whole numbers like 3 or 4,7, not {text!r}")
    return [int(part) for part in parts]


def _print_scores(summary: dict[str, Any]) -> None:
    from nodenova.report.tables import describe, scores_table

    header, rows = scores_table(summary)
    out.print(escape(describe(summary)), highlight=False)
    table = Table(header[0], *(Column(name, style="bold" if name == "block" else "dim") for name in header[1:]), box=None)
    for row in rows:
        table.add_row(*row)
    out.print(table)


def main() -> None:
    """Run the command line: exit code 2 for wrong input or usage, 1 when the machine fails, 130 for Ctrl-C."""
    try:
        app()
    except NodenovaError as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(f"{error.filename or 'writing'}: {error.strerror or error}", 1)


def _fail(message: str, code: int) -> NoReturn:
    err.print(f"[red]error:[/] {escape(message)}", soft_wrap=True, highlight=False)
    sys.exit(code)
