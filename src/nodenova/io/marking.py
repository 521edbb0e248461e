"""Which nodes of a user's graph are new."""

from __future__ import annotations

from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.data.labels import UNKNOWN, LabelledGraph, UserGraph
from nodenova.errors import GraphError
from nodenova.io.table_encoder import TableEncoder
from nodenova.io.text_files import check_file, text_file


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
