"""Read a table of nodes: ids, labels, and which nodes are new.

A table that nodenova exported is recognized: its class is the label, and none of the columns that
nodenova added becomes a feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nodenova.data.labels import UNKNOWN
from nodenova.display import plural
from nodenova.errors import GraphError, SettingError
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
from nodenova.io.table_options import TableOptions
from nodenova.io.tables import ReadingOptions, Table, read_table

EXPORT_COLUMNS = ("class", "name", "kind", "probability")
PREDICTION_COLUMNS = ("unsure", "agrees", "fits_none")  # further columns of predictions.csv
PREFIX = "nodenova_"  # of exported columns where the table had columns of these names
KINDS = frozenset({"old", "new", "known", "discovered"})
MIN_AGREEMENT = 0.95  # share of cells that agree with the class, for a column to be its source
MAX_LABELS = 200  # values of such a column
LONGEST_ID = 1000  # characters; a longer cell is a text in the wrong column


@dataclass(frozen=True)
class ExportColumns:
    """Columns that nodenova added to a table, and the name of each class."""

    columns: Mapping[str, str]  # name in the table of each of EXPORT_COLUMNS
    others: tuple[str, ...]
    class_names: Mapping[str, str]

    @property
    def all(self) -> tuple[str, ...]:
        """All columns that nodenova added."""
        return (*self.columns.values(), *self.others)


def find_export_columns(table: Table) -> ExportColumns | None:
    """The columns that nodenova added to a table of nodes; None if it was not exported."""
    for prefix in (PREFIX, ""):
        columns = {role: prefix + role for role in EXPORT_COLUMNS}
        if all(name in table.columns for name in columns.values()) and _is_export(table, columns):
            others = tuple(name for name in PREDICTION_COLUMNS if name in table.columns)
            return ExportColumns(columns, others, _class_names(table, columns))
    return None


def _is_export(table: Table, columns: Mapping[str, str]) -> bool:
    """Whether the cells of these columns are kinds and probabilities."""
    kinds = {cell.strip() for cell in table.columns[columns["kind"]]}
    if not kinds & KINDS or not all(kind in KINDS or is_missing(kind) for kind in kinds):
        return False
    name = columns["probability"]
    values, odd, _ = read_numbers(table.columns[name], name, table.source, table.lines, table.unit)
    known = values[~np.isnan(values)]
    return not odd and bool(len(known)) and bool(((known >= 0) & (known <= 1)).all())


def _class_names(table: Table, columns: Mapping[str, str]) -> dict[str, str]:
    """Name by class; empty where classes and names are not one to one."""
    cells = zip(table.columns[columns["class"]], table.columns[columns["name"]], strict=True)
    pairs = {(drop_point_zero(c.strip()), name.strip()) for c, name in cells}
    pairs = {pair for pair in pairs if not any(map(is_missing, pair))}
    names = dict(pairs)
    return names if len(names) == len(pairs) == len({*names.values()}) else {}


def source_label_columns(
    table: Table, export: ExportColumns, role_columns: Sequence[str | None]
) -> Iterator[str]:
    """Columns that agree with the exported class where they are filled: labels it came from."""
    classes = [cell.strip() for cell in table.columns[export.columns["class"]]]
    names = [cell.strip() for cell in table.columns[export.columns["name"]]]
    for name, cells in table.columns.items():
        if name in export.all or name in role_columns or not _is_plain(cells):
            continue
        texts = plain_texts(cells)
        rows = [row for row, cell in enumerate(texts) if not is_missing(cell) and classes[row]]
        values = [texts[row] for row in rows]
        counts = Counter(values)
        if not 2 <= len(counts) <= min(MAX_LABELS, max(len(rows) / 2, 2)):
            continue
        same_name = sum(value == names[row] for row, value in zip(rows, values, strict=True))
        pairs = Counter(zip(values, (classes[row] for row in rows), strict=True))
        # The most frequent class of a value comes last and stays.
        most = {value: count for (value, _), count in reversed(pairs.most_common())}
        has_gaps = len(rows) < len(cells)
        least = MIN_AGREEMENT * len(rows)
        if same_name >= least or (
            has_gaps and len({c for _, c in pairs}) > 1 and sum(most.values()) >= least
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


@dataclass(frozen=True, eq=False)
class Nodes:
    """A table of nodes whose ids, labels and new nodes have been read."""

    table: Table
    ids: Sequence[str]
    y: np.ndarray  # (N,) class numbers, -1 for unlabelled
    class_names: tuple[str, ...]
    new: np.ndarray | None = None  # (N,) mask, or None where no column marks new nodes
    id_column: str | None = None
    label_column: str | None = None
    new_column: str | None = None
    label_like: tuple[str, ...] = ()  # other columns that hold the class of a node

    @property
    def role_columns(self) -> tuple[str | None, ...]:
        """Columns of ids, labels and new nodes."""
        return (self.id_column, self.label_column, self.new_column)

    @property
    def not_features(self) -> list[str]:
        """Columns that cannot become features."""
        return [*(name for name in self.role_columns if name), *self.label_like]

    def merge_new(self, mask: np.ndarray | None) -> np.ndarray | None:
        """The (N,) mask of new nodes: `mask` by their ids, or marked in a column, not both."""
        if mask is not None and self.new is not None:
            raise SettingError("give either new_nodes or new_column, not both")
        return self.new if mask is None else mask

    def check_features(self, columns: Sequence[str]) -> None:
        """Raise if one of these columns is missing or holds the class."""
        source, names = self.table.source, self.table.columns
        for column in columns:
            if column not in names:
                raise GraphError(f"{source}: no column {column!r}; it has {', '.join(names)}")
            if column in self.role_columns[1:]:
                raise GraphError(
                    f"{source}: column {column!r} holds the class of a node "
                    "and cannot be a feature too"
                )


def read_nodes(
    nodes: Any,
    options: TableOptions,
    notes: list[str],
    reading: ReadingOptions,
    *,
    features: Collection[str] = (),
    is_later: bool = False,
    find_linked: Callable[[], Sequence[str]] = tuple,
    read_ids: Callable[[Table, str, list[str]], Sequence[str]] | None = None,
) -> Nodes:
    """Read a table of nodes and check every id, label and mark of a new node.

    `features` are not guessed to be labels; `is_later` if an earlier table decided them. The
    ids of `find_linked`, from edges, decide between columns that could be the ids. `read_ids`
    reads the ids of a table that is not in memory.
    """
    name = "nodes" if is_frame(nodes) else ""
    table = nodes if isinstance(nodes, Table) else read_table(nodes, source=name, **reading)
    notes += table.notes
    source = table.source
    if not len(table):
        raise GraphError(f"{source}: a header and no rows")
    export = find_export_columns(table)
    roles = _pick_roles(table, export, options, notes, features, is_later, find_linked)
    id_column, label_column, new_column = roles
    ids = (read_ids or _read_ids)(table, id_column, notes)
    y, class_names = _read_labels(table, label_column, notes)
    new = None if new_column is None else _read_marks(table, new_column)
    label_like: list[str] = []
    if export is not None:
        if label_column == export.columns["class"]:
            class_names = tuple(export.class_names.get(name, name) for name in class_names)
        label_like = [*export.all]
        for name in source_label_columns(table, export, roles):
            notes.append(f"{source}: column {name!r} repeats {export.columns['class']!r}; not used")
            label_like.append(name)
    return Nodes(table, ids, y, class_names, new, *roles, tuple(label_like))


def _pick_roles(
    table: Table,
    export: ExportColumns | None,
    options: TableOptions,
    notes: list[str],
    features: Collection[str],
    is_later: bool,
    find_linked: Callable[[], Sequence[str]],
) -> tuple[str, str | None, str | None]:
    """Columns of ids, labels and marks of new nodes, by options or by their names and cells."""
    source, label_column, new_column = table.source, options.label_column, options.new_column
    id_column = pick_column(table, options.id_column, ID_NAMES, "id_column", notes)
    if id_column is None:
        excluded = [label_column, new_column, *(export.all if export else ())]
        id_column = guess_id(table, excluded, find_linked(), notes)
    if export is not None and label_column is None:
        label_column = export.columns["class"]
        names = ", ".join(export.columns.values())
        notes.append(
            f"{source}: {names} were added by nodenova; {label_column!r} is taken as label_column"
        )
    excluded = [id_column, *(features if is_later else ())]
    label_column = pick_column(
        table, label_column, LABEL_NAMES, "label_column", notes, excluded=excluded
    )
    new_column = pick_column(
        table, new_column, NEW_NAMES, "new_column", notes, excluded=[id_column, label_column]
    )
    if label_column is None:
        excluded = [id_column, new_column, *features]
        label_column = guess_label(table, excluded, [] if is_later else notes)
        if is_later and label_column is not None:
            notes.append(f"{source}: column {label_column!r} is taken as label_column")
    if label_column == id_column:
        raise GraphError(
            f"{source}: column {id_column!r} cannot be both the id and the label of a node"
        )
    return id_column, label_column, new_column


def _read_ids(table: Table, column: str, notes: list[str]) -> list[str]:
    cells = table.columns[column]
    ids = [cell.strip() for cell in cells]
    note_spaces(sum(a != b for a, b in zip(ids, cells, strict=True)), table, notes)
    for line, node in zip(table.lines, ids, strict=True):
        check_id(node, table, column, line)
    if len(set(ids)) < len(ids):
        node, count = Counter(ids).most_common(1)[0]
        lines = [line for line, other in zip(table.lines, ids, strict=True) if other == node]
        raise duplicate_id_error(table, column, node, count, lines)
    return ids


def note_spaces(count: int, table: Table, notes: list[str]) -> None:
    """Note how many ids had spaces around them."""
    if count:
        notes.append(f"{table.source}: spaces around {plural(count, 'id')} removed")


def check_id(node: str, table: Table, column: str, line: int) -> None:
    """Raise if an id is empty or too long."""
    where = f"{table.source}: {table.unit} {line}"
    if not node:
        raise GraphError(f"{where}: no id in column {column!r}")
    if "\0" in node:  # NumPy cuts texts at their last NUL, and two ids could become one
        raise GraphError(f"{where}: the id in column {column!r} holds a NUL character")
    if len(node) > LONGEST_ID:
        raise GraphError(
            f"{where}: an id of {len(node):,} characters; is {column!r} really the id column?"
        )


def duplicate_id_error(
    table: Table, column: str, node: str, count: int, lines: Sequence[int]
) -> GraphError:
    """The error for an id of several rows."""
    return GraphError(
        f"{table.source}: ids must be unique, {quote(node)} appears {count} times "
        f"({table.unit}s {lines[0]} and {lines[1]})"
        + ("" if count < len(table) / 10 else f"; is {column!r} really the id column?")
    )


def _read_labels(
    table: Table, column: str | None, notes: list[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """(N,) class numbers and the names of the classes."""
    source = table.source
    if column is None:
        return np.full(len(table), UNKNOWN), ()
    cells = table.columns[column]
    counts = Counter(cell.strip() for cell in cells)
    for cell in [value for value in counts if is_missing(value)]:
        if cell:
            _note_unlabelled(counts[cell], repr(cell), source, notes)
        del counts[cell]
    rest = [value for value in counts if value not in ("-1", "-1.0")]
    if len(rest) < len(counts) and rest and all(_is_whole(value) for value in rest):
        _note_unlabelled(counts["-1"] + counts["-1.0"], "-1", source, notes)
        counts = Counter({value: counts[value] for value in rest})
    has_points = bool(counts) and all(value.endswith(".0") and _is_whole(value) for value in counts)
    if has_points:
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
    are_numbers = all(map(str.isdecimal, counts))
    names = sorted(counts, key=lambda value: (int(value) if are_numbers else 0, value))
    number = {f"{name}.0" if has_points else name: c for c, name in enumerate(names)}
    y = (number.get(cell.strip(), UNKNOWN) for cell in cells)
    return np.fromiter(y, dtype=np.int64, count=len(table)), tuple(names)


def _note_unlabelled(count: int, value: str, source: str, notes: list[str]) -> None:
    what = plural(count, "label is", "labels are")
    notes.append(f"{source}: {what} {value}; read as unlabelled")


def _is_whole(text: str) -> bool:
    return drop_point_zero(text).removeprefix("-").isdecimal()


def _read_marks(table: Table, column: str) -> np.ndarray:
    """(N,) mask of the nodes that a yes/no column marks as new."""
    words = {word for pair in YES_NO for word in pair} | {""}
    new = np.zeros(len(table), dtype=bool)
    for row, (line, raw) in enumerate(zip(table.lines, table.columns[column], strict=True)):
        cell = raw.strip().lower()
        if cell not in words:
            raise GraphError(
                f"{table.source}: {table.unit} {line}: column {column!r} marks new nodes with "
                f"yes or no, not {quote(cell)}"
            )
        new[row] = cell in YES
    if not new.any():
        raise GraphError(f"{table.source}: column {column!r} marks no node as new")
    return new
