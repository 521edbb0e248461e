"""Load a user's graph from files, data frames or objects of other libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import UNKNOWN, LabelledGraph, UserGraph
from nodenova.display import plural
from nodenova.errors import GraphError, SettingError
from nodenova.files.arrays import enough_memory
from nodenova.graph import Graph
from nodenova.io import networkx_scipy, npz
from nodenova.io.edges import first_ids, read_edges
from nodenova.io.frames import is_frame
from nodenova.io.list_columns import mark_list_columns
from nodenova.io.mmap_graph import FolderContents, is_graph_folder, read_graph_folder
from nodenova.io.nodes import Nodes, read_nodes
from nodenova.io.pyg import from_hetero, from_pyg, is_hetero
from nodenova.io.recipe import TableEncoder
from nodenova.io.table_options import MAX_WORDS, EdgeTypes, TableOptions, parse_edge_types
from nodenova.io.tables import JSON_ENDINGS, Table
from nodenova.io.text_files import check_file, file_ending, text_file
from nodenova.io.vectors import TextVectors, check_vectors_match, open_vectors, read_vectors
from nodenova.io.words import join_texts
from nodenova.progress import Progress, no_progress
from nodenova.settings import check_arguments, check_path

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq", *JSON_ENDINGS)
# Options about the columns of tables; a graph that has features and labels takes none of them.
COLUMN_OPTIONS = ("text_columns", "features", "id_column", "new_column", "label_column",
                  "edge_type_column", "edge_types")  # fmt: skip


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
    """Load a graph from files, data frames or objects of other libraries.

    Args:
        source: An npz file; a folder with nodes.* and edges.*; a folder written by
            `nodenova prepare`, which stays on disk; a GraphML or GML file; an edge list; a PyG
            `Data` or `HeteroData`; a NetworkX graph; a pair (nodes, edges) of data frames (pandas,
            polars, Arrow), or of matrices (features, adjacency) or (features, edge_index); a
            `Graph` or a `LabelledGraph`.
        nodes: With `edges`, instead of `source`: a CSV, TSV or JSON file (an array of records, or
            one record per line), gzipped or not, a Parquet file or a data frame. Without it, the
            nodes are those that the edges name.
        edges: A table like `nodes`, or an edge list. Edges have no direction.
        id_column: Column with the node ids. This and the other columns are found by their usual
            names by default; `notes` lists the columns that were taken.
        label_column: Column with the classes; an empty cell means unlabelled.
        text_columns: Columns whose words become features.
        features: Other columns to use as features; all informative columns by default. A column of
            vectors of one length (lists, arrays or texts like "[0.1, 0.2]") gives the features
            v[0], v[1], ...
        new_nodes: Ids of the nodes to search for new classes: a list, or a file with one id per
            line. Without it and `new_column`, these are all unlabelled nodes. Labels of new nodes
            are used for grading only.
        new_column: Yes/no column that marks these nodes, instead of `new_nodes`.
        source_column: Column with one end of an edge.
        target_column: Column with the other end.
        weight_column: Column with edge weights; neighbors are weighted by it. Edges without a
            positive weight are dropped.
        min_weight: Smallest weight of an edge; lighter edges are dropped.
        weights: "count", the default, or "filter": weights only decide which edges are dropped.
        edge_type_column: Column with edge types; each node weighs its edge types equally.
        edge_types: Edge types to use, with optional weights: "cites,writes=0.5", or a mapping.
        node_type: Type of the nodes to classify in a `HeteroData`; the one with `y` by default.
        drop_unknown_edges: Whether to drop edges to nodes that are not in the table of nodes,
            instead of raising an error.
        delimiter: Delimiter of text files; detected by default.
        encoding: Encoding of text files; detected by default.
        max_words: Largest number of words that become features.
        text_vectors: Text embeddings to use beside the words: the folder of a language model
            (extra `text`), a function of a list of texts, or vectors with one row per node: an
            array, a .npy file, or an npz file with `ids` and `vectors`.
        recipe: Recipe of an earlier `UserGraph` or of a model, for the same features of a changed
            or grown file.
        name: Name of the graph in messages and results; the file name by default.
        progress: Function `progress(phase, share)`, called as reading advances.

    Returns:
        A `LabelledGraph` that also has `new_ids`, `notes` on every repair, and the `recipe`.

    Raises:
        GraphError: If a file cannot be used; the message names the line, column or node.
        SettingError: If options contradict each other.

    Examples:
        >>> import nodenova as nova
        >>> import pandas as pd
        >>> nodes = pd.DataFrame({"id": [1, 2, 3], "label": ["a", "b", None], "size": [5, 7, 9]})
        >>> edges = pd.DataFrame({"source": [1, 2], "target": [2, 3]})
        >>> mine = nova.load_graph(nodes=nodes, edges=edges)
        >>> mine.class_names, mine.new_ids.tolist(), mine.graph.feature_names
        (('a', 'b'), [2], ('size',))
    """
    check_arguments(load_graph, locals())
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
    extend: bool = False,
    name: str | None = None,
    progress: Progress = no_progress,
) -> UserGraph:
    """`load_graph` with its options as one value; `extend` adds words and values to the recipe."""
    hint = "`nodenova prepare` writes a graph folder that stays on disk"
    with enough_memory(name or file_name(source, nodes) or "graph", hint=hint):
        return _read_graph(source, options, nodes, edges, node_type, recipe, extend, name, progress)


def _read_graph(
    source: Any,
    options: TableOptions,
    nodes: Any,
    edges: Any,
    node_type: str | None,
    recipe: TableEncoder | Mapping[str, Any] | None,
    extend: bool,
    name: str | None,
    progress: Progress,
) -> UserGraph:
    if (source is None) == (nodes is None and edges is None):
        raise SettingError("give either one source or the tables nodes and edges")
    for part, path in (("source", source), ("nodes", nodes), ("edges", edges)):
        check_path(path, part)
    if node_type is not None and not is_hetero(source):
        raise SettingError("node_type is for PyTorch Geometric's HeteroData")
    if isinstance(recipe, Mapping):
        recipe = TableEncoder.from_json(recipe)
    contents = FolderContents()
    labelled: LabelledGraph | None = None
    if isinstance(source, (str, PathLike)) and is_graph_folder(Path(source)):
        labelled, contents = read_graph_folder(Path(source))
    elif is_hetero(source):
        shares = parse_edge_types(options.edge_types)
        labelled, notes = from_hetero(source, node_type, shares, name or "PyG data")
        contents = FolderContents(notes=notes)
        options = replace(options, edge_types=None)
    elif source is not None:
        nodes, edges, labelled = open_source(source, name)
    if labelled is None:
        title = name or file_name(source, nodes)
        return _read_tables(nodes, edges, options, recipe, title, progress, extend=extend)
    labelled = labelled if name is None else replace(labelled, name=name)
    return _finish_graph(labelled, contents, options, recipe, progress)


def _finish_graph(
    labelled: LabelledGraph,
    contents: FolderContents,
    options: TableOptions,
    recipe: TableEncoder | None,
    progress: Progress,
) -> UserGraph:
    """Mark the new nodes of a graph that has features and labels, and add text vectors."""
    values = {name: getattr(options, name) for name in COLUMN_OPTIONS} | {"recipe": recipe}
    if unusable := [name for name, value in values.items() if value]:
        raise SettingError(
            f"{labelled.name}: {unusable[0]} is for tables; "
            "this graph has its features and labels already"
        )
    source, stored = contents.source or labelled.name, labelled.graph
    labelled = labelled.as_given()
    new = new_node_mask(options.new_nodes, labelled.graph.node_ids, source)
    if new is not None and contents.new is not None:
        raise SettingError(
            f"{labelled.name}: its new nodes are marked already; leave out new_nodes (--new-nodes)"
        )
    if contents.new is not None:
        new = stored.in_given_order(contents.new)
    notes = list(contents.notes)
    text_vectors = open_vectors(options.text_vectors)
    if text_vectors is not None:
        ids = labelled.graph.node_ids.tolist()
        vectors, _ = read_vectors(text_vectors, None, ids, labelled.name, notes, progress)
        graph = stored.with_vectors(stored.from_given_order(vectors))
        labelled = replace(labelled, graph=graph.as_given())
    return mark_new_nodes(labelled, new, notes, contents.recipe)


def _read_tables(
    nodes: Any,
    edges: Any,
    options: TableOptions,
    recipe: TableEncoder | None,
    title: str,
    progress: Progress,
    *,
    extend: bool,
) -> UserGraph:
    """Read a graph from a table of nodes, a table of edges, or both."""
    options.check_edge_types()
    text_vectors = open_vectors(options.text_vectors)
    reading = options.reading(progress)
    notes: list[str] = []
    table = None
    if nodes is not None:
        table = read_nodes(
            nodes,
            options,
            notes,
            reading,
            features=options.columns if recipe is None else recipe.column_names,
            is_later=recipe is not None,
            find_linked=lambda: first_ids(edges, options, reading),
        )
    ends, weight, table = read_edges(edges, table, options, notes, reading)
    content = mark_list_columns(table.table, table.ids, table.role_columns)
    source = table.table.source
    if recipe is not None:
        check_vectors_match(text_vectors, recipe.vectors, source)
    recipe, x = _encode(table, content, ends, options, recipe, extend, notes, progress)
    vectors = None
    if text_vectors is not None:
        texts = partial(join_texts, content, recipe.text_columns) if recipe.text_columns else None
        vectors, origin = read_vectors(text_vectors, texts, table.ids, source, notes, progress)
        if recipe.vectors is not None:
            recipe.vectors.check(origin)
        recipe = replace(recipe, vectors=recipe.vectors or origin)
    graph = Graph.of(
        x,
        ends,
        node_ids=table.ids,
        feature_names=recipe.feature_names,
        dense=not recipe.cut,
        source=source,
        edge_weight=weight,
        vectors=vectors,
    )
    graph = replace(graph, recipe=recipe.as_json())
    labelled = LabelledGraph(graph, table.y, table.class_names, name=title or source)
    new = table.merge_new(new_node_mask(options.new_nodes, graph.node_ids, source))
    return mark_new_nodes(labelled, new, notes, recipe)


def _encode(
    table: Nodes,
    content: Table,
    ends: np.ndarray,
    options: TableOptions,
    recipe: TableEncoder | None,
    extend: bool,
    notes: list[str],
    progress: Progress,
) -> tuple[TableEncoder, sp.csr_array | np.ndarray]:
    """Return the recipe, fitted or extended if it has to be, and the features of the nodes."""
    fit = partial(TableEncoder.fit, content, ends, table.ids)
    if recipe is None:
        table.check_features(options.columns)
        recipe, bag = fit(options, table.not_features, notes, progress)
        return recipe, recipe.transform(content, ends, table.ids, bag, progress)[0]
    if extend:
        table.check_features(recipe.column_names)
        recipe = recipe.extended(fit(recipe.same_columns(options), table.not_features, [])[0])
    x, unmatched = recipe.transform(content, ends, table.ids, None, progress)
    notes += unmatched
    return recipe, x


def new_node_mask(new_nodes: Any, ids: np.ndarray, source: str) -> np.ndarray | None:
    """(N,) mask of the nodes that a file or list of ids names; None without one."""
    if new_nodes is None:
        return None
    if isinstance(new_nodes, (str, PathLike)):
        path = Path(new_nodes)
        check_file(path)
        with text_file(path, None, []) as (text, _):
            names = [line.strip() for line in text if line.strip()]
        where = path.name
    else:
        names = [str(node) for node in new_nodes]
        where = "new_nodes"
    if not names:
        raise GraphError(f"{where}: no ids in it; list at least one node")
    known = {str(node) for node in ids.tolist()}
    if unknown := [node for node in names if node not in known]:
        raise GraphError(
            f"{where}: {len(unknown):,} of {len(names):,} ids are not in {source}, "
            f"first: {unknown[0]!r}"
        )
    return np.isin(ids.astype(str), names)


def search_note(count: int) -> str:
    """The note where all unlabelled nodes are searched."""
    return (
        f"searching all {plural(count, 'unlabelled node')} for new classes "
        "(no new nodes were named)"
    )


def notes_on_files(loaded: UserGraph) -> list[str]:
    """Notes of a graph without `search_note`, for commands that discover nothing."""
    return [note for note in loaded.notes if note != search_note(len(loaded.new_ids))]


def mark_new_nodes(
    labelled: LabelledGraph, new: np.ndarray | None, notes: list[str], recipe: TableEncoder | None
) -> UserGraph:
    """Mark the new nodes, all unlabelled ones by default; classes of new nodes only come last."""
    y, names = labelled.y, labelled.class_names
    labels = y != UNKNOWN
    new_named = new is not None
    if new is None:
        new = ~labels
        if labels.any() and new.any():
            notes.append(search_note(int(new.sum())))
    elif (labels & new).any():
        what = plural(int((labels & new).sum()), "new node has a label", "new nodes have a label")
        notes.append(f"{what}: used for grading only")
    if (~labels & ~new).any():
        what = plural(int((~labels & ~new).sum()), "node is", "nodes are")
        notes.append(f"{what} neither labelled nor new: used as neighbors only")
    only_new = np.setdiff1d(y[labels & new], y[labels & ~new])
    if len(only_new):
        order = np.concatenate([np.setdiff1d(np.arange(len(names)), only_new), only_new])
        number = np.append(np.argsort(order), UNKNOWN)
        y = number[y]
        names = tuple(names[c] for c in order)
        what = plural(len(only_new), "class occurs", "classes occur")
        notes.append(f"{what} among new nodes only: {', '.join(names[-len(only_new) :])}")
    values = {entry.name: getattr(labelled, entry.name) for entry in fields(LabelledGraph)}
    values |= {"y": y, "class_names": names, "new_ids": np.flatnonzero(new)}
    return UserGraph(**values, notes=tuple(notes), recipe=recipe, new_named=new_named)


def open_source(source: Any, name: str | None) -> tuple[Any, Any, LabelledGraph | None]:
    """Return the tables of nodes and edges of a source, or its graph if it needs no tables."""
    if isinstance(source, Graph):
        source = LabelledGraph(source, np.full(source.num_nodes, UNKNOWN), ())
    if isinstance(source, LabelledGraph):  # arrays beside it follow its own order
        return None, None, replace(source, graph=source.graph.with_order_given())
    if isinstance(source, (str, PathLike)):
        return _open_path(Path(source))
    if networkx_scipy.is_networkx(source):
        return *networkx_scipy.networkx_tables(source, name or "networkx graph"), None
    if isinstance(source, tuple) and len(source) == 2:
        if any(is_frame(part) for part in source):
            return *source, None
        return None, None, networkx_scipy.from_matrices(*source, name=name or "matrices")
    if hasattr(source, "edge_index"):
        return None, None, from_pyg(source, name=name or "PyG data")
    raise GraphError(
        "a graph is a path, a PyG Data, a NetworkX graph or a pair of tables, "
        f"not {type(source).__name__}"
    )


def _open_path(path: Path) -> tuple[Any, Any, LabelledGraph | None]:
    if path.is_dir():
        return _find_table(path, "nodes"), _find_table(path, "edges"), None
    ending = file_ending(path)
    if ending == ".npz":
        return None, None, npz.load_graph(path)
    check_file(path)
    if ending in (".graphml", ".gml"):
        graph = networkx_scipy.read_networkx(path, ending)
        return *networkx_scipy.networkx_tables(graph, path.name), None
    if ending in (*TABLES, ".edgelist", ".edges"):
        return None, path, None
    raise GraphError(
        f"{path.name}: unknown kind of file; "
        "known: npz, graphml, gml, edgelist, csv, tsv, parquet, jsonl, json, a folder"
    )


def _find_table(folder: Path, stem: str) -> Path:
    paths = sorted(
        path for path in folder.iterdir() if path.name.split(".")[0] == stem and path.is_file()
    )
    if not paths:
        raise GraphError(f"{folder}: no file {stem}.*; a folder needs nodes.* and edges.*")
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise GraphError(f"{folder}: {len(paths)} files are called {stem}.* ({names}); keep one")
    return paths[0]


def file_name(source: Any, nodes: Any) -> str:
    """Name of the file that a graph is from; "" if it is not from a file."""
    for path in (source, nodes):
        if isinstance(path, (str, PathLike)):
            return Path(path).name
    return ""
