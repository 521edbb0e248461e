"""Which column is what: as the user says, else by the names that such columns usually have."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from nodenova.errors import GraphError, MissingColumnError
from nodenova.io.columns import YES_NO, summarize_plain
from nodenova.io.frames import TypedColumn, ValueColumn
from nodenova.io.tables import Table, quote

ID_NAMES = ("id", "node_id", "node", "nodeid")
LABEL_NAMES = ("label", "class", "category", "y")
NEW_NAMES = ("is_new", "new")
SOURCE_NAMES = ("source", "src", "from", "u", "head", "citing", "node1")
TARGET_NAMES = ("target", "dst", "to", "v", "tail", "cited", "node2")

# Further names, without signs and in lower case. They count where the cells are such as well.
FURTHER_IDS = {"package", "key", "uuid", "guid", "uid", "pid", "doi", "identifier", "vertex"}
# Names that ids have as well, where edges speak of what is in the column.
RARE_IDS = {"name", "title", "word", "term", "url", "uri", "page", "paper", "user", "username",
            "item", "product", "author", "entity", "gene", "protein", "index"}  # fmt: skip
FURTHER_LABELS = ("labels", "target", "topic", "type", "classes", "categories", "topics")
MAX_CLASSES = 100  # values of a column that is taken for labels by such a name
MAX_CANDIDATES = 3  # columns that are named where none is taken for labels

# One end and the other: what their names begin with, and what may follow in both.
END_PAIRS = (
    ("source", "target"), ("src", "dst"), ("src", "dest"), ("src", "tgt"), ("from", "to"),
    ("u", "v"), ("head", "tail"), ("citing", "cited"), ("start", "end"), ("parent", "child"),
    ("subject", "object"), ("follower", "followee"), ("i", "j"), ("a", "b"),
)  # fmt: skip
END_RESTS = {"node", "vertex", "paper", "page", "user", "item", "product", "name", "key",
             "package", "entity"}  # fmt: skip


def normalize_name(name: str) -> str:
    """A name without signs between its words: 'paperId' and 'paper_id' are the same."""
    return re.sub(r"[\W_]", "", name.lower())


def pick_column(
    table: Any,
    given: str | None,
    usual: Sequence[str],
    option: str,
    notes: list[str],
    excluded: Collection[str | None] = (),
) -> str | None:
    """The column that was asked for, or one by its usual name (which is noted), or None."""
    names = list(table.columns if isinstance(table, Table) else table.header)
    if given is not None:
        if given not in names:
            hint = ""
            if len(names) == 1 and any(sign in names[0] for sign in ",;|\t"):
                hint = "; is the delimiter another one?"
            listed = ", ".join(map(quote, names[:20]))
            raise MissingColumnError(
                f"{table.source}: no column {given!r}; it has {listed}{hint}", given
            )
        return given
    for name in usual:
        for column in names:
            if column.lower() == name and column not in excluded:
                notes.append(f"{table.source}: column {column!r} is taken as {option}")
                return column
    return None


def guess_id(
    table: Table, excluded: Collection[str | None], linked: Sequence[str], notes: list[str]
) -> str:
    """The column of ids where none has the usual name.

    One whose name is often that of ids, or the first; of these, one with a value of its own in
    every row, and the one that most edges speak of.

    Args:
        table: Of nodes.
        excluded: Columns that are something else.
        linked: Ids that some edges name.
        notes: Gets a sentence on what was taken.
    """
    first = next(iter(table.columns))
    free = [name for name in table.columns if name not in excluded]
    named = [name for name in free if _is_id_name(name)]
    rare = [name for name in free if normalize_name(name) in RARE_IDS]
    keys: dict[str, int] = {}
    for name in dict.fromkeys([*named, first, *rare]):
        found = summarize_plain(table.columns[name])
        if len(found.counts) == found.present == len(table) and not found.blank:
            keys[name] = sum(node in found.counts for node in linked)
    taken = max(keys, key=lambda name: keys[name]) if keys else first
    how = f"column {taken!r}, the first," if taken == first else f"column {taken!r}"
    notes.append(f"{table.source}: {how} is taken as id_column")
    return taken


def guess_label(table: Table, excluded: Collection[str | None], notes: list[str]) -> str | None:
    """The column of classes where none has the usual name, if there is one; else what could be."""
    free = [name for name in table.columns if name not in excluded]
    for wanted in FURTHER_LABELS:
        for name in free:
            if normalize_name(name) == wanted and _num_classes(table.columns[name]):
                notes.append(f"{table.source}: column {name!r} is taken as label_column")
                return name
    sizes = {name: _num_classes(table.columns[name], texts_only=True) for name in free}
    found = [f"{name!r} ({count} values)" for name, count in sizes.items() if count]
    if found:
        said = "no column is taken as label_column; it could be "
        notes.append(f"{table.source}: {said}{', '.join(found[:MAX_CANDIDATES])}")
    return None


def guess_ends(header: Sequence[str]) -> tuple[str, str] | None:
    """The two columns of a table of edges whose names belong together.

    Examples:
        >>> guess_ends(["weight", "fromNode", "toNode"]), guess_ends(["id_1", "id_2"])
        (('fromNode', 'toNode'), ('id_1', 'id_2'))
    """
    names: dict[str, str] = {}
    for column in header:
        names.setdefault(normalize_name(column), column)
    for one, other in END_PAIRS:
        for name, column in names.items():
            rest = name.removeprefix(one)
            both = name.startswith(one) and other + rest in names
            if both and (not rest or (len(one) > 1 and _is_end_rest(rest))):
                return column, names[other + rest]
    for name, column in names.items():
        stem = name[:-1]
        if name.endswith("1") and f"{stem}2" in names and (stem in "nv" or _is_end_rest(stem)):
            return column, names[f"{stem}2"]
    return None


def _is_end_rest(rest: str) -> bool:
    return rest.endswith("id") or rest in END_RESTS


def _is_id_name(name: str) -> bool:
    # paperId, paper_id and paper-ID, not "valid"
    ends = re.search(r"(?:[\W_]|(?<=[a-z]))I[dD]$|[\W_]id$", name)
    return bool(ends) or normalize_name(name) in FURTHER_IDS


def plain_texts(cells: Sequence[str]) -> list[str]:
    """TypedColumn as text without spaces around it; nothing where they hold several values."""
    try:
        return [cell.strip() for cell in cells]
    except GraphError:
        return [""]


def drop_point_zero(cell: str) -> str:
    """'12.0', as pandas writes a whole number in a column with gaps, is 12."""
    return cell[:-2] if cell.endswith(".0") and cell[:-2].isdecimal() else cell


def _num_classes(cells: Sequence[str], texts_only: bool = False) -> int:
    """How many classes a column would be of; 0 where it does not look like classes."""
    if isinstance(cells, ValueColumn):
        return 0
    if isinstance(cells, TypedColumn) and (
        cells.series.dtype.is_nested() or cells.values is not None
    ):
        values = cells.values
        if texts_only or values is None or (values[~np.isnan(values)] % 1).any():
            return 0
    found = summarize_plain(cells)
    size = len(found.counts) - len(found.blank)
    few = 2 <= size <= min(MAX_CLASSES, (found.present - found.blank.total()) / 2)
    values_ = {value for value in found.counts if value not in found.blank} if few else set()
    if not few or (texts_only and any({v.lower() for v in values_} <= pair for pair in YES_NO)):
        return 0
    if texts_only and all(re.fullmatch(r"[+-]?[\d.,]+", value) for value in values_):
        return 0
    return len(values_) if all(len(value) <= MAX_CLASSES for value in values_) else 0
