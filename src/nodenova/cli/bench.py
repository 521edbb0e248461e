"""nodenova bench and check: tables of the paper from rows, and whether a method keeps the rules.

What `nodenova bench` says: names that are unknown at once, and the table at the end.

The live table of a bench: what is done, what is running, and how long is left.

Benches of the league on the command line: what they are run with.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nodenova.cli.app import (
    RESEARCH,
    DataRoot,
    Quiet,
    app,
    check_method_name,
    err,
    fail,
    loading,
    log_line,
    out,
    print_notes,
    seeds_of,
    settings_of,
)
from nodenova.cli.cluster import RayAddress
from nodenova.errors import SettingError, one_of
from nodenova.io.dataset_table import DATASETS

if TYPE_CHECKING:
    from nodenova.bench.row import Row
    from nodenova.bench.rowfile import RowFile
    from nodenova.bench.runs import RunSpec
    from nodenova.bench.sweep import Event
    from nodenova.bench.worker import Source
    from nodenova.data.labels import LabelledGraph


ASKED = ("gcn", "gat", "sage")  # what --encoders takes
MAX_VARIANTS = 5  # that are named; tables of variants have many
MAX_PRINTED = 60  # lines of a table; longer ones are in the file


def check_known(datasets: Sequence[str], methods: Sequence[str]) -> None:
    """Refuse datasets and methods that have no such name, before PyTorch is loaded.

    Raises:
        SettingError: There is none of this name.
    """
    for name in datasets:
        if name not in DATASETS and not name.startswith("synthetic"):
            raise one_of("dataset", name, [*DATASETS, "synthetic"])
    for name in methods:
        check_method_name(name)


def print_tables(written: Sequence[Path]) -> None:
    """The tables that were written as Markdown, as far as they are short enough to read."""
    for path in written:
        if path.suffix != ".md":
            continue
        text = path.read_text(encoding="utf-8").rstrip().splitlines()
        # What the numbers are is a long paragraph; it is in the file.
        lines = [line for line in text if line.startswith(("#", "|", "**"))]
        for line in lines[:MAX_PRINTED]:
            out.print(line, markup=False, highlight=False, soft_wrap=True)
        if len(lines) > MAX_PRINTED:
            out.print(f"and {len(lines) - MAX_PRINTED} more lines in {path}", markup=False)
        out.print()


def print_remarks(specs: Sequence[RunSpec], rows: Sequence[Row]) -> None:
    """What a reader of the table would wonder about, a line each.

    Args:
        specs: What was asked for.
        rows: What was run.
    """
    print_notes([*own_encoders(specs), *variants(specs), *same_for_all_seeds(specs, rows)])


def own_encoders(specs: Sequence[RunSpec]) -> list[str]:
    """Methods that run on an encoder of their own, in tables by encoder."""
    found: dict[str, set[str]] = defaultdict(set)
    for spec in specs:
        if not spec.plan.protocol and spec.plan.encoder not in ASKED:
            found[spec.plan.method_name].add(spec.plan.encoder)
    return [
        f"{method} runs on its own encoder ({', '.join(sorted(names))}), whatever --encoders says"
        for method, names in sorted(found.items())
    ]


def variants(specs: Sequence[RunSpec]) -> list[str]:
    """Methods that come with variants that nobody named."""
    found: dict[str, dict[str, object]] = defaultdict(dict)
    for spec in specs:
        found[spec.plan.method_name].setdefault(str(spec.plan.method), spec.plan.method)
    said = []
    for method, made in sorted(found.items()):
        first, *others = made.values()
        for other in others:
            differs = [f"{k}={v}" for k, v in vars(other).items() if vars(first)[k] != v]
            said.append(f"{method} comes along with {', '.join(differs)} as a line of its own")
    return said[:MAX_VARIANTS]


def same_for_all_seeds(specs: Sequence[RunSpec], rows: Sequence[Row]) -> list[str]:
    """Methods whose ± says nothing: all seeds have the same scores."""
    wanted = {spec.key: spec for spec in specs}
    by_line: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in {row.key: row for row in rows if row.key in wanted and not row.is_failed}.values():
        plan = wanted[row.key].plan
        line = (plan.method_name, plan.dataset, plan.encoder, str(plan.method), str(plan.old))
        by_line[line].append(row.scores()["all"])
    same = {line[0] for line, scores in by_line.items() if len(scores) > 1 and len({*scores}) == 1}
    if not same:
        return []
    named = ", ".join(sorted(same))
    return [
        f"± 0.0 of {named}: the split is the published one and all seeds give the same result; "
        "it says nothing about other splits (`nodenova bench class-splits` varies them)"
    ]


class Board:
    """The live table, drawn by Rich.

    Args:
        specs: All runs of the bench.
        todo: Those without a row.
        jobs: How many run at the same time.
        log: Whether a run that ends is a plain line, where no table is drawn.
    """

    def __init__(
        self, specs: Sequence[RunSpec], todo: Sequence[RunSpec], jobs: int, log: bool = False
    ) -> None:
        self.log = log
        self.total = len(specs)
        self.done = len(specs) - len(todo)
        self.failed = 0
        self.jobs = jobs
        self.places = Counter(_place(spec) for spec in specs)
        self.ended = self.places - Counter(_place(spec) for spec in todo)
        self.left = Counter(_kind(spec) for spec in todo)
        self.running: dict[int, tuple[RunSpec, str]] = {}
        self.seconds: dict[tuple[str, ...], list[float]] = {}
        self.since: dict[int, float] = {}

    def on_event(self, event: Event) -> None:
        """Take in what happened to a run."""
        from nodenova.bench.sweep import Epoch, Started

        spec = event.spec
        worker = event.worker
        what = event.what
        if isinstance(what, Started):
            self.running[worker] = (spec, "starting")
            self.since[worker] = time.monotonic()
        elif isinstance(what, Epoch):
            self.running[worker] = (spec, f"{what.phase}, {what.epoch} of {what.epochs}")
        else:
            self.running.pop(worker, None)
            self.done += 1
            self.failed += what.is_failed
            self.ended[_place(spec)] += 1
            self.left[_kind(spec)] -= 1
            now = time.monotonic()
            self.seconds.setdefault(_kind(spec), []).append(now - self.since.get(worker, now))
            if self.log:
                how = "failed" if what.is_failed else "done"
                log_line(f"{self.done} of {self.total} runs, {how}: {_describe(spec)}")

    def remaining(self) -> float | None:
        """Seconds left, by what runs of the same kind took; of other kinds by the mean of all."""
        means = {kind: sum(took) / len(took) for kind, took in self.seconds.items()}
        if not means:
            return None
        typical = sum(means.values()) / len(means)
        alone = sum(count * means.get(kind, typical) for kind, count in self.left.items())
        return alone / self.jobs

    def __rich__(self) -> Group:
        left = self.remaining()
        head = Text(f"{self.done} of {self.total} runs done")
        if self.failed:
            head.append(f", {self.failed} failed", style="yellow")
        when = ", time left not known yet" if left is None else f", about {_duration(left)} left"
        head.append(when)
        table = Table("", "encoder", "done", "", box=None, pad_edge=False)
        for (dataset, encoder), total in self.places.items():
            ended = self.ended[dataset, encoder]
            bar = ProgressBar(total=total, completed=ended, width=24)
            table.add_row(escape(dataset), encoder, f"{ended}/{total}", bar)
        now = [
            Text(f"  {_describe(spec)}: {doing}", style="cyan")
            for spec, doing in self.running.values()
        ]
        return Group(head, table, *now)


def _place(spec: RunSpec) -> tuple[str, str]:
    return spec.plan.dataset, spec.plan.encoder


def _kind(spec: RunSpec) -> tuple[str, ...]:
    return (*_place(spec), spec.plan.method_name, *(f"{k}={v}" for k, v in spec.plan.fit_settings))


def _describe(spec: RunSpec) -> str:
    from nodenova.bench.schedules import changed

    settings = (*changed(spec.plan).items(), *spec.plan.fit_settings)
    given = [f"{name}={value}" for name, value in settings]
    return " ".join([*_place(spec), spec.plan.method_name, *given, f"seed {spec.seed}"])


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{round(seconds / 3600, 1)} h"


def runs_of_league(
    bench: str,
    datasets: Sequence[str] | None,
    methods: Sequence[str] | None,
    seeds: str | None,
    source: Source,
    setting: str,
    refused: Mapping[str, bool],
) -> list[RunSpec]:
    """The runs that were asked for.

    Args:
        bench: One of the league.
        datasets: Names or files; the bench's own that are on this machine unless given.
        methods: Who takes part; the bench's own unless given.
        seeds: As on the command line; as many as the protocol has unless given.
        source: Where datasets are found.
        setting: "transductive" or "inductive".
        refused: Options that a protocol leaves no room for, and whether they were given.

    Returns:
        The runs.

    Raises:
        SettingError: An option that does not apply was given, or nothing is here to run on.
    """
    from nodenova.bench.league_runs import LEAGUE, league_runs
    from nodenova.bench.protocols import INDUCTIVE
    from nodenova.data.splits import SETTINGS

    if setting not in SETTINGS:
        raise one_of("setting", setting, SETTINGS)
    if setting != SETTINGS[0] and bench not in INDUCTIVE:
        refused = {**refused, "--setting": True}
    given = [option for option, is_given in refused.items() if is_given]
    if given:
        raise SettingError(f"{given[0]}: {bench} is a protocol, which says that itself")
    usual = LEAGUE[bench]
    names = list(datasets) if datasets is not None else _here(usual.datasets, source.data_root)
    if not names:
        wanted = ", ".join(usual.datasets)
        raise SettingError(f"none of the graphs of {bench} ({wanted}) is here: give --data-root")
    graphs = [replace(source.load(name), name=name) for name in names]
    numbers = seeds_of(str(usual.seeds) if seeds is None else seeds)
    return league_runs(bench, graphs, methods or usual.entrants, numbers, setting)


def _here(names: Sequence[str], data_root: str | None) -> list[str]:
    from nodenova.io.dataset_table import DATASETS, find_root, is_on_disk

    root = find_root(None if data_root is None else Path(data_root))

    def is_here(name: str) -> bool:
        if name not in DATASETS:
            return True  # made on the spot
        return DATASETS[name].ships or (root is not None and is_on_disk(DATASETS[name], root))

    return [name for name in names if is_here(name)]


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
        from nodenova.bench.league_runs import LEAGUE
        from nodenova.bench.registry import ALL_METHODS, get_method
        from nodenova.bench.rowfile import RowFile
        from nodenova.bench.runs import SWORD_ALONE, BenchConfig, runs_of
        from nodenova.bench.worker import Source
        from nodenova.data.splits import SETTINGS
        from nodenova.encoders.registry import encoder_kind
        from nodenova.fitting import check_fit_settings, settings_from_text

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
        check_fit_settings(name, dict(fit_settings) | ({} if size is None else {"hidden": size}))
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
    from nodenova.bench.ray_sweep import sweep_on_ray
    from nodenova.bench.sweep import sweep, unfinished
    from nodenova.cluster.session import capacity, connect

    with file.writing(), ExitStack() as stack:
        todo = [] if write_only else unfinished(specs, file.read(), retry)
        at_once = jobs or 1
        if ray is not None and todo:
            stack.enter_context(connect(ray, jobs))
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
    from nodenova.bench.page import write_outputs, write_page
    from nodenova.bench.runs import TABLES as KNOWN

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
    from nodenova.io.dataset_table import DATASETS, PAPER, find_root, is_on_disk

    if text is not None:
        return _names("--datasets", text)
    root = find_root(data_root)
    return [
        name
        for name in PAPER
        if DATASETS[name].ships or (root is not None and is_on_disk(DATASETS[name], root))
    ]


def _dataset(name: str, labelled: LabelledGraph, num_old: int | None) -> tuple[LabelledGraph, int]:
    from nodenova.io.dataset_table import DATASETS

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
