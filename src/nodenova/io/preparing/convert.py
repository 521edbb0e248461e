"""A graph that is in memory, written as a graph folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nodenova.data.labels import LabelledGraph, UserGraph
from nodenova.io.marking import marked
from nodenova.io.prepared import BESIDE, CSR, LINKS, MASKS, ArrayFile, new_folder, write_index
from nodenova.io.table_encoder import TableEncoder

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
