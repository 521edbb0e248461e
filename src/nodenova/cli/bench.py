"""nodenova bench, check-method and check-encoder: run and write tables, and test the rules."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    Device,
    Quiet,
    RayAddress,
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
from nodenova.display import plural
from nodenova.errors import SettingError, one_of
from nodenova.io.dataset_table import DATASETS, PAPER, find_root, is_on_disk

if TYPE_CHECKING:
    from nodenova.bench.plan import RunSpec
    from nodenova.bench.row import Row
    from nodenova.bench.rowfile import RowFile
    from nodenova.bench.sweep import Event, Source
    from nodenova.data.labels import LabelledGraph


PAPER_TABLES = (
    "comparison, collapse, settings, heads, ablation, forgetting, sensitivity, layers, confusion, "
    "tsne, class-splits or all"
)
OPEN_WORLD = "mixed, count, stages, pown, openima, gnnsafe, cfc, hope, closed or clusters"
OPEN_WORLD_NAMES = re.split(", | or ", OPEN_WORLD)
KNOWN_TABLES = [*re.split(", | or ", PAPER_TABLES), *OPEN_WORLD_NAMES]
ENCODERS = "gcn,gat,sage"
MAX_VARIANTS = 5  # notes on variants; some tables have many
MAX_PRINTED = 60  # lines of a table; longer ones are in the file


@dataclass(frozen=True)
class BenchOptions:
    """Options of the command that decide the runs, as they were typed."""

    table: str
    datasets: str | None
    encoders: str
    methods: str | None
    settings: Sequence[str]
    seeds: str | None
    num_old: int | None
    hidden: str
    schedule: str
    setting: str
    fit_settings: Sequence[str]
    fit_epochs: int | None


@app.command(rich_help_panel=RESEARCH)
def bench(
    context: typer.Context,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help=f"Table of the paper: {PAPER_TABLES}; or open-world bench, old and new classes mixed: {OPEN_WORLD}. --plan may name it instead.")] = None,
    plan: Annotated[Path | None, typer.Option(metavar="FILE", help="TOML file with the options of this command as keys, for one table or several; an option beside it must not contradict it.")] = None,
    datasets: Annotated[str | None, typer.Option(help="Datasets by name or your own files, separated by commas (default: those of the table that are on this machine).")] = None,
    encoders: Annotated[str, typer.Option(help="Encoders, separated by commas: gcn, gat, sage; your own as path/to/mine.py:Net, whose file is run, with --ray on the workers too.")] = ENCODERS,
    methods: Annotated[str | None, typer.Option(help="Methods, separated by commas; your own as path/to/mine.py:Mine, whose file is run, with --ray on the workers too (default: all; in an open-world bench, those of the protocol).")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Setting name=value of the one method of --methods; of SWORD in ablation, sensitivity and layers. Repeatable.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Number of seeds, or a list: 3 means 0,1,2; 4,7 means those (default: 10; in an open-world bench, as its protocol).")] = None,
    num_old: Annotated[int | None, typer.Option(help="Number of old classes, the first ones (default: as in the paper; half for other graphs).")] = None,
    hidden: Annotated[str, typer.Option(help="Size of the representation, or paper: its size for each dataset, 16 for others.")] = "paper",
    schedule: Annotated[str, typer.Option(help="Epochs of both phases: paper (200 + 600, early stopping) or released (by dataset and encoder, from the authors' configuration files).")] = "paper",
    setting: Annotated[str, typer.Option(help="transductive (see the whole graph) or inductive (only classes met; in mixed and stages also no node of a later session).")] = "transductive",
    fit_set: Annotated[list[str] | None, typer.Option("--fit-set", help="Setting name=value of phase 1: layers, dropout, head, … Repeatable. Adds lines to the comparison.")] = None,
    fit_epochs: Annotated[int | None, typer.Option(help="Maximum number of epochs of phase 1 (default 200). Such rows are in no table of the paper.", hidden=True)] = None,
    device: Device = "auto",
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of parallel runs (default: 1; with --ray, the number of processors).")] = None,
    ray: RayAddress = None,
    data_root: DataRoot = None,
    split: Annotated[int, typer.Option(help="Number of the published split, where there are several (Wiki-CS).")] = 0,
    folder: Annotated[Path, typer.Option("--out", help="Folder for rows and tables; a stopped bench is resumed there.")] = Path("results"),
    others: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Rows of others in the tables, marked ‡: a file that `nodenova export-rows` wrote. Repeatable.")] = None,
    retry: Annotated[bool, typer.Option(help="Repeat failed runs.")] = False,
    write_only: Annotated[bool, typer.Option("--write-only", help="Run nothing; write the tables from the existing rows.")] = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Run (or resume) a benchmark table and write it.

    Writes Markdown, LaTeX, CSV, figures and one page. Rows are appended to rows.jsonl in --out, one
    per run, failures too. A run with a row is never repeated, so the same command resumes after
    Ctrl-C, a crash or a power cut, and tables share their runs. Exit code 1 if runs failed.
    """
    given = BenchOptions(
        table or "", datasets, encoders, methods, set_ or [], seeds, num_old, hidden, schedule,
        setting, fit_set or [], fit_epochs,
    )  # fmt: skip
    shared: dict[str, Any] = {
        "device": device, "jobs": jobs, "data-root": data_root, "split": split, "out": folder,
        "others": others or [],
    }  # fmt: skip
    tables = [given]
    if plan is not None:
        tables, shared = _plan_options(plan, given, shared, context)
    elif table is None:
        raise SettingError("name a table, such as comparison, or give --plan FILE")
    for options in tables:
        _check_names(options)
    with loading(quiet):
        from nodenova.bench.method_rows import with_others
        from nodenova.bench.rowfile import RowFile
        from nodenova.bench.sweep import Source

    root, folder = shared["data-root"], Path(shared["out"])
    source = Source(None if root is None else str(root), shared["split"])
    file = RowFile(folder / "rows.jsonl")
    by_table: dict[str, list[RunSpec]] = {}
    for options in tables:
        plan_runs = open_world_specs if options.table in OPEN_WORLD_NAMES else _paper_specs
        runs = [_on_device(spec, shared["device"]) for spec in plan_runs(options, source)]
        by_table.setdefault(options.table, []).extend(runs)
    specs = list({spec.key: spec for each in by_table.values() for spec in each}.values())
    _run(specs, source, file, shared["jobs"], ray, retry, write_only, quiet)
    _write(by_table, specs, with_others(file.read(), shared["others"]), folder, quiet)


