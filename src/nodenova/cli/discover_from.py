"""nodenova discover --from: going on from an earlier run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodenova.cli.app import GOING_ON, fail, loading, print_notes
from nodenova.cli.graph_options import GraphFiles
from nodenova.cli.output import PageOptions, print_verdict, write
from nodenova.cli.progress import Bars
from nodenova.errors import GraphError, SettingError, one_of
from nodenova.io.table_options import TableOptions
from nodenova.runs.run_dir import check_place, run_document

if TYPE_CHECKING:
    from nodenova.data.labels import UserGraph
    from nodenova.io.recipe import TableEncoder


FromPath = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="RUN",
        rich_help_panel=GOING_ON,
        help="Go on from this run: its reviewed model meets the graph as it is now.",
    ),
]
LabelsPath = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        rich_help_panel=GOING_ON,
        help="A table of further labels, node and label, as a review writes it.",
    ),
]
RefreshWord = Annotated[
    str | None,
    typer.Option(
        metavar="auto|always|never",
        rich_help_panel=GOING_ON,
        help="With --from: whether the representation is fitted anew "
        "(auto, the default: where the graph has changed much).",
    ),
]
REFRESH: dict[str, bool | str] = {"auto": "auto", "always": True, "never": False}


@dataclass(frozen=True)
class Wanted:
    """What `nodenova discover --from` was asked for, option by option.

    Attributes:
        earlier: --from.
        folder: --out.
        overwrite: --overwrite.
        keep_graph: --keep-graph.
        files: The graph as it is now; options not given are as in the earlier run.
        labels: --labels.
        refused: Options that the earlier run has decided, and what was given.
        number: --num-new.
        mixed: False for --all-new.
        method: --method.
        settings: --set.
        refresh: --refresh.
        seed: --seed.
        min_confidence: --min-confidence.
        relabel: --relabel.
        none_share: --none-share.
        quiet: --quiet.
        page: --title, --show and --report.
    """

    earlier: Path
    folder: Path
    overwrite: bool
    keep_graph: bool
    files: GraphFiles
    labels: Path | None
    refused: Mapping[str, object]
    number: int | None
    mixed: bool | None
    method: str
    settings: Mapping[str, str]
    refresh: str
    seed: int
    min_confidence: float
    relabel: bool
    none_share: float
    quiet: bool
    page: PageOptions


def check_not_further(refresh: str | None) -> None:
    """Refuse an option that only means something with --from.

    Raises:
        SettingError: It is given.
    """
    if refresh is not None:
        raise SettingError("--refresh is for a run that goes on from an earlier one: --from RUN")


def go_on(wanted: Wanted) -> None:
    """Go on from an earlier run, write the new one and say what was found.

    Raises:
        NodenovaError: An option, the earlier run or a file cannot be used.
    """
    document = _checked(wanted)
    remembered = TableOptions.from_json(document.get("reading", {}))
    options = remembered.merged_with(wanted.files.options)
    with loading(wanted.quiet):
        from nodenova.methods import get_method
        from nodenova.runs.continue_run import continue_run
        from nodenova.runs.folder import DiscoveryFolder
    method = get_method(wanted.method, dict(wanted.settings))
    earlier = DiscoveryFolder(wanted.earlier)
    loaded, notes, options = _loaded(wanted, options, earlier.features()[1])
    if not wanted.quiet:
        print_notes(notes)
    try:
        with Bars(not wanted.quiet) as bars:
            found = continue_run(
                earlier,
                loaded,
                wanted.number,
                method=method,
                mixed=wanted.mixed,
                refresh=REFRESH[wanted.refresh],
                labels=None if wanted.labels is None else labels_in(wanted.labels),
                seed=wanted.seed,
                min_confidence=wanted.min_confidence,
                keep_labels=not wanted.relabel,
                none_share=wanted.none_share,
                progress=bars,
            )
        if not wanted.quiet:
            print_verdict(found.run, found.notes)
        place = (wanted.folder, found.run, wanted.keep_graph, wanted.overwrite, wanted.quiet)
        write(*place, options)
    except KeyboardInterrupt:
        fail("stopped; nothing was written", 130)


def _checked(wanted: Wanted) -> dict[str, Any]:
    """The run.json of the earlier run, once all that can be known beforehand is right."""
    for option, given in wanted.refused.items():
        if given:
            raise SettingError(
                f"{option}: that is as in {wanted.earlier}, which --from goes on from"
            )
    if wanted.refresh not in REFRESH:
        raise one_of("--refresh", wanted.refresh, REFRESH)
    document = run_document(wanted.earlier)
    if wanted.folder.resolve() == wanted.earlier.resolve():
        raise SettingError(
            f"--out and --from are both {wanted.folder}: a run goes on into a folder of its own"
        )
    check_place(wanted.folder, wanted.overwrite)
    return document


def _loaded(
    wanted: Wanted, options: TableOptions, recipe: TableEncoder | None
) -> tuple[UserGraph, list[str], TableOptions]:
    """The graph as it is now with all its features, those that the earlier run knew first."""
    from nodenova.io import networkx_scipy
    from nodenova.io.load import notes_on_files
    from nodenova.io.recipe import extend_recipe

    files, show = wanted.files, not wanted.quiet
    is_table = files.graph is None or networkx_scipy.is_table(files.graph)
    if recipe is None or not is_table:
        loaded = files.load(show, options)
        return loaded, notes_on_files(loaded), options
    names = [column.name for column in recipe.columns]
    notes = []

    def read_features() -> UserGraph:
        # Which words and values came is read first, and needs no vectors.
        plain = replace(
            options, features=names, text_columns=recipe.text_columns, text_vectors=None
        )
        return files.load(show, plain)

    try:
        fresh = read_features()
    except GraphError as error:
        missing = f"no column {options.label_column!r}"
        if files.options.label_column or missing not in str(error):
            raise
        options = replace(options, label_column=None)
        notes.append(f"{str(error).partition(';')[0]}: only labels of the earlier run are known")
        fresh = read_features()
    assert fresh.recipe is not None
    both, came = extend_recipe(recipe, fresh.recipe)
    loaded = files.load(show, options, both)
    if came:
        notes.append(f"{came:,} features came that the earlier run did not have")
    return loaded, [*notes_on_files(loaded), *notes], options


def labels_in(path: Path) -> dict[str, str]:
    """Labels by node, from a table.

    Raises:
        SettingError: It has no column of labels.
    """
    from nodenova.io.nodes import read_nodes

    read = read_nodes(path, TableOptions(), [], {})
    if read.label_column is None:
        raise SettingError(f"{path}: a table of labels has a column label (or class, category)")
    pairs = zip(read.ids, read.y.tolist(), strict=True)
    return {node: read.class_names[c] for node, c in pairs if c >= 0}


def with_labels_in(path: Path, loaded: UserGraph) -> UserGraph:
    """A graph with the labels of a table beside its own.

    Raises:
        NodenovaError: The table has no labels, or labels of other nodes.
    """
    from nodenova.io.estimator_input import add_labels

    return add_labels(loaded, labels_in(path), path.name)
