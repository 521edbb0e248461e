"""A table of nodes: their ids, labels, and which are new.

Tables that nodenova has written: those of a user with what a model said of every node beside it.

Read again, the class is the label, and what was added is no feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from nodenova.data.labels import UNKNOWN
from nodenova.errors import GraphError
from nodenova.io.column_guessing import (
    ID_NAMES,
    LABEL_NAMES,
    NEW_NAMES,
    drop_point_zero,
    guess_id,
    guess_label,
    pick_column,
    plain_texts,
)
from nodenova.io.columns import YES, YES_NO, read_numbers
from nodenova.io.frames import TypedColumn, ValueColumn, is_frame, is_missing, quote
from nodenova.io.tables import ReadingOptions, Table, read_table

ADDED = ("class", "name", "kind", "probability")
FURTHER = ("unsure", "agrees", "fits_none")  # columns of predictions.csv
PREFIX = "nodenova_"  # of what is added to a table that has such columns already
KINDS = frozenset({"old", "new", "known", "discovered"})
SAME_FROM = 0.95  # share of its cells that go with the class, for a column to be the label it had
MAX_LABELS = 200  # values of such a column


@dataclass(frozen=True)
class Added:
    """What nodenova added to a table.

    Attributes:
        columns: What each of `ADDED` is called there.
        further: Other columns of nodenova's.
        class_names: What each class is called, by what stands for it.
    """

    columns: Mapping[str, str]
    further: tuple[str, ...]
    class_names: Mapping[str, str]

    @property
    def all(self) -> tuple[str, ...]:
        """All columns that are no features."""
        return (*self.columns.values(), *self.further)


def added_to(table: Table) -> Added | None:
    """What nodenova added to a table; None if it did not.

    Args:
        table: Of nodes.

    Examples:
        >>> cells = {"id": ["a"], "class": ["3"], "name": ["elm"], "kind": ["new"]}
        >>> added_to(Table("nodes.csv", {**cells, "probability": ["0.9"]}, [2])).class_names
        {'3': 'elm'}
        >>> added_to(Table("nodes.csv", cells, [2])) is None
        True
    """
    for prefix in (PREFIX, ""):
        columns = {role: prefix + role for role in ADDED}
        if all(name in table.columns for name in columns.values()) and _fits(table, columns):
            further = tuple(name for name in FURTHER if name in table.columns)
            return Added(columns, further, _names(table, columns))
    return None


def _fits(table: Table, columns: Mapping[str, str]) -> bool:
    kinds = {cell.strip() for cell in table.columns[columns["kind"]]}
    if not kinds & KINDS or not all(kind in KINDS or is_missing(kind) for kind in kinds):
        return False
    cells = table.columns[columns["probability"]]
    values, odd, _ = read_numbers(
        cells, columns["probability"], table.source, table.lines, table.unit
    )
    known = values[~np.isnan(values)]
    return not odd and bool(len(known)) and bool(((known >= 0) & (known <= 1)).all())


def _names(table: Table, columns: Mapping[str, str]) -> dict[str, str]:
    """By the class; nothing where names are not one a class."""
    cells = zip(table.columns[columns["class"]], table.columns[columns["name"]], strict=True)
    pairs = {(drop_point_zero(c.strip()), name.strip()) for c, name in cells}
    found = {pair for pair in pairs if not any(map(is_missing, pair))}
    names = dict(found)
    return names if len(names) == len(found) == len({*names.values()}) else {}


def earlier_labels(table: Table, added: Added, besides: Sequence[str | None]) -> Iterator[str]:
    """Columns that say the class of a node wherever they say something: the labels it came from.

    Args:
        table: Of nodes.
        added: What nodenova added to it.
        besides: Columns that are something else.
    """
    classes = [cell.strip() for cell in table.columns[added.columns["class"]]]
    names = [cell.strip() for cell in table.columns[added.columns["name"]]]
    for name, cells in table.columns.items():
        if name in added.all or name in besides or not _is_plain(cells):
            continue
        texts = plain_texts(cells)
        rows = [row for row, cell in enumerate(texts) if not is_missing(cell) and classes[row]]
        values = [texts[row] for row in rows]
        counts = Counter(values)
        if not 2 <= len(counts) <= min(MAX_LABELS, max(len(rows) / 2, 2)):
            continue
        called = sum(value == names[row] for row, value in zip(rows, values, strict=True))
        pairs = Counter(zip(values, (classes[row] for row in rows), strict=True))
        most: Counter[str] = Counter()
        for (value, _), count in pairs.items():
            most[value] = max(most[value], count)
        has_gaps = len(rows) < len(cells)
        if called >= SAME_FROM * len(rows) or (
            has_gaps and len({c for _, c in pairs}) > 1 and most.total() >= SAME_FROM * len(rows)
        ):
            yield name


def _is_plain(cells: Sequence[str]) -> bool:
    """Whether cells are texts or whole numbers, as labels are."""
    if isinstance(cells, TypedColumn):
        if cells.series.dtype.is_nested():
            return False
        if cells.values is not None:
            known = cells.values[~np.isnan(cells.values)]
            return not (known % 1).any() and len(np.unique(known)) <= MAX_LABELS
        return True
    return not isinstance(cells, ValueColumn)


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
        not_features: Columns that say the class of a node as well.
    """

    table: Table
    ids: Sequence[str]
    y: np.ndarray
    class_names: tuple[str, ...]
    new: np.ndarray | None = None
    id_column: str | None = None
    label_column: str | None = None
    new_column: str | None = None
    not_features: tuple[str, ...] = ()


