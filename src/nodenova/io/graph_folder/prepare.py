"""Write graph folders: from tables in bounded memory, from other graphs by converting them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.data.labels import LabelledGraph, UserGraph
from nodenova.errors import SettingError, StorageError
from nodenova.files.documents import check_encodable
from nodenova.graph import invert
from nodenova.io.edges import first_ids
from nodenova.io.graph_folder.edges import find_given_order, store_ids, write_edges, write_ids
from nodenova.io.graph_folder.features import fit_recipe, write_features, write_neighbors
from nodenova.io.graph_folder.store import MEMORY, Store
from nodenova.io.graph_folder.tables import STREAMED, StreamedTable
from nodenova.io.list_columns import VectorColumn
from nodenova.io.load import (
    TABLES,
    file_name,
    load_graph,
    mark_new_nodes,
    new_node_mask,
    open_source,
    read_graph,
)
from nodenova.io.mmap_graph import (
    CSR,
    GIVEN,
    LINKS,
    MASKS,
    OPTIONAL,
    ArrayFile,
    check_target,
    is_graph_folder,
    new_folder,
    write_index,
)
from nodenova.io.networkx_scipy import EDGE_LISTS
from nodenova.io.nodes import Nodes, read_nodes
from nodenova.io.recipe import TableEncoder
from nodenova.io.table_options import TableOptions
from nodenova.io.text_files import check_file, file_ending
from nodenova.progress import Progress, no_progress
from nodenova.settings import check_arguments

TYPES = {"links_indptr": np.int64, "links_indices": np.int32, "x_indptr": np.int64,
         "x_indices": np.int32, "x_data": np.float32}  # fmt: skip


def prepare_graph(
    folder: str | PathLike[str],
    source: Any = None,
    *,
    nodes: Any = None,
    edges: Any = None,
    name: str | None = None,
    memory: str = MEMORY,
    overwrite: bool = False,
    progress: Progress = no_progress,
    **table_options: Any,
) -> UserGraph:
    """Write a graph folder: the graph that `load_graph` reads, as arrays that stay on disk.

    Tables of nodes in CSV, TSV and Parquet files, and edges in any file, are converted in bounded
    memory. Other graphs, and tables with edge types or text vectors, are read into memory first,
    which `notes` reports.

    Args:
        folder: Path of the graph folder; written whole or not at all.
        source: Graph or file, as in `load_graph`.
        nodes: Table of nodes, instead of `source`.
        edges: Table of edges, or an edge list.
        name: Name of the graph in messages and results.
        memory: Memory that DuckDB uses before it spills to disk: 500MB, 2GB.
        overwrite: Whether to replace an existing graph folder.
        progress: Function `progress(phase, share)`, called as reading advances.
        **table_options: Options of `load_graph` for tables, such as `label_column`.

    Returns:
        The graph of the folder, whose arrays stay on disk.

    Raises:
        GraphError: If a file cannot be used, as in `load_graph`.
        SettingError: If options contradict each other, or DuckDB is not installed.
        StorageError: If `folder` exists and cannot be replaced.

    Examples:
        >>> import tempfile
        >>> import nodenova as nova
        >>> with tempfile.TemporaryDirectory() as place:
        ...     pair = nova.Graph.of([[1, 0], [0, 1]], [[0], [1]])
        ...     prepare_graph(Path(place) / "graph", pair).graph
        Graph(2 nodes, 2 edges, 2 dense features)
    """
    check_arguments(prepare_graph, locals())
    options = TableOptions(**table_options)
    if (source is None) == (nodes is None and edges is None):
        raise SettingError("give either one source or the tables nodes and edges")
    folder = Path(folder)
    check_encodable([str(folder)], "the folder", StorageError)  # DuckDB opens files in it
    check_target(folder, overwrite)
    notes: list[str] = []
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        if path.is_dir() and not is_graph_folder(path):
            nodes, edges, _ = open_source(path, name)
        elif file_ending(path) in (*TABLES, *EDGE_LISTS):
            edges = source
    reason = _why_in_memory(nodes, edges, options)
    if not reason:
        title = name or file_name(source, nodes)
        with new_folder(folder, overwrite) as temporary:
            store = Store(temporary / "scratch", memory)
            try:
                notes += _write_tables(temporary, store, nodes, edges, options, title, progress)
            finally:
                store.close()
    else:
        tables = {} if source is not None else {"nodes": nodes, "edges": edges}
        whole = read_graph(source, options, **tables, name=name, progress=progress)
        if not whole.graph.is_mapped and whole.recipe is not None:
            notes.append(f"{whole.name}: read into memory, {reason}")
        convert(whole, folder, overwrite)
    graph = load_graph(folder)
    return replace(graph, notes=(*graph.notes, *notes))


def _why_in_memory(nodes: Any, edges: Any, options: TableOptions) -> str:
    """Why a graph is read into memory; "" for tables that are converted on disk."""
    if options.edge_type_column is not None:
        return "as its edges have types"
    if options.text_vectors is not None:
        return "as it has text vectors"
    parts = [part for part in (nodes, edges) if part is not None]
    paths = [Path(part) for part in parts if isinstance(part, (str, PathLike))]
    if paths and len(paths) == len(parts):
        for path in paths:
            check_file(path)
        if nodes is None or file_ending(Path(nodes)) in STREAMED:
            return ""
    return "as only CSV and Parquet tables are converted on disk"


def _write_tables(
    folder: Path,
    store: Store,
    nodes: Any,
    edges: Any,
    options: TableOptions,
    title: str,
    progress: Progress,
) -> list[str]:
    """Write the graph that `load_graph` would read; return notes on columns held in memory."""
    options.check_edge_types()
    reading = options.reading(progress)
    notes: list[str] = []
    memory_notes: list[str] = []
    streamed = table = None
    if nodes is not None:
        streamed = StreamedTable(Path(nodes), store, reading)
        table = read_nodes(
            streamed.table,
            options,
            notes,
            reading,
            features=options.columns,
            find_linked=lambda: first_ids(edges, options, reading),
            read_ids=lambda table, column, notes: store_ids(table, column, notes, store),
        )
    table = write_edges(edges, table, options, notes, store, folder, reading)
    ids, source = table.ids, table.table.source
    write_ids(store, len(ids), folder)
    order = find_given_order(store, len(ids))
    table.check_features(options.columns)
    recipe = None
    if streamed is not None:
        streamed.plain = table.role_columns
        recipe = fit_recipe(streamed, ids, options, table.not_features, notes, store, progress)
    if streamed is None or recipe is None:
        recipe = write_neighbors(store, ids, source, folder, notes)
    else:
        write_features(streamed, ids, recipe, folder, order, progress)
        memory_notes = [
            f"{source}: the vectors of column {column.name!r} were held in memory"
            for column in recipe.columns
            if streamed.kind(column.name) is VectorColumn
        ]
    _write_labels(folder, table, options, order)
    names = recipe.feature_names
    write_index(
        folder,
        name=title or source,
        source=source,
        num_features=len(names),
        feature_names=names,
        class_names=table.class_names,
        notes=notes,
        recipe=recipe,
    )
    return memory_notes


def _write_labels(
    folder: Path, table: Nodes, options: TableOptions, given_order: np.ndarray | None
) -> None:
    """Write classes and new nodes in canonical order, and the way back to the rows."""
    order = slice(None) if given_order is None else invert(given_order)
    if table.new is not None:
        table = replace(table, new=table.new[order])
    node_ids = np.load(folder / "node_ids.npy", mmap_mode="r")
    new = table.merge_new(new_node_mask(options.new_nodes, node_ids, table.table.source))
    _save_arrays(folder, {"y": table.y[order], "new": new, GIVEN: given_order})


def convert(labelled: LabelledGraph, folder: Path, overwrite: bool = False) -> None:
    """Write a graph in memory as a graph folder, with the new nodes and notes of a user's graph."""
    if isinstance(labelled, UserGraph):
        labelled = labelled.canonical()
    graph, links, x = labelled.graph, labelled.graph.adjacency, labelled.graph.x
    arrays: dict[str, Any] = dict(zip(LINKS, (links.indptr, links.indices), strict=True))
    if isinstance(x, np.ndarray):
        arrays["x"] = x
    else:
        arrays |= dict(zip(CSR, (x.indptr, x.indices, x.data), strict=True))
    arrays |= {"node_ids": graph.node_ids, "y": labelled.y}
    arrays |= {name: getattr(graph, name) for name in (*OPTIONAL, GIVEN)}
    notes: tuple[str, ...] = ()
    recipe: TableEncoder | None = None
    new = None
    if isinstance(labelled, UserGraph):
        recipe = labelled.recipe
        new = labelled.is_new if labelled.new_named else None
        # Notes on new nodes are left out: they are added again when the folder is read.
        again = mark_new_nodes(labelled, new, [], None).notes
        notes = labelled.notes[: len(labelled.notes) - len(again)]
    masks = {mask: getattr(labelled, mask) for mask in MASKS}
    with new_folder(folder, overwrite) as temporary:
        _save_arrays(temporary, {**arrays, **masks, "new": new})
        write_index(
            temporary,
            name=labelled.name,
            source=labelled.name,
            num_features=graph.num_features,
            feature_names=graph.feature_names,
            class_names=labelled.class_names,
            notes=notes,
            recipe=recipe,
        )


def _save_arrays(folder: Path, arrays: Mapping[str, np.ndarray | None]) -> None:
    """Write the arrays that are not None into a graph folder."""
    for name, array in arrays.items():
        if array is not None:
            width = array.shape[1] if array.ndim == 2 else None
            file = ArrayFile(folder / f"{name}.npy", TYPES.get(name, array.dtype), width)
            file.add(array)
            file.close()
