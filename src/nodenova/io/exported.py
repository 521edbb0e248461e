"""Tables that nodenova has written: those of a user with what a model said of every node beside it.

Read again, the class is the label, and what was added is no feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nodenova.io.columns import numbers
from nodenova.io.frames import Cells
from nodenova.io.names import plain_texts, without_point
from nodenova.io.tables import Table, is_missing
from nodenova.io.values import Values

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
    values, odd, _ = numbers(cells, columns["probability"], table.source, table.lines, table.unit)
    known = values[~np.isnan(values)]
    return not odd and bool(len(known)) and bool(((known >= 0) & (known <= 1)).all())


def _names(table: Table, columns: Mapping[str, str]) -> dict[str, str]:
    """By the class; nothing where names are not one a class."""
    cells = zip(table.columns[columns["class"]], table.columns[columns["name"]], strict=True)
    pairs = {(without_point(c.strip()), name.strip()) for c, name in cells}
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
    if isinstance(cells, Cells):
        if cells.series.dtype.is_nested():
            return False
        if cells.values is not None:
            known = cells.values[~np.isnan(cells.values)]
            return not (known % 1).any() and len(np.unique(known)) <= MAX_LABELS
        return True
    return not isinstance(cells, Values)