def _on_device(spec: RunSpec, device: str) -> RunSpec:
    """Return a run on a device; the benches of the open world have no other place for it."""
    return replace(spec, plan=replace(spec.plan, device=device))


def _plan_options(
    path: Path, defaults: BenchOptions, common: dict[str, Any], context: typer.Context
) -> tuple[list[BenchOptions], dict[str, Any]]:
    """Return the options of each table of a plan, and those of the whole command."""
    from nodenova.cli.bench_plan import SHARED_KEYS, TABLE_KEYS, read_plan

    fields = {"set": "settings", "fit-set": "fit_settings"}
    fields = {key: fields.get(key, key.replace("-", "_")) for key in TABLE_KEYS}
    parameters = {"set": "set_", "out": "folder"}
    values = {key: getattr(defaults, name) for key, name in fields.items()} | common
    typed = {}
    for key in (*TABLE_KEYS, *SHARED_KEYS):
        origin = context.get_parameter_source(parameters.get(key, key.replace("-", "_")))
        if origin is not None and origin.name == "COMMANDLINE":
            typed[key] = values[key]
    found = read_plan(path, typed)
    tables = [
        replace(defaults, **{fields[key]: value for key, value in table.items()})
        for table in found.tables
    ]
    return tables, common | dict(found.shared)


def _check_names(options: BenchOptions) -> None:
    """Raise for unknown names before PyTorch is loaded."""
    if options.table not in KNOWN_TABLES:
        raise one_of("table", options.table, KNOWN_TABLES)
    if options.table in OPEN_WORLD_NAMES:
        return
    for name in _names("--datasets", options.datasets or "cora"):
        if name not in DATASETS and not name.startswith("synthetic") and not Path(name).exists():
            raise one_of("dataset", name, [*DATASETS, "synthetic"])
    for name in _names("--methods", options.methods or "prism"):
        check_method_name(name)


# The runs of a bench


