"""nodenova discover: find new classes in a user's graph, or continue an earlier run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from nodenova.cli import graph_options
from nodenova.cli.app import (
    FINDING,
    GOING_ON,
    OUTPUT,
    OWN,
    Device,
    Quiet,
    RayAddress,
    Threads,
    app,
    check_method,
    listed_names,
    loading,
    log_line,
    out,
    print_notes,
    settings_of,
    use_cluster,
)
from nodenova.cli.output import Report, RunOutput, SafeCsv, Show, Title, print_verdict
from nodenova.cli.progress import Bars
from nodenova.display import percent
from nodenova.errors import SettingError, one_of
from nodenova.files.content import unguard_formula
from nodenova.files.documents import has_safe_csv
from nodenova.io.table_options import TableOptions
from nodenova.runs.run_dir import check_place, reserve, run_document
from nodenova.settings import check_probability
from nodenova.supervised import LABELLED

NumNew = Annotated[
    str,
    typer.Option(
        metavar="N|auto",
        rich_help_panel=FINDING,
        help="Number of new classes to discover (auto: estimated).",
    ),
]
FromPath = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="RUN",
        rich_help_panel=GOING_ON,
        help="Continue from this run on the current graph.",
    ),
]
LabelsPath = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        rich_help_panel=GOING_ON,
        help="Table of further labels with columns node and label, as a review writes it.",
    ),
]
RefreshWord = Annotated[
    str | None,
    typer.Option(
        metavar="auto|always|never",
        rich_help_panel=GOING_ON,
        help="With --from: whether the representation is refitted "
        "(auto, the default: if the graph has changed much).",
    ),
]
Revise = Annotated[
    bool,
    typer.Option(
        "--revise",
        rich_help_panel=GOING_ON,
        help="With --from: search again for the discovered classes that you have not named, edited "
        "or labelled, among all unlabelled nodes; those found again keep their ids.",
    ),
]
REFRESH: dict[str, bool | str] = {"auto": "auto", "always": True, "never": False}


@app.command(rich_help_panel=OWN)
@graph_options.takes_graph()
def discover(
    files: graph_options.GraphFiles,
    num_new: NumNew = "auto",
    all_new: graph_options.AllNew = False,
    method: Annotated[str, typer.Option(rich_help_panel=FINDING, help="Method that discovers; see `nodenova run --help`.")] = "prism",
    set_: Annotated[list[str] | None, typer.Option("--set", rich_help_panel=FINDING, help="A setting of the method: name=value. Repeatable.")] = None,
    encoder: Annotated[str | None, typer.Option(rich_help_panel=FINDING, help="prism, gcn, gat, sage, or your own, path/to/mine.py:Net, whose file is run (default: the method's own).")] = None,
    batch: Annotated[int | None, typer.Option(min=1, rich_help_panel=FINDING, help="For gcn, gat and sage: train on this number of nodes at a time, with drawn neighbors, instead of the whole graph.")] = None,
    device: Device = "auto",
    min_class_size: Annotated[int, typer.Option(min=1, rich_help_panel=FINDING, help="Treat classes with fewer labelled training nodes than this as unlabelled, so that the model discloses none of these nodes.")] = 1,
    seed: Annotated[int, typer.Option(rich_help_panel=FINDING, help="Random seed; the same seed gives the same result.")] = 0,
    min_confidence: Annotated[float, typer.Option(rich_help_panel=OUTPUT, help="Mark nodes whose class is less probable than this as unsure.")] = 0.5,
    from_path: FromPath = None,
    labels_path: LabelsPath = None,
    refresh: RefreshWord = None,
    revise: Revise = False,
    relabel: Annotated[bool, typer.Option("--relabel", rich_help_panel=OUTPUT, help="Let predictions override labels (default: labelled nodes keep their labels).")] = False,
    none_share: graph_options.NoneShare = 0.0,
    folder: Annotated[Path, typer.Option("--out", rich_help_panel=OUTPUT, help="Folder for the model, tables and report.")] = Path("nodenova-run"),
    overwrite: Annotated[bool, typer.Option("--overwrite", rich_help_panel=OUTPUT, help="Replace the run in --out.")] = False,
    keep_graph: Annotated[bool, typer.Option("--keep-graph/--no-keep-graph", rich_help_panel=OUTPUT, help="Store the graph and the labels for later commands.")] = True,
    title: Title = None,
    show: Show = None,
    report: Report = True,
    safe_csv: SafeCsv = None,
    threads: Threads = "auto",
    ray: RayAddress = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Discover new classes among the unlabelled nodes of your graph, and describe them.

    Labelled nodes define the known classes. Unlabelled nodes may belong to known or to new classes,
    unless you name the new ones or give --all-new. The number of new classes is estimated unless
    --num-new is given. Writes a model, a table of nodes, a table of classes, and a page to review
    and name the classes.

    With --from, an earlier run continues on a graph that has grown: its classes keep their ids,
    names and decisions, and new classes are searched among the nodes that came since. With
    --revise, discovered classes that you have not decided on are searched again, too.
    """
    settings = dict(settings_of(set_ or []))
    check_method(method, settings, encoder)
    if method in LABELLED:
        raise SettingError(f"--method {method} needs labels of the new classes; use another method")
    check_probability(min_confidence, "--min-confidence")
    graph_options.check_none_share(none_share)
    search: dict[str, Any] = {
        "num_new": parse_number(num_new),
        "mixed": graph_options.mixed_setting(all_new, files.options),
        "min_confidence": min_confidence,
        "keep_labels": not relabel,
        "none_share": none_share,
    }
    columns = tuple(listed_names(show or ""))
    title = title or Path(os.path.realpath(folder)).name
    if safe_csv is None:
        safe_csv = from_path is not None and has_safe_csv(from_path)
    output = RunOutput(folder, overwrite, keep_graph, title, columns, report, quiet, safe_csv)
    output.check(files.nodes)
    if from_path is not None:
        fixed = {"--text-column": files.options.text_columns, "--features": files.options.features,
                 "--encoder": encoder, "--min-class-size": min_class_size > 1, "--batch": batch,
                 "--device": device != "auto"}  # fmt: skip
        for option in (name for name, value in fixed.items() if value):
            raise SettingError(
                f"{option} cannot be changed with --from: it stays as in {from_path}"
            )
        if ray is not None:
            raise SettingError("--ray cannot be combined with --from")
        _check_continue(from_path, refresh, output)
    elif refresh is not None or revise:
        option = "--revise" if refresh is None else "--refresh"
        raise SettingError(
            f"{option} is only for a run that continues another one: give --from RUN"
        )
    check_place(folder, overwrite)
    files.check()
    chosen = (method, settings)
    with reserve(folder, overwrite):
        if from_path is not None:
            search |= {"refresh": REFRESH[refresh or "auto"], "seed": seed, "revise": revise}
            _continue(from_path, files, labels_path, output, chosen, search)
        else:
            search |= {"encoder": encoder, "random_state": seed, "device": device}
            search["fit_settings"] = {"min_class_size": min_class_size}
            search["fit_settings"] |= {} if batch is None else {"batch": batch}
            _discover(files, labels_path, output, chosen, ray, search)


