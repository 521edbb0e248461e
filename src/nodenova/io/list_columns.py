"""Columns whose cells hold several values: vectors of numbers, lists of texts, records.

A vector stands in a cell as a list (Parquet, Arrow, polars, JSON), as an array (pandas, NetworkX)
or as text, `[0.1, 0.2]` or NumPy's `[0.1 0.2]`, as CSV files have it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest

import narwhals as nw
import numpy as np

from nodenova.errors import GraphError
from nodenova.files.documents import parse_cells
from nodenova.io.frames import (
    BATCH_ROWS,
    MAX_NUMBER,
    TextColumn,
    TypedColumn,
    ValueColumn,
    is_missing,
    is_nested,
    quote,
    to_text,
)
from nodenova.io.stream_columns import StreamColumn
from nodenova.io.tables import Table

VECTORS_FROM = 0.9  # share of texts that look like vectors, for a column to be of vectors
SNIFFED_CELLS = 20  # of these the same share must be readable


@dataclass(frozen=True, eq=False)
class ListColumn(TextColumn):
    """A column whose cells hold several values; `ids` are those of the nodes, for messages."""

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
        """Yield the value of each cell."""
        return _cell_values(self.cells)


class RecordColumn(ListColumn):
    """A column of records, or of lists that hold neither numbers nor texts."""


class TextListColumn(ListColumn):
    """A column of lists of texts."""

    def join(self) -> list[str]:
        """(N,) the texts of each cell as one."""
        lists = (value if is_nested(value) else [value] for value in self.values())
        return [" ".join(map(to_text, values)) for values in lists]  # type: ignore[call-overload]


class VectorColumn(ListColumn):
    """A column of vectors of numbers."""

    @cached_property
    def matrix(self) -> np.ndarray:
        """(N, width) the vectors; NaN in the rows of nodes that have none."""
        first, matrix = -1, np.zeros((len(self), 0))
        for row, value in enumerate(self.values()):
            try:
                vector = parse_vector(value)
            except (TypeError, ValueError, OverflowError):
                what = f"node {self.ids[row]!r} has no vector of numbers, but {quote(str(value))}"
                raise self._error(what) from None
            if vector is None:
                continue
            if first < 0:
                first, matrix = row, np.full((len(self), len(vector)), np.nan)
            if len(vector) != matrix.shape[1]:
                raise self._error(
                    f"vectors have one length; node {self.ids[first]!r} has {matrix.shape[1]:,} "
                    f"numbers, node {self.ids[row]!r} has {len(vector):,}"
                )
            if not (np.abs(vector) <= MAX_NUMBER).all():
                place = int((~(np.abs(vector) <= MAX_NUMBER)).argmax())
                kind = "too large a" if np.isfinite(vector[place]) else "not a finite"
                what = f"is {vector[place]}, {kind} number"
                raise self._error(f"{self.name}[{place}] of node {self.ids[row]!r} {what}")
            matrix[row] = vector
        return matrix

    def _error(self, what: str) -> GraphError:
        hint = "; correct it, or name the columns to use in features"
        return GraphError(f"{self.source}: column {self.name!r}: {what}{hint}")


def parse_vector(value: object) -> np.ndarray | None:
    """Return a cell as a vector; None where it is empty. Raises ValueError if it is no vector.

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
        value = parse_cells(text) if "," in text else list(map(float, text[1:-1].split()))
    if not is_nested(value):
        if to_text(value):
            raise ValueError
        return None
    vector = np.asarray(value)
    if vector.ndim != 1 or vector.dtype.kind not in "biufO":
        raise ValueError
    return vector.astype(np.float64) if len(vector) else None


def vectors_of_width(cells: Sequence[str], name: str, source: str, width: int) -> np.ndarray:
    """(N, width) vectors of a later file; NaN for nodes that have none, an error on others."""
    actual = cells.matrix.shape[1] if isinstance(cells, VectorColumn) else 0
    if isinstance(cells, VectorColumn) and actual == width:
        return cells.matrix
    first = next((cell for cell in cells if not is_missing(cell)), None) if not actual else None
    if actual or first is not None:
        what = f"vectors of {actual:,} numbers" if actual else quote(str(first))
        raise GraphError(
            f"{source}: column {name!r} holds {what}, but the model expects vectors of {width:,}"
        )
    return np.full((len(cells), width), np.nan)


def mark_list_columns(
    table: Table, ids: Sequence[str], excluded: Collection[str | None] = ()
) -> Table:
    """Return the table with `ListColumn`s in place of columns whose cells hold several values."""
    columns: dict[str, Sequence[str]] = {}
    for name, cells in table.columns.items():
        kind = None if name in excluded else list_column_type(cells)
        columns[name] = cells if kind is None else kind(cells, ids, table.source, name)
    return replace(table, columns=columns)


def list_column_type(cells: Sequence[str]) -> type[ListColumn] | None:
    """Return the kind of a column whose cells hold several values; None for other columns."""
    if isinstance(cells, ValueColumn):
        return _type_of_values(cells)
    if not isinstance(cells, TypedColumn):
        return _type_of_texts(cells)
    dtype = cells.series.dtype
    if isinstance(dtype, (nw.List, nw.Array)):
        inner = dtype.inner
        if inner in (nw.String, nw.Categorical, nw.Enum):
            return TextListColumn
        is_number = inner in (nw.Boolean, nw.Unknown) or inner.is_numeric()
        return VectorColumn if is_number else RecordColumn
    if dtype.is_nested():
        return RecordColumn
    if dtype == nw.Object:
        return _type_of_values(cells)
    return _type_of_texts(cells) if dtype == nw.String else None


def _type_of_values(cells: Sequence[str]) -> type[ListColumn] | None:
    """Decide by the first list that is not empty."""
    nested = [value for value in _cell_values(cells) if is_nested(value)]
    if not nested:
        return _type_of_texts(cells)
    value = next((value for value in nested if len(value)), [])  # type: ignore[arg-type]
    if isinstance(value, dict):
        return RecordColumn
    parts = list(value)  # type: ignore[call-overload]
    if parts and all(isinstance(part, str) for part in parts):
        return TextListColumn
    is_vector = not any(isinstance(part, str) or is_nested(part) for part in parts)
    return VectorColumn if is_vector else RecordColumn


def _type_of_texts(cells: Sequence[str]) -> type[ListColumn] | None:
    if not any(cell.lstrip().startswith("[") for cell in cells):
        return None
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    bracketed = [cell for cell in present if cell.startswith("[") and cell.endswith("]")]
    if len(bracketed) < VECTORS_FROM * len(present):
        return None
    sniffed = nsmallest(SNIFFED_CELLS, bracketed)
    readable = sum(map(_is_vector, sniffed))
    return VectorColumn if readable >= VECTORS_FROM * len(sniffed) else None


def _is_vector(cell: str) -> bool:
    try:
        parse_vector(cell)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _cell_values(cells: Sequence[str]) -> Iterator[object]:
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