def open_world_specs(options: BenchOptions, source: Source) -> list[RunSpec]:
    """Return the runs of an open-world bench; its protocol leaves no room for some options."""
    from nodenova.bench.runs import OPEN_WORLD as BENCHES
    from nodenova.bench.runs import open_world_runs
    from nodenova.data.protocols import INDUCTIVE
    from nodenova.data.splits import SETTINGS

    table, setting = options.table, options.setting
    if setting not in SETTINGS:
        raise one_of("setting", setting, SETTINGS)
    fixed = {
        "--encoders": options.encoders != ENCODERS,
        "--set": bool(options.settings),
        "--num-old": options.num_old is not None,
        "--hidden": options.hidden != "paper",
        "--schedule": options.schedule != "paper",
        "--fit-set": bool(options.fit_settings),
        "--fit-epochs": options.fit_epochs is not None,
        "--setting": setting != SETTINGS[0] and table not in INDUCTIVE,
    }
    for option, is_used in fixed.items():
        if is_used:
            raise SettingError(f"{option} cannot be changed for {table}: its protocol fixes it")
    usual = BENCHES[table]
    names = _datasets(options, usual.datasets, source)
    if not names:
        datasets = ", ".join(usual.datasets)
        raise SettingError(
            f"none of the graphs of {table} ({datasets}) is on this machine: name their folder "
            "with --data-root"
        )
    entrants = _names("--methods", options.methods) if options.methods else usual.entrants
    graphs = [replace(source.load(name), name=name) for name in names]
    seeds = seeds_of(str(usual.seeds) if options.seeds is None else options.seeds)
    return open_world_runs(table, graphs, entrants, seeds, setting)


def _paper_specs(options: BenchOptions, source: Source) -> list[RunSpec]:
    """Return the runs of a table of the paper."""
    from nodenova.bench.runs import BenchConfig, runs_of
    from nodenova.data.splits import SETTINGS

    methods = _methods(options)
    if options.setting not in SETTINGS:
        raise one_of("setting", options.setting, SETTINGS)
    encoders, hidden = _names("--encoders", options.encoders), _hidden(options.hidden)
    fit_settings = _fit_settings(options, encoders, hidden)
    names = _datasets(options, PAPER, source)
    config = BenchConfig(
        datasets=[_dataset(name, source.load(name), options.num_old) for name in names],
        encoders=encoders,
        methods=methods,
        seeds=seeds_of("10" if options.seeds is None else options.seeds),
        fit_settings=fit_settings,
        fixed=[name for name, _ in settings_of(options.settings)],
        hidden=hidden,
        schedule=options.schedule,
        visibility=options.setting,
    )
    return runs_of(options.table, config)


def _methods(options: BenchOptions) -> list[Any]:
    """Return the methods of a table, with their settings."""
    from nodenova.bench.registry import ALL_METHODS, get_method
    from nodenova.bench.runs import SWORD_ALONE

    table, settings = options.table, dict(settings_of(options.settings))
    default = ["sword"] if table in SWORD_ALONE else list(ALL_METHODS)
    names = _names("--methods", options.methods) if options.methods else default
    if table in SWORD_ALONE and names != ["sword"] and settings:
        raise SettingError(f"--set is a setting of SWORD in {table}; leave --methods out")
    if settings and (len(names) != 1 or table == "all"):
        raise SettingError(
            "--set is for one method: name it with --methods, in a table other than all"
        )
    return [get_method(name, settings) for name in names]


def _fit_settings(
    options: BenchOptions, encoders: Sequence[str], hidden: int | None
) -> tuple[tuple[str, object], ...]:
    """Return the settings of phase 1, checked for every encoder."""
    from nodenova.encoders.registry import encoder_kind
    from nodenova.fitting import check_fit_settings, settings_from_text

    texts = dict(settings_of(options.fit_settings, "--fit-set"))
    if "hidden" in texts:
        raise SettingError("--fit-set hidden=…: use --hidden for the size of the representation")
    settings = settings_from_text(texts, encoders)
    settings |= {} if options.fit_epochs is None else {"epochs": options.fit_epochs}
    for name in encoders:
        if not encoder_kind(name).trainable:
            raise SettingError(
                f"--encoders takes gcn, gat and sage; methods that prefer {name} run on it anyway"
            )
        check_fit_settings(name, settings | ({} if hidden is None else {"hidden": hidden}))
    return tuple(settings.items())


def _names(option: str, text: str) -> list[str]:
    """Split a list at commas, except within synthetic:nodes=200,classes=4."""
    names = [name.strip() for name in re.split(r",(?!\w+=)", text) if name.strip()]
    if not names:
        raise SettingError(f"{option} is empty")
    return list(dict.fromkeys(names))


def _hidden(text: str) -> int | None:
    """Return a size, or None for the paper's."""
    if text == "paper":
        return None
    if not text.isdecimal() or not int(text):
        raise SettingError(f"--hidden must be a number of dimensions or paper, it is {text!r}")
    return int(text)


