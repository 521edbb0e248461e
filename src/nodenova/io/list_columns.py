"""Columns whose cells hold several values: vectors of numbers, lists of texts, records.

A vector stands in a cell as a list (Parquet, Arrow, polars, JSON), as an array (pandas, NetworkX)
or as the text of one, `[0.1, 0.2]` or NumPy's `[0.1 0.2]`, as CSV files have it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import narwhals as nw
import numpy as np

from nodenova.errors import GraphError
from nodenova.io.frames import BATCH_ROWS, TextColumn, TypedColumn, ValueColumn, is_nested, to_text
from nodenova.io.stream_columns import StreamColumn
from nodenova.io.tables import Table, is_missing, quote

VECTORS_FROM = 0.9  # share of texts that look like vectors, for a column to be of vectors
SNIFFED_CELLS = 20  # of which as many must be readable before a column of texts is one of vectors


@dataclass(frozen=True, eq=False)
class ListColumn(TextColumn):
    """A column whose cells hold several values: text only where the cells are text.

    Attributes:
        cells: As the table has them.
        ids: (N,) of the nodes, for messages.
        source: What messages call the table.
        name: What messages call the column.
    """

    cells: Sequence[str]
    ids: Sequence[str]
    source: str
    name: str

    @property
    def texts(self) -> Sequence[str]:
        """(N,) the cells themselves."""
        return self.cells

    def __len__(self) -> int:
        return len(self.cells)

    def values(self) -> Iterator[object]:
        """What each cell holds."""
        return _values(self.cells)


class RecordColumn(ListColumn):
    """A column of records, or of lists that hold neither numbers nor texts."""


class TextListColumn(ListColumn):
    """A column of lists of texts."""

    def joined(self) -> list[str]:
        """(N,) the texts of each cell, one after the other."""
        lists = (value if is_nested(value) else [value] for value in self.values())
        return [" ".join(map(to_text, values)) for values in lists]  # type: ignore[call-overload]


class VectorColumn(ListColumn):
    """A column of vectors of numbers."""

    @cached_property
    def matrix(self) -> np.ndarray:
        """(N, width) the vectors; NaN in the rows of nodes that have none.

        Raises:
            GraphError: Lengths differ, or a cell is no vector of finite numbers; it names the node.
        """
        first, matrix = -1, np.zeros((len(self), 0))
        for row, value in enumerate(self.values()):
            try:
                vector = parse_vector(value)
            except (TypeError, ValueError):
                said = f"node {self.ids[row]!r} has no vector of numbers, but {_shown(value)}"
                raise self._refused(said) from None
            if vector is None:
                continue
            if first < 0:
                first, matrix = row, np.full((len(self), len(vector)), np.nan)
            if len(vector) != matrix.shape[1]:
                raise self._refused(
                    f"vectors have one length; node {self.ids[first]!r} has {matrix.shape[1]:,} "
                    f"numbers, node {self.ids[row]!r} has {len(vector):,}"
                )
            if not np.isfinite(vector).all():
                place = int((~np.isfinite(vector)).argmax())
                said = f"is {vector[place]}, not a finite number"
                raise self._refused(f"{self.name}[{place}] of node {self.ids[row]!r} {said}")
            matrix[row] = vector
        return matrix

    def _refused(self, said: str) -> GraphError:
        hint = "; mend it, or name in features the columns to use"
        return GraphError(f"{self.source}: column {self.name!r}: {said}{hint}")


def parse_vector(value: object) -> np.ndarray | None:
    """A cell as a vector; None where it is empty.

    Raises:
        ValueError: It is something else.

    Examples:
        >>> parse_vector("[0.5, 2]").tolist(), parse_vector("[0.5 2.]").tolist(), parse_vector([])
        ([0.5, 2.0], [0.5, 2.0], None)
    """
    if isinstance(value, str):
        text = value.strip()
        if is_missing(text):
            return None
        if not (text.startswith("[") and text.endswith("]")):
            raise ValueError
        value = json.loads(text) if "," in text else [float(part) for part in text[1:-1].split()]
    if not is_nested(value):
        if to_text(value):
            raise ValueError
        return None
    vector = np.asarray(value)
    if vector.ndim != 1 or vector.dtype.kind not in "biufO":
        raise ValueError
    return vector.astype(np.float64) if len(vector) else None


def vectors_of_width(cells: Sequence[str], name: str, source: str, width: int) -> np.ndarray:
    """(N, width) the vectors of a later file's column; NaN in the rows of nodes that have none.

    Raises:
        GraphError: They have another length, or the column holds something else.
    """
    found = cells.matrix.shape[1] if isinstance(cells, VectorColumn) else 0
    if isinstance(cells, VectorColumn) and found == width:
        return cells.matrix
    first = next((cell for cell in cells if not is_missing(cell)), None) if not found else None
    if found or first is not None:
        said = f"holds vectors of {found:,} numbers" if found else f"holds {quote(str(first))}"
        raise GraphError(f"{source}: column {name!r} {said}, where vectors of {width:,} are known")
    return np.full((len(cells), width), np.nan)


def mark_list_columns(
    table: Table, ids: Sequence[str], excluded: Collection[str | None] = ()
) -> Table:
    """A table in which columns whose cells hold several values say of what kind they are.

    Args:
        table: Of nodes.
        ids: (N,) of the nodes.
        excluded: Columns that stay as they are.
    """
    columns: dict[str, Sequence[str]] = {}
    for name, cells in table.columns.items():
        kind = None if name in excluded else list_column_type(cells)
        columns[name] = cells if kind is None else kind(cells, ids, table.source, name)
    return replace(table, columns=columns)


def list_column_type(cells: Sequence[str]) -> type[ListColumn] | None:
    """What the cells of a column hold if they hold several values each; None if they do not."""
    if isinstance(cells, TypedColumn):
        dtype = cells.series.dtype
        if isinstance(dtype, (nw.List, nw.Array)):
            inner = dtype.inner
            if inner in (nw.String, nw.Categorical, nw.Enum):
                return TextListColumn
            known = inner in (nw.Boolean, nw.Unknown) or inner.is_numeric()
            return VectorColumn if known else RecordColumn
        if dtype.is_nested():
            return RecordColumn
        if dtype == nw.Object:
            return _kind_of_values(cells)
        return _kind_of_texts(cells) if dtype == nw.String else None
    return _kind_of_values(cells) if isinstance(cells, ValueColumn) else _kind_of_texts(cells)


def _kind_of_values(cells: Sequence[str]) -> type[ListColumn] | None:
    """By the first list that is not empty."""
    several = [value for value in _values(cells) if is_nested(value)]
    if not several:
        return _kind_of_texts(cells)
    value = next((value for value in several if len(value)), [])  # type: ignore[arg-type]
    if isinstance(value, dict):
        return RecordColumn
    parts = list(value)  # type: ignore[call-overload]
    if parts and all(isinstance(part, str) for part in parts):
        return TextListColumn
    is_vector = all(part is None or not is_nested(part) for part in parts)
    return (
        VectorColumn if is_vector and not any(isinstance(p, str) for p in parts) else RecordColumn
    )


def _kind_of_texts(cells: Sequence[str]) -> type[ListColumn] | None:
    first = next((cell for cell in cells if not is_missing(cell)), "")
    if not first.lstrip().startswith("["):
        return None
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    alike = sum(cell.startswith("[") and cell.endswith("]") for cell in present)
    if alike < VECTORS_FROM * len(present):
        return None
    sniffed = list(islice((cell for cell in present if cell.startswith("[")), SNIFFED_CELLS))
    readable = sum(map(_is_vector, sniffed))
    return VectorColumn if readable >= VECTORS_FROM * len(sniffed) else None


def _is_vector(cell: str) -> bool:
    try:
        parse_vector(cell)
    except (TypeError, ValueError):
        return False
    return True


def _values(cells: Sequence[str]) -> Iterator[object]:
    if isinstance(cells, ValueColumn):
        yield from cells.values
    elif isinstance(cells, StreamColumn):
        for piece in cells.read():
            yield from piece.to_list()
    elif isinstance(cells, TypedColumn):
        for start in range(0, len(cells), BATCH_ROWS):
            yield from cells.series[start : start + BATCH_ROWS].to_list()
    else:
        yield from cells


def _shown(value: object) -> str:
    return quote(value) if isinstance(value, str) else quote(str(value))
