"""Joins, sorts and counts in bounded memory, with DuckDB (extra `scale`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.errors import SettingError
from nodenova.io.stream_columns import MAX_VALUE_LENGTH, most_frequent

MEMORY = "1GB"  # that DuckDB uses before it spills to disk
BATCH = 100_000  # rows per insert or fetch
MAX_HELD = 200_000  # different texts that are counted in memory


class Store:
    """A DuckDB database in `folder`, which uses at most `memory` (500MB, 2GB) of RAM."""

    def __init__(self, folder: Path, memory: str = MEMORY) -> None:
        try:
            import duckdb
            import pyarrow
        except ImportError as error:
            raise SettingError(
                f"preparing a graph folder from tables needs {error.name}; "
                "pip install 'nodenova[scale]'"
            ) from None
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?[MGT]B", memory):
            raise SettingError(f"memory is a size like 500MB or 2GB, not {memory!r}")
        self.folder = folder
        self._arrow = pyarrow
        self._numbers = count()
        self._database = duckdb.connect(str(folder / "work.duckdb"))
        self.run(f"SET temp_directory = '{str(folder / 'spilled').replace(chr(39), chr(39) * 2)}'")
        self.run(f"SET memory_limit = '{memory}'")

    def run(self, sql: str) -> None:
        """Run a statement."""
        self._database.execute(sql)

    def rows(self, sql: str, values: list[object] | None = None) -> list[tuple[Any, ...]]:
        """Return all rows of a short result."""
        return self._database.execute(sql, values).fetchall()

    def batches(self, sql: str) -> Iterator[Mapping[str, np.ndarray]]:
        """Yield a long result in batches, by columns; run nothing else meanwhile."""
        for batch in self._database.sql(sql).to_arrow_reader(BATCH):
            columns = zip(batch.schema.names, batch.columns, strict=True)
            yield {name: column.to_numpy(zero_copy_only=False) for name, column in columns}

    def add(self, table: str, columns: Mapping[str, Any]) -> None:
        """Append rows, as columns, to an existing table."""
        self._database.register("incoming", self._arrow.table(dict(columns)))
        self.run(f"INSERT INTO {table} SELECT * FROM incoming")
        self._database.unregister("incoming")

    def number(self) -> int:
        """Return a new number at every call, for names of tables and files."""
        return next(self._numbers)

    def room(self, size: int) -> np.ndarray:
        """(size,) array of floats on disk."""
        if not size:
            return np.empty(0)
        path = self.folder / f"numbers-{self.number()}"
        return np.asarray(np.memmap(path, dtype=np.float64, mode="w+", shape=(size,)))

    def tally(self) -> Tally:
        """Return a counter of texts."""
        return Tally(self)

    def close(self) -> None:
        """Close the database."""
        self._database.close()


class Tally(Collection[str]):
    """A `Counter` of texts that moves to disk when it grows large."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: Counter[str] = Counter()
        self._before = 0  # number of texts written to disk
        self._table = ""
        self._is_summed = False

    def add(self, texts: Iterable[str]) -> None:
        """Count more texts."""
        self._held.update(texts)
        if len(self._held) > MAX_HELD:
            self._spill()

    def _spill(self) -> None:
        if not self._table:
            self._table = f"tally_{self._store.number()}"
            self._store.run(f"CREATE TABLE {self._table} (value VARCHAR, n BIGINT, place BIGINT)")
        place = np.arange(self._before, self._before + len(self._held))
        numbers = np.fromiter(self._held.values(), dtype=np.int64, count=len(self._held))
        self._store.add(self._table, {"value": list(self._held), "n": numbers, "place": place})
        self._before += len(self._held)
        self._held = Counter()

    def table(self) -> str:
        """Name of a table (value, n, place) on disk: text, count and first appearance."""
        if not self._is_summed:
            self._spill()
            raw, self._table = self._table, f"{self._table}_summed"
            columns = "value, sum(n)::BIGINT n, min(place) place"
            select = f"SELECT {columns} FROM {raw} GROUP BY value"
            self._store.run(f"CREATE TABLE {self._table} AS {select}")
            self._store.run(f"DROP TABLE {raw}")
            self._is_summed = True
        return self._table

    def __len__(self) -> int:
        if not self._table:
            return len(self._held)
        return self._store.rows(f"SELECT count(*) FROM {self.table()}")[0][0]

    def __iter__(self) -> Iterator[str]:
        if not self._table:
            yield from self._held
            return
        for batch in self._store.batches(f"SELECT value FROM {self.table()} ORDER BY place"):
            yield from batch["value"].tolist()

    def __contains__(self, text: object) -> bool:
        if not self._table:
            return text in self._held
        found = self._store.rows(f"SELECT count(*) FROM {self.table()} WHERE value = ?", [text])
        return bool(found[0][0])

    def most_frequent(self, n: int) -> list[tuple[str, int]]:
        """The most frequent texts, as `stream_columns.most_frequent` orders them."""
        if not self._table:
            return most_frequent(self._held, n)
        order = f"ORDER BY n DESC, length(value) > {MAX_VALUE_LENGTH}, value LIMIT {n}"
        return self._store.rows(f"SELECT value, n FROM {self.table()} {order}")
