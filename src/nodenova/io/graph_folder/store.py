"""A database on disk that joins, sorts and counts in bounded memory: DuckDB, an extra."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.errors import SettingError

MEMORY = "1GB"  # that DuckDB uses before it goes to disk
BATCH = 100_000  # rows that go in or come out at a time
MAX_HELD = 200_000  # different texts that are counted in memory


class Store:
    """Tables on disk, in a folder that goes when the work is done.

    Args:
        folder: Where the database and its temporary files go.
        memory: Most that DuckDB uses: 500MB, 2GB.

    Raises:
        SettingError: DuckDB or pyarrow is not installed, or the memory is no size.
    """

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
        """All rows of a short answer."""
        return self._database.execute(sql, values).fetchall()

    def batches(self, sql: str) -> Iterator[Mapping[str, np.ndarray]]:
        """A long answer by columns, a number of rows at a time; nothing else runs meanwhile."""
        for batch in self._database.sql(sql).to_arrow_reader(BATCH):
            columns = zip(batch.schema.names, batch.columns, strict=True)
            yield {name: column.to_numpy(zero_copy_only=False) for name, column in columns}

    def add(self, table: str, columns: Mapping[str, Any]) -> None:
        """Append rows, by columns, to a table that is there."""
        self._database.register("incoming", self._arrow.table(dict(columns)))
        self.run(f"INSERT INTO {table} SELECT * FROM incoming")
        self._database.unregister("incoming")

    def number(self) -> int:
        """Another number at every call, for names of tables and files."""
        return next(self._numbers)

    def room(self, size: int) -> np.ndarray:
        """(size,) numbers on disk."""
        if not size:
            return np.empty(0)
        path = self.folder / f"numbers-{self.number()}"
        return np.asarray(np.memmap(path, dtype=np.float64, mode="w+", shape=(size,)))

    def tally(self) -> Tally:
        """Something that counts texts."""
        return Tally(self)

    def close(self) -> None:
        """Leave the database."""
        self._database.close()


class Tally(Collection[str]):
    """Counts texts as a `Counter` does; when they are many, on disk.

    Args:
        store: Where to.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: Counter[str] = Counter()
        self._before = 0  # texts that were written to disk
        self._table = ""
        self._is_summed = False

    def add(self, texts: Iterable[str]) -> None:
        """Count these too."""
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
        """A table of (value, n, place) on disk: each text, how often, and when it was first."""
        if not self._is_summed:
            self._spill()
            raw, self._table = self._table, f"{self._table}_summed"
            said = "SELECT value, sum(n)::BIGINT n, min(place) place"
            self._store.run(f"CREATE TABLE {self._table} AS {said} FROM {raw} GROUP BY value")
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

    def most_common(self, n: int | None = None) -> list[tuple[str, int]]:
        """The most frequent texts; of two as frequent, the one that was counted first."""
        if not self._table:
            return self._held.most_common(n)
        limit = "" if n is None else f"LIMIT {n}"
        order = f"ORDER BY n DESC, place {limit}"
        return self._store.rows(f"SELECT value, n FROM {self.table()} {order}")