def _discover(
    files: graph_options.GraphFiles,
    labels_path: Path | None,
    output: RunOutput,
    chosen: tuple[str, dict[str, str]],
    ray: str | None,
    search: dict[str, Any],
) -> None:
    """Run a first discovery, write it and print the result."""
    loaded = files.load(show=not output.quiet)
    if labels_path is not None:
        from nodenova.io.estimator_input import add_labels

        loaded = add_labels(loaded, read_labels(labels_path), labels_path.name)
    if not output.quiet:
        print_notes(loaded.notes)
        large = loaded.graph.num_nodes >= graph_options.LARGE
        if large and search["encoder"] in (None, "prism") and chosen[0] == "prism":
            log_line(graph_options.cost_text(loaded))
    texts = output.node_texts(loaded, files.nodes, files.options)
    with loading(output.quiet):
        from nodenova.estimator import NodeDiscoverer
        from nodenova.methods import choose_encoder, get_method
    search["method"] = get_method(*chosen)
    if ray is not None:
        search["device"] = "cpu"
    encoder = str(choose_encoder(chosen[0], search["encoder"]))
    use_cluster(ray, loaded.canonical().graph, files.graph, encoder)
    with Bars(not output.quiet) as bars:
        found = NodeDiscoverer(**search, progress=bars).fit(loaded)
    if not output.quiet:
        print_verdict(found.run_, found.notes_[len(loaded.notes) :])
    output.write(found.run_.with_page(output.title, texts), files.options)
    if found.grade_ is not None and not output.quiet:
        graded = int(found.grade_.confusion.sum())
        new = percent(found.grade_.scores("block")["new"] / 100, 1)
        out.print(
            f"\n{graded:,} nodes of unknown classes have a label, kept for grading: {new} of them "
            "are in the discovered class that is matched to theirs (block matching, this seed).",
            highlight=False,
            soft_wrap=True,
        )


