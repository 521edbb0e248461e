"""Which column holds ids, labels, or the ends of edges: as given, else by its name and cells."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from nodenova.errors import GraphError, MissingColumnError
from nodenova.io.columns import YES_NO, summarize_plain
from nodenova.io.frames import TypedColumn, ValueColumn, quote
from nodenova.io.tables import Table

ID_NAMES = ("id", "node_id", "node", "nodeid")
LABEL_NAMES = ("label", "class", "category", "y")
NEW_NAMES = ("is_new", "new")
SOURCE_NAMES = ("source", "src", "from", "u", "head", "citing", "node1")
TARGET_NAMES = ("target", "dst", "to", "v", "tail", "cited", "node2")

# Normalized names that count only where the cells fit as well.
OTHER_ID_NAMES = {"package", "key", "uuid", "guid", "uid", "pid", "doi", "identifier", "vertex"}
# Normalized names that count only where edges name the column's cells.
RARE_ID_NAMES = {"name", "title", "word", "term", "url", "uri", "page", "paper", "user", "username",
                 "item", "product", "author", "entity", "gene", "protein", "index"}  # fmt: skip
OTHER_LABEL_NAMES = ("labels", "target", "topic", "type", "classes", "categories", "topics")
MAX_CLASSES = 100  # values of a column that is taken for labels by such a name
MAX_CANDIDATES = 3  # columns that are suggested where none is taken for labels

# The starts of the names of an edge's two ends, and what may follow in both.
END_PAIRS = (
    ("source", "target"), ("src", "dst"), ("src", "dest"), ("src", "tgt"), ("from", "to"),
    ("u", "v"), ("head", "tail"), ("citing", "cited"), ("start", "end"), ("parent", "child"),
    ("subject", "object"), ("follower", "followee"), ("i", "j"), ("a", "b"),
)  # fmt: skip
END_RESTS = {"node", "vertex", "paper", "page", "user", "item", "product", "name", "key",
             "package", "entity"}  # fmt: skip


def normalize_name(name: str) -> str:
    """Drop signs and case: 'paperId' and 'paper_id' are the same."""
    return re.sub(r"[\W_]", "", name.lower())


def pick_column(
    table: Any,
    column: str | None,
    usual: Sequence[str],
    option: str,
    notes: list[str],
    excluded: Collection[str | None] = (),
) -> str | None:
    """Return the given column, else one with a usual name (with a note), else None."""
    names = list(table.columns if isinstance(table, Table) else table.header)
    if column is not None:
        if column not in names:
            is_joined = len(names) == 1 and any(sign in names[0] for sign in ",;|\t")
            hint = "; is the delimiter another one?" if is_joined else ""
            what = f"no column {column!r}; it has {', '.join(map(quote, names[:20]))}{hint}"
            raise MissingColumnError(f"{table.source}: {what}", column)
        return column
    for usual_name in usual:
        for name in names:
            if name.lower() == usual_name and name not in excluded:
                notes.append(f"{table.source}: column {name!r} is taken as {option}")
                return name
    return None


def guess_id(
    table: Table, excluded: Collection[str | None], ends: Sequence[str], notes: list[str]
) -> str:
    """Guess the id column where none has a usual name; `ends` are ids that some edges name.

    Candidates are columns whose names ids often have, and the first column. Of those with a
    distinct value in every row, the one that most edges name wins.
    """
    first = next(iter(table.columns))
    free = [name for name in table.columns if name not in excluded]
    named = [name for name in free if _is_id_name(name)]
    rare = [name for name in free if normalize_name(name) in RARE_ID_NAMES]
    keys: dict[str, int] = {}
    for name in dict.fromkeys([*named, first, *rare]):
        summary = summarize_plain(table.columns[name])
        if len(summary.counts) == summary.present == len(table) and not summary.blank:
            keys[name] = sum(node in summary.counts for node in ends)
    best = max(keys, key=lambda name: keys[name]) if keys else first
    which = f"column {best!r}, the first," if best == first else f"column {best!r}"
    notes.append(f"{table.source}: {which} is taken as id_column")
    return best


def guess_label(table: Table, excluded: Collection[str | None], notes: list[str]) -> str | None:
    """Guess the label column where none has a usual name; if there is none, note candidates."""
    free = [name for name in table.columns if name not in excluded]
    for wanted in OTHER_LABEL_NAMES:
        for name in free:
            if normalize_name(name) == wanted and _num_classes(table.columns[name]):
                notes.append(f"{table.source}: column {name!r} is taken as label_column")
                return name
    sizes = {name: _num_classes(table.columns[name], texts_only=True) for name in free}
    candidates = [f"{name!r} ({count} values)" for name, count in sizes.items() if count]
    if candidates:
        listed = ", ".join(candidates[:MAX_CANDIDATES])
        notes.append(f"{table.source}: no column is taken as label_column; it could be {listed}")
    return None


def guess_ends(header: Sequence[str]) -> tuple[str, str] | None:
    """Find the two columns of a table of edges whose names belong together."""
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
    return bool(ends) or normalize_name(name) in OTHER_ID_NAMES


def plain_texts(cells: Sequence[str]) -> list[str]:
    """Cells without spaces around them; [""] for a column whose cells hold several values."""
    try:
        return [cell.strip() for cell in cells]
    except GraphError:
        return [""]


def drop_point_zero(cell: str) -> str:
    """Read '12.0', as pandas writes a whole number in a column with gaps, as 12."""
    return cell[:-2] if cell.endswith(".0") and cell[:-2].isdecimal() else cell


def _num_classes(cells: Sequence[str], texts_only: bool = False) -> int:
    """Number of classes that a column would give; 0 where it does not look like classes."""
    if isinstance(cells, ValueColumn):
        return 0
    if isinstance(cells, TypedColumn) and (
        cells.series.dtype.is_nested() or cells.values is not None
    ):
        numbers = cells.values
        if texts_only or numbers is None or (numbers[np.isfinite(numbers)] % 1).any():
            return 0
    summary = summarize_plain(cells)
    size = len(summary.counts) - len(summary.blank)
    if not 2 <= size <= min(MAX_CLASSES, (summary.present - summary.blank.total()) / 2):
        return 0
    values = {value for value in summary.counts if value not in summary.blank}
    is_yes_no = any({value.lower() for value in values} <= pair for pair in YES_NO)
    if texts_only and (is_yes_no or all(re.fullmatch(r"[+-]?[\d.,]+", v) for v in values)):
        return 0
    return len(values) if all(len(value) <= MAX_CLASSES for value in values) else 0
