"""Columns with types: from pandas, polars, Arrow and Parquet (through narwhals), JSON and NetworkX.

Numbers stay numbers. Ids, labels, categories and words are text wherever they come from, so that a
data frame gives the same graph as the CSV file with the same content; a cell becomes text only when
its text is read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np

from nodenova.display import plural
from nodenova.errors import GraphError, NodenovaError, first_line
from nodenova.files.arrays import MAX_GROWTH, unpacked_limit
from nodenova.progress import Progress

Series: TypeAlias = "nw.Series[Any]"

BATCH_ROWS = 20_000  # of a table that is read piece by piece
MAX_NUMBER = float(np.finfo(np.float32).max)  # features are stored as float32
MAX_CELLS = 1 << 26  # of a Parquet file, beyond 100 for each of its bytes
MAX_COLUMNS = 100_000  # of a table; a file with more is something else
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "<na>"})  # spreadsheets' empty cells
EMPTY_TYPES = ("NAType", "NaTType")  # types of pandas' empty cells, besides NaN and None


@contextmanager
def readable_column(source: str, name: str) -> Iterator[None]:
    """Turn an error of another library about the values of a column into one that names it."""
    try:
        yield
    except (NodenovaError, MemoryError):
        raise
    except BaseException as error:  # of any kind: dates beyond the calendar, bytes that are no text
        # A panic of polars is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        what = f"column {name!r} has values that cannot be read ({first_line(error)})"
        raise GraphError(f"{source}: {what}; leave the column out") from None


def is_missing(cell: str) -> bool:
    """Whether a cell is empty, or holds what spreadsheets write for an empty cell."""
    return len(cell) <= 4 and cell.strip().lower() in MISSING


def quote(text: str, most: int = 40) -> str:
    """Quote a cell in a message; long ones are cut."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def to_text(value: object) -> str:
    """Return a value as text; None, NaN and pandas.NA become "".

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


def is_nested(value: object) -> bool:
    """Whether a value is a list, a vector or a record."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def check_single_values(
    values: Sequence[object], source: str, name: str, *, unit: str = "row", before: int = 0
) -> None:
    """Raise if a cell of a column that is read as text holds several values."""
    for row, value in enumerate(values, start=before + 1):
        if is_nested(value):
            raise _nested_error(source, name, f"{unit} {row} has a {type(value).__name__}")


def _nested_error(source: str, name: str, what: str) -> GraphError:
    return GraphError(
        f"{source}: column {name!r} has several values in a cell ({what}); "
        "spread them over columns of their own, or leave the column out"
    )


class TextColumn(Sequence[str]):
    """A column whose cells read as text, whatever they hold; its length is known before that."""

    @property
    @abstractmethod
    def texts(self) -> Sequence[str]:
        """(N,) cells as text."""

    def __getitem__(self, place: Any) -> Any:
        return self.texts[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)


@dataclass(frozen=True, eq=False)
class TypedColumn(TextColumn):
    """A column with a type, of a table called `source` in messages."""

    series: Series
    source: str
    name: str

    def __len__(self) -> int:
        return len(self.series)

    @cached_property
    def texts(self) -> list[str]:
        """(N,) cells as text, "" where empty."""
        return _series_texts(self.series, self.source, self.name)

    @property
    def has_numbers(self) -> bool:
        """Whether the type is numeric or boolean."""
        return self.series.dtype == nw.Boolean or self.series.dtype.is_numeric()

    @cached_property
    def values(self) -> np.ndarray | None:
        """(N,) numbers, booleans as 0 and 1, NaN for empty cells; None for other types."""
        if not self.has_numbers:
            return None
        # No cast of types: Arrow's refuses whole numbers above 2^53, which text rounds.
        with readable_column(self.source, self.name):
            filled = self.series.fill_null(False if self.series.dtype == nw.Boolean else 0)
            values = np.array(filled.to_numpy(), dtype=np.float64)
            values[self.series.is_null().to_numpy()] = np.nan
        return values

    @property
    def is_category(self) -> bool:
        """Whether the type is categorical, whatever the values look like."""
        return self.series.dtype in (nw.Categorical, nw.Enum)

    @property
    def is_constant(self) -> bool:
        """Whether all cells are the same."""
        with readable_column(self.source, self.name):
            return self.series.n_unique() == 1


@dataclass(frozen=True, eq=False)
class ValueColumn(TextColumn):
    """A column of Python values (None where empty), some of them lists or records."""

    values: Sequence[object]
    source: str
    name: str
    unit: str = "row"

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def texts(self) -> list[str]:
        """(N,) cells as text."""
        check_single_values(self.values, self.source, self.name, unit=self.unit)
        return [to_text(value) for value in self.values]


def make_column(values: Sequence[object], source: str, name: str, unit: str) -> Sequence[str]:
    """Return the column as texts, or as a `ValueColumn` if a cell holds a list or a record."""
    if any(map(is_nested, values)):
        return ValueColumn(values, source, name, unit)
    return [to_text(value) for value in values]


