"""The entrance for graphs of users' own: whatever they have, as a graph, with every repair said.

Which nodes of a user's graph are new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.data.labels import UNKNOWN, LabelledGraph, UserGraph
from nodenova.errors import GraphError, SettingError
from nodenova.graph import Graph
from nodenova.io import networkx_scipy, npz
from nodenova.io.edges import first_ids, read_edges
from nodenova.io.frames import is_frame
from nodenova.io.list_columns import mark_list_columns
from nodenova.io.mmap_graph import Prepared, is_prepared, read_prepared
from nodenova.io.nodes import check_columns, read_nodes
from nodenova.io.pyg import from_hetero, is_hetero
from nodenova.io.recipe import TableEncoder
from nodenova.io.table_options import MAX_WORDS, EdgeTypes, TableOptions, parse_edge_types
from nodenova.io.tables import JSON_ENDINGS
from nodenova.io.text_files import check_file, file_ending, text_file
from nodenova.io.vectors import TextVectors, check_vectors_match, open_vectors, read_vectors
from nodenova.io.words import join_texts
from nodenova.progress import Progress, no_progress


def listed(new_nodes: Any, ids: np.ndarray, source: str) -> np.ndarray | None:
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


def search_note(count: int) -> str:
    """The note on a graph in which no node was named as new."""
    return f"searching all {count:,} unlabelled nodes for new classes, as none were named as new"


def marked(
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
            notes.append(search_note(int(new.sum())))
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


TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq", *JSON_ENDINGS)


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
    weights: str | None = None,
    edge_type_column: str | None = None,
    edge_types: EdgeTypes | None = None,
    node_type: str | None = None,
    drop_unknown_edges: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    max_words: int = MAX_WORDS,
    text_vectors: TextVectors | None = None,
    recipe: TableEncoder | Mapping[str, Any] | None = None,
    name: str | None = None,
    progress: Progress = no_progress,
) -> UserGraph:
    """Read a graph from whatever a user has: files, data frames, objects of other libraries.

    Args:
        source: An npz file; a folder with nodes.* and edges.*, or one that `nodenova prepare` has
            written, which is not read into memory; a GraphML or GML file; an edge list;
            a PyG `Data` or `HeteroData`; a NetworkX graph; a pair (nodes, edges) of data frames
            (pandas, polars, Arrow), or of matrices (features, adjacency) or (features,
            edge_index); a `Graph` or a `LabelledGraph`.
        nodes: With `edges`, instead of `source`: a CSV, TSV or JSON file (an array of records, or
            a record a line), gzipped or not, a Parquet file or a data frame. Without it, the nodes
            are those that edges name.
        edges: A table as `nodes` is, or an edge list. Edges have no direction.
        id_column: By its usual name or place unless given (`notes` says which); so are the others.
        label_column: Classes; an empty label means unlabelled.
        text_columns: Columns of words to make features from.
        features: Other columns to make features from; by default all that say something of a node.
            A column of vectors of one length, lists, arrays or texts like "[0.1, 0.2]", is as many
            features: v[0], v[1], ...
        new_nodes: Ids of the nodes to discover in, in a file (one a line) or a list. Without it and
            `new_column`, every unlabelled node is new. A label that a new node has is for grading.
        new_column: Says yes or no, instead of `new_nodes`.
        source_column: One end of an edge.
        target_column: The other end.
        weight_column: Numbers of edges: heavier neighbors are heard more. Edges that weigh nothing
            are left out.
        min_weight: Edges with a weight below it are left out too.
        weights: "count", as by default, or "filter": the edges that are kept count alike.
        edge_type_column: Of which type an edge is: at every node all types count alike.
        edge_types: The types to use, and what each weighs: "cites,writes=0.5", or a mapping.
        node_type: Of a `HeteroData`, the type of nodes to classify; the one with `y` by default.
        drop_unknown_edges: Leave out edges to nodes that the table of nodes does not have, instead
            of refusing them.
        delimiter: Between cells of a text file; found by default, as the encoding is.
        encoding: Of text files.
        max_words: The most words that become features.
        text_vectors: Vectors of texts, which stand beside their words: a folder of a language model
            (extra `text`), a function of a list of texts, or vectors that are ready, a row for each
            node: an array, a .npy file, or an npz file with `ids` and `vectors`.
        recipe: That of an earlier `UserGraph`, or of a model: the very same features for a changed
            or grown file.
        name: What messages and results call the graph; by default after its file.
        progress: Function `progress(phase, share)`, called as reading advances.

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
    options = TableOptions(
        id_column, label_column, text_columns, features, new_nodes, new_column, source_column,
        target_column, weight_column, min_weight, weights, edge_type_column, edge_types,
        drop_unknown_edges, delimiter, encoding, max_words, text_vectors,
    )  # fmt: skip
    return read_graph(
        source,
        options,
        nodes=nodes,
        edges=edges,
        node_type=node_type,
        recipe=recipe,
        name=name,
        progress=progress,
    )


