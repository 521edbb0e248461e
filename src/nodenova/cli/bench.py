"""nodenova bench and check: tables of the paper from rows, and whether a method keeps the rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.markup import escape

from nodenova.cli.app import (
    RESEARCH,
    DataRoot,
    Quiet,
    app,
    err,
    fail,
    loading,
    out,
    seeds_of,
    settings_of,
)
from nodenova.cli.bench_said import check_known, print_remarks, print_tables
from nodenova.cli.board import Board
from nodenova.cli.cluster import RayAddress
from nodenova.cli.league import runs_of_league
from nodenova.errors import SettingError, one_of

if TYPE_CHECKING:
    from nodenova.bench.grid import RunSpec
    from nodenova.bench.row import Row
    from nodenova.bench.rowfile import RowFile
    from nodenova.bench.sweep import Source
    from nodenova.data.labels import LabelledGraph

TABLES = (
    "comparison, collapse, settings, heads, ablation, forgetting, sensitivity, layers, confusion, "
    "tsne, class-splits or all"
)
ENCODERS = "gcn,gat,sage"
PROTOCOLS = "mixed, count, stages, pown, openima or gnnsafe"
KNOWN_TABLES = re.split(", | or ", f"{TABLES}, {PROTOCOLS}")


@app.command(rich_help_panel=RESEARCH)
def bench(
    table: Annotated[str, typer.Argument(metavar="TABLE", help=f"Which table of the paper: {TABLES}; or of the league, old and new classes mixed: {PROTOCOLS}.")],
    datasets: Annotated[str | None, typer.Option(help="Datasets by name or files of your own, with commas (default: the paper's that are on this machine).")] = None,
    encoders: Annotated[str, typer.Option(help="Encoders, with commas: gcn, gat, sage.")] = ENCODERS,
    methods: Annotated[str | None, typer.Option(help="Methods, with commas; your own as path/to/mine.py:Mine (default: all; in the league, those of the protocol).")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="A setting, name=value, of the one method that --methods names; of SWORD in ablation, sensitivity and layers. Repeatable.")] = None,
    seeds: Annotated[str | None, typer.Option(help="How many seeds, or which: 3 means 0,1,2; 4,7 means those (default: 10; in the league, as the protocol has it).")] = None,
    num_old: Annotated[int | None, typer.Option(help="The first so many classes are old (default: as in the paper; half, for others).")] = None,
    hidden: Annotated[str, typer.Option(help="Size of the representation, or paper: its sizes by dataset, 16 for others.")] = "paper",
    schedule: Annotated[str, typer.Option(help="Epochs of both phases: paper (200 + 600, early stopping) or released (by dataset and encoder, as the authors' configuration files).")] = "paper",
    setting: Annotated[str, typer.Option(help="transductive (see the whole graph) or inductive (only classes met; in mixed and stages also no node of a later session).")] = "transductive",
    fit_set: Annotated[list[str] | None, typer.Option("--fit-set", help="A setting of phase 1, name=value: layers, dropout, head, … Repeatable. Lines of their own in the comparison.")] = None,
    fit_epochs: Annotated[int | None, typer.Option(help="Epochs of phase 1, at most (default 200). Such rows are in no table of the paper.", hidden=True)] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="How many runs at the same time (default: 1; with --ray, as many as there are processors).")] = None,
    ray: RayAddress = None,
    data_root: DataRoot = None,
    split: Annotated[int, typer.Option(help="Which published split, where there are several (Wiki-CS).")] = 0,
    folder: Annotated[Path, typer.Option("--out", help="Folder for rows and tables; a stopped bench goes on there.")] = Path("results"),
    retry: Annotated[bool, typer.Option(help="Run failed runs again.")] = False,
    write_only: Annotated[bool, typer.Option("--write-only", help="Run nothing; write the tables from the rows there are.")] = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Run a table of the paper or of the league, or go on with it, and write it.

    As Markdown, LaTeX, CSV and figures; one page shows everything. Rows are appended to rows.jsonl in --out, one a run, failures too. A
    run that is there is never run again, so the same command goes on after Ctrl-C, a crash or a
    power cut, and several tables share their runs. Exit code 1 if runs failed.
    """
    if table not in KNOWN_TABLES:
        raise one_of("table", table, KNOWN_TABLES)
    if table not in re.split(", | or ", PROTOCOLS):
        check_known(
            _names("--datasets", datasets or "cora"), _names("--methods", methods or "prism")
        )
    with loading(quiet):
        from nodenova.bench.grid import SWORD_ALONE, BenchConfig, runs_of
        from nodenova.bench.league.grid import LEAGUE
        from nodenova.bench.registry import ALL_METHODS, get_method
        from nodenova.bench.rowfile import RowFile
        from nodenova.bench.sweep import Source
        from nodenova.data.splits import SETTINGS
        from nodenova.encoders.registry import encoder_kind
        from nodenova.fitting import check_settings, settings_from_text

    source = Source(None if data_root is None else str(data_root), split)
    file = RowFile(folder / "rows.jsonl")
    if table in LEAGUE:
        refused = {
            "--encoders": encoders != ENCODERS,
            "--set": bool(set_),
            "--num-old": num_old is not None,
            "--hidden": hidden != "paper",
            "--schedule": schedule != "paper",
            "--fit-set": bool(fit_set),
            "--fit-epochs": fit_epochs is not None,
        }
        names = None if datasets is None else _names("--datasets", datasets)
        entrants = None if methods is None else _names("--methods", methods)
        runs = runs_of_league(table, names, entrants, seeds, source, setting, refused)
        _run(table, runs, source, file, jobs, ray, retry, write_only, quiet)
        return
    settings = settings_of(set_ or [])
    default = ["sword"] if table in SWORD_ALONE else list(ALL_METHODS)
    chosen_methods = _names("--methods", methods) if methods else default
    if table in SWORD_ALONE and chosen_methods != ["sword"] and settings:
        raise SettingError(f"--set is a setting of SWORD in {table}, and --methods names others")
    if settings and (len(chosen_methods) != 1 or table == "all"):
        raise SettingError(
            "--set is for one method: name it with --methods, in a table that is not all"
        )
    registry = [get_method(name, dict(settings)) for name in chosen_methods]
    if setting not in SETTINGS:
        raise one_of("setting", setting, SETTINGS)
    chosen_encoders = _names("--encoders", encoders)
    size = _hidden(hidden)
    if any(pair.partition("=")[0] == "hidden" for pair in fit_set or []):
        raise SettingError("--fit-set hidden=…: the size of the representation is --hidden")
    fit_settings = tuple(settings_from_text(dict(settings_of(fit_set or [], "--fit-set"))).items())
    fit_settings += () if fit_epochs is None else (("epochs", fit_epochs),)
    for name in chosen_encoders:
        if not encoder_kind(name).trainable:
            raise SettingError(
                f"--encoders takes gcn, gat and sage; methods that prefer {name} run on it anyway"
            )
        check_settings(name, dict(fit_settings) | ({} if size is None else {"hidden": size}))
    chosen_data = [
        _dataset(name, source.load(name), num_old) for name in _datasets(datasets, data_root)
    ]
    config = BenchConfig(
        datasets=chosen_data,
        encoders=chosen_encoders,
        methods=registry,
        seeds=seeds_of("10" if seeds is None else seeds),
        fit_settings=fit_settings,
        given=[name for name, _ in settings],
        hidden=size,
        schedule=schedule,
        visibility=setting,
    )
    _run(table, runs_of(table, config), source, file, jobs, ray, retry, write_only, quiet)


