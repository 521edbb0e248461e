"""Columns of values as JSON and NetworkX have them: text to whoever reads them as a sequence.

A column that is text to whoever reads it as a sequence, whatever its cells hold.

Tables with types (pandas, polars, Arrow, Parquet), through narwhals: numbers stay numbers.

Ids, labels, categories and words are text wherever they come from, so that a data frame gives the
same graph as the CSV file with the same content. A cell becomes text only when it is asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, overload

import narwhals as nw
import numpy as np

from nodenova.errors import GraphError
from nodenova.progress import Progress


class TextColumn(Sequence[str]):
    """TypedColumn as text; how many there are is known before any of them becomes one."""

    @property
    @abstractmethod
    def texts(self) -> Sequence[str]:
        """(N,) cells as text."""

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        return self.texts[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)


Series: TypeAlias = "nw.Series[Any]"

BATCH_ROWS = 20_000  # of a table that is read piece by piece
MAX_COLUMNS = 100_000  # of a table; what has more is none
EMPTY_TYPES = ("NAType", "NaTType")  # of what pandas puts into empty cells, next to NaN and None


@dataclass(frozen=True, eq=False)
class TypedColumn(TextColumn):
    """A column with a type: text to whoever reads it as a sequence, numbers where it has numbers.

    Attributes:
        series: The column.
        source: What messages call the table.
        name: What messages call the column.
    """

    series: Series
    source: str
    name: str

    def __len__(self) -> int:
        return len(self.series)

    @cached_property
    def texts(self) -> list[str]:
        """(N,) cells as text, empty where there is nothing."""
        return _texts(self.series, self.source, self.name)

    @cached_property
    def values(self) -> np.ndarray | None:
        """(N,) numbers, truth values as 0 and 1, NaN for empty cells; None for other types."""
        dtype = self.series.dtype
        if dtype != nw.Boolean and not dtype.is_numeric():
            return None
        # No cast of types: Arrow's refuses whole numbers above 2^53, which a text's are rounded to.
        filled = self.series.fill_null(False if dtype == nw.Boolean else 0)
        values = np.array(filled.to_numpy(), dtype=np.float64)
        values[self.series.is_null().to_numpy()] = np.nan
        return values

    @property
    def is_category(self) -> bool:
        """Whether the column's type says that it is a category, whatever its values look like."""
        return self.series.dtype in (nw.Categorical, nw.Enum)

    @property
    def is_constant(self) -> bool:
        """Whether all cells are the same."""
        return self.series.n_unique() == 1


