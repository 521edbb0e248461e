"""Graphs of users' own, from files to named classes: discover, classes, review, apply-review."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from nodenova.cli import files
from nodenova.cli.app import (
    OWN,
    Quiet,
    app,
    check_probability,
    err,
    fail,
    out,
    print_notes,
    settings_of,
)
from nodenova.errors import SettingError

if TYPE_CHECKING:
    from nodenova.model.info import ClassInfo
    from nodenova.review.run import DiscoveryRun

DiscoveryPath = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="A folder that `nodenova discover` or `nodenova demo` wrote."
    ),
]
NumNew = Annotated[
    str,
    typer.Option(
        metavar="N|auto",
        help="How many new classes to look for (auto: as many as there seem to be).",
    ),
]


@app.command(rich_help_panel=OWN)
def discover(
    num_new: NumNew = "auto",
    graph: files.GraphPath = None,
    nodes: files.NodesPath = None,
    edges: files.EdgesPath = None,
    id_column: files.IdColumn = None,
    label_column: files.LabelColumn = None,
    text_columns: files.TextColumns = None,
    features: files.Features = None,
    new_nodes: files.NewNodes = None,
    new_column: files.NewColumn = None,
    all_new: files.AllNew = False,
    source_column: files.SourceColumn = None,
    target_column: files.TargetColumn = None,
    weight_column: files.WeightColumn = None,
    min_weight: files.MinWeight = None,
    drop_unknown_edges: files.DropUnknown = False,
    delimiter: files.Delimiter = None,
    encoding: files.Encoding = None,
    method: Annotated[str, typer.Option(help="How to discover; see `nodenova run --help`.")] = "prism",
    set_: Annotated[list[str] | None, typer.Option("--set", help="A setting of the method: name=value. Repeatable.")] = None,
    encoder: Annotated[str | None, typer.Option(help="prism, gcn, gat or sage (default: what the method prefers).")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 0,
    min_confidence: Annotated[float, typer.Option(help="Nodes whose class is less probable than this are unsure.")] = 0.5,
    relabel: Annotated[bool, typer.Option("--relabel", help="Put labelled nodes where the model does, too (default: they keep their labels).")] = False,
    folder: Annotated[Path, typer.Option("--out", help="Folder for the model, tables and report.")] = Path("nodenova-run"),
    overwrite: Annotated[bool, typer.Option(help="Replace the run that --out holds.")] = False,
    keep_graph: Annotated[bool, typer.Option("--keep-graph/--no-keep-graph", help="Keep the graph, without labels, for later commands.")] = True,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Find new classes in a graph of your own, and say what is in each.

    Labelled nodes say what is known. Unlabelled ones may be of known classes or of new ones, unless
    you name the new ones or say --all-new; how many new classes there are is estimated unless
    --num-new says it. Writes a model, a table of nodes, a table of classes, and a page on which to
    look at them and name them.
    """
    from nodenova.bench.registry import get_method, is_given_labels
    from nodenova.cli.progress import Bars
    from nodenova.estimator import NodeDiscoverer
    from nodenova.review.folder import DiscoveryFolder

    chosen = get_method(method, dict(settings_of(set_ or [])))
    if is_given_labels(chosen):
        raise SettingError(
            f"--method {method} needs labels of the new nodes, which are what is to be found"
        )
    number = number_of(num_new)
    mixed = files.is_mixed(all_new, new_nodes, new_column)
    check_probability(min_confidence)
    DiscoveryFolder.check_place(folder, overwrite)
    shown = not quiet and err.is_terminal
    loaded = files.load_files(
        graph, nodes, edges, id_column=id_column, label_column=label_column,
        text_columns=text_columns, features=features, new_nodes=new_nodes, new_column=new_column,
        source_column=source_column, target_column=target_column, weight_column=weight_column,
        min_weight=min_weight, drop_unknown_edges=drop_unknown_edges, delimiter=delimiter,
        encoding=encoding, show=shown,
    )  # fmt: skip
    if not quiet:
        print_notes(loaded.notes)
    try:
        with Bars(err, show=shown) as bars:
            found = NodeDiscoverer(
                number,
                method=chosen,
                encoder=encoder,
                random_state=seed,
                min_confidence=min_confidence,
                mixed=mixed,
                keep_labels=not relabel,
                watch=bars.watcher,
            ).fit(loaded)
        if not quiet:
            print_verdict(found.run_, found.notes_[len(loaded.notes) :])
        write(folder, found.run_, keep_graph, overwrite, quiet)
    except KeyboardInterrupt:
        fail("stopped; nothing was written", 130)
    if found.grade_ is not None and not quiet:
        asked = int(found.grade_.confusion.sum())
        new = found.grade_.scores("block")["new"]
        out.print(
            f"\nNew nodes with a label: {asked:,}; "
            f"{new:.1f} % of them are in the class that stands for theirs."
        )


def number_of(text: str) -> int | None:
    """The number that --num-new says; None for auto.

    Raises:
        SettingError: It is neither auto nor a whole number from 1 on.

    Examples:
        >>> number_of("3"), number_of("auto")
        (3, None)
    """
    if text == "auto":
        return None
    if not text.lstrip("-").isdecimal():
        raise SettingError(f"--num-new is auto or a whole number, not {text!r}")
    if int(text) < 1:
        raise SettingError(f"--num-new must be at least 1, it is {text}")
    return int(text)