def read_nodes(
    nodes: Any,
    id_column: str | None,
    label_column: str | None,
    new_column: str | None,
    notes: list[str],
    features: Collection[str] = (),
    is_later: bool = False,
    linked: Callable[[], Sequence[str]] = tuple,
    read_ids: Callable[[Table, str, list[str]], Sequence[str]] | None = None,
    **reading: Unpack[ReadingOptions],
) -> Nodes:
    """Read a table of nodes and check every cell that stands for an id, a label or "new".

    Args:
        nodes: A file, a data frame or a table.
        id_column: By a usual name, else the first, unless given.
        label_column: By a usual name unless given; there may be none.
        new_column: By a usual name unless given; there may be none.
        notes: Gets a sentence on every repair.
        features: Columns that are features, hence not guessed to be labels.
        is_later: These are features because an earlier file says so.
        linked: Gives ids that some edges name: they decide where several columns could be the ids.
        read_ids: Reads the ids of a table that is not in memory.
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
    added = added_to(table)
    taken = [label_column, new_column, *(added.all if added else ())]
    id_column = pick_column(table, id_column, ID_NAMES, "id_column", notes)
    if id_column is None:
        id_column = guess_id(table, taken, linked(), notes)
    if added is not None and label_column is None:
        label_column = added.columns["class"]
        said = f"{', '.join(added.columns.values())} are what nodenova found"
        notes.append(f"{source}: {said}; {label_column!r} is taken as label_column")
    known = [id_column, *(features if is_later else ())]
    label_column = pick_column(
        table, label_column, LABEL_NAMES, "label_column", notes, excluded=known
    )
    new_column = pick_column(
        table, new_column, NEW_NAMES, "new_column", notes, excluded=[id_column, label_column]
    )
    if label_column is None:
        besides = [id_column, new_column, *features]
        label_column = guess_label(table, besides, [] if is_later else notes)
        if is_later and label_column is not None:
            notes.append(f"{source}: column {label_column!r} is taken as label_column")
    if label_column == id_column:
        raise GraphError(
            f"{source}: column {id_column!r} cannot be both the id and the label of a node"
        )
    ids = (read_ids or _ids)(table, id_column, notes)
    y, names = _labels(table, label_column, notes)
    new = None if new_column is None else _yes_no(table, new_column)
    not_features: list[str] = []
    if added is not None:
        if label_column == added.columns["class"]:
            names = tuple(added.class_names.get(name, name) for name in names)
        earlier = list(earlier_labels(table, added, (id_column, label_column, new_column)))
        for name in earlier:
            said = f"says the same as {added.columns['class']!r} where it says something"
            notes.append(f"{source}: column {name!r} {said}; not used")
        not_features = [*added.all, *earlier]
    columns = (id_column, label_column, new_column)
    return Nodes(table, ids, y, names, new, *columns, tuple(not_features))


def id_of(cell: str) -> str:
    """An id as it is written, without spaces around it."""
    return cell.strip()


def _ids(table: Table, column: str, notes: list[str]) -> list[str]:
    cells = table.columns[column]
    ids = [id_of(cell) for cell in cells]
    say_spaced(sum(a != b for a, b in zip(ids, cells, strict=True)), table, notes)
    for line, node in zip(table.lines, ids, strict=True):
        check_id(node, table, column, line)
    if len(set(ids)) < len(ids):
        twice, count = Counter(ids).most_common(1)[0]
        lines = [line for line, node in zip(table.lines, ids, strict=True) if node == twice]
        raise twice_there(table, column, twice, count, lines)
    return ids


def say_spaced(spaced: int, table: Table, notes: list[str]) -> None:
    """Note that ids had spaces around them, if some had."""
    if spaced:
        notes.append(f"{table.source}: spaces around {spaced:,} ids were removed")


def check_id(node: str, table: Table, column: str, line: int) -> None:
    """Refuse what cannot be an id.

    Raises:
        GraphError: It is empty, or too long.
    """
    if not node:
        raise GraphError(f"{table.source}: {table.unit} {line}: no id in column {column!r}")
    if len(node) > LONGEST_ID:
        said = f"an id of {len(node):,} characters; is {column!r} really the id column?"
        raise GraphError(f"{table.source}: {table.unit} {line}: {said}")


def twice_there(
    table: Table, column: str, twice: str, count: int, lines: Sequence[int]
) -> GraphError:
    """The error for an id that several rows have."""
    return GraphError(
        f"{table.source}: ids must be unique, {quote(twice)} appears {count} times "
        f"({table.unit}s {lines[0]} and {lines[1]})"
        + ("" if count < len(table) / 10 else f"; is {column!r} really the id column?")
    )


def _labels(
    table: Table, column: str | None, notes: list[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
    source = table.source
    if column is None:
        return np.full(len(table), UNKNOWN), ()
    cells = table.columns[column]
    counts = Counter(cell.strip() for cell in cells)
    is_pointed = False
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
        is_pointed = True
        counts = Counter({drop_point_zero(value): count for value, count in counts.items()})
        notes.append(f"{source}: labels like '1.0' are read as '1'")
    too_long = next((value for value in counts if len(value) > LONGEST_ID), None)
    if too_long is not None:
        rows = zip(table.lines, cells, strict=True)
        line = next(line for line, cell in rows if cell.strip() == too_long)
        raise GraphError(
            f"{source}: {table.unit} {line}: a label of {len(too_long):,} characters; "
            f"is {column!r} really the label column?"
        )
    is_numbered = all(map(str.isdecimal, counts))
    names = sorted(counts, key=lambda value: (int(value), "") if is_numbered else (0, value))
    number = {f"{name}.0" if is_pointed else name: c for c, name in enumerate(names)}
    y = (number.get(cell.strip(), UNKNOWN) for cell in cells)
    return np.fromiter(y, dtype=np.int64, count=len(table)), tuple(names)


def _is_whole(text: str) -> bool:
    return drop_point_zero(text).removeprefix("-").isdecimal()


def _yes_no(table: Table, column: str) -> np.ndarray:
    known = {word for pair in YES_NO for word in pair} | {""}
    new = np.zeros(len(table), dtype=bool)
    for row, (line, raw) in enumerate(zip(table.lines, table.columns[column], strict=True)):
        cell = raw.strip().lower()
        if cell not in known:
            said = f"says whether a node is new: yes or no, not {quote(cell)}"
            raise GraphError(f"{table.source}: {table.unit} {line}: column {column!r} {said}")
        new[row] = cell in YES
    if not new.any():
        raise GraphError(f"{table.source}: column {column!r} marks no node as new")
    return new


def check_columns(table: Table, wanted: Sequence[str], taken: Sequence[str | None]) -> None:
    """Refuse features that are not there, or say the class.

    Raises:
        GraphError: A column is such.
    """
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