def _datasets(options: BenchOptions, usual: Sequence[str], source: Source) -> list[str]:
    """Return the datasets of --datasets, by default the usual ones that are on this machine."""
    if options.datasets is not None:
        return _names("--datasets", options.datasets)
    root = find_root(None if source.data_root is None else Path(source.data_root))

    def is_available(name: str) -> bool:
        if name not in DATASETS:
            return True  # synthetic
        return DATASETS[name].ships or (root is not None and is_on_disk(DATASETS[name], root))

    return [name for name in usual if is_available(name)]


def _dataset(name: str, labelled: LabelledGraph, num_old: int | None) -> tuple[LabelledGraph, int]:
    """Return a graph and its number of old classes."""
    default = DATASETS[name].num_old if name in DATASETS else (labelled.num_classes + 1) // 2
    count = default if num_old is None else num_old
    if not 1 <= count < labelled.num_classes:
        raise SettingError(f"--num-old is {count}, but {name} has {labelled.num_classes} classes")
    return replace(labelled, name=name), count


# Running and writing


def _run(
    specs: Sequence[RunSpec],
    source: Source,
    file: RowFile,
    jobs: int | None,
    ray: str | None,
    retry: bool,
    write_only: bool,
    quiet: bool,
) -> None:
    """Run what has no row yet."""
    from nodenova.bench.ray_sweep import sweep_on_ray
    from nodenova.bench.sweep import sweep, unfinished
    from nodenova.cluster.session import capacity, connect

    with file.writing(), ExitStack() as stack:
        todo = [] if write_only else unfinished(specs, file.read(), retry)
        at_once = jobs or 1
        if ray is not None and todo:
            stack.enter_context(connect(ray, jobs))
            at_once = min(jobs or capacity(), capacity())
        is_live = not quiet and err.is_terminal
        board = Board(specs, todo, at_once, log=not quiet and not is_live)
        try:
            live = Live(board, console=err, refresh_per_second=4, transient=True)
            with live if is_live else nullcontext():
                if ray is None:
                    sweep(todo, source, file, jobs or 1, on_event=board.on_event)
                elif todo:
                    sweep_on_ray(todo, source, file, jobs, on_event=board.on_event)
        except KeyboardInterrupt:
            done = f"{board.done} of {len(specs)} runs done"
            fail(f"stopped with {done}; the same command resumes from there", 130)


def _write(
    by_table: Mapping[str, Sequence[RunSpec]],
    specs: Sequence[RunSpec],
    rows: Sequence[Row],
    folder: Path,
    quiet: bool,
) -> None:
    """Write the tables and the page, and report failures."""
    from nodenova.bench.page import write_outputs, write_page
    from nodenova.bench.runs import TABLES

    keys = {spec.key for spec in specs}
    # Also those with other settings.
    run_keys = {spec.key for spec in by_table.get("comparison", ())}
    run_keys |= {row.key for row in rows if row.source}
    names = dict.fromkeys(n for table in by_table for n in (TABLES if table == "all" else [table]))
    paths = [path for name in names for path in write_outputs(name, rows, folder, run_keys)]
    paths.append(write_page(rows, folder, run_keys))
    last = {row.key: row for row in rows if row.key in keys}
    failures = [row for row in last.values() if row.is_failed]
    for row in failures[:5]:
        what = f"{row.dataset} {row.encoder} {row.method} seed {row.seed}"
        message = f"[yellow]failed:[/] {escape(what)}: {escape(row.error)}"
        err.print(message, highlight=False, soft_wrap=True)
    if not quiet:
        print_tables(paths if "all" not in by_table else [])
        print_notes(
            [*own_encoder_notes(specs), *variant_notes(specs), *equal_seed_notes(specs, rows)]
        )
        message = "Written: " + escape(", ".join(str(path) for path in paths))
        out.print(message, soft_wrap=True, highlight=False)
    if failures:
        count = f"{len(failures)} of {len(keys)} runs failed"
        fail(f"{count}, the others are in the tables; --retry repeats them", 1)


def print_tables(paths: Sequence[Path]) -> None:
    """Print the Markdown tables, as far as they are short enough to read."""
    for path in paths:
        if path.suffix != ".md":
            continue
        text = path.read_text(encoding="utf-8").rstrip().splitlines()
        # The caption is a long paragraph; it is in the file.
        lines = [line for line in text if line.startswith(("#", "|", "**"))]
        for line in lines[:MAX_PRINTED]:
            out.print(line, markup=False, highlight=False, soft_wrap=True)
        if len(lines) > MAX_PRINTED:
            out.print(f"and {len(lines) - MAX_PRINTED} more lines in {path}", markup=False)
        out.print()


