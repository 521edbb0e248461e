"""How a column is to be used: what it holds is judged once, on the file it is learned from.

Columns of a table as features with readable names.

A feature says something of one node that does not depend on the other nodes of the file: a word is
there or it is not, a category has this value or not. So a file that has grown gives old nodes the
features they had, and features of two files match by name. TF-IDF only chooses which words are
worth a feature; how much a word weighs is left to the encoder (Prism weighs words itself). A number
among words becomes "year>=1998" for each of its quintiles, because an encoder of words asks only
whether an entry is zero; and near numbers share most of these. Where numbers are all there is, they
stay numbers, each centered and divided by its spread, as first seen.

What is asked of a column before anybody knows what it holds: its values, how often each is.

Columns that tell nodes apart and say nothing of what they are: ids, keys, addresses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from nodenova.errors import GraphError
from nodenova.io.frames import TypedColumn
from nodenova.io.list_columns import RecordColumn, TextListColumn, VectorColumn, vectors_of_width
from nodenova.io.stream_columns import THOUSANDS, WITH_COMMAS, StreamColumn
from nodenova.io.tables import Table, is_missing, quote

YES_NO = ({"true", "false"}, {"yes", "no"}, {"0", "1"}, {"t", "f"}, {"y", "n"}, {"0.0", "1.0"})
YES = {"true", "yes", "1", "t", "y", "1.0"}


@dataclass(frozen=True)
class Column:
    """How one column becomes features.

    Attributes:
        name: Of the column.
        kind: "number", "count" (mostly zero), "yes/no", "category" or "vector".
        cuts: Of a number, its quintiles.
        centre: Of a number, its mean over the nodes first seen.
        spread: Of a number, its standard deviation over the nodes first seen; of a vector the one
            that its numbers have on average, so that distances between vectors stay what they are.
        values: Of a category, those with a feature of their own.
        has_other: The other values of a category share a feature.
        has_missing: An empty cell is a feature.
        width: Of a vector, how many numbers it has.
        means: Of a vector, (width,) the means of its numbers; none where they are mostly zero, and
            stay as they are.
        part_cuts: Of a vector, the quintiles of each of its numbers.
    """

    name: str
    kind: str
    cuts: tuple[float, ...] = ()
    centre: float = 0.0
    spread: float = 1.0
    values: tuple[str, ...] = ()
    has_other: bool = False
    has_missing: bool = False
    width: int = 0
    means: tuple[float, ...] = ()
    part_cuts: tuple[tuple[float, ...], ...] = ()

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
        """(N, its features), and how many cells hold what this column has no feature for."""
        unknown = 0
        if self.kind == "category":
            missing = np.array([is_missing(cell) for cell in cells])
            place = {value: number for number, value in enumerate(self.values)}
            other = len(self.values) if self.has_other else -1
            column = np.array([place.get(cell.strip(), other) for cell in cells])
            column[missing] = -1
            unknown = int(((column == -1) & ~missing).sum())
            rows = np.flatnonzero(column >= 0)
            entries = (np.ones(len(rows)), (rows, column[rows]))
            own = sp.csr_array(entries, shape=(len(cells), len(self.values) + self.has_other))
        elif self.kind == "yes/no":
            values = values_of(cells)
            if values is None:
                missing = np.array([is_missing(cell) for cell in cells])
                own = _column([cell.strip().lower() in YES for cell in cells])
            else:
                missing = np.isnan(values)
                own = _column(values == 1)
        elif self.kind == "vector":
            matrix = vectors_of_width(cells, self.name, source, self.width)
            missing = np.isnan(matrix[:, 0])
            if cut and self.means:
                part = np.repeat(np.arange(self.width), [len(cuts) for cuts in self.part_cuts])
                own = sp.csr_array(matrix[:, part] >= np.concatenate(self.part_cuts))
            else:
                if self.means:
                    matrix = (matrix - np.array(self.means)) / self.spread
                own = sp.csr_array(np.where(missing[:, None], 0, matrix).astype(np.float32))
        else:
            value = read_numbers(cells, self.name, source)[0]
            missing = np.isnan(value)
            if self.kind == "number" and cut:
                own = sp.csr_array(value[:, None] >= np.array(self.cuts))  # NaN is above no cut
            else:
                scaled = value if self.kind == "count" else (value - self.centre) / self.spread
                own = _column(np.where(missing, 0, scaled))
        if self.has_missing:
            own = sp.hstack([own, _column(missing)])
        return sp.csr_array(own, dtype=np.float32), unknown


def _column(values: Sequence[bool] | np.ndarray) -> sp.csr_array:
    return sp.csr_array(np.asarray(values, dtype=np.float32)[:, None])


def values_of(cells: Sequence[str]) -> np.ndarray | None:
    """(N,) the numbers of a column whose type says that it holds numbers or truth values."""
    return cells.values if isinstance(cells, TypedColumn) else None


def read_numbers(
    cells: Sequence[str],
    name: str,
    source: str,
    lines: Sequence[int] | None = None,
    unit: str = "row",
) -> tuple[np.ndarray, int, str]:
    """Read a column of numbers.

    Args:
        cells: (N,) what the column holds.
        name: Of the column, for messages.
        source: What messages call the table.
        lines: (N,) numbers of the rows; 1, 2, ... by default.
        unit: What those numbers count.

    Returns:
        (N,) numbers, NaN for empty cells and for what is no number; how many of the latter; and how
        commas were read, if there are any.

    Raises:
        GraphError: A number is infinite, in a column that mostly holds numbers.
    """
    typed = values_of(cells)
    if typed is None and isinstance(cells, StreamColumn):
        values, odd_cells, said = cells.numbers
        odd_cells += _infinite(values, odd_cells, cells, name, source, lines, unit)
        return values, odd_cells, said
    odd = []
    said = ""
    values = np.full(len(cells), np.nan) if typed is None else typed
    for row, cell in enumerate(cells if typed is None else ()):
        if not is_missing(cell):
            try:
                values[row] = float(cell)
            except ValueError:
                odd.append(row)
    if odd and all(WITH_COMMAS.fullmatch(cells[row]) for row in odd):
        thousands = all(THOUSANDS.fullmatch(cells[row]) for row in odd)
        if thousands or all(cells[row].count(",") == 1 for row in odd):
            values[odd] = [float(cells[row].replace(",", "" if thousands else ".")) for row in odd]
            said = "commas between thousands" if thousands else "decimal commas"
            odd = []
    strange = len(odd) + _infinite(values, len(odd), cells, name, source, lines, unit)
    return values, strange, said


def _infinite(
    values: np.ndarray,
    odd: int,
    cells: Sequence[str],
    name: str,
    source: str,
    lines: Sequence[int] | None,
    unit: str,
) -> int:
    """Refuse an infinite number, unless most cells are none: the checksum 4222129e13535836 is not.

    Such cells become NaN; how many there were.
    """
    infinite = np.isinf(values)
    if infinite.any() and odd > np.isfinite(values).sum():
        values[infinite] = np.nan
    elif infinite.any():
        row = int(infinite.argmax())
        where = f"{unit} {row + 1 if lines is None else lines[row]}"
        raise GraphError(
            f"{source}: column {name!r}, {where}: {cells[row]!r} is not a finite number"
        )
    return int(infinite.sum())


class Counts(Collection[str], Protocol):
    """Different values and how often each is there, as a `Counter` tells."""

    def most_common(self, n: int | None = None) -> list[tuple[str, int]]:
        """The most frequent values; of two as frequent, the one that is there first."""


@dataclass(frozen=True, eq=False)
class Summary:
    """The cells of a column that are not empty, without spaces around them.

    Attributes:
        present: How many.
        counts: Their values.
        blank: Of these, what is empty after all, but for the spaces around it.
        texts: The cells; none where they were counted as they went by.
        counted_words: How many words they have, if they were counted as they went by.
    """

    present: int
    counts: Counts
    blank: Counter[str]
    texts: Sequence[str] = ()
    counted_words: int | None = None

    @property
    def words(self) -> int:
        """How many words they have."""
        if self.counted_words is not None:
            return self.counted_words
        return sum(len(cell.split()) for cell in self.texts)


def summarize(cells: Sequence[str]) -> Summary:
    """Summarize a column.

    Raises:
        GraphError: Its cells hold several values.

    Examples:
        >>> found = summarize(["red oak ", "NA", "elm", "elm"])
        >>> found.present, found.counts.most_common(1), found.words
        (3, [('elm', 2)], 4)
    """
    if isinstance(cells, StreamColumn):
        present, tally, blank, words = cells.summary
        return Summary(present, tally, blank, counted_words=words)
    texts = [cell.strip() for cell in cells if not is_missing(cell)]
    counts = Counter(texts)
    blank = Counter({value: count for value, count in counts.items() if is_missing(value)})
    return Summary(len(texts), counts, blank, texts)


def summarize_plain(cells: Sequence[str]) -> Summary:
    """The same; a column whose cells hold several values counts as empty."""
    try:
        return summarize(cells)
    except GraphError:
        return Summary(0, Counter(), Counter())


NEARLY_ALL = 0.95  # share of the nodes with a text of their own, from which on it is a key
MIN_NODES = 20  # in fewer nodes values may all differ by chance
HALF = 0.5  # the same share where name or values look like those of a key
KEY_NAME = re.compile(
    r"(?:^|[_\W])(?:id|key|uuid|guid|uri|url|link|href|doi|isbn|hash|sha1|sha256|md5|e-?mail)$"
    r"|(?<=[a-z])(?:I[dD]|Key|U[rR][iIlL])$",
)
ADDRESS = re.compile(r"(?:https?|ftp)://\S+|www\.\S+|[^\s@]+@[^\s@]+\.\w+|doi:\S+|10\.\d{4,}/\S+")


def is_key_name(name: str) -> bool:
    """Whether a column is called as keys are.

    Examples:
        >>> [is_key_name(name) for name in ("facebook_id", "paperId", "URL", "grid", "valid")]
        [True, True, True, False, False]
    """
    return bool(KEY_NAME.search(name) or KEY_NAME.search(name.lower()))


def key_reason(name: str, values: Collection[str] | np.ndarray, nodes: int) -> str:
    """Why a column is taken for a key; "" where it is not.

    Args:
        name: Of the column.
        values: Those that occur in it, once each: texts or whole numbers.
        nodes: N.

    Examples:
        >>> key_reason("code", [f"x{i}" for i in range(40)], nodes=40)
        'has another value in every row, as ids have'
        >>> key_reason("page", ["http://a.org/1", "http://a.org/2"], nodes=3)
        'holds addresses'
        >>> key_reason("venue", ["KDD", "VLDB"], nodes=40)
        ''
    """
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
    return "is called as ids are, and has many values" if is_key_name(name) else ""


RANGES = 5  # equally many nodes lie between two cuts of a number
MAX_VALUES = 50  # of a category; the others share one feature
LONGEST_NAME = 100  # characters of a category's value
NUMERIC_FROM = 0.9  # share of cells that are numbers, for a column to be of numbers
MOSTLY_ZERO = 0.75  # numbers with more zeros than that are counts, and stay as they are
DENSE_ENOUGH = 0.5  # features stay numbers from this share of non-zero entries on
MAX_SPELLINGS = 48  # of yes and no: TRUE, True, ...
WORDS_OF_A_TEXT = 3  # on average, in a column that nobody called text


def infer_column(table: Table, name: str, chosen: bool, notes: list[str]) -> Column | str | None:
    """Infer how a column is to be used.

    Args:
        table: Where it stands.
        name: Of the column.
        chosen: By the user: used if it can be. One that was only found is left out when it looks
            like names.
        notes: Gets a sentence on what was assumed or left out.

    Returns:
        The column's use; "text" for a column of sentences; None when it says nothing of a node.
    """
    cells = table.columns[name]
    source = table.source
    where = f"{source}: column {name!r}"
    if isinstance(cells, VectorColumn):
        return _vector(name, cells.matrix, where, notes)
    if isinstance(cells, TextListColumn):
        notes.append(f"{where} holds lists of texts; their words are used")
        return "text"
    if isinstance(cells, RecordColumn) and not chosen:
        notes.append(f"{where} holds records; not used")
        return None
    if isinstance(cells, TypedColumn) and cells.values is not None:
        return _measured(name, cells, cells.values, chosen, notes)
    found = summarize(cells)
    counts, present = found.counts, found.present
    missing = present < len(cells)
    if not counts or (len(counts) == 1 and not missing):
        notes.append(f"{where} is {'the same in every row' if counts else 'empty'}; not used")
        return None
    few = len(counts) <= MAX_SPELLINGS
    if few and any({value.lower() for value in counts} <= pair for pair in YES_NO):
        return Column(name, "yes/no", has_missing=missing)
    if not (isinstance(cells, TypedColumn) and cells.is_category):
        values, odd, commas = read_numbers(cells, name, source, table.lines, table.unit)
        if odd <= (1 - NUMERIC_FROM) * present:
            if commas:
                notes.append(f"{where}: numbers with {commas}")
            if odd:
                unread = zip(cells, values, strict=True)
                first = next(cell for cell, v in unread if np.isnan(v) and not is_missing(cell))
                said = f"{odd:,} cells are not numbers and count as missing"
                notes.append(f"{where}: {said}, first: {quote(first)}")
            return _number(name, values, chosen, where, notes)
        is_text = len(counts) > present / 2 and found.words >= WORDS_OF_A_TEXT * present
        if is_text and not chosen:
            notes.append(f"{where} holds sentences; used as text")
            return "text"
    kept = [value for value, _ in counts.most_common(MAX_VALUES) if len(value) <= LONGEST_NAME]
    rest = len(counts) - len(kept)
    if rest and not chosen and len(counts) > present / 2:
        notes.append(
            f"{where} looks like names ({len(counts):,} different values); "
            "not used, unless given as text or feature"
        )
        return None
    key = key_reason(name, counts, len(cells))
    if key and not chosen:
        notes.append(f"{where} {key}; not used, unless given as text or feature")
        return None
    if rest:
        notes.append(
            f"{where}: the {len(kept)} most frequent of {len(counts):,} values "
            "have a feature each, the rest share one"
        )
    return Column(
        name, "category", values=tuple(sorted(kept)), has_other=rest > 0, has_missing=missing
    )


def _measured(
    name: str,
    cells: TypedColumn,
    values: np.ndarray,
    chosen: bool,
    notes: list[str],
) -> Column | None:
    """How a column is to be used whose type says that it holds numbers or truth values."""
    where = f"{cells.source}: column {name!r}"
    known = values[~np.isnan(values)]
    missing = len(known) < len(values)
    if not len(known) or (not missing and cells.is_constant):
        notes.append(f"{where} is {'the same in every row' if len(known) else 'empty'}; not used")
        return None
    if np.isin(known, (0, 1)).all():
        return Column(name, "yes/no", has_missing=missing)
    return _number(name, read_numbers(cells, name, cells.source)[0], chosen, where, notes)


def _number(
    name: str, values: np.ndarray, chosen: bool, where: str, notes: list[str]
) -> Column | None:
    known = values[~np.isnan(values)]
    missing = len(known) < len(values)
    whole = bool((known == np.rint(known)).all())
    distinct = np.unique(known)
    if whole and not chosen:
        if len(distinct) == len(values) > 2 and np.ptp(known) + 1 == len(values):
            notes.append(f"{where} only numbers the rows; not used")
            return None
        key = key_reason(name, distinct, len(values))
        if key:
            notes.append(f"{where} {key}; not used, unless given as a feature")
            return None
    if whole and len(distinct) == len(values) > 2:
        notes.append(
            f"{where} has another whole number in every row, as ids have; used nevertheless"
        )
    if (known == 0).mean() > MOSTLY_ZERO:
        return Column(name, "count", has_missing=missing)
    cuts = _cuts(known)
    spread = float(known.std()) or 1.0
    return Column(
        name, "number", tuple(cuts.tolist()), float(known.mean()), spread, has_missing=missing
    )


def _cuts(known: np.ndarray) -> np.ndarray:
    """Quantiles that are values of the column; every node is above the lowest."""
    cuts = np.unique(np.quantile(known, np.arange(1, RANGES) / RANGES, method="higher"))
    cuts = cuts[cuts > known.min()]
    return cuts if len(cuts) else np.array([known.max()])


def _vector(name: str, matrix: np.ndarray, where: str, notes: list[str]) -> Column | None:
    width = matrix.shape[1]
    known = matrix[~np.isnan(matrix).any(axis=1)]
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
        spread=float(np.sqrt(known.var(axis=0).mean())),
        has_missing=missing,
        width=width,
        means=tuple(known.mean(axis=0).tolist()),
        part_cuts=tuple(tuple(_cuts(part).tolist()) for part in known.T),
    )


def stay_numbers(columns: Sequence[Column], entries: int, size: int) -> bool:
    """Whether features are kept as numbers: most of `size` entries are non-zero when they are."""
    return bool(columns) and entries >= DENSE_ENOUGH * size