def read_graph(
    source: Any,
    options: TableOptions,
    *,
    nodes: Any = None,
    edges: Any = None,
    node_type: str | None = None,
    recipe: TableEncoder | Mapping[str, Any] | None = None,
    name: str | None = None,
    progress: Progress = no_progress,
) -> UserGraph:
    """`load_graph` with its options for tables as one value."""
    if (source is None) == (nodes is None and edges is None):
        raise SettingError("give either one source or the tables nodes and edges")
    if node_type is not None and not is_hetero(source):
        raise SettingError("node_type is for PyTorch Geometric's HeteroData")
    if isinstance(recipe, Mapping):
        recipe = TableEncoder.from_json(recipe)
    prepared = Prepared()
    ready: LabelledGraph | None = None
    if isinstance(source, (str, PathLike)) and is_prepared(Path(source)):
        ready, prepared = read_prepared(Path(source))
        ready = ready if name is None else replace(ready, name=name)
    elif is_hetero(source):
        shares = parse_edge_types(options.edge_types)
        ready, notes = from_hetero(source, node_type, shares, name or "PyG data")
        prepared = Prepared(notes=notes)
        options = replace(options, edge_types=None)
    elif source is not None:
        nodes, edges, ready = opened(source, name)
    if ready is not None:
        return _with_new_nodes(ready, prepared, options, recipe, progress)
    return _from_tables(source, nodes, edges, options, recipe, name, progress)


# Options that say what is in tables; a graph that has features and labels takes none of them.
FOR_TABLES = ("text_columns", "features", "id_column", "new_column", "label_column",
              "edge_type_column", "edge_types")  # fmt: skip


def _with_new_nodes(
    ready: LabelledGraph,
    prepared: Prepared,
    options: TableOptions,
    recipe: TableEncoder | None,
    progress: Progress,
) -> UserGraph:
    """A graph that needs no tables, with its new nodes marked and vectors of texts beside it."""
    values = {name: getattr(options, name) for name in FOR_TABLES} | {"recipe": recipe}
    unused = [name for name, value in values.items() if value]
    if unused:
        raise SettingError(
            f"{ready.name}: {unused[0]} is for tables; "
            "this graph has its features and labels already"
        )
    new = listed(options.new_nodes, ready.graph.node_ids, prepared.source or ready.name)
    if new is not None and prepared.new is not None:
        raise SettingError(f"{ready.name}: it says already which nodes are new; no new_nodes")
    new = prepared.new if new is None else new
    notes = list(prepared.notes)
    text_vectors = open_vectors(options.text_vectors)
    if text_vectors is not None:
        ids = ready.graph.node_ids.tolist()
        vectors, _ = read_vectors(text_vectors, None, ids, ready.name, notes, progress)
        ready = replace(ready, graph=ready.graph.with_vectors(vectors))
    return marked(ready, new, notes, prepared.recipe)