def own_encoder_notes(specs: Sequence[RunSpec]) -> list[str]:
    """Notes on methods that ignore --encoders."""
    from nodenova.encoders.registry import encoder_kind

    found: dict[str, set[str]] = defaultdict(set)
    for spec in specs:
        if not spec.plan.protocol and not encoder_kind(spec.plan.encoder).trainable:
            found[spec.plan.method_name].add(spec.plan.encoder)
    return [
        f"{method} ignores --encoders and runs on its own encoder ({', '.join(sorted(names))})"
        for method, names in sorted(found.items())
    ]


def variant_notes(specs: Sequence[RunSpec]) -> list[str]:
    """Notes on variants of methods that a table adds."""
    found: dict[str, dict[str, object]] = defaultdict(dict)
    for spec in specs:
        found[spec.plan.method_name].setdefault(str(spec.plan.method), spec.plan.method)
    notes = []
    for method, settings in sorted(found.items()):
        first, *others = settings.values()
        for other in others:
            differs = [f"{k}={v}" for k, v in vars(other).items() if vars(first)[k] != v]
            notes.append(f"{method} also has a line with {', '.join(differs)}")
    return notes[:MAX_VARIANTS]


def equal_seed_notes(specs: Sequence[RunSpec], rows: Sequence[Row]) -> list[str]:
    """Note on methods whose ± means nothing: all seeds have the same scores."""
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
        f"± 0.0 of {named}: all seeds use the published split and give the same result, which means "
        "nothing about other splits (`nodenova bench class-splits` varies them)"
    ]


class Board:
    """The live table of a bench: finished and running runs, and the time left.

    `todo` are the runs without a row. With `log`, each finished run is printed on a line instead.
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
        """Update the table with an event of a run."""
        from nodenova.bench.sweep import Epoch, Started

        spec, worker, what = event.spec, event.worker, event.what
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
                status = "failed" if what.is_failed else "done"
                log_line(f"{self.done} of {self.total} runs, {status}: {_describe(spec)}")

    def remaining(self) -> float | None:
        """Return the seconds left, estimated from runs of the same kind, or else from all runs."""
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
        head.append(
            ", time left not known yet" if left is None else f", about {_duration(left)} left"
        )
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
    return spec.plan.dataset, spec.plan.encoder_name


def _kind(spec: RunSpec) -> tuple[str, ...]:
    return (*_place(spec), spec.plan.method_name, *(f"{k}={v}" for k, v in spec.plan.fit_settings))


def _describe(spec: RunSpec) -> str:
    settings = (*spec.plan.changed.items(), *spec.plan.fit_settings)
    texts = [f"{name}={value}" for name, value in settings]
    return " ".join([*_place(spec), spec.plan.method_name, *texts, f"seed {spec.seed}"])


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{round(seconds / 3600, 1)} h"


@app.command("check-method", rich_help_panel=RESEARCH)
def check_method(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="path/to/mine.py:Mine, whose file is run, or the name of a method.")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Setting name=value of the method. Repeatable.")] = None,
    encoders: Annotated[str | None, typer.Option(help="Encoders to check it on, separated by commas (default: gcn,gat,sage; prism for a method that prefers it).")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Check that a method sees no label of a new node and gives the same result for the same seed.

    Runs it on small graphs, among them one with one new class, an isolated node and a class of two
    nodes. Exit code 1 if a check fails.
    """
    from nodenova.bench.registry import encoder_for, get_method, is_given_labels
    from nodenova.encoders.registry import ENCODERS as KINDS
    from nodenova.testing import CHECKS, problem

    candidate = get_method(method, dict(settings_of(set_ or [])))
    if is_given_labels(candidate):
        raise SettingError(f"{method} is given labels in phase 2, so there is no leak to look for")
    preferred = encoder_for(method, None)
    trained = [name for name, kind in KINDS.items() if kind.trainable]
    usual = trained if preferred in trained else [preferred]
    names = _names("--encoders", encoders) if encoders else usual
    failures = 0
    for encoder in names:
        for name in CHECKS:
            wrong = problem(candidate, name, encoder_for(method, encoder))
            failures += wrong is not None
            if wrong is not None:
                message = f"[red]fails[/] {encoder}, {name}: {escape(wrong)}"
                err.print(message, highlight=False, soft_wrap=True)
            elif not quiet:
                out.print(f"[green]passes[/] {encoder}, {name}", highlight=False)
    if failures:
        fail(f"{method}: {failures} of {len(names) * len(CHECKS)} checks failed", 1)