def _check_continue(from_path: Path, refresh: str | None, output: RunOutput) -> None:
    """Validate the options of --from before anything is loaded."""
    if refresh is not None and refresh not in REFRESH:
        raise one_of("--refresh", refresh, REFRESH)
    run_document(from_path)
    if os.path.realpath(output.folder) == os.path.realpath(from_path):
        raise SettingError(
            f"--out and --from are both {output.folder}: the new run needs a folder of its own"
        )


def _continue(
    from_path: Path,
    files: graph_options.GraphFiles,
    labels_path: Path | None,
    output: RunOutput,
    chosen: tuple[str, dict[str, str]],
    search: dict[str, Any],
) -> None:
    """Continue an earlier run, write the new one and print the result."""
    with loading(output.quiet):
        from nodenova.methods import get_method
        from nodenova.runs.folder import RunFolder
    search["method"] = get_method(*chosen)
    earlier = RunFolder(from_path)
    with Bars(not output.quiet, "reading files") as bars:
        reader = earlier.reader(files.options, bars)
        loaded = reader.read_grown(files.graph, files.nodes, files.edges)
    if not output.quiet:
        print_notes(loaded.notes)
    texts = output.node_texts(loaded, files.nodes, reader.options)
    labels = None if labels_path is None else read_labels(labels_path)
    with Bars(not output.quiet) as bars:
        later = earlier.continue_with(loaded, labels=labels, progress=bars, **search)
    if not output.quiet:
        print_verdict(later.run, later.notes)
    output.write(later.run.with_page(output.title, texts), reader.options)


def parse_number(text: str) -> int | None:
    """The number of --num-new; None for auto.

    Examples:
        >>> parse_number("3"), parse_number("auto")
        (3, None)
    """
    if text == "auto":
        return None
    if not text.lstrip("-").isdecimal():
        raise SettingError(f"--num-new is auto or a whole number, not {text!r}")
    if int(text) < 1:
        raise SettingError(f"--num-new must be at least 1, it is {text}")
    return int(text)


def read_labels(path: Path) -> dict[str, str]:
    """Labels by node id, from a table with columns node and label."""
    from nodenova.io.nodes import read_nodes

    table = read_nodes(path, TableOptions(), [], {})
    if table.label_column is None:
        raise SettingError(f"{path}: a table of labels needs a column label (or class, category)")
    pairs = zip(table.ids, table.y.tolist(), strict=True)
    labels = {node: table.class_names[c] for node, c in pairs if c >= 0}
    if has_safe_csv(path.parent):  # the labels.csv of a run
        return {unguard_formula(node): unguard_formula(name) for node, name in labels.items()}
    return labels
