"""nodenova tune: choose settings of a method without a label of a new class."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from nodenova.cli import graph_options
from nodenova.cli.app import (
    FINDING,
    INPUT,
    OUTPUT,
    RESEARCH,
    DataRoot,
    Quiet,
    Threads,
    app,
    check_method,
    load_named,
    loading,
    out,
    print_notes,
    seeds_of,
    settings_of,
)
from nodenova.cli.progress import Bars
from nodenova.display import plural
from nodenova.errors import SettingError, one_of

if TYPE_CHECKING:
    from nodenova.bench.tune import Candidate, Tuning
    from nodenova.data.labels import LabelledGraph

FIT_OPTIONS = {"hidden": "--hidden", "layers": "--layers", "dropout": "--dropout", "epochs": "--fit-epochs"}  # fmt: skip
MAX_LINES = 40  # of the printed table; --json has all


@app.command(rich_help_panel=RESEARCH)
@graph_options.takes_graph()
def tune(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="Name of a method, or path/to/mine.py:Mine, whose file is run.")],
    files: graph_options.GraphFiles,
    grid: Annotated[list[str] | None, typer.Option("--grid", rich_help_panel=FINDING, help="Setting and values to try: name=a,b,c; fit.name=a,b,c for phase 1. Repeatable; all combinations are tried, and the defaults.")] = None,
    dataset: Annotated[str | None, typer.Option(rich_help_panel=INPUT, help="Name of a dataset instead of files; see `nodenova datasets`.")] = None,
    data_root: DataRoot = None,
    split: Annotated[int, typer.Option(rich_help_panel=INPUT, help="Number of the published split, where there are several (Wiki-CS).")] = 0,
    num_old: Annotated[int | None, typer.Option(rich_help_panel=INPUT, help="With --dataset: number of old classes, the first ones (default: as in the paper).")] = None,
    all_new: graph_options.AllNew = False,
    encoder: Annotated[str | None, typer.Option(rich_help_panel=FINDING, help="prism, gcn, gat or sage, or path/to/mine.py:Net of your own (default: that of the method).")] = None,
    draws: Annotated[int, typer.Option(min=1, rich_help_panel=FINDING, help="Number of ways of hiding half of the known classes.")] = 6,
    seeds: Annotated[str, typer.Option(rich_help_panel=FINDING, help="Number of seeds of each draw, or a list; the lowest one also decides which classes are hidden.")] = "2",
    score: Annotated[str, typer.Option(rich_help_panel=FINDING, help="Score that decides: h, all, old or new.")] = "h",
    json_path: Annotated[Path | None, typer.Option("--json", rich_help_panel=OUTPUT, help="Write all scores to this file.")] = None,
    threads: Threads = "auto",
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Try settings on known classes that are hidden, and name the best and the command to use it.

    Half of the known classes are hidden in several draws, discovered, and graded on labelled
    validation nodes. No label of a new class and none of a test node is used. The table has mean
    and standard error over the draws.
    """
    pairs = settings_of(grid or [], "--grid")
    check_method(method, {}, encoder)
    _check(method, pairs, dataset, files, all_new, num_old)
    if json_path is not None and json_path.is_dir():
        raise SettingError(f"--json takes a file, and {json_path} is a folder")
    with loading(quiet, "loading PyTorch"):
        from nodenova.bench.registry import encoder_for
        from nodenova.bench.tune import SCORES, candidates_of, grid_of, known_part
        from nodenova.bench.tune import tune as search
        from nodenova.files.atomic import write_atomically
        from nodenova.files.content import to_json

    if score not in SCORES:
        raise one_of("score", score, SCORES)
    seed_list = seeds_of(seeds)
    name = encoder_for(method, encoder)
    candidates = candidates_of(method, name, grid_of(pairs))
    mixed = False
    if dataset is None:
        loaded = files.load(not quiet)
        print_notes(() if quiet else loaded.notes)
        mixed = not loaded.new_named and graph_options.mixed_setting(all_new, files.options) is None
        known = known_part(loaded)
    else:
        known = _known_of_dataset(dataset, data_root, split, num_old)
    with Bars(not quiet) as bars:
        found = search(
            known, candidates, name, draws=draws, seeds=seed_list, mixed=mixed, score=score,
            progress=bars,
        )  # fmt: skip
    if json_path is not None:
        write_atomically(json_path, to_json(found.to_json()))
    if not quiet:
        _print_table(found)
        where = _file_words(files, all_new)
        if dataset is not None:
            where = _dataset_words(dataset, data_root, split, num_old)
        command = _command(method, encoder, found.chosen.candidate, where, dataset is not None)
        out.print(f"\n{escape(found.sentence)}", highlight=False, soft_wrap=True)
        out.print(escape(f"Use it: {command}"), highlight=False, soft_wrap=True)