@dataclass(frozen=True, eq=False)
class Frame:
    """A table with types, in memory or in a file.

    Attributes:
        source: What messages call it.
        header: Names of its columns.
        notes: What was repaired.
        whole: Reads all columns.
        pieces: Reads the columns at these places, a number of rows at a time.
        is_numbered: Columns are called 0, 1, ... for want of names, as pandas does.
    """

    source: str
    header: list[str]
    notes: list[str]
    whole: Callable[[], list[Series]]
    pieces: Callable[[Sequence[int]], Iterator[list[Series]]]
    is_numbered: bool = False

    def rows(self, places: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
        """Each row's number, from 1 on, and its cells in the columns at these places, as text."""
        before = 0
        for piece in self.pieces(places):
            named = zip((self.header[place] for place in places), piece, strict=True)
            columns = [_texts(series, self.source, name, before) for name, series in named]
            for cells in zip(*columns, strict=True):
                before += 1
                yield before, list(cells)


def is_frame(table: object) -> bool:
    """Whether this is a data frame: of pandas, polars, Arrow, or another that narwhals knows."""
    return nw.dependencies.is_into_dataframe(table)


def open_frame(table: Any, source: str, progress: Progress) -> Frame:
    """A data frame in memory."""
    is_arrow = nw.dependencies.is_pyarrow_table(table)
    notes: list[str] = []
    names = table.column_names if is_arrow else table.columns
    header = clean_header([str(name) for name in names], source, notes)
    columns = list(nw.from_native(table, eager_only=True).iter_columns())

    def pieces(places: Sequence[int]) -> Iterator[list[Series]]:
        for start in range(0, len(columns[0]), BATCH_ROWS):
            yield [columns[place][start : start + BATCH_ROWS] for place in places]
            progress(f"reading {source}", min(1.0, (start + BATCH_ROWS) / len(columns[0])))

    is_numbered = all(isinstance(name, int) for name in names)
    return Frame(source, header, notes, lambda: columns, pieces, is_numbered)


def open_parquet(path: Path, source: str, progress: Progress) -> Frame:
    """A Parquet file, of which only the columns that are asked for are read."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        how = "pip install 'nodenova[parquet]'"
        raise GraphError(f"{source}: Parquet files need pyarrow; {how}") from None
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        what = str(error).splitlines()[0]
        raise GraphError(f"{source}: not a readable Parquet file ({what})") from None
    notes: list[str] = []
    names = list(file.schema_arrow.names)
    header = clean_header(names, source, notes)

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        done = 0
        try:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(wanted)):
                yield pa.Table.from_batches([batch])
                done += batch.num_rows
                progress(f"reading {source}", done / max(file.metadata.num_rows, 1))
        except (pa.ArrowException, OSError) as error:
            what = str(error).splitlines()[0]
            raise GraphError(f"{source}: damaged after row {done} ({what})") from None

    def whole() -> list[Series]:
        parts = list(batches(names))
        table = pa.concat_tables(parts) if parts else file.schema_arrow.empty_table()
        return list(nw.from_native(table, eager_only=True).iter_columns())

    def pieces(places: Sequence[int]) -> Iterator[list[Series]]:
        wanted = [names[place] for place in places]
        for batch in batches(wanted):
            frame = nw.from_native(batch, eager_only=True)
            yield [frame.get_column(name) for name in wanted]

    return Frame(source, header, notes, whole, pieces)


def clean_header(cells: Sequence[str], source: str, notes: list[str]) -> list[str]:
    """Names of columns without the spaces around them; a column without a name gets one."""
    if not cells:
        raise GraphError(f"{source}: a table without columns")
    if len(cells) > MAX_COLUMNS:
        said = f"a header of {len(cells):,} columns, first: {cells[0][:40]!r}; is this a table?"
        raise GraphError(f"{source}: {said}")
    names = [cell.strip() for cell in cells]
    times = Counter(names)
    unnamed = times.pop("", 0)
    twice = min((name for name in times if times[name] > 1), default=None)
    if twice is not None:
        raise GraphError(f"{source}: the header names column {twice!r} {times[twice]} times")
    if unnamed:
        said = "columns without a name are called column-1, column-2, ... by place"
        notes.append(f"{source}: {unnamed} {said}")
    return [name or f"column-{place}" for place, name in enumerate(names, start=1)]


def to_text(value: object) -> str:
    """A value as text; what libraries put where there is nothing is empty.

    Examples:
        >>> [to_text(value) for value in (12, True, "a", None, float("nan"))]
        ['12', 'True', 'a', '', '']
    """
    if isinstance(value, str):
        return value
    if value is None or type(value).__name__ in EMPTY_TYPES:
        return ""
    is_number = isinstance(value, (float, Decimal, np.generic))
    return "" if is_number and value != value else str(value)


def _texts(series: Series, source: str, name: str, before: int = 0) -> list[str]:
    """(N,) the cells of a column as text; one that holds several values is refused."""
    if series.dtype.is_nested():
        raise _several(source, name, f"its type is {series.dtype}")
    values = series.to_list()
    if series.dtype == nw.Object:
        check_single_values(values, source, name, before=before)
    return [to_text(value) for value in values]


def is_nested(value: object) -> bool:
    """Whether a value is a list, a vector or a record, and not one value."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def check_single_values(
    values: Sequence[object], source: str, name: str, *, unit: str = "row", before: int = 0
) -> None:
    """Raise if a cell of a column that is to be read as text holds several values."""
    for row, value in enumerate(values, start=before + 1):
        if is_nested(value):
            raise _several(source, name, f"{unit} {row} has a {type(value).__name__}")


def _several(source: str, name: str, what: str) -> GraphError:
    return GraphError(
        f"{source}: column {name!r} has several values in a cell ({what}); "
        "spread them over columns of their own, or leave the column out"
    )


@dataclass(frozen=True, eq=False)
class ValueColumn(TextColumn):
    """A column in which some cells hold lists or records.

    Attributes:
        values: (N,) what the cells hold, None where there is nothing.
        source: What messages call the table.
        name: What messages call the column.
        unit: What messages count the cells in.
    """

    values: Sequence[object]
    source: str
    name: str
    unit: str = "row"

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def texts(self) -> list[str]:
        """(N,) cells as text.

        Raises:
            GraphError: A cell holds several values.
        """
        check_single_values(self.values, self.source, self.name, unit=self.unit)
        return [to_text(value) for value in self.values]


def make_column(values: Sequence[object], source: str, name: str, unit: str) -> Sequence[str]:
    """A column as text; as `ValueColumn` where a cell holds a list or a record.

    Args:
        values: (N,) what the cells hold, None where there is nothing.
        source: What messages call the table.
        name: What messages call the column.
        unit: What messages count the cells in.

    Examples:
        >>> make_column([1, None, "a"], "nodes", "kind", "row")
        ['1', '', 'a']
        >>> type(make_column([[0.5, 1.5], None], "nodes", "v", "row")).__name__
        'ValueColumn'
    """
    if any(map(is_nested, values)):
        return ValueColumn(values, source, name, unit)
    return [to_text(value) for value in values]
