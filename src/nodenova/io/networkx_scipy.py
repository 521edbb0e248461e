"""Graphs of other libraries: NetworkX (with GraphML and GML), edge lists, NumPy and SciPy."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import UNKNOWN, LabelledGraph
from nodenova.errors import GraphError, first_line
from nodenova.graph import Graph
from nodenova.io.frames import is_frame, make_column, to_text
from nodenova.io.mmap_graph import is_graph_folder
from nodenova.io.tables import DELIMITERS, Rows, Table, cell_reader
from nodenova.io.text_files import check_file, file_ending, text_file

MAX_DEPTH = 100  # nested elements of a GraphML file
EDGE_LISTS = (".edgelist", ".edges")


def is_networkx(source: Any) -> bool:
    """Whether this is a NetworkX graph, without importing NetworkX."""
    return hasattr(source, "nodes") and hasattr(source, "adj")


def is_table(source: Any) -> bool:
    """Whether features are made from columns of a table, rather than ready made."""
    if isinstance(source, (str, PathLike)):
        return Path(source).suffix.lower() != ".npz" and not is_graph_folder(Path(source))
    is_pair_of_frames = isinstance(source, tuple) and any(is_frame(part) for part in source)
    return is_networkx(source) or is_pair_of_frames


def read_networkx(path: Path, ending: str) -> Any:
    """Read a NetworkX graph from a GraphML or GML file."""
    try:
        import networkx as nx
    except ImportError:
        raise GraphError(
            f"{path.name}: {ending[1:]} files need NetworkX; pip install 'nodenova[networkx]'"
        ) from None
    try:
        # Ids of GML nodes are their labels if all have one, else their numbers.
        if ending == ".gml":
            try:
                return nx.read_gml(path)
            except nx.NetworkXError as error:
                if "label" not in str(error):
                    raise
                return nx.read_gml(path, label="id")
        _check_depth(path)
        return nx.read_graphml(path)
    except Exception as error:
        what = f"not a readable {ending[1:]} file ({first_line(error)})"
        raise GraphError(f"{path.name}: {what}") from error


def _check_depth(path: Path) -> None:
    """Raise if elements of an XML file are nested too deeply, before its tree takes the memory."""
    depth = 0
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        for event, element in ElementTree.iterparse(file, ("start", "end")):
            depth += 1 if event == "start" else -1
            if depth > MAX_DEPTH:
                raise GraphError(f"elements are nested more than {MAX_DEPTH} deep")
            if event == "end":
                element.clear()


def networkx_tables(graph: Any, source: str) -> tuple[Table, Rows]:
    """Return a NetworkX graph as tables of nodes and edges, with attributes as columns."""
    if not graph.number_of_nodes():
        raise GraphError(f"{source}: a graph without nodes")
    names = dict.fromkeys(str(name) for _, values in graph.nodes(data=True) for name in values)
    id_name = "id" if "id" not in names else "node_id" if "node_id" not in names else "networkx_id"
    rows = [{str(name): cell for name, cell in v.items()} for _, v in graph.nodes(data=True)]
    columns: dict[str, Sequence[str]] = {id_name: [str(node) for node in graph.nodes]}
    for name in names:
        columns[name] = make_column([row.get(name) for row in rows], source, name, "node")
    weights = sorted({str(name) for _, _, values in graph.edges(data=True) for name in values})

    def edges() -> Iterator[tuple[int, list[str]]]:
        for number, (a, b, values) in enumerate(graph.edges(data=True), start=1):
            yield number, [str(a), str(b), *(to_text(values.get(name)) for name in weights)]

    lines = list(range(1, graph.number_of_nodes() + 1))
    ends = Rows(source, ["source", "target", *weights], cell_reader(edges()), unit="edge")
    return Table(source, columns, lines, unit="node"), ends


def is_edge_list(edges: Any) -> bool:
    """Whether this is a file of two ids per line with spaces between, as NetworkX writes it."""
    if not isinstance(edges, (str, PathLike)):
        return False
    path = Path(edges)
    ending = file_ending(path)
    if ending != ".txt" or not path.is_file():
        return ending in EDGE_LISTS
    with text_file(path, "latin-1", []) as (text, _):
        first = text.readline()
    return not any(sign in first for sign in DELIMITERS)


def open_edge_list(edges: str | PathLike[str], encoding: str | None) -> Rows:
    """Open a file of two ids per line, separated by spaces, tabs or a comma; # begins a comment."""
    path = Path(edges)
    notes: list[str] = []
    check_file(path)

    def rows() -> Iterator[tuple[int, list[str]]]:
        with text_file(path, encoding, notes) as (text, _):
            for line, content in enumerate(text, start=1):
                cells = content.split("#", 1)[0].replace(",", " ").split(maxsplit=2)
                if len(cells) == 1:
                    raise GraphError(
                        f"{path.name}: line {line}: an edge is two ids, here is one: {cells[0]!r}"
                    )
                if cells:
                    yield line, cells[:2]

    return Rows(path.name, ["source", "target"], cell_reader(rows()), notes)


def from_matrices(x: Any, edges: Any, *, name: str = "matrices") -> LabelledGraph:
    """Make a graph, with no class known, from (N, d) features and an adjacency or edge_index.

    An adjacency is (N, N), non-zero where there is an edge; an edge_index is (2, E). With two
    nodes, (2, 2) is an adjacency.
    """
    x, edges = _to_array(x, name), _to_array(edges, name)
    if not x.shape:
        raise GraphError(f"{name}: x must have two dimensions (nodes, features), it has 0")
    n, shape = x.shape[0], tuple(edges.shape)
    if len(shape) == 2 and shape[0] == 2 and shape != (n, n) and not sp.issparse(edges):
        graph = Graph.of(x, edges, source=name)
    else:
        if len(shape) != 2 or shape[0] != shape[1]:
            raise GraphError(
                f"{name}: an adjacency is a square matrix and an edge_index has two rows, "
                f"this has shape {shape or None}"
            )
        if n != shape[0]:
            raise GraphError(f"{name}: x has {n} nodes, the adjacency has {shape[0]}")
        entries = sp.coo_array(edges)
        entries.eliminate_zeros()
        graph = Graph.of(x, np.stack(entries.coords), source=name)
    return LabelledGraph(graph, np.full(graph.num_nodes, UNKNOWN), (), name=name)


def _to_array(values: Any, name: str) -> Any:
    """Return a tensor or lists of numbers as a NumPy array; arrays and matrices as they are."""
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    try:
        return values if hasattr(values, "shape") else np.asarray(values)
    except (TypeError, ValueError) as error:
        raise GraphError(f"{name}: not an array of numbers ({first_line(error)})") from None