def print_verdict(run: DiscoveryRun, notes: Sequence[str]) -> None:
    """How many new classes there seem to be, and what speaks against them."""
    print_notes(notes)
    if run.verdict is not None:
        out.print(f"{escape(run.verdict.sure)}\n", highlight=False, soft_wrap=True)
    if run.warning:
        warning = f"[bold yellow]warning:[/] [bold]{escape(run.warning)}[/]"
        err.print(warning, highlight=False, soft_wrap=True)


def write(folder: Path, run: DiscoveryRun, keep_graph: bool, overwrite: bool, quiet: bool) -> None:
    """Write a run and say what was found and where it is."""
    from nodenova.review.folder import DiscoveryFolder

    with mapping(not quiet and err.is_terminal) as steps:
        DiscoveryFolder.write(folder, run, keep_graph=keep_graph, overwrite=overwrite, steps=steps)
    if not quiet:
        print_classes(run.classes)
        out.print(f"\nReport: {escape(str(folder / 'report.html'))}", soft_wrap=True)


@app.command(rich_help_panel=OWN)
def classes(
    run_path: DiscoveryPath,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the same as JSON.")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """What is in each class: size, confidence, characteristic features, representatives."""
    from dataclasses import asdict

    from nodenova.files import to_json, write_atomically
    from nodenova.review.folder import DiscoveryFolder

    found = DiscoveryFolder(run_path).run().classes
    if json_path is not None:
        write_atomically(json_path, to_json({"classes": [asdict(info) for info in found]}))
    if not quiet:
        print_classes(found)


@app.command("apply-review", rich_help_panel=OWN)
def apply_review(
    run_path: DiscoveryPath,
    review_path: Annotated[
        Path, typer.Argument(metavar="REVIEW", help="The review.json that the page saved.")
    ],
    quiet: Quiet = False,
) -> None:
    """Make the decisions of a review part of the model: classes named, merged, split or rejected."""
    from nodenova.review.folder import DiscoveryFolder

    run = DiscoveryFolder(run_path)
    try:
        document = json.loads(review_path.read_text())
    except OSError as error:
        raise SettingError(f"{review_path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise SettingError(f"{review_path}: not readable as JSON ({error})") from error
    with mapping(not quiet and err.is_terminal) as steps:
        try:
            model = run.apply(document, steps)
        except SettingError as error:
            raise SettingError(f"{review_path}: {error}") from error
    if not quiet:
        count = len(document["decisions"])
        out.print(
            f"{count} decision{'s are' if count != 1 else ' is'} part of the model now; "
            f"it has {len(model.classes)} classes."
        )
        out.print(f"Report: {escape(str(run.path / 'report.html'))}", soft_wrap=True)


@app.command(rich_help_panel=OWN)
def review(
    run_path: DiscoveryPath,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine (default: a free one).")
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
    quiet: Quiet = False,
) -> None:
    """Look at the classes in the browser and name, merge, split or reject them.

    Decisions are saved into the run. The page is served to this machine only, and only to the
    browser that opens the link, once. Ctrl-C ends it.
    """
    import webbrowser

    from nodenova.review.folder import DiscoveryFolder
    from nodenova.review.server import ReviewServer

    run = DiscoveryFolder(run_path)
    before = len(run.model().edits)
    with mapping(not quiet and err.is_terminal) as steps:
        desk = run.desk(steps)
        desk.page()
    with ReviewServer(desk.page, desk.save, port) as server:
        out.print(f"Review: {server.url}", soft_wrap=True, highlight=False)
        if not quiet:
            out.print(
                "The link works once. Ctrl-C ends the review; what was saved is in the run.",
                highlight=False,
            )
        if open_browser:
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    if len(run.model().edits) > before:
        with mapping(not quiet and err.is_terminal) as steps:
            run.report(steps)


@contextmanager
def mapping(show: bool) -> Iterator[Any]:
    """A bar for the layout of the map, the last long step.

    Gives the function to call with (steps done, steps).
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    drawing = "drawing the map"
    with Progress(*columns, console=err, disable=not show, transient=True) as bars:
        task = bars.add_task("what is in the classes", total=None)
        yield lambda done, of: bars.update(task, description=drawing, completed=done, total=of)


def print_classes(found: Sequence[ClassInfo]) -> None:
    """The classes as a table, discovered ones first."""
    heads = ("", "class", "name", "nodes", "confidence", "what is in it", "for example")
    table = Table(*heads, box=None, pad_edge=False)
    for info in sorted(found, key=lambda info: (info.kind == "old", info.id)):
        confidence = "" if info.confidence is None else f"{info.confidence:.0%}"
        words = ", ".join(f.name for f in info.features[:5] if f.weight > 0)
        examples = ", ".join(str(node) for node in info.representatives[:3])
        size = "" if info.size is None else f"{info.size:,}"
        named = (info.kind, str(info.id), escape(info.name))
        table.add_row(*named, size, confidence, escape(words), escape(examples))
    out.print(table)
