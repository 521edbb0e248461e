"""How long a discovery will take and how much memory, said before it begins.

Graphs of users' own on the command line: the options that say what is in their files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

import typer

from nodenova.cli.app import FINDING, INPUT, listed_names
from nodenova.cli.progress import Bars
from nodenova.errors import SettingError

if TYPE_CHECKING:
    from nodenova.data.labels import UserGraph
    from nodenova.graph import Graph
    from nodenova.io.recipe import TableEncoder


GraphPath = Annotated[
    Path | None,
    typer.Option(
        "--graph",
        rich_help_panel=INPUT,
        help="A graph in one place: npz, GraphML, GML, an edge list, a folder with nodes.* and "
        "edges.*, or one that `nodenova prepare` wrote.",
    ),
]
NodesPath = Annotated[
    Path | None,
    typer.Option(
        "--nodes",
        rich_help_panel=INPUT,
        help="Table of nodes: CSV, TSV, JSON lines (gzipped or not) or Parquet.",
    ),
]
EdgesPath = Annotated[
    Path | None,
    typer.Option(
        "--edges", rich_help_panel=INPUT, help="Table of edges: the same, or an edge list."
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id-column",
        rich_help_panel=INPUT,
        help="Column of the ids of nodes (default: id, or the first).",
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label-column",
        rich_help_panel=INPUT,
        help="Column of the classes; an empty cell means unlabelled (default: label).",
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--text-column",
        rich_help_panel=INPUT,
        help="A column whose words are features. Repeatable.",
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        rich_help_panel=INPUT,
        help="Columns that are features: a,b,c (default: all that say something).",
    ),
]
NewNodes = Annotated[
    Path | None,
    typer.Option(
        "--new-nodes",
        rich_help_panel=FINDING,
        help="File with the ids of the nodes that are of unknown classes, one a line "
        "(default: nobody says which of the unlabelled ones are).",
    ),
]
NewColumn = Annotated[
    str | None,
    typer.Option(
        "--new-column", rich_help_panel=FINDING, help="Or a column that says so: yes or no."
    ),
]
AllNew = Annotated[
    bool,
    typer.Option(
        "--all-new",
        rich_help_panel=FINDING,
        help="Every unlabelled node is of an unknown class, none of a known one.",
    ),
]
NoneShare = Annotated[
    float,
    typer.Option(
        "--none-share",
        rich_help_panel=FINDING,
        help="Mark nodes that fit none of the classes, such that about this share of the nodes of "
        "known classes would be (default: no node is marked).",
    ),
]
SourceColumn = Annotated[
    str | None,
    typer.Option(
        "--source-column",
        rich_help_panel=INPUT,
        help="Column with one end of an edge (default: source, or the first).",
    ),
]
TargetColumn = Annotated[
    str | None,
    typer.Option(
        "--target-column",
        rich_help_panel=INPUT,
        help="Column with the other end (default: target, or the second).",
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        "--weight-column",
        rich_help_panel=INPUT,
        help="Column with weights of edges: heavier neighbors are heard more (see --weights).",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="count|filter",
        rich_help_panel=INPUT,
        help="Whether weights count, or only decide which edges are kept (default: count).",
    ),
]
EdgeTypeColumn = Annotated[
    str | None,
    typer.Option(
        "--edge-type-column",
        rich_help_panel=INPUT,
        help="Column with types of edges: at every node the types that it has count alike.",
    ),
]
EdgeTypes = Annotated[
    str | None,
    typer.Option(
        "--edge-types",
        rich_help_panel=INPUT,
        help="Types to use, and what each weighs: cites,writes=0.5 (default: all).",
    ),
]
TextVectors = Annotated[
    Path | None,
    typer.Option(
        "--text-vectors",
        metavar="MODEL|FILE",
        rich_help_panel=INPUT,
        help="Vectors of texts beside their words: the folder of a language model, which reads "
        "the text columns, or a .npy or .npz file with a row for each node.",
    ),
]
MinWeight = Annotated[
    float | None,
    typer.Option("--min-weight", rich_help_panel=INPUT, help="Drop edges that weigh less."),
]
DropUnknown = Annotated[
    bool,
    typer.Option(
        "--drop-unknown-edges",
        rich_help_panel=INPUT,
        help="Drop edges to nodes that are not in the table of nodes, instead of refusing them.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        rich_help_panel=INPUT,
        help="comma, tab, semicolon, pipe or any character (default: found out).",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", rich_help_panel=INPUT, help="Of the text files (default: found out)."
    ),
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
    weights: str | None
    edge_type_column: str | None
    edge_types: str | None
    text_vectors: Path | None
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
    with Bars(show, "reading files") as bars:
        from nodenova.io.load import load_graph

        return load_graph(
            graph,
            nodes=nodes,
            edges=edges,
            text_columns=tuple(text_columns or ()),
            features=None if features is None else listed_names(features),
            progress=bars,
            **options,
        )


def is_mixed(all_new: bool, new_nodes: Path | None, new_column: str | None) -> bool | None:
    """What --all-new says: False, or None to leave it to the files.

    Raises:
        SettingError: The new nodes are named as well.
    """
    if all_new and (new_nodes is not None or new_column is not None):
        named = "--new-nodes" if new_nodes is not None else "--new-column"
        raise SettingError(f"--all-new means every unlabelled node, {named} names some")
    return False if all_new else None


def check_none_share(share: float) -> None:
    """Raise, before anything is computed, if --none-share is no share.

    Raises:
        SettingError: It is not from 0 to below 1.
    """
    if not 0 <= share < 1:
        raise SettingError(f"--none-share is a share from 0 to below 1, not {share:g}")


# For 1, nodes, edges (in both directions) and entries of the features that are not zero, as
# benchmarks/estimate.py finds them: Prism in a mixture, its number of classes estimated, with the
# page, on one core of a server of 2024. Rows of 8,000 to 64,000 nodes were met within 1.6.
SECONDS = (10.7, 8.39e-05, 1.94e-05, 1.16e-05)
GIB = (0.71, 4.92e-06, 1.53e-07, 1.44e-07)
LARGE = 50_000  # nodes from which on `nodenova discover` says it


def estimate(nodes: int, edges: int, entries: int) -> tuple[float, float]:
    """Seconds of one core, and GB of memory at most, of `nodenova discover` with Prism.

    Args:
        nodes: How many.
        edges: In both directions.
        entries: Of the features, how many are not zero.

    Examples:
        >>> seconds, gb = estimate(200_000, 1_600_000, 4_000_000)
        >>> round(seconds), round(gb, 1)
        (105, 2.7)
    """
    sizes = (1, nodes, edges, entries)
    seconds = sum(a * b for a, b in zip(SECONDS, sizes, strict=True))
    gib = sum(a * b for a, b in zip(GIB, sizes, strict=True))
    return seconds, gib * 2**30 / 1e9


def entries_of(graph: Graph) -> int:
    """How many entries of the features are not zero; of dense ones, all count."""
    sparse = getattr(graph.x, "nnz", None)
    return int(graph.x.size if sparse is None else sparse)


def sentence(graph: Graph) -> str:
    """What `nodenova discover` will take, as one would say it.

    Examples:
        >>> import nodenova as nova
        >>> sentence(nova.synthetic(nodes=200, classes=4).graph)
        'about 11 s on one core, 0.8 GB of memory'
    """
    seconds, gb = estimate(graph.num_nodes, graph.num_edges, entries_of(graph))
    said = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    if seconds >= 5_400:
        said = f"{seconds / 3600:.1f} h"
    return f"about {said} on one core, {gb:.1f} GB of memory"
