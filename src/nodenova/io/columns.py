"""How each column of a table becomes features with readable names.

What a column holds is inferred once, on the file that the recipe is fitted on. A feature describes
one node independently of the other rows, so that a file that has grown gives old nodes the features
they had. A number among words becomes "year>=1998" for each of its quintiles, as encoders of words
only see whether an entry is zero; numbers alone stay numbers, centered and scaled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from nodenova.display import plural
from nodenova.errors import GraphError
from nodenova.io.frames import MAX_NUMBER, TypedColumn, is_missing, quote
from nodenova.io.list_columns import RecordColumn, TextListColumn, VectorColumn, vectors_of_width
from nodenova.io.stream_columns import StreamColumn, most_frequent, parse_numbers
from nodenova.io.tables import Table

YES_NO = ({"true", "false"}, {"yes", "no"}, {"0", "1"}, {"t", "f"}, {"y", "n"}, {"0.0", "1.0"})
YES = {"true", "yes", "1", "t", "y", "1.0"}
RANGES = 5  # a number is cut into ranges with equally many nodes
MAX_VALUES = 50  # of a category; the others share one feature
MAX_VALUE_NAME = 100  # characters of a category's value
NUMERIC_FROM = 0.9  # share of cells that are numbers, for a column to be of numbers
MOSTLY_ZERO = 0.75  # numbers with more zeros than that are counts, and stay as they are
DENSE_ENOUGH = 0.5  # features stay numbers from this share of non-zero entries on
MAX_SPELLINGS = 48  # of yes and no: TRUE, True, ...
MIN_TEXT_WORDS = 3  # words per cell, on average, of a column that is used as text
NEARLY_ALL = 0.95  # share of distinct texts from which on a column is a key
MIN_NODES = 20  # in fewer nodes values may all differ by chance
HALF = 0.5  # the same share where the name or the values look like those of a key
KEY_NAME = re.compile(
    r"(?:^|[_\W])(?:id|key|uuid|guid|uri|url|link|href|doi|isbn|hash|sha1|sha256|md5|e-?mail)$"
    r"|(?<=[a-z])(?:I[dD]|Key|U[rR][iIlL])$"
)
ADDRESS = re.compile(r"(?:https?|ftp)://\S+|www\.\S+|[^\s@]+@[^\s@]+\.\w+|doi:\S+|10\.\d{4,}/\S+")


@dataclass(frozen=True)
class Column:
    """How one column becomes features."""

    name: str
    kind: str  # "number", "count" (mostly zero), "yes/no", "category" or "vector"
    cuts: tuple[float, ...] = ()  # quintiles of a number
    centre: float = 0.0  # mean of a number over the nodes first seen
    # Standard deviation of a number over the nodes first seen; of a vector, the average one of its
    # entries, so that distances between vectors keep their proportions.
    spread: float = 1.0
    values: tuple[str, ...] = ()  # of a category, that have a feature of their own
    has_other: bool = False  # whether the other values of a category share a feature
    has_missing: bool = False  # whether an empty cell is a feature
    width: int = 0  # length of a vector
    means: tuple[float, ...] = ()  # (width,) of a vector; empty where entries are mostly zero
    part_cuts: tuple[tuple[float, ...], ...] = ()  # quintiles of each entry of a vector

    def feature_names(self, cut: bool) -> list[str]:
        """Names of the features in `block`; with `cut`, a number has one for each of its cuts."""
        if self.kind == "category":
            names = [f"{self.name}={value}" for value in self.values]
            names += [f"{self.name}=other"] * self.has_other
        elif self.kind == "number" and cut:
            names = [f"{self.name}>={value:.12g}" for value in self.cuts]
        elif self.kind == "vector" and cut and self.means:
            parts = enumerate(self.part_cuts)
            names = [f"{self.name}[{i}]>={value:.12g}" for i, cuts in parts for value in cuts]
        elif self.kind == "vector":
            names = [f"{self.name}[{i}]" for i in range(self.width)]
        else:
            names = [self.name]
        return names + [f"{self.name} is missing"] * self.has_missing

    def block(self, cells: Sequence[str], cut: bool, source: str) -> tuple[sp.csr_array, int]:
        """(N, features) of the cells, and how many cells hold a value without a feature."""
        unknown = 0
        if self.kind == "category":
            features, missing, unknown = self._category_block(cells)
        elif self.kind == "yes/no":
            features, missing = _yes_no_block(cells)
        elif self.kind == "vector":
            features, missing = self._vector_block(cells, cut, source)
        else:
            value = read_numbers(cells, self.name, source)[0]
            missing = np.isnan(value)
            if self.kind == "number" and cut:
                features = sp.csr_array(value[:, None] >= np.array(self.cuts))  # NaN: below all
            else:
                scaled = value if self.kind == "count" else (value - self.centre) / self.spread
                features = _one_feature(np.where(missing, 0, scaled))
        if self.has_missing:
            features = sp.hstack([features, _one_feature(missing)])
        return sp.csr_array(features, dtype=np.float32), unknown

    def _category_block(self, cells: Sequence[str]) -> tuple[sp.csr_array, np.ndarray, int]:
        missing = np.array([is_missing(cell) for cell in cells])
        place = {value: number for number, value in enumerate(self.values)}
        other = len(self.values) if self.has_other else -1
        column = np.array([place.get(cell.strip(), other) for cell in cells])
        column[missing] = -1
        unknown = int(((column == -1) & ~missing).sum())
        rows = np.flatnonzero(column >= 0)
        entries = (np.ones(len(rows)), (rows, column[rows]))
        shape = (len(cells), len(self.values) + self.has_other)
        return sp.csr_array(entries, shape=shape), missing, unknown

    def _vector_block(
        self, cells: Sequence[str], cut: bool, source: str
    ) -> tuple[sp.csr_array, np.ndarray]:
        matrix = vectors_of_width(cells, self.name, source, self.width)
        missing = np.isnan(matrix[:, 0])
        if cut and self.means:
            part = np.repeat(np.arange(self.width), [len(cuts) for cuts in self.part_cuts])
            return sp.csr_array(matrix[:, part] >= np.concatenate(self.part_cuts)), missing
        if self.means:
            matrix = (matrix - np.array(self.means)) / self.spread
        return sp.csr_array(np.where(missing[:, None], 0, matrix).astype(np.float32)), missing


def _yes_no_block(cells: Sequence[str]) -> tuple[sp.csr_array, np.ndarray]:
    values = cells.values if isinstance(cells, TypedColumn) else None
    if values is not None:
        return _one_feature(values == 1), np.isnan(values)
    missing = np.array([is_missing(cell) for cell in cells])
    return _one_feature([cell.strip().lower() in YES for cell in cells]), missing


def _one_feature(values: Sequence[bool] | np.ndarray) -> sp.csr_array:
    return sp.csr_array(np.asarray(values, dtype=np.float32)[:, None])


def read_numbers(
    cells: Sequence[str],
    name: str,
    source: str,
    lines: Sequence[int] | None = None,
    unit: str = "row",
) -> tuple[np.ndarray, int, str]:
    """Read (N,) numbers of a column, NaN for empty cells and for what is no number.

    Also returns how many cells are no numbers, and how commas were read. An infinite number raises,
    unless most cells are no numbers: the checksum 4222129e13535836 is none either.
    """
    typed = cells.values if isinstance(cells, TypedColumn) else None
    if typed is not None:
        values, odd, commas = typed, 0, ""
    elif isinstance(cells, StreamColumn):
        values, odd, commas = cells.numbers
    else:
        values, odd, commas = parse_numbers(cells, np.empty(len(cells)))
    infinite = np.abs(values) > MAX_NUMBER
    if infinite.any() and odd > np.isfinite(values).sum():
        values[infinite] = np.nan
    elif infinite.any():
        row = int(infinite.argmax())
        where = f"column {name!r}, {unit} {row + 1 if lines is None else lines[row]}"
        what = "too large a number" if np.isfinite(values[row]) else "not a finite number"
        raise GraphError(f"{source}: {where}: {quote(cells[row])} is {what}")
    return values, odd + int(infinite.sum()), commas


class Counts(Collection[str], Protocol):
    """Distinct values and how often each appears, like a `Counter`."""

    def most_frequent(self, n: int) -> list[tuple[str, int]]:
        """The most frequent values, as `stream_columns.most_frequent` orders them."""


class ValueCounter(Counter[str]):
    """`Counts` in memory."""

    def most_frequent(self, n: int) -> list[tuple[str, int]]:
        """The most frequent values."""
        return most_frequent(self, n)


@dataclass(frozen=True, eq=False)
class Summary:
    """The cells of a column that are not empty, without spaces around them."""

    present: int  # how many there are
    counts: Counts  # their values
    blank: Counter[str]  # those that are empty after all once spaces are removed
    words: int  # how many words they have


def summarize(cells: Sequence[str]) -> Summary:
    """Summarize a column.

    Examples:
        >>> summary = summarize(["red oak ", "NA", "elm", "elm"])
        >>> summary.present, summary.counts.most_frequent(1), summary.words
        (3, [('elm', 2)], 4)
    """
    if isinstance(cells, StreamColumn):
        return Summary(*cells.summary)
    texts = [cell.strip() for cell in cells if not is_missing(cell)]
    counts = ValueCounter(texts)
    blank = Counter({value: count for value, count in counts.items() if is_missing(value)})
    words = sum(count * len(value.split()) for value, count in counts.items())
    return Summary(len(texts), counts, blank, words)


def summarize_plain(cells: Sequence[str]) -> Summary:
    """Summarize a column; one whose cells hold several values counts as empty."""
    try:
        return summarize(cells)
    except GraphError:
        return Summary(0, ValueCounter(), Counter(), 0)


def is_key_name(name: str) -> bool:
    """Whether the name of a column is one that keys have."""
    return bool(KEY_NAME.search(name) or KEY_NAME.search(name.lower()))


def key_reason(name: str, values: Collection[str] | np.ndarray, nodes: int) -> str:
    """Return why a column with these distinct values is a key; "" if it is none."""
    share = len(values) / max(nodes, 1)
    # Sizes and times hardly repeat either: of numbers only those that never do are ids.
    least = 1.0 if isinstance(values, np.ndarray) else NEARLY_ALL
    if share >= least and nodes >= MIN_NODES:
        every = "every row" if len(values) == nodes else "nearly every row"
        return f"has another value in {every}, as ids have"
    if share <= HALF or nodes < 3:
        return ""
    if not isinstance(values, np.ndarray) and all(map(ADDRESS.fullmatch, values)):
        return "holds addresses"
    return "has many values and a name that ids have" if is_key_name(name) else ""


def infer_column(table: Table, name: str, is_chosen: bool, notes: list[str]) -> Column | str | None:
    """Infer how a column is used: as a `Column`, as "text" (sentences), or not at all (None).

    A column that the user has chosen is used if it can be; others are left out when they look like
    names or keys.
    """
    cells = table.columns[name]
    where = f"{table.source}: column {name!r}"
    if isinstance(cells, VectorColumn):
        return _infer_vector(name, cells.matrix, where, notes)
    if isinstance(cells, TextListColumn):
        notes.append(f"{where} holds lists of texts; their words are used")
        return "text"
    if isinstance(cells, RecordColumn) and not is_chosen:
        notes.append(f"{where} holds records; not used")
        return None
    if isinstance(cells, TypedColumn) and cells.values is not None:
        return _infer_typed(name, cells, cells.values, is_chosen, notes)
    summary = summarize(cells)
    counts, present = summary.counts, summary.present
    missing = present < len(cells)
    if not counts or (len(counts) == 1 and not missing):
        notes.append(f"{where} is {'the same in every row' if counts else 'empty'}; not used")
        return None
    few = len(counts) <= MAX_SPELLINGS
    if few and any({value.lower() for value in counts} <= pair for pair in YES_NO):
        return Column(name, "yes/no", has_missing=missing)
    if not (isinstance(cells, TypedColumn) and cells.is_category):
        values, odd, commas = read_numbers(cells, name, table.source, table.lines, table.unit)
        if odd <= (1 - NUMERIC_FROM) * present:
            if commas:
                notes.append(f"{where}: numbers with {commas}")
            if odd:
                pairs = zip(cells, values, strict=True)
                first = next(cell for cell, v in pairs if np.isnan(v) and not is_missing(cell))
                bad = plural(odd, "cell is not a number", "cells are not numbers")
                notes.append(f"{where}: {bad}, treated as missing, first: {quote(first)}")
            return _infer_number(name, values, is_chosen, where, notes)
        is_text = len(counts) > present / 2 and summary.words >= MIN_TEXT_WORDS * present
        if is_text and not is_chosen:
            notes.append(f"{where} holds sentences; used as text")
            return "text"
    return _infer_category(name, summary, len(cells), is_chosen, where, notes)


def _infer_category(
    name: str, summary: Summary, nodes: int, is_chosen: bool, where: str, notes: list[str]
) -> Column | None:
    counts, present = summary.counts, summary.present
    common = counts.most_frequent(MAX_VALUES)
    values = [value for value, _ in common if len(value) <= MAX_VALUE_NAME]
    rest = len(counts) - len(values)
    if rest and not is_chosen and len(counts) > present / 2:
        notes.append(
            f"{where} looks like names ({len(counts):,} different values); "
            "not used, unless given as text or feature"
        )
        return None
    key = key_reason(name, counts, nodes)
    if key and not is_chosen:
        notes.append(f"{where} {key}; not used, unless given as text or feature")
        return None
    if rest:
        notes.append(
            f"{where}: the {len(values)} most frequent of {len(counts):,} values "
            "have a feature each, the rest share one"
        )
    named, missing = tuple(sorted(values)), present < nodes
    return Column(name, "category", values=named, has_other=rest > 0, has_missing=missing)


def _infer_typed(
    name: str, cells: TypedColumn, values: np.ndarray, is_chosen: bool, notes: list[str]
) -> Column | None:
    """Infer the use of a column whose type is numeric or boolean."""
    where = f"{cells.source}: column {name!r}"
    known = values[~np.isnan(values)]
    missing = len(known) < len(values)
    if not len(known) or (not missing and cells.is_constant):
        notes.append(f"{where} is {'the same in every row' if len(known) else 'empty'}; not used")
        return None
    if np.isin(known, (0, 1)).all():
        return Column(name, "yes/no", has_missing=missing)
    return _infer_number(name, read_numbers(cells, name, cells.source)[0], is_chosen, where, notes)


def _infer_number(
    name: str, values: np.ndarray, is_chosen: bool, where: str, notes: list[str]
) -> Column | None:
    known = np.sort(values[~np.isnan(values)])  # sums do not depend on the order of the rows
    missing = len(known) < len(values)
    is_whole = bool((known == np.rint(known)).all())
    distinct = np.unique(known)
    if is_whole and not is_chosen:
        if len(distinct) == len(values) > 2 and np.ptp(known) + 1 == len(values):
            notes.append(f"{where} only numbers the rows; not used")
            return None
        key = key_reason(name, distinct, len(values))
        if key:
            notes.append(f"{where} {key}; not used, unless given as a feature")
            return None
    if is_whole and len(distinct) == len(values) > 2:
        what = "has another whole number in every row, as ids have"
        notes.append(f"{where} {what}; used nevertheless")
    if (known == 0).mean() > MOSTLY_ZERO:
        return Column(name, "count", has_missing=missing)
    cuts, mean = tuple(_quintiles(known).tolist()), float(known.mean())
    return Column(name, "number", cuts, mean, float(known.std()) or 1.0, has_missing=missing)


def _quintiles(known: np.ndarray) -> np.ndarray:
    """Quintiles that are values of the column, without the lowest value."""
    cuts = np.unique(np.quantile(known, np.arange(1, RANGES) / RANGES, method="higher"))
    cuts = cuts[cuts > known.min()]
    return cuts if len(cuts) else np.array([known.max()])


def _infer_vector(name: str, matrix: np.ndarray, where: str, notes: list[str]) -> Column | None:
    width = matrix.shape[1]
    known = np.sort(matrix[~np.isnan(matrix).any(axis=1)], axis=0)  # sums ignore the row order
    missing = len(known) < len(matrix)
    if not known.size or (not missing and (known == known[0]).all()):
        notes.append(f"{where} is {'the same in every row' if known.size else 'empty'}; not used")
        return None
    last = f" to {name}[{width - 1}]" if width > 1 else ""
    notes.append(f"{where} holds vectors of {width:,} numbers; used as {name}[0]{last}")
    if (known == 0).mean() > MOSTLY_ZERO:
        return Column(name, "vector", has_missing=missing, width=width)
    return Column(
        name,
        "vector",
        spread=float(np.sqrt(known.var(axis=0).mean())) or 1.0,
        has_missing=missing,
        width=width,
        means=tuple(known.mean(axis=0).tolist()),
        part_cuts=tuple(tuple(_quintiles(part).tolist()) for part in known.T),
    )


def stay_numbers(columns: Sequence[Column], entries: int, size: int) -> bool:
    """Whether features stay numbers: at least half of the `size` entries are then non-zero."""
    return bool(columns) and entries >= DENSE_ENOUGH * size