def _run(
    table: str,
    specs: Sequence[RunSpec],
    source: Source,
    file: RowFile,
    jobs: int | None,
    ray: str | None,
    retry: bool,
    write_only: bool,
    quiet: bool,
) -> None:
    """Run what is missing, and write the tables."""
    from nodenova.bench.on_ray import sweep_on_ray
    from nodenova.bench.sweep import sweep, unfinished
    from nodenova.cluster.session import capacity, connected

    with file.writing(), ExitStack() as stack:
        todo = [] if write_only else unfinished(specs, file.read(), retry)
        at_once = jobs or 1
        if ray is not None and todo:
            stack.enter_context(connected(ray, jobs))
            at_once = min(jobs or capacity(), capacity())
        shown = not quiet and err.is_terminal
        board = Board(specs, todo, at_once, log=not quiet and not shown)
        try:
            live = Live(board, console=err, refresh_per_second=4, transient=True)
            with live if shown else nullcontext():
                if ray is None:
                    sweep(todo, source, file, jobs or 1, on_event=board.on_event)
                elif todo:
                    sweep_on_ray(todo, source, file, jobs, on_event=board.on_event)
        except KeyboardInterrupt:
            done = f"{board.done} of {len(specs)} runs done"
            fail(f"stopped with {done}; the same command goes on from there", 130)
        rows = file.read()
    _write(table, specs, rows, file.path.parent, quiet)


