"""Graphs of users' own on the command line: the options that say what is in their files.

And nodenova inspect.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, Unpack

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from nodenova.cli.app import OWN, Quiet, app, err, listed_names, log_line, out
from nodenova.errors import SettingError

if TYPE_CHECKING:
    from nodenova.data.labels import UserGraph
    from nodenova.io.table_encoder import TableEncoder

GraphPath = Annotated[
    Path | None,
    typer.Option(
        "--graph",
        help="A graph in one place: npz, GraphML, GML, an edge list, a folder with nodes.* and "
        "edges.*, or one that `nodenova prepare` wrote.",
    ),
]
NodesPath = Annotated[
    Path | None,
    typer.Option(
        "--nodes", help="Table of nodes: CSV, TSV, JSON lines (gzipped or not) or Parquet."
    ),
]
EdgesPath = Annotated[
    Path | None, typer.Option("--edges", help="Table of edges: the same, or an edge list.")
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id-column", help="Column of the ids of nodes (default: id, or the first)."),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label-column",
        help="Column of the classes; an empty cell means unlabelled (default: label).",
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option("--text-column", help="A column whose words are features. Repeatable."),
]
Features = Annotated[
    str | None,
    typer.Option(
        "--features", help="Columns that are features: a,b,c (default: all that say something)."
    ),
]
NewNodes = Annotated[
    Path | None,
    typer.Option(
        "--new-nodes",
        help="File with the ids of the nodes that are new, one a line "
        "(default: nobody says which of the unlabelled ones are).",
    ),
]
NewColumn = Annotated[
    str | None, typer.Option("--new-column", help="Or a column that says yes or no.")
]
AllNew = Annotated[
    bool,
    typer.Option("--all-new", help="Every unlabelled node is new, none of a known class."),
]
NoneShare = Annotated[
    float,
    typer.Option(
        "--none-share",
        help="Mark nodes that fit none of the classes, such that about this share of the nodes of "
        "known classes would be (default: no node is marked).",
    ),
]
SourceColumn = Annotated[
    str | None,
    typer.Option(
        "--source-column", help="Column with one end of an edge (default: source, or the first)."
    ),
]
TargetColumn = Annotated[
    str | None,
    typer.Option(
        "--target-column", help="Column with the other end (default: target, or the second)."
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        "--weight-column",
        help="Column with weights of edges: those that are not positive are dropped, "
        "others count alike.",
    ),
]
MinWeight = Annotated[
    float | None, typer.Option("--min-weight", help="Drop edges that weigh less.")
]
DropUnknown = Annotated[
    bool,
    typer.Option(
        "--drop-unknown-edges",
        help="Drop edges to nodes that are not in the table of nodes, instead of refusing them.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter", help="comma, tab, semicolon, pipe or any character (default: found out)."
    ),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Of the text files (default: found out).")
]


class FileOptions(TypedDict, total=False):
    """Options of `load_graph` that are handed on as they are."""

    id_column: str | None
    label_column: str | None
    new_nodes: Path | None
    new_column: str | None
    source_column: str | None
    target_column: str | None
    weight_column: str | None
    min_weight: float | None
    drop_unknown_edges: bool
    delimiter: str | None
    encoding: str | None
    recipe: TableEncoder | None


def load_files(
    graph: Path | None,
    nodes: Path | None,
    edges: Path | None,
    *,
    text_columns: list[str] | None = None,
    features: str | None = None,
    show: bool = False,
    **options: Unpack[FileOptions],
) -> UserGraph:
    """The graph that the options above describe.

    Args:
        graph: As --graph; then neither of the next two is given.
        nodes: As --nodes.
        edges: As --edges.
        text_columns: Columns whose words are features.
        features: Columns that are features, with commas.
        show: Whether a bar is drawn, or lines are written.
        **options: Those of `load_graph`.

    Raises:
        SettingError: Files are missing, or given twice.
    """
    if (graph is None) == (nodes is None and edges is None):
        raise SettingError("give either --graph FILE, or --nodes FILE and --edges FILE")
    with Reading(err, show) as progress:
        from nodenova.io.load import load_graph

        return load_graph(
            graph,
            nodes=nodes,
            edges=edges,
            text_columns=tuple(text_columns or ()),
            features=None if features is None else listed_names(features),
            progress=progress,
            **options,
        )


def is_mixed(all_new: bool, new_nodes: Path | None, new_column: str | None) -> bool | None:
    """What --all-new says: False, or None to leave it to the files.

    Raises:
        SettingError: The new nodes are named as well.
    """
    if all_new and (new_nodes is not None or new_column is not None):
        named = "--new-nodes" if new_nodes is not None else "--new-column"
        raise SettingError(f"--all-new takes every unlabelled node for new, {named} names others")
    return False if all_new else None


def check_none_share(share: float) -> None:
    """Raise, before anything is computed, if --none-share is no share.

    Raises:
        SettingError: It is not from 0 to below 1.
    """
    if not 0 <= share < 1:
        raise SettingError(f"--none-share is a share from 0 to below 1, not {share:g}")


class Reading:
    """A bar for what `load_graph` is doing; a context manager that gives the function to call.

    Where the console is no terminal, a plain line for each thing it does.
    """

    def __init__(self, console: Console, show: bool) -> None:
        self._plain = show and not console.is_terminal
        self._stage = ""
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            console=console,
            disable=not show or self._plain,
            transient=True,
        )

    def __enter__(self) -> Any:
        if self._plain:
            self._log("reading", 0.0)
            return self._log
        self._bars.start()
        task = self._bars.add_task("reading", total=1.0)
        return lambda stage, share: self._bars.update(
            task, description=escape(stage), completed=share
        )

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def _log(self, stage: str, share: float) -> None:
        if stage != self._stage:
            log_line(stage)
        self._stage = stage


@app.command(rich_help_panel=OWN)
def inspect(
    graph: GraphPath = None,
    nodes: NodesPath = None,
    edges: EdgesPath = None,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    text_columns: TextColumns = None,
    features: Features = None,
    new_nodes: NewNodes = None,
    new_column: NewColumn = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    weight_column: WeightColumn = None,
    min_weight: MinWeight = None,
    drop_unknown_edges: DropUnknown = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    json_path: Annotated[
        Path | None, typer.Option("--json", help="Write the same as JSON.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """What was understood of a graph of your own, and what looks wrong with it.

    Its nodes, edges, features and classes.
    """
    loaded = load_files(
        graph,
        nodes,
        edges,
        id_column=id_column,
        label_column=label_column,
        text_columns=text_columns,
        features=features,
        new_nodes=new_nodes,
        new_column=new_column,
        source_column=source_column,
        target_column=target_column,
        weight_column=weight_column,
        min_weight=min_weight,
        drop_unknown_edges=drop_unknown_edges,
        delimiter=delimiter,
        encoding=encoding,
        show=not quiet,
    )
    from nodenova.io.describe import describe, lines_of

    description = describe(loaded)
    if json_path is not None:
        from nodenova.files import to_json, write_atomically

        write_atomically(json_path, to_json(asdict(description)))
    if not quiet:
        for line in lines_of(description):
            out.print(line, markup=False, highlight=False, soft_wrap=True)
