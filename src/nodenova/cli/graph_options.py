"""Command-line options that describe a user's graph, and the estimated cost of a discovery."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodenova.cli.app import FINDING, INPUT, listed_names
from nodenova.cli.progress import Bars
from nodenova.errors import SettingError
from nodenova.io.table_options import TableOptions

if TYPE_CHECKING:
    from nodenova.data.labels import UserGraph
    from nodenova.io.recipe import TableEncoder


PATH, TEXT = Path | None, str | None
# Type and help of each option; its flag is its name.
HELP: dict[str, tuple[Any, str]] = {
    "graph": (PATH, "One file or folder with the whole graph: npz, GraphML, GML, an edge list, a "
              "folder with nodes.* and edges.*, or a folder written by `nodenova prepare`."),
    "nodes": (PATH, "Table of nodes: CSV, TSV, JSON lines (gzipped or not) or Parquet."),
    "edges": (PATH, "Table of edges: the same kinds of file, or an edge list."),
    "id_column": (TEXT, "Column with the node ids (default: id, or the first column)."),
    "label_column": (TEXT, "Column with the classes; an empty cell means unlabelled "
                     "(default: label)."),
    "text_columns": (list[str] | None, "A column whose words are features. Repeatable."),
    "features": (TEXT, "Columns to use as features: a,b,c (default: all informative columns)."),
    "new_nodes": (PATH, "File with the ids of the nodes of unknown classes, one id per line "
                  "(default: not known)."),
    "new_column": (TEXT, "Or a yes/no column that marks these nodes."),
    "source_column": (TEXT, "Column with one end of an edge (default: source, or the first "
                      "column)."),
    "target_column": (TEXT, "Column with the other end (default: target, or the second)."),
    "weight_column": (TEXT, "Column with edge weights; neighbors are weighted by it (see "
                      "--weights)."),
    "min_weight": (float | None, "Drop edges with a weight below this."),
    "weights": (TEXT, "count: neighbors are weighted. filter: weights only decide which edges to "
                "drop (default: count)."),
    "edge_type_column": (TEXT, "Column with edge types; each node weighs its edge types equally."),
    "edge_types": (TEXT, "Edge types to use, with optional weights: cites,writes=0.5 "
                   "(default: all)."),
    "drop_unknown_edges": (bool, "Drop edges to nodes that are not in the table of nodes "
                           "(default: error)."),
    "delimiter": (TEXT, "comma, tab, semicolon, pipe or any character (default: detected)."),
    "encoding": (TEXT, "Encoding of text files (default: detected)."),
    "text_vectors": (PATH, "Text embeddings to use beside the words: the folder of a language "
                     "model, which reads the text columns, or a .npy or .npz file with one row "
                     "per node."),
}  # fmt: skip
METAVARS = {"weights": "count|filter", "text_vectors": "MODEL|FILE"}
# Options of a later graph, whose features are those of the model and where no nodes are new.
LATER = {*HELP} - {"text_columns", "features", "new_nodes", "new_column"}


def _parameter(name: str) -> inspect.Parameter:
    """The parameter of a command for one of `HELP`."""
    kind, text = HELP[name]
    flag = "--text-column" if name == "text_columns" else "--" + name.replace("_", "-")
    panel = FINDING if name.startswith("new_") else INPUT
    option = typer.Option(flag, rich_help_panel=panel, help=text, metavar=METAVARS.get(name))
    return _keyword(name, Annotated[kind, option], False if kind is bool else None)


AllNew = Annotated[
    bool,
    typer.Option(
        "--all-new",
        rich_help_panel=FINDING,
        help="All unlabelled nodes belong to unknown classes, none to a known one.",
    ),
]
NoneShare = Annotated[
    float,
    typer.Option(
        "--none-share",
        rich_help_panel=FINDING,
        help="Mark outliers; the threshold flags about this fraction of known nodes "
        "(default: no outliers).",
    ),
]


@dataclass(frozen=True)
class GraphFiles:
    """The files of a graph and the options to read them with."""

    graph: Path | None
    nodes: Path | None
    edges: Path | None
    options: TableOptions

    @property
    def is_given(self) -> bool:
        """Whether the command names any file."""
        return any(path is not None for path in (self.graph, self.nodes, self.edges))

    def check(self) -> None:
        """Raise unless there is either one graph or tables."""
        if (self.graph is None) == (self.nodes is None and self.edges is None):
            raise SettingError("give either --graph FILE, or --nodes FILE and --edges FILE")

    def load(
        self,
        show: bool,
        options: TableOptions | None = None,
        recipe: TableEncoder | None = None,
    ) -> UserGraph:
        """Read the graph, with a progress bar if `show`; `options` replace those of the command."""
        self.check()
        with Bars(show, "reading files") as progress:
            from nodenova.io.load import read_graph

            return read_graph(
                self.graph,
                options or self.options,
                nodes=self.nodes,
                edges=self.edges,
                recipe=recipe,
                progress=progress,
            )


Command = Callable[..., None]


def takes_graph(names: Collection[str] = HELP) -> Callable[[Command], Command]:
    """Decorate a command: its parameter `files` becomes these of `HELP` on the command line."""

    def decorate(command: Command) -> Command:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            if parameter.name == "files":
                parameters += [_parameter(name) for name in HELP if name in names]
            else:
                parameters.append(_keyword(parameter.name, parameter.annotation, parameter.default))

        @functools.wraps(command)
        def run(**values: Any) -> None:
            options = {name: values.pop(name) for name in HELP if name in values}
            command(files=_graph_files(options), **values)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _graph_files(values: dict[str, Any]) -> GraphFiles:
    """Files and options from the values that typer parsed."""
    paths = {name: values[name] for name in ("graph", "nodes", "edges")}
    options = {one.name: values[one.name] for one in fields(TableOptions) if one.name in values}
    if "features" in options:
        options["text_columns"] = tuple(options["text_columns"] or ())
        features = options["features"]
        options["features"] = None if features is None else listed_names(features)
    return GraphFiles(**paths, options=TableOptions(**options))


def mixed_setting(all_new: bool, options: TableOptions) -> bool | None:
    """Return `mixed` for --all-new: False, or None to decide by the files."""
    if all_new and (options.new_nodes is not None or options.new_column is not None):
        other = "--new-nodes" if options.new_nodes is not None else "--new-column"
        raise SettingError(f"--all-new means every unlabelled node: leave out {other}")
    return False if all_new else None


def check_none_share(share: float) -> None:
    """Validate --none-share before anything is computed."""
    if not 0 <= share < 1:
        raise SettingError(f"--none-share must be at least 0 and below 1, it is {share:g}")


# Coefficients of 1, nodes up to a bound, these times known classes, nodes, edges (both directions)
# and nonzero feature entries, as fitted by benchmarks/estimate.py: Prism with known and new nodes
# mixed, an estimated number of classes and the page, on one core of a server of 2024. Counting,
# checking and naming use some nodes only: beyond the bound they grow little. Graphs of 500 to
# 100,000 nodes are within 1.1; the two largest were within 1.3 when they were kept aside.
SECONDS, SECONDS_BOUND = (4.6, 5.05e-4, 1.96e-4, 3.11e-5, 4e-6, 2e-6), 5_000
GIB, GIB_BOUND = (0.537, 1.99e-5, 1.16e-6, 1.68e-6, 9.85e-8, 1.36e-7), 20_000
LARGE = 50_000  # nodes from which on `nodenova discover` prints the estimate


def estimate_cost(nodes: int, edges: int, entries: int, classes: int) -> tuple[float, float]:
    """Seconds on one core and GB of memory that a discovery with Prism takes, files aside."""

    def total(coefficients: tuple[float, ...], bound: int) -> float:
        some = min(nodes, bound)
        sizes = (1, some, some * classes, nodes, edges, entries)
        return sum(a * b for a, b in zip(coefficients, sizes, strict=True))

    return total(SECONDS, SECONDS_BOUND), total(GIB, GIB_BOUND) * 2**30 / 1e9


def graph_cost(user_graph: UserGraph, reading: float = 0.0) -> tuple[float, float]:
    """`estimate_cost` of a graph with its classes, after `reading` seconds for its files."""
    graph = user_graph.graph.canonical() if user_graph.graph.is_mapped else user_graph.graph
    entries = int(getattr(graph.x, "nnz", graph.x.size))  # all numbers of dense features
    seconds, gb = estimate_cost(graph.num_nodes, graph.num_edges, entries, user_graph.num_old)
    return reading + seconds, gb


def cost_text(user_graph: UserGraph, reading: float = 0.0) -> str:
    """`graph_cost` as text: "about 11 s on one core, 0.8 GB of memory"."""
    seconds, gb = graph_cost(user_graph, reading)
    time = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    if seconds >= 5_400:
        time = f"{seconds / 3600:.1f} h"
    return f"about {time} on one core, {gb:.1f} GB of memory"