@app.command("export-rows", rich_help_panel=RESEARCH)
def export_rows(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="path/to/mine.py:Mine, whose file is run, or the name of a method; with --graded any name.")],
    rows: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of a bench with its rows.")] = Path("results"),
    grades: Annotated[list[Path] | None, typer.Option("--graded", metavar="FILE", help="Instead of rows: a run of a method outside nodenova, as `grade.py --json FILE` wrote it. Repeatable.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Setting name=value of the method, with which its rules are checked. Repeatable.")] = None,
    path: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="JSON file to write (default: METHOD.json).")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Write all rows of a method as one JSON file, with versions and the verdict of check-method.

    Others read it with `nodenova bench TABLE --others FILE`. Rows have settings, protocol, hash of
    the data, confusion matrices and commit. Rows of another version of your file are left out.
    Exit code 1 if a check fails; the file is written all the same.
    """
    if grades and set_:
        raise SettingError("--set is for a method that runs in nodenova, not for --graded")
    if not grades:
        check_method_name(method)
        if not (rows / "rows.jsonl").is_file():
            raise SettingError(f"{rows} has no rows.jsonl: it is not the folder of a bench")
    with loading(quiet):
        from nodenova.bench.method_rows import FAILS, graded_document
        from nodenova.files.atomic import write_atomically
        from nodenova.files.content import to_json

    place = Path(f"{method.rpartition(':')[2]}.json") if path is None else path
    if place.is_dir() or (place.exists() and not overwrite):
        raise SettingError(f"{place} exists; choose another --out, or replace it with --overwrite")
    if grades:
        document = graded_document(method, grades)
    else:
        document = _checked_rows(method, dict(settings_of(set_ or [])), rows / "rows.jsonl")
    write_atomically(place, to_json(document))
    if not quiet:
        count = plural(len(document["rows"]), "row")
        what = f"Written: {place}, {count}; check-method: {document['verdict']}"
        out.print(escape(what), highlight=False, soft_wrap=True)
    if document["verdict"] == FAILS:
        wrong = next(each for each in document["checks"] if each["problem"])
        fail(f"{method} on {wrong['encoder']}, {wrong['check']}: {wrong['problem']}", 1)


def _checked_rows(method: str, settings: Mapping[str, str], path: Path) -> dict[str, Any]:
    """Return the document of the rows of a method in a row file."""
    from nodenova.bench.method_rows import method_document, rows_of_method
    from nodenova.bench.registry import get_method
    from nodenova.bench.rowfile import RowFile

    candidate = get_method(method, settings)
    mine, strange = rows_of_method(candidate, RowFile(path).read())
    if strange:
        what = "1 row is" if strange == 1 else f"{strange} rows are"
        print_notes([f"{what} of another version of {method}, and left out"])
    return method_document(candidate, mine, method)


@app.command("check-encoder", rich_help_panel=RESEARCH)
def check_encoder(
    encoder: Annotated[str, typer.Argument(metavar="ENCODER", help="path/to/mine.py:Net, whose file is run, or the name of an encoder that is trained.")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Setting name=value of the encoder. Repeatable.")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Check that an encoder can be trained, saved and copied, and that no label leaks through it.

    Runs it on small graphs, also without edges, then SWORD and frozen k-means on it. Exit code 1 if
    a check fails; a z that depends on the order of the nodes is only a warning.
    """
    from nodenova.encoders.registry import encoder_kind
    from nodenova.fitting import check_fit_settings, settings_from_text
    from nodenova.testing import ADVICE, ENCODER_CHECKS, encoder_problem

    if not encoder_kind(encoder).trainable:
        raise SettingError(f"{encoder} is computed: it has weights that no gradient reaches")
    settings = settings_from_text(dict(settings_of(set_ or [])), [encoder])
    check_fit_settings(encoder, settings)
    failures = 0
    for name in ENCODER_CHECKS:
        wrong = encoder_problem(encoder, name, settings)
        failures += wrong is not None and name not in ADVICE
        if wrong is not None:
            verdict = "[yellow]warns[/]" if name in ADVICE else "[red]fails[/]"
            err.print(f"{verdict} {name}: {escape(wrong)}", highlight=False, soft_wrap=True)
        elif not quiet:
            out.print(f"[green]passes[/] {name}", highlight=False)
    if failures:
        fail(f"{encoder}: {failures} of {len(ENCODER_CHECKS)} checks failed", 1)