def _from_tables(
    source: Any,
    nodes: Any,
    edges: Any,
    options: TableOptions,
    recipe: TableEncoder | None,
    name: str | None,
    progress: Progress,
) -> UserGraph:
    """A graph from a table of nodes, a table of edges, or both."""
    options.check_edge_types()
    text_vectors = open_vectors(options.text_vectors)
    reading = options.reading(progress)
    notes: list[str] = []
    table = None
    if nodes is not None:
        used = options.columns if recipe is None else recipe.column_names
        table = read_nodes(
            nodes,
            options.id_column,
            options.label_column,
            options.new_column,
            notes,
            used,
            is_later=recipe is not None,
            linked=lambda: first_ids(edges, options, reading),
            **reading,
        )
    (ends, weight), table = read_edges(edges, table, options, notes, **reading)
    taken = (table.id_column, table.label_column, table.new_column)
    content = mark_list_columns(table.table, table.ids, taken)
    source_name = table.table.source
    if recipe is None:
        check_columns(table.table, options.columns, taken)
        recipe, bag = TableEncoder.fit(
            content,
            ends,
            table.ids,
            columns=options.features,
            text_columns=tuple(options.text_columns),
            not_features=[*(column for column in taken if column), *table.not_features],
            max_words=options.max_words,
            notes=notes,
            progress=progress,
        )
        x, _ = recipe.transform(content, ends, table.ids, bag, progress)
    else:
        check_vectors_match(text_vectors, recipe.vectors, source_name)
        x, unmatched = recipe.transform(content, ends, table.ids, None, progress)
        notes += unmatched
    vectors = None
    if text_vectors is not None:
        texts = recipe.text_columns
        of_nodes = (lambda: join_texts(content, texts)) if texts else None
        vectors, origin = read_vectors(
            text_vectors, of_nodes, table.ids, source_name, notes, progress
        )
        if recipe.vectors is not None:
            recipe.vectors.check(origin)
        recipe = replace(recipe, vectors=recipe.vectors or origin)
    graph = Graph.of(
        x,
        ends,
        node_ids=table.ids,
        feature_names=recipe.feature_names,
        dense=not recipe.cut,
        source=source_name,
        edge_weight=weight,
        vectors=vectors,
    )
    graph = replace(graph, recipe=recipe.as_json())
    labelled = LabelledGraph(
        graph, table.y, table.class_names, name=name or short_name(source, nodes, source_name)
    )
    new = listed(options.new_nodes, graph.node_ids, source_name)
    if new is not None and table.new is not None:
        raise SettingError("give either new_nodes or new_column, not both")
    return marked(labelled, table.new if new is None else new, notes, recipe)


def opened(source: Any, name: str | None) -> tuple[Any, Any, LabelledGraph | None]:
    """Tables of nodes and edges, or a graph that is ready."""
    if isinstance(source, Graph):
        source = LabelledGraph(source, np.full(source.num_nodes, UNKNOWN), ())
    if isinstance(source, LabelledGraph):
        return None, None, source if name is None else replace(source, name=name)
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        if path.is_dir():
            return _one_of(path, "nodes"), _one_of(path, "edges"), None
        ending = file_ending(path)
        if ending == ".npz":
            labelled = npz.load_graph(path)
            return None, None, labelled if name is None else replace(labelled, name=name)
        check_file(path)
        if ending in (".graphml", ".gml"):
            return *networkx_scipy.networkx_tables(
                networkx_scipy.read_networkx(path, ending), path.name
            ), None
        if ending in (*TABLES, ".edgelist", ".edges"):
            return None, path, None
        raise GraphError(
            f"{path.name}: unknown kind of file; "
            "known: npz, graphml, gml, edgelist, csv, tsv, parquet, jsonl, json, a folder"
        )
    if networkx_scipy.is_networkx(source):
        return *networkx_scipy.networkx_tables(source, name or "networkx graph"), None
    if isinstance(source, tuple) and len(source) == 2:
        if any(is_frame(part) for part in source):
            return *source, None
        return None, None, networkx_scipy.from_matrices(*source, name=name or "matrices")
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


def short_name(source: Any, nodes: Any, fallback: str) -> str:
    """What a graph is called after its file."""
    for given in (source, nodes):
        if isinstance(given, (str, PathLike)):
            return Path(given).name
    return fallback
