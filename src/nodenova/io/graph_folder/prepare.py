"""The entrance for graph folders: tables in bounded memory, other graphs by converting.

Options of tables that become graph folders.

A graph that is in memory, written as a graph folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.data.labels import LabelledGraph, UserGraph
from nodenova.errors import SettingError
from nodenova.io.edges import first_ids
from nodenova.io.graph_folder.edges import number_edges, store_ids, write_ids
from nodenova.io.graph_folder.features import fit_recipe, write_features, write_neighbors
from nodenova.io.graph_folder.store import MEMORY, Store
from nodenova.io.graph_folder.tables import STREAMED, StreamedTable
from nodenova.io.list_columns import VectorColumn
from nodenova.io.load import TABLES, listed, load_graph, marked, opened, read_graph, short_name
from nodenova.io.mmap_graph import (
    BESIDE,
    CSR,
    LINKS,
    MASKS,
    ArrayFile,
    check_target,
    is_prepared,
    new_folder,
    write_index,
)
from nodenova.io.networkx_scipy import EDGE_LISTS
from nodenova.io.nodes import check_columns, read_nodes
from nodenova.io.recipe import TableEncoder
from nodenova.io.table_options import MAX_WORDS, EdgeTypes, TableOptions
from nodenova.io.text_files import check_file, file_ending
from nodenova.io.vectors import TextVectors
from nodenova.progress import Progress, no_progress


def why_in_memory(options: TableOptions) -> str:
    """Why tables that could stay on disk are read into memory; "" where they are not."""
    if options.edge_type_column is not None:
        return "edges with types are"
    return "" if options.text_vectors is None else "tables with vectors of texts are"


TYPES = {"links_indptr": np.int64, "links_indices": np.int32, "x_indptr": np.int64,
         "x_indices": np.int32, "x_data": np.float32}  # fmt: skip


def convert(labelled: LabelledGraph, folder: Path, overwrite: bool = False) -> None:
    """Write a graph folder.

    Args:
        labelled: The graph, its classes and, if it is a user's, its new nodes and notes.
        folder: Where to; written whole or not at all.
        overwrite: Replace a graph folder that is there.

    Raises:
        StorageError: Where to write is something else.
    """
    graph, links, x = labelled.graph, labelled.graph.adjacency, labelled.graph.x
    arrays = dict(zip(LINKS, (links.indptr, links.indices), strict=True))
    if isinstance(x, np.ndarray):
        arrays["x"] = x
    else:
        arrays |= dict(zip(CSR, (x.indptr, x.indices, x.data), strict=True))
    arrays |= {"node_ids": graph.node_ids, "y": labelled.y}
    arrays |= {name: getattr(graph, name) for name in BESIDE}
    notes: tuple[str, ...] = ()
    recipe: TableEncoder | None = None
    new = None
    if isinstance(labelled, UserGraph):
        recipe = labelled.recipe
        new = labelled.is_new if labelled.new_named else None
        # What is said of new nodes is said again when the folder is read.
        again = marked(labelled, new, [], None).notes
        notes = labelled.notes[: len(labelled.notes) - len(again)]
    masks = {mask: getattr(labelled, mask) for mask in MASKS}
    with new_folder(folder, overwrite) as made:
        save(made, {**arrays, **masks, "new": new})
        write_index(
            made,
            name=labelled.name,
            source=labelled.name,
            num_features=graph.num_features,
            feature_names=graph.feature_names,
            class_names=labelled.class_names,
            notes=notes,
            recipe=recipe,
        )


def save(made: Path, arrays: Mapping[str, np.ndarray | None]) -> None:
    """Write arrays into a graph folder; those that are None are left out."""
    for name, array in arrays.items():
        if array is not None:
            width = array.shape[1] if array.ndim == 2 else None
            file = ArrayFile(made / f"{name}.npy", TYPES.get(name, array.dtype), width)
            file.add(array)
            file.close()


def prepare_graph(
    folder: str | PathLike[str],
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
    drop_unknown_edges: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    max_words: int = MAX_WORDS,
    text_vectors: TextVectors | None = None,
    name: str | None = None,
    memory: str = MEMORY,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> UserGraph:
    """Write a graph folder: the graph that `load_graph` reads, as arrays that stay on disk.

    Tables of nodes in CSV, TSV and Parquet files, and edges in any file, are not read into memory;
    other graphs are read by `load_graph` first, which `notes` says.

    Args:
        folder: Where to; written whole or not at all.
        source: As of `load_graph`.
        nodes: As of `load_graph`, as all others down to `name`.
        edges: A table of edges, or an edge list.
        id_column: Ids of nodes.
        label_column: Classes.
        text_columns: Columns of words.
        features: Other columns to make features from.
        new_nodes: Ids of the nodes to discover in.
        new_column: Says yes or no, instead of `new_nodes`.
        source_column: One end of an edge.
        target_column: The other end.
        weight_column: Numbers of edges.
        min_weight: Edges with a weight below it are left out.
        weights: Whether weights "count", or only "filter".
        edge_type_column: Types of edges. Such a table is read into memory.
        edge_types: The types to use.
        drop_unknown_edges: Leave out edges to nodes that are not there.
        delimiter: Between cells of a text file.
        encoding: Of text files.
        max_words: The most words that become features.
        text_vectors: Vectors of texts. Such tables are read into memory.
        name: What messages and results call the graph.
        memory: Most that DuckDB uses before it goes to disk: 500MB, 2GB.
        overwrite: Replace a graph folder that is there.
        progress: Function `progress(phase, share)`, called as reading advances.

    Returns:
        The graph of the folder, not in memory.

    Raises:
        GraphError: As `load_graph`.
        SettingError: As `load_graph`; or DuckDB is not installed.
        StorageError: Where to write is something else.

    Examples:
        >>> import tempfile
        >>> import nodenova as nova
        >>> with tempfile.TemporaryDirectory() as place:
        ...     pair = nova.Graph.of([[1, 0], [0, 1]], [[0], [1]])
        ...     prepare_graph(Path(place) / "graph", pair).graph
        Graph(2 nodes, 2 edges, 2 dense features)
    """
    options = TableOptions(
        id_column, label_column, text_columns, features, new_nodes, new_column, source_column,
        target_column, weight_column, min_weight, weights, edge_type_column, edge_types,
        drop_unknown_edges, delimiter, encoding, max_words, text_vectors,
    )  # fmt: skip
    return write_graph_folder(
        folder,
        source,
        options,
        nodes=nodes,
        edges=edges,
        name=name,
        memory=memory,
        overwrite=overwrite,
        progress=progress,
    )


def write_graph_folder(
    folder: str | PathLike[str],
    source: Any,
    options: TableOptions,
    *,
    nodes: Any = None,
    edges: Any = None,
    name: str | None = None,
    memory: str = MEMORY,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> UserGraph:
    """`prepare_graph` with its options for tables as one value."""
    if (source is None) == (nodes is None and edges is None):
        raise SettingError("give either one source or the tables nodes and edges")
    folder = Path(folder)
    check_target(folder, overwrite)
    notes: list[str] = []
    if _is_folder_of_tables(source):
        nodes, edges, _ = opened(source, name)
    elif isinstance(source, (str, PathLike)) and _is_edge_file(Path(source)):
        edges = source
    why = why_in_memory(options)
    if not why and _is_streamed(nodes, edges):
        with new_folder(folder, overwrite) as made:
            store = Store(made / "scratch", memory)
            try:
                title = name or short_name(source, nodes, "")
                notes += _write(made, store, nodes, edges, options, title, progress)
            finally:
                store.close()
    else:
        tables = {} if source is not None else {"nodes": nodes, "edges": edges}
        whole = read_graph(source, options, **tables, name=name, progress=progress)
        if not whole.graph.is_mapped and whole.recipe is not None:
            why = why or "only CSV and Parquet tables are not"
            notes.append(f"{whole.name}: read into memory, as {why}")
        convert(whole, folder, overwrite)
    found = load_graph(folder)
    return replace(found, notes=(*found.notes, *notes))


def _write(
    made: Path,
    store: Store,
    nodes: Any,
    edges: Any,
    options: TableOptions,
    title: str,
    progress: Progress,
) -> list[str]:
    """Write what `load_graph` would read from tables, on disk; notes on what needed memory."""
    options.check_edge_types()
    reading = options.reading(progress)
    notes: list[str] = []
    held: list[str] = []
    streamed = table = None
    if nodes is not None:
        streamed = StreamedTable(Path(nodes), store, reading)
        table = read_nodes(
            streamed.table,
            options.id_column,
            options.label_column,
            options.new_column,
            notes,
            options.columns,
            linked=lambda: first_ids(edges, options, reading),
            read_ids=lambda table, column, notes: store_ids(table, column, notes, store),
        )
    table = number_edges(
        edges, table, options, notes=notes, store=store, made=made, reading=reading
    )
    ids, called = table.ids, table.table.source
    write_ids(store, len(ids), made)
    recipe = None
    taken = (table.id_column, table.label_column, table.new_column)
    if streamed is None:
        check_columns(table.table, options.columns, taken)
    else:
        check_columns(streamed.table, options.columns, taken)
        streamed.plain = taken
        recipe = fit_recipe(
            streamed,
            ids,
            columns=options.features,
            text_columns=tuple(options.text_columns),
            not_features=[*(column for column in taken if column), *table.not_features],
            max_words=options.max_words,
            notes=notes,
            store=store,
            progress=progress,
        )
    if streamed is None or recipe is None:
        recipe = write_neighbors(store, ids, called, made, notes)
    else:
        write_features(streamed, ids, recipe, made, progress)
        for column in recipe.columns:
            if streamed.kind(column.name) is VectorColumn:
                held.append(f"{called}: the vectors of column {column.name!r} were held in memory")
    new = table.new
    if options.new_nodes is not None:
        if new is not None:
            raise SettingError("give either new_nodes or new_column, not both")
        new = listed(options.new_nodes, np.load(made / "node_ids.npy", mmap_mode="r"), called)
    save(made, {"y": table.y, "new": new})
    names = recipe.feature_names
    write_index(
        made,
        name=title or called,
        source=called,
        num_features=len(names),
        feature_names=names,
        class_names=table.class_names,
        notes=notes,
        recipe=recipe,
    )
    return held


def _is_folder_of_tables(source: Any) -> bool:
    is_path = isinstance(source, (str, PathLike))
    return is_path and Path(source).is_dir() and not is_prepared(Path(source))


def _is_edge_file(path: Path) -> bool:
    return file_ending(path) in (*TABLES, *EDGE_LISTS)


def _is_streamed(nodes: Any, edges: Any) -> bool:
    """Whether both are files that need not be read into memory."""
    if nodes is None and edges is None:
        return False
    paths = [Path(part) for part in (nodes, edges) if isinstance(part, (str, PathLike))]
    if len(paths) < (nodes is not None) + (edges is not None):
        return False
    for path in paths:
        check_file(path)
    return nodes is None or file_ending(Path(nodes)) in STREAMED