def _check(
    method: str,
    pairs: tuple[tuple[str, str], ...],
    dataset: str | None,
    files: graph_options.GraphFiles,
    all_new: bool,
    num_old: int | None,
) -> None:
    """Raise for options that do not fit, before PyTorch is loaded."""
    if not pairs:
        raise SettingError("give the settings to try, such as --grid name=a,b,c")
    if dataset is not None:
        if files.is_given:
            raise SettingError("give either --dataset NAME or files of a graph, not both")
        if all_new:
            raise SettingError(
                "--all-new is for files of a graph: a dataset's new nodes are all new"
            )
        return
    files.check()
    if num_old is not None:
        raise SettingError("--num-old is for --dataset: the labels of your files name the classes")
    for name, _ in pairs:
        if name.startswith("fit."):
            raise SettingError(
                f"--grid {name}: `nodenova discover` has no settings of phase 1; leave it out, or "
                "use --dataset"
            )


def _known_of_dataset(
    dataset: str, data_root: Path | None, split: int, num_old: int | None
) -> LabelledGraph:
    """Return a dataset with the labels that may be used."""
    from nodenova.bench.tune import known_part

    labelled, default = load_named(dataset, None, data_root, split)
    count = default if num_old is None else num_old
    if count is None or not 1 <= count <= labelled.num_classes:
        raise SettingError(
            f"--num-old is {count}, but {dataset} has {labelled.num_classes} classes"
        )
    return known_part(labelled, count)


def _print_table(found: Tuning) -> None:
    """Print the candidates, best first, with mean and standard error over the draws."""
    from nodenova.evaluation.scores import score_title, spread_text

    others = [name for name in ("h", "all", "old", "new") if name != found.score]
    names = [found.score, *others]
    # Numbers are never cut: settings that are long go over several lines.
    numbers = [Column(head, no_wrap=True) for head in (*map(score_title, names), "gain")]
    table = Table(Column("settings", overflow="fold"), *numbers, box=None, pad_edge=False)
    order = sorted(found.lines, key=lambda line: -(line.spread(found.score).mean or 0.0))
    for line in order[:MAX_LINES]:
        cells = [spread_text(line.spread(name)) for name in names]
        gain = "" if line is found.lines[0] else spread_text(found.gain(line))
        style = "bold" if line is found.chosen else ""
        table.add_row(escape(line.candidate.text), *cells, gain, style=style)
    out.print(table)
    draws = plural(len(found.hidden), "draw")
    what = f"{found.method} on {found.encoder}, {draws} of hidden classes × "
    what += f"{plural(len(found.seeds), 'seed')}: mean ± standard error over the draws, percent; "
    what += f"gain in {score_title(found.score)} over the defaults on the same draws"
    out.print(f"\n{escape(what)}", highlight=False, soft_wrap=True)


def _dataset_words(
    dataset: str, data_root: Path | None, split: int, num_old: int | None
) -> list[str]:
    words = ["--dataset", dataset]
    words += [] if data_root is None else ["--data-root", str(data_root)]
    words += ["--split", str(split)] if split else []
    return words + ([] if num_old is None else ["--num-old", str(num_old)])


def _file_words(files: graph_options.GraphFiles, all_new: bool) -> list[str]:
    """Return the options by which the files were read."""
    words: list[str] = []
    for name in ("graph", "nodes", "edges"):
        path = getattr(files, name)
        words += [] if path is None else [f"--{name}", str(path)]
    for each in fields(files.options):
        value: Any = getattr(files.options, each.name)
        flag = "--" + each.name.replace("_", "-")
        if each.name == "text_columns":
            words += [word for column in value for word in ("--text-column", column)]
        elif value is True:
            words.append(flag)
        elif value not in (None, False, ()):
            words += [flag, ",".join(value) if isinstance(value, list | tuple) else str(value)]
    return [*words, *(["--all-new"] if all_new else [])]


def _command(
    method: str, encoder: str | None, candidate: Candidate, where: list[str], is_dataset: bool
) -> str:
    """Return the command that uses a candidate's settings."""
    pairs = [] if candidate.text == "defaults" else candidate.text.split(",")
    own = [pair for pair in pairs if not pair.startswith("fit.")]
    for_fit = [pair.removeprefix("fit.").partition("=") for pair in pairs if pair not in own]
    settings = [word for pair in own for word in ("--set", pair)]
    if all(name in FIT_OPTIONS for name, _, _ in for_fit):
        command = ["run" if is_dataset else "discover", *where, "--method", method]
        command += [] if encoder is None else ["--encoder", encoder]
        command += settings
        command += [word for name, _, value in for_fit for word in (FIT_OPTIONS[name], value)]
    else:
        command = ["bench", "comparison", *["--datasets" if w == "--dataset" else w for w in where]]
        command += ["--methods", method, *([] if encoder is None else ["--encoders", encoder])]
        command += settings
        for name, _, value in for_fit:
            option = "--hidden" if name == "hidden" else "--fit-set"
            command += [option, value if name == "hidden" else f"{name}={value}"]
    return shlex.join(["nodenova", *command])