@dataclass(frozen=True, eq=False)
class Frame:
    """A table with types, in memory or in a file."""

    source: str  # the table's name in messages
    header: list[str]  # names of its columns
    notes: list[str]  # repairs
    read_columns: Callable[[], list[Series]]  # reads all columns
    pieces: Callable[[Sequence[int]], Iterator[list[Series]]]  # `BATCH_ROWS` rows of columns
    is_numbered: bool = False  # whether columns are called 0, 1, ..., as pandas does

    def rows(self, places: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
        """Yield each row's number, from 1 on, and its cells in these columns, as text."""
        before = 0
        for piece in self.pieces(places):
            named = zip((self.header[place] for place in places), piece, strict=True)
            columns = [_series_texts(series, self.source, name, before) for name, series in named]
            for cells in zip(*columns, strict=True):
                before += 1
                yield before, list(cells)


def is_frame(table: object) -> bool:
    """Whether this is a data frame of pandas, polars, Arrow, or another that narwhals knows."""
    return nw.dependencies.is_into_dataframe(table)


def open_frame(table: Any, source: str, progress: Progress) -> Frame:
    """Open a data frame in memory."""
    notes: list[str] = []
    is_arrow = nw.dependencies.is_pyarrow_table(table)
    names = table.column_names if is_arrow else table.columns
    header = clean_header([str(name) for name in names], source, notes)
    for name, kind in zip(header, getattr(table, "dtypes", ()), strict=False):
        if getattr(kind, "kind", "") == "c":
            raise GraphError(f"{source}: column {name!r} has complex numbers; give real ones")
    columns = list(nw.from_native(table, eager_only=True).iter_columns())

    def pieces(places: Sequence[int]) -> Iterator[list[Series]]:
        for start in range(0, len(columns[0]), BATCH_ROWS):
            yield [columns[place][start : start + BATCH_ROWS] for place in places]
            progress(f"reading {source}", min(1.0, (start + BATCH_ROWS) / len(columns[0])))

    is_numbered = all(isinstance(name, int) for name in names)
    return Frame(source, header, notes, lambda: columns, pieces, is_numbered)


def open_parquet(path: Path, source: str, progress: Progress) -> Frame:
    """Open a Parquet file; only the columns that are needed are read."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        how = "pip install 'nodenova[parquet]'"
        raise GraphError(f"{source}: Parquet files need pyarrow; {how}") from None
    try:
        file = pq.ParquetFile(path)
        names = list(file.schema_arrow.names)
        rows, size = int(file.metadata.num_rows), path.stat().st_size
    except Exception as error:  # of any kind: names that are no text, types that do not exist
        what = f"not a readable Parquet file ({first_line(error)})"
        raise GraphError(f"{source}: {what}") from None
    # Equal cells take no room in the file, but they do in memory.
    if rows * len(names) > MAX_CELLS + MAX_GROWTH * size:
        raise GraphError(
            f"{source}: {rows:,} rows of {len(names):,} columns in {size:,} bytes; "
            "the cells would need far more memory than the file"
        )
    notes: list[str] = []
    header = clean_header(names, source, notes)

    def batches(columns: list[str]) -> Iterator[Any]:
        done, held = 0, 0
        pieces = file.iter_batches(batch_size=BATCH_ROWS, columns=columns)
        while True:
            try:
                batch = next(pieces, None)
                if batch is not None:
                    batch.validate(full=True)  # texts that are not UTF-8
            except Exception as error:  # of any kind
                what = f"damaged after row {done} ({first_line(error)})"
                raise GraphError(f"{source}: {what}") from None
            if batch is None:
                return
            held += batch.nbytes
            if held > unpacked_limit(size):
                raise GraphError(f"{source}: unpacks to more than {MAX_GROWTH} times its size")
            yield pa.Table.from_batches([batch])
            done += batch.num_rows
            progress(f"reading {source}", done / max(rows, 1))

    def read_columns() -> list[Series]:
        parts = list(batches(names))
        table = pa.concat_tables(parts) if parts else file.schema_arrow.empty_table()
        return list(nw.from_native(table, eager_only=True).iter_columns())

    def pieces(places: Sequence[int]) -> Iterator[list[Series]]:
        columns = [names[place] for place in places]
        for batch in batches(columns):
            frame = nw.from_native(batch, eager_only=True)
            yield [frame.get_column(name) for name in columns]

    return Frame(source, header, notes, read_columns, pieces)


def clean_header(cells: Sequence[str], source: str, notes: list[str]) -> list[str]:
    """Strip the names of columns, name those without one, and raise if a name appears twice."""
    if not cells:
        raise GraphError(f"{source}: a table without columns")
    if len(cells) > MAX_COLUMNS:
        what = f"a header of {len(cells):,} columns, first: {cells[0][:40]!r}; is this a table?"
        raise GraphError(f"{source}: {what}")
    names = [cell.strip() for cell in cells]
    times = Counter(names)
    unnamed = times.pop("", 0)
    twice = min((name for name in times if times[name] > 1), default=None)
    if twice is not None:
        raise GraphError(f"{source}: the header names column {twice!r} {times[twice]} times")
    if unnamed:
        columns = plural(unnamed, "column without a name is", "columns without a name are")
        notes.append(f"{source}: {columns} called column-1, column-2, ... by position")
    return [name or f"column-{place}" for place, name in enumerate(names, start=1)]


def _series_texts(series: Series, source: str, name: str, before: int = 0) -> list[str]:
    """(N,) cells as text; `before` rows of the table precede them in messages."""
    if series.dtype.is_nested():
        raise _nested_error(source, name, f"its type is {series.dtype}")
    with readable_column(source, name):
        values = series.to_list()
    if series.dtype == nw.Object:
        check_single_values(values, source, name, before=before)
    return [to_text(value) for value in values]
