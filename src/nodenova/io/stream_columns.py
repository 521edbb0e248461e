"""Columns that are not in memory: each pass over a column reads it piece by piece."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from typing import Any

import numpy as np

from nodenova.io.frames import Series, TypedColumn, is_missing

WITH_COMMAS = re.compile(r"\s*[+-]?\d+(,\d+)+\s*")
THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+\s*")
MAX_VALUE_LENGTH = 100  # characters; a longer value is counted by its hash


@dataclass(frozen=True, eq=False)
class StreamColumn(TypedColumn):
    """A column of `size` cells that `read` yields piece by piece; `series` is empty, for its type.

    `room` makes an array of N numbers and `tally` a counter of texts, which may lie on disk.
    """

    size: int = 0
    read: Callable[[], Iterator[Series]] = field(default=lambda: iter(()))
    room: Callable[[int], np.ndarray] = field(default=np.empty)
    tally: Callable[[], Any] = field(default=dict)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return list(islice(self, *place.indices(len(self))))
        return next(islice(self, range(self.size)[place], None))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[str]:
        for piece in self.pieces():
            yield from piece.texts

    def pieces(self) -> Iterator[TypedColumn]:
        """Yield the column as consecutive columns in memory."""
        return (TypedColumn(series, self.source, self.name) for series in self.read())

    @property
    def texts(self) -> list[str]:
        """(N,) all cells, in memory."""
        return list(self)

    @cached_property
    def values(self) -> np.ndarray | None:
        """(N,) numbers, as of a column in memory."""
        if not self.has_numbers:
            return None
        values, done = self.room(self.size), 0
        for piece in self.pieces():
            values[done : done + len(piece)] = piece.values
            done += len(piece)
        return values

    @property
    def is_constant(self) -> bool:
        """Whether all cells are the same."""
        seen: set[object] = set()
        for piece in self.pieces():
            seen |= set(piece.series.unique().to_list())
            if len(seen) > 1:
                return False
        return len(seen) == 1

    @cached_property
    def summary(self) -> tuple[int, Any, Counter[str], int]:
        """The fields of `columns.Summary`: non-empty cells, values, blank values, words."""
        tally, blank = self.tally(), Counter[str]()
        present = words = 0
        for piece in self.pieces():
            texts = [cell.strip() for cell in piece if not is_missing(cell)]
            present += len(texts)
            words += sum(len(cell.split()) for cell in texts)
            tally.add(map(shorten, texts))
            blank.update(filter(is_missing, texts))
        return present, tally, blank, words

    @cached_property
    def numbers(self) -> tuple[np.ndarray, int, str]:
        """What `parse_numbers` returns."""
        return parse_numbers(self, self.room(self.size))


def parse_numbers(cells: Sequence[str], values: np.ndarray) -> tuple[np.ndarray, int, str]:
    """Fill (N,) `values` with the numbers in cells, NaN for others.

    Returns the values, how many cells are no numbers, and how commas were read, if there are any.
    """
    odd = 0
    commas = thousands = single = True
    for row, cell in enumerate(cells):
        values[row] = np.nan
        if not is_missing(cell):
            try:
                values[row] = float(cell)
            except ValueError:
                odd += 1
                commas = commas and bool(WITH_COMMAS.fullmatch(cell))
                thousands = thousands and bool(THOUSANDS.fullmatch(cell))
                single = single and cell.count(",") == 1
    if not odd or not commas or not (thousands or single):
        return values, odd, ""
    for row, cell in enumerate(cells):
        if np.isnan(values[row]) and WITH_COMMAS.fullmatch(cell):
            values[row] = float(cell.replace(",", "" if thousands else "."))
    return values, 0, "commas between thousands" if thousands else "decimal commas"


def most_frequent(counts: Counter[str], n: int) -> list[tuple[str, int]]:
    """The n most frequent values; of equally frequent ones the first by code point, long ones last.

    Examples:
        >>> most_frequent(Counter(["oak", "ash", "elm", "elm"]), 2)
        [('elm', 2), ('ash', 1)]
    """

    def rank(item: tuple[str, int]) -> tuple[int, bool, str]:
        return -item[1], len(item[0]) > MAX_VALUE_LENGTH, item[0]

    return nsmallest(n, counts.items(), key=rank)


def shorten(value: str) -> str:
    """Return a value, or its hash where it is long; the hash is too long for a category as well."""
    if len(value) <= MAX_VALUE_LENGTH:
        return value
    digest = hashlib.blake2b(value.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return f"{digest:->{MAX_VALUE_LENGTH + 1}}"
