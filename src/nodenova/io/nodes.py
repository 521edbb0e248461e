"""A table of nodes: their ids, labels, and which are new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from nodenova.data.labels import UNKNOWN
from nodenova.errors import GraphError
from nodenova.io.columns import YES, YES_NO, clipped
from nodenova.io.frames import is_frame
from nodenova.io.tables import ReadingOptions, Table, is_missing, read_table

ID_NAMES = ("id", "node_id", "node", "nodeid")
LABEL_NAMES = ("label", "class", "category", "y")
NEW_NAMES = ("is_new", "new")
LONGEST_ID = 1000  # characters; a longer cell is a text in the wrong column


@dataclass(frozen=True, eq=False)
class Nodes:
    """A table of nodes whose ids and labels have been read.

    Attributes:
        table: All columns.
        ids: (N,) as given.
        y: (N,) numbers of classes, -1 = unlabelled.
        class_names: By number.
        new: (N,) which nodes are new, or None where no column says so.
        id_column: The one the ids are from, if a table was given.
        label_column: The one the labels are from, if any.
        new_column: The one that says which nodes are new, if any.
    """

    table: Table
    ids: list[str]
    y: np.ndarray
    class_names: tuple[str, ...]
    new: np.ndarray | None = None
    id_column: str | None = None
    label_column: str | None = None
    new_column: str | None = None


def read_nodes(
    nodes: Any,
    id_column: str | None,
    label_column: str | None,
    new_column: str | None,
    notes: list[str],
    **reading: Unpack[ReadingOptions],
) -> Nodes:
    """Read a table of nodes and check every cell that stands for an id, a label or "new".

    Args:
        nodes: A file, a data frame or a table.
        id_column: By a usual name, else the first, unless given.
        label_column: By a usual name unless given; there may be none.
        new_column: By a usual name unless given; there may be none.
        notes: Gets a sentence on every repair.
        **reading: How to read the file, as in `read_table`.

    Returns:
        The table, its ids, its labels and, if it says so, which nodes are new.

    Raises:
        GraphError: A column is not there, or a cell cannot be what it stands for.
    """
    name = "nodes" if is_frame(nodes) else ""
    table = nodes if isinstance(nodes, Table) else read_table(nodes, source=name, **reading)
    notes += table.notes
    source = table.source
    if not len(table):
        raise GraphError(f"{source}: a header and no rows")
    id_column = pick(table, id_column, ID_NAMES, "id_column", notes) or _first(table, notes)
    label_column = pick(
        table, label_column, LABEL_NAMES, "label_column", notes, besides=[id_column]
    )
    new_column = pick(
        table, new_column, NEW_NAMES, "new_column", notes, besides=[id_column, label_column]
    )
    if label_column == id_column:
        raise GraphError(
            f"{source}: column {id_column!r} cannot be both the id and the label of a node"
        )
    ids = _ids(table, id_column, notes)
    y, names = _labels(table, label_column, notes)
    new = None if new_column is None else _yes_no(table, new_column)
    return Nodes(table, ids, y, names, new, id_column, label_column, new_column)


def pick(
    table: Any,
    given: str | None,
    usual: Sequence[str],
    option: str,
    notes: list[str],
    besides: Sequence[str | None] = (),
) -> str | None:
    """The column that was asked for, or one by its usual name (which is noted), or None."""
    names = list(table.columns if isinstance(table, Table) else table.header)
    if given is not None:
        if given not in names:
            hint = ""
            if len(names) == 1 and any(sign in names[0] for sign in ",;|\t"):
                hint = "; is the delimiter another one?"
            listed = ", ".join(map(clipped, names[:20]))
            raise GraphError(f"{table.source}: no column {given!r}; it has {listed}{hint}")
        return given
    for name in usual:
        for column in names:
            if column.lower() == name and column not in besides:
                notes.append(f"{table.source}: column {column!r} is taken as {option}")
                return column
    return None


def id_of(cell: str) -> str:
    """An id as it is written, without spaces around it."""
    return cell.strip()


def without_point(cell: str) -> str:
    """'12.0', as pandas writes a whole number in a column with gaps, is 12."""
    return cell[:-2] if cell.endswith(".0") and cell[:-2].isdecimal() else cell


def _first(table: Table, notes: list[str]) -> str:
    name = next(iter(table.columns))
    notes.append(f"{table.source}: column {name!r}, the first, is taken as id_column")
    return name


def _ids(table: Table, column: str, notes: list[str]) -> list[str]:
    source, cells = table.source, table.columns[column]
    ids = [id_of(cell) for cell in cells]
    spaced = sum(a != b for a, b in zip(ids, cells, strict=True))
    if spaced:
        notes.append(f"{source}: spaces around {spaced:,} ids were removed")
    for line, node in zip(table.lines, ids, strict=True):
        if not node:
            raise GraphError(f"{source}: {table.unit} {line}: no id in column {column!r}")
        if len(node) > LONGEST_ID:
            said = f"an id of {len(node):,} characters; is {column!r} really the id column?"
            raise GraphError(f"{source}: {table.unit} {line}: {said}")
    if len(set(ids)) < len(ids):
        twice, count = Counter(ids).most_common(1)[0]
        lines = [line for line, node in zip(table.lines, ids, strict=True) if node == twice]
        raise GraphError(
            f"{source}: ids must be unique, {clipped(twice)} appears {count} times "
            f"({table.unit}s {lines[0]} and {lines[1]})"
            + ("" if count < len(ids) / 10 else f"; is {column!r} really the id column?")
        )
    return ids


def _labels(
    table: Table, column: str | None, notes: list[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
    source = table.source
    if column is None:
        return np.full(len(table), UNKNOWN), ()
    cells = [cell.strip() for cell in table.columns[column]]
    counts = Counter(cells)
    for cell in [value for value in counts if is_missing(value)]:
        if cell:
            notes.append(
                f"{source}: {counts[cell]:,} labels are {cell!r}; they count as unlabelled"
            )
        del counts[cell]
    rest = [value for value in counts if value not in ("-1", "-1.0")]
    if len(rest) < len(counts) and rest and all(_is_whole(value) for value in rest):
        notes.append(
            f"{source}: {counts['-1'] + counts['-1.0']:,} labels are -1; they count as unlabelled"
        )
        counts = Counter({value: counts[value] for value in rest})
    if counts and all(value.endswith(".0") and _is_whole(value) for value in counts):
        cells = [without_point(cell) for cell in cells]
        counts = Counter({without_point(value): count for value, count in counts.items()})
        notes.append(f"{source}: labels like '1.0' are read as '1'")
    too_long = next((value for value in counts if len(value) > LONGEST_ID), None)
    if too_long is not None:
        line = table.lines[cells.index(too_long)]
        raise GraphError(
            f"{source}: {table.unit} {line}: a label of {len(too_long):,} characters; "
            f"is {column!r} really the label column?"
        )
    is_numbered = all(map(str.isdecimal, counts))
    names = sorted(counts, key=lambda value: (int(value), "") if is_numbered else (0, value))
    number = {name: c for c, name in enumerate(names)}
    return np.array([number.get(cell, UNKNOWN) for cell in cells]), tuple(names)


def _is_whole(text: str) -> bool:
    return without_point(text).removeprefix("-").isdecimal()


def _yes_no(table: Table, column: str) -> np.ndarray:
    cells = [cell.strip().lower() for cell in table.columns[column]]
    known = {word for pair in YES_NO for word in pair} | {""}
    for line, cell in zip(table.lines, cells, strict=True):
        if cell not in known:
            said = f"says whether a node is new: yes or no, not {clipped(cell)}"
            raise GraphError(f"{table.source}: {table.unit} {line}: column {column!r} {said}")
    new = np.array([cell in YES for cell in cells])
    if not new.any():
        raise GraphError(f"{table.source}: column {column!r} marks no node as new")
    return new
