"""nodenova discover: classes nobody has labelled, in a graph of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodenova.cli import graph_options
from nodenova.cli.app import (
    FINDING,
    OUTPUT,
    OWN,
    Quiet,
    Threads,
    app,
    check_method,
    check_probability,
    fail,
    listed_names,
    loading,
    log_line,
    out,
    print_notes,
    settings_of,
)
from nodenova.cli.cluster import RayAddress, use_cluster
from nodenova.cli.discover_from import (
    FromPath,
    LabelsPath,
    RefreshWord,
    Wanted,
    check_not_further,
    go_on,
    with_labels_in,
)
from nodenova.cli.graph_options import LARGE, cost_text
from nodenova.cli.output import PageOptions, Report, Show, Title, print_verdict, write
from nodenova.cli.progress import Bars
from nodenova.display import percent
from nodenova.errors import SettingError
from nodenova.runs.run_dir import check_place
from nodenova.supervised import LABELLED

if TYPE_CHECKING:
    pass

NumNew = Annotated[
    str,
    typer.Option(
        metavar="N|auto",
        rich_help_panel=FINDING,
        help="How many unknown classes to discover (auto: as many as there seem to be).",
    ),
]


@app.command(rich_help_panel=OWN)
@graph_options.takes_graph()
def discover(
    files: graph_options.GraphFiles,
    num_new: NumNew = "auto",
    all_new: graph_options.AllNew = False,
    method: Annotated[str, typer.Option(rich_help_panel=FINDING, help="How to discover; see `nodenova run --help`.")] = "prism",
    set_: Annotated[list[str] | None, typer.Option("--set", rich_help_panel=FINDING, help="A setting of the method: name=value. Repeatable.")] = None,
    encoder: Annotated[str | None, typer.Option(rich_help_panel=FINDING, help="prism, gcn, gat or sage (default: what the method prefers).")] = None,
    seed: Annotated[int, typer.Option(rich_help_panel=FINDING, help="The same seed gives the same result.")] = 0,
    min_confidence: Annotated[float, typer.Option(rich_help_panel=OUTPUT, help="Nodes whose class is less probable than this are unsure.")] = 0.5,
    from_path: FromPath = None,
    labels_path: LabelsPath = None,
    refresh: RefreshWord = None,
    relabel: Annotated[bool, typer.Option("--relabel", rich_help_panel=OUTPUT, help="Put labelled nodes where the model does, too (default: they keep their labels).")] = False,
    none_share: graph_options.NoneShare = 0.0,
    folder: Annotated[Path, typer.Option("--out", rich_help_panel=OUTPUT, help="Folder for the model, tables and report.")] = Path("nodenova-run"),
    overwrite: Annotated[bool, typer.Option("--overwrite", rich_help_panel=OUTPUT, help="Replace the run that --out holds.")] = False,
    keep_graph: Annotated[bool, typer.Option("--keep-graph/--no-keep-graph", rich_help_panel=OUTPUT, help="Keep the graph, without labels, for later commands.")] = True,
    title: Title = None,
    show: Show = None,
    report: Report = True,
    threads: Threads = "auto",
    ray: RayAddress = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Discover the classes of a graph of your own that nobody has labelled; say what is in each.

    Labelled nodes say which classes are known. Unlabelled ones may be of known classes or of
    unknown ones, unless you name the latter or say --all-new; how many classes are to be discovered
    is estimated unless --num-new says it. Writes a model, a table of nodes, a table of classes, and
    a page on which to look at them and name them.

    With --from, it goes on from an earlier run on a graph that has grown since: classes keep their
    ids, names and decisions, and what has come since then is discovered.
    """
    settings = dict(settings_of(set_ or []))
    check_method(method, settings, encoder)
    if method in LABELLED:
        raise SettingError(
            f"--method {method} needs labels of nodes of unknown classes, which nobody has"
        )
    number = number_of(num_new)
    mixed = graph_options.mixed_setting(all_new, files.options)
    check_probability(min_confidence)
    graph_options.check_none_share(none_share)
    page = PageOptions(title or folder.resolve().name, tuple(listed_names(show or "")), report)
    page.check(files.nodes)
    if from_path is not None:
        if ray is not None:
            raise SettingError("--ray is for a first discovery, --from goes on on one machine")
        refused = {
            "--text-column": files.options.text_columns,
            "--features": files.options.features,
            "--encoder": encoder,
        }
        wanted = Wanted(
            earlier=from_path, folder=folder, overwrite=overwrite, keep_graph=keep_graph,
            files=files, labels=labels_path, refused=refused, number=number, mixed=mixed,
            method=method, settings=settings, refresh=refresh or "auto", seed=seed,
            min_confidence=min_confidence, relabel=relabel, none_share=none_share, quiet=quiet,
            page=page,
        )  # fmt: skip
        go_on(wanted)
        return
    check_not_further(refresh)
    check_place(folder, overwrite)
    loaded = files.load(show=not quiet)
    if labels_path is not None:
        loaded = with_labels_in(labels_path, loaded)
    if not quiet:
        print_notes(loaded.notes)
        if loaded.graph.num_nodes >= LARGE and encoder in (None, "prism") and method == "prism":
            log_line(cost_text(loaded.graph))
    shown = page.shown(loaded, files.nodes, files.options)
    with loading(quiet):
        from nodenova.estimator import NodeDiscoverer
        from nodenova.methods import choose_encoder, get_method
    chosen = get_method(method, settings)
    use_cluster(ray, loaded.graph, files.graph, choose_encoder(method, encoder))
    try:
        with Bars(not quiet) as bars:
            found = NodeDiscoverer(
                number,
                method=chosen,
                encoder=encoder,
                random_state=seed,
                min_confidence=min_confidence,
                mixed=mixed,
                keep_labels=not relabel,
                none_share=none_share,
                device="auto" if ray is None else "cpu",
                progress=bars,
            ).fit(loaded)
        if not quiet:
            print_verdict(found.run_, found.notes_[len(loaded.notes) :])
        run = found.run_.presented(page.title, shown)
        write(folder, run, keep_graph, overwrite, quiet, files.options, report)
    except KeyboardInterrupt:
        fail("stopped; nothing was written", 130)
    if found.grade_ is not None and not quiet:
        asked = int(found.grade_.confusion.sum())
        new = found.grade_.scores("block")["new"]
        out.print(
            f"\n{asked:,} nodes of unknown classes have a label, kept for grading: {percent(new / 100, 1)} "
            "of them are in the discovered class that stands for theirs (block matching, this seed).",
            highlight=False,
            soft_wrap=True,
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