def _write(
    table: str, specs: Sequence[RunSpec], rows: Sequence[Row], folder: Path, quiet: bool
) -> None:
    from nodenova.bench.grid import TABLES as KNOWN
    from nodenova.bench.outputs import write_outputs, write_page

    wanted = {spec.key for spec in specs}
    asked = wanted if table == "comparison" else ()  # with settings that were given too
    names = KNOWN if table == "all" else [table]
    written = [path for name in names for path in write_outputs(name, rows, folder, asked)]
    written.append(write_page(rows, folder, asked))
    last = {row.key: row for row in rows if row.key in wanted}
    failures = [row for row in last.values() if row.is_failed]
    for row in failures[:5]:
        what = f"{row.dataset} {row.encoder} {row.method} seed {row.seed}"
        said = f"[yellow]failed:[/] {escape(what)}: {escape(row.error)}"
        err.print(said, highlight=False, soft_wrap=True)
    if not quiet:
        print_tables(written if table != "all" else [])
        print_remarks(specs, rows)
        said = "Written: " + escape(", ".join(str(path) for path in written))
        out.print(said, soft_wrap=True, highlight=False)
    if failures:
        count = f"{len(failures)} of {len(wanted)} runs failed"
        fail(f"{count}, the others are in the tables; --retry runs them again", 1)


def _names(option: str, text: str) -> list[str]:
    # A comma inside synthetic:nodes=200,classes=4 parts nothing.
    parts = re.split(r",(?!\w+=)", text)
    names = [name.strip() for name in parts if name.strip()]
    if not names:
        raise SettingError(f"{option} is empty")
    return list(dict.fromkeys(names))


def _hidden(text: str) -> int | None:
    """A size, or None for the paper's."""
    if text == "paper":
        return None
    if not text.isdecimal() or not int(text):
        raise SettingError(f"--hidden is a number of dimensions, or paper; it is {text!r}")
    return int(text)


def _datasets(text: str | None, data_root: Path | None) -> list[str]:
    from nodenova.io.datasets import DATASETS, PAPER, find_root, is_on_disk

    if text is not None:
        return _names("--datasets", text)
    root = find_root(data_root)
    return [
        name
        for name in PAPER
        if DATASETS[name].ships or (root is not None and is_on_disk(DATASETS[name], root))
    ]


def _dataset(name: str, labelled: LabelledGraph, num_old: int | None) -> tuple[LabelledGraph, int]:
    from nodenova.io.datasets import DATASETS

    default = DATASETS[name].num_old if name in DATASETS else (labelled.num_classes + 1) // 2
    count = default if num_old is None else num_old
    if not 1 <= count < labelled.num_classes:
        raise SettingError(f"--num-old is {count}, but {name} has {labelled.num_classes} classes")
    return replace(labelled, name=name), count


@app.command("check", hidden=True)
@app.command("check-method", rich_help_panel=RESEARCH)
def check_method(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="path/to/mine.py:Mine, or a method by name.")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="A setting of the method: name=value. Repeatable.")] = None,
    encoders: Annotated[str | None, typer.Option(help="Encoders to check it on, with commas (default: gcn,gat,sage; prism for a method that prefers it).")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Does a method keep the rules? No label of a new node reaches it; same seed, same result.

    Runs it on small graphs, among them one new class, an isolated node and a class of two nodes.
    Exit code 1 if it fails.
    """
    from nodenova.bench.registry import encoder_for, get_method, is_given_labels
    from nodenova.encoders.registry import ENCODERS
    from nodenova.testing import CHECKS, problem

    candidate = get_method(method, dict(settings_of(set_ or [])))
    if is_given_labels(candidate):
        raise SettingError(f"{method} is given labels in phase 2: there is no leak to look for")
    preferred = encoder_for(method, None)
    trained = [name for name, kind in ENCODERS.items() if kind.trainable]
    usual = trained if preferred in trained else [preferred]
    wanted = _names("--encoders", encoders) if encoders else usual
    found = 0
    for encoder in wanted:
        for name in CHECKS:
            wrong = problem(candidate, name, encoder_for(method, encoder))
            found += wrong is not None
            if wrong is not None:
                said = f"[red]fails[/] {encoder}, {name}: {escape(wrong)}"
                err.print(said, highlight=False, soft_wrap=True)
            elif not quiet:
                out.print(f"[green]passes[/] {encoder}, {name}", highlight=False)
    if found:
        fail(f"{method}: {found} of {len(wanted) * len(CHECKS)} checks failed", 1)
