"""The entrance for graphs of users' own: whatever they have, as a graph, with every repair said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.data.labels import UNKNOWN, LabelledGraph, UserGraph
from nodenova.errors import GraphError, SettingError
from nodenova.graph import Graph
from nodenova.io import foreign, npz
from nodenova.io.edges import read_edges
from nodenova.io.frames import is_frame
from nodenova.io.nodes import read_nodes
from nodenova.io.table_encoder import MAX_WORDS, TableEncoder
from nodenova.io.tables import Progress, ReadingOptions, Table, no_progress
from nodenova.io.text_files import check_file, text_file

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq")


def load_graph(
    source: Any = None,
    *,
    nodes: Any = None,
    edges: Any = None,
    id_column: str | None = None,
    label_column: str | None = None,
    text_columns: Sequence[str] = (),
    features: Sequence[str] | None = None,
    new_nodes: str | PathLike[str] | Sequence[object] | None = None,
    new_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    min_weight: float | None = None,
    drop_unknown_edges: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    max_words: int = MAX_WORDS,
    recipe: TableEncoder | None = None,
    name: str | None = None,
    progress: Progress = no_progress,
) -> UserGraph:
    """Read a graph from whatever a user has: files, data frames, objects of other libraries.

    Args:
        source: An npz file; a folder with nodes.* and edges.*; a GraphML or GML file; an edge list;
            a PyG `Data`; a NetworkX graph; a pair (nodes, edges) of data frames (pandas, polars,
            Arrow), or of matrices (features, adjacency) or (features, edge_index); a `Graph` or a
            `LabelledGraph`.
        nodes: With `edges`, instead of `source`: a CSV or TSV file, gzipped or not, a Parquet file
            or a data frame. Without it, the nodes are those that edges name.
        edges: A table as `nodes` is, or an edge list. Edges have no direction.
        id_column: By its usual name or place unless given (`notes` says which); so are the others.
        label_column: Classes; an empty label means unlabelled.
        text_columns: Columns of words to make features from.
        features: Other columns to make features from; by default all that say something of a node.
        new_nodes: Ids of the nodes to discover in, in a file (one a line) or a list. Without it and
            `new_column`, every unlabelled node is new. A label that a new node has is for grading.
        new_column: Says yes or no, instead of `new_nodes`.
        source_column: One end of an edge.
        target_column: The other end.
        weight_column: Numbers of edges. Edges without a positive weight are left out; all others
            count alike.
        min_weight: Edges with a weight below it are left out too.
        drop_unknown_edges: Leave out edges to nodes that the table of nodes does not have, instead
            of refusing them.
        delimiter: Between cells of a text file; found by default, as the encoding is.
        encoding: Of text files.
        max_words: The most words that become features.
        recipe: That of an earlier `UserGraph`: the very same features for a changed or grown file.
        name: What messages and results call the graph; by default after its file.
        progress: Called with what is being done and which share of it is done.

    Returns:
        A `LabelledGraph` that also has `new_ids`, `notes` on every repair, and the `recipe`.

    Raises:
        GraphError: Names the file, and the line, column or node in it, that cannot be used.
        SettingError: Options contradict each other.

    Examples:
        >>> import nodenova as nova
        >>> import pandas as pd
        >>> nodes = pd.DataFrame({"id": [1, 2, 3], "label": ["a", "b", None], "size": [5, 7, 9]})
        >>> edges = pd.DataFrame({"source": [1, 2], "target": [2, 3]})
        >>> mine = nova.load_graph(nodes=nodes, edges=edges)
        >>> mine.class_names, mine.new_ids.tolist(), mine.graph.feature_names
        (('a', 'b'), [2], ('size',))
    """
    if (source is None) == (nodes is None and edges is None):
        raise SettingError("give either one source or the tables nodes and edges")
    if isinstance(features, str) or isinstance(text_columns, str):
        raise SettingError("features and text_columns are lists of names")
    ready: LabelledGraph | None = None
    if source is not None:
        nodes, edges, ready = _opened(source, name)
    if ready is not None:
        unused = {"text_columns": text_columns, "features": features, "id_column": id_column,
                  "new_column": new_column, "label_column": label_column,
                  "recipe": recipe}  # fmt: skip
        given = [option for option, value in unused.items() if value]
        if given:
            raise SettingError(
                f"{ready.name}: {given[0]} is for tables; "
                "this graph has its features and labels already"
            )
        return _marked(ready, _listed(new_nodes, ready.graph.node_ids, ready.name), [], None)

    reading: ReadingOptions = {
        "delimiter": delimiter,
        "encoding": encoding,
        "progress": progress,
    }
    notes: list[str] = []
    table = None
    if nodes is not None:
        table = read_nodes(nodes, id_column, label_column, new_column, notes, **reading)
    ends, table = read_edges(
        edges,
        table,
        (source_column, target_column, weight_column),
        min_weight=min_weight,
        drop_unknown=drop_unknown_edges,
        notes=notes,
        **reading,
    )
    if recipe is None:
        taken = (table.id_column, table.label_column, table.new_column)
        _check_columns(table.table, (*(features or ()), *text_columns), taken)
        recipe, bag = TableEncoder.fit(
            table.table,
            ends,
            table.ids,
            columns=features,
            text_columns=tuple(text_columns),
            not_features=[column for column in taken if column],
            max_words=max_words,
            notes=notes,
            progress=progress,
        )
        x, _ = recipe.transform(table.table, ends, table.ids, bag, progress)
    else:
        x, said = recipe.transform(table.table, ends, table.ids, None, progress)
        notes += said
    source_name = table.table.source
    graph = Graph.of(
        x,
        ends,
        node_ids=table.ids,
        feature_names=recipe.feature_names,
        dense=not recipe.cut,
        source=source_name,
    )
    labelled = LabelledGraph(
        graph, table.y, table.class_names, name=name or _short_name(source, nodes, source_name)
    )
    new = table.new if new_nodes is None else _listed(new_nodes, graph.node_ids, source_name)
    if new_nodes is not None and table.new is not None:
        raise SettingError("give either new_nodes or new_column, not both")
    return _marked(labelled, new, notes, recipe)


def _opened(source: Any, name: str | None) -> tuple[Any, Any, LabelledGraph | None]:
    """Tables of nodes and edges, or a graph that is ready."""
    if isinstance(source, Graph):
        source = LabelledGraph(source, np.full(source.num_nodes, UNKNOWN), ())
    if isinstance(source, LabelledGraph):
        return None, None, source if name is None else replace(source, name=name)
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        if path.is_dir():
            return _one_of(path, "nodes"), _one_of(path, "edges"), None
        ending = next(
            (suffix.lower() for suffix in reversed(path.suffixes) if suffix.lower() != ".gz"), ""
        )
        if ending == ".npz":
            labelled = npz.load_graph(path)
            return None, None, labelled if name is None else replace(labelled, name=name)
        check_file(path)
        if ending in (".graphml", ".gml"):
            return *foreign.tables_of(foreign.read_networkx(path, ending), path.name), None
        if ending in (*TABLES, ".edgelist", ".edges"):
            return None, path, None
        raise GraphError(
            f"{path.name}: unknown kind of file; "
            "known: npz, graphml, gml, edgelist, csv, tsv, parquet, a folder"
        )
    if foreign.is_networkx(source):
        return *foreign.tables_of(source, name or "networkx graph"), None
    if isinstance(source, tuple) and len(source) == 2:
        if any(is_frame(part) for part in source):
            return *source, None
        return None, None, foreign.from_matrices(*source, name=name or "matrices")
    if hasattr(source, "edge_index"):
        from nodenova.io.pyg import from_pyg

        return None, None, from_pyg(source, name=name or "PyG data")
    raise GraphError(
        "a graph is a path, a PyG Data, a NetworkX graph or a pair of tables, "
        f"not {type(source).__name__}"
    )


def _one_of(folder: Path, stem: str) -> Path:
    found = sorted(
        path for path in folder.iterdir() if path.name.split(".")[0] == stem and path.is_file()
    )
    if not found:
        raise GraphError(
            f"{folder}: a folder needs a file nodes.* and a file edges.*; {stem}.* is not there"
        )
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise GraphError(f"{folder}: there are {len(found)} files called {stem}.*: {names}")
    return found[0]


def _short_name(source: Any, nodes: Any, fallback: str) -> str:
    for given in (source, nodes):
        if isinstance(given, (str, PathLike)):
            return Path(given).name
    return fallback


def _check_columns(table: Table, wanted: Sequence[str], taken: Sequence[str | None]) -> None:
    for column in wanted:
        if column not in table.columns:
            raise GraphError(
                f"{table.source}: no column {column!r}; it has {', '.join(table.columns)}"
            )
        if column in taken[1:]:
            raise GraphError(
                f"{table.source}: column {column!r} says the class of a node "
                "and cannot be a feature too"
            )


def _listed(new_nodes: Any, ids: np.ndarray, source: str) -> np.ndarray | None:
    """(N,) which nodes a file or list of ids names."""
    if new_nodes is None:
        return None
    if isinstance(new_nodes, (str, PathLike)):
        path = Path(new_nodes)
        check_file(path)
        with text_file(path, None, []) as (text, _):
            wanted = [line.strip() for line in text if line.strip()]
        where = path.name
    else:
        wanted = [str(node) for node in new_nodes]
        where = "new_nodes"
    if not wanted:
        raise GraphError(f"{where}: names no node")
    known = {str(node) for node in ids.tolist()}
    strange = [node for node in wanted if node not in known]
    if strange:
        raise GraphError(
            f"{where}: {len(strange):,} of {len(wanted):,} ids are not in {source}, "
            f"first: {strange[0]!r}"
        )
    return np.isin(ids.astype(str), wanted)


def _marked(
    labelled: LabelledGraph, new: np.ndarray | None, notes: list[str], recipe: TableEncoder | None
) -> UserGraph:
    """The graph with its new nodes marked; classes that only new nodes have come last."""
    y = labelled.y
    names = labelled.class_names
    labels = y != UNKNOWN
    new_named = new is not None
    if new is None:
        new = ~labels
        if labels.any() and new.any():
            notes.append(f"{new.sum():,} unlabelled nodes are to discover in, as none were named")
    elif (labels & new).any():
        said = "new nodes have a label: it is kept for grading and never used to discover"
        notes.append(f"{(labels & new).sum():,} {said}")
    if (~labels & ~new).any():
        said = "have no label and are not new: they are seen, and nothing is asked of them"
        notes.append(f"{(~labels & ~new).sum():,} nodes {said}")
    only_new = np.setdiff1d(y[labels & new], y[labels & ~new])
    if len(only_new):
        order = np.concatenate([np.setdiff1d(np.arange(len(names)), only_new), only_new])
        number = np.empty(len(names) + 1, dtype=np.int64)
        number[order] = np.arange(len(names))
        number[-1] = UNKNOWN
        y = number[y]
        names = tuple(names[c] for c in order)
        listed = ", ".join(names[-len(only_new) :])
        notes.append(f"{len(only_new)} classes occur among new nodes only: {listed}")
    values = {entry.name: getattr(labelled, entry.name) for entry in fields(LabelledGraph)}
    values |= {"y": y, "class_names": names, "new_ids": np.flatnonzero(new)}
    return UserGraph(**values, notes=tuple(notes), recipe=recipe, new_named=new_named)
