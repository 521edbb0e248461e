"""Columns of a table as features with readable names.

A feature says something of one node that does not depend on the other nodes of the file: a word is
there or it is not, a category has this value or not. So a file that has grown gives old nodes the
features they had, and features of two files match by name. TF-IDF only chooses which words are
worth a feature; how much a word weighs is left to the encoder (Prism weighs words itself). A number
among words becomes "year>=1998" for each of its quintiles, because an encoder of words asks only
whether an entry is zero; and near numbers share most of these. Where numbers are all there is, they
stay numbers, each centered and divided by its spread, as first seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from nodenova.errors import GraphError
from nodenova.io.frames import Cells
from nodenova.io.tables import Table, is_missing

RANGES = 5  # equally many nodes lie between two cuts of a number
MAX_VALUES = 50  # of a category; the others share one feature
LONGEST_NAME = 100  # characters of a category's value
NUMERIC_FROM = 0.9  # share of cells that are numbers, for a column to be of numbers
MOSTLY_ZERO = 0.75  # a column of numbers with more zeros than that is of counts, and stays as it is
DENSE_ENOUGH = 0.5  # features stay numbers from this share of non-zero entries on
WORDS_OF_A_TEXT = 3  # on average, in a column that nobody called text
YES_NO = ({"true", "false"}, {"yes", "no"}, {"0", "1"}, {"t", "f"}, {"y", "n"}, {"0.0", "1.0"})
YES = {"true", "yes", "1", "t", "y", "1.0"}


@dataclass(frozen=True)
class Column:
    """How one column becomes features.

    Attributes:
        name: Of the column.
        kind: "number", "count" (mostly zero), "yes/no" or "category".
        cuts: Of a number, its quintiles.
        centre: Of a number, its mean over the nodes first seen.
        spread: Of a number, its standard deviation over the nodes first seen.
        values: Of a category, those with a feature of their own.
        has_other: The other values of a category share a feature.
        has_missing: An empty cell is a feature.
    """

    name: str
    kind: str
    cuts: tuple[float, ...] = ()
    centre: float = 0.0
    spread: float = 1.0
    values: tuple[str, ...] = ()
    has_other: bool = False
    has_missing: bool = False

    def feature_names(self, cut: bool) -> list[str]:
        """Names of the features in `block`; with `cut`, a number has one for each of its cuts."""
        if self.kind == "category":
            names = [f"{self.name}={value}" for value in self.values]
            names += [f"{self.name}=other"] * self.has_other
        elif self.kind == "number" and cut:
            names = [f"{self.name}>={value:.12g}" for value in self.cuts]
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
        else:
            value = numbers(cells, self.name, source)[0]
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
    return cells.values if isinstance(cells, Cells) else None


def numbers(
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
        GraphError: A number is infinite.
    """
    typed = values_of(cells)
    odd = []
    said = ""
    values = np.full(len(cells), np.nan) if typed is None else typed
    for row, cell in enumerate(cells if typed is None else ()):
        if not is_missing(cell):
            try:
                values[row] = float(cell)
            except ValueError:
                odd.append(row)
    if odd and all(re.fullmatch(r"\s*[+-]?\d+(,\d+)+\s*", cells[row]) for row in odd):
        thousands = all(re.fullmatch(r"\s*[+-]?\d{1,3}(,\d{3})+\s*", cells[row]) for row in odd)
        if thousands or all(cells[row].count(",") == 1 for row in odd):
            values[odd] = [float(cells[row].replace(",", "" if thousands else ".")) for row in odd]
            said = "commas between thousands" if thousands else "decimal commas"
            odd = []
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        where = f"{unit} {row + 1 if lines is None else lines[row]}"
        raise GraphError(
            f"{source}: column {name!r}, {where}: {cells[row]!r} is not a finite number"
        )
    return values, len(odd), said


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
    if isinstance(cells, Cells) and cells.values is not None:
        return _measured(name, cells, cells.values, chosen, notes)
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    counts = Counter(present)
    missing = len(present) < len(cells)
    if not counts or (len(counts) == 1 and not missing):
        notes.append(f"{where} is {'the same in every row' if counts else 'empty'}; not used")
        return None
    if any({value.lower() for value in counts} <= pair for pair in YES_NO):
        return Column(name, "yes/no", has_missing=missing)
    if not (isinstance(cells, Cells) and cells.is_category):
        values, odd, commas = numbers(cells, name, source, table.lines, table.unit)
        if odd <= (1 - NUMERIC_FROM) * len(present):
            if commas:
                notes.append(f"{where}: numbers with {commas}")
            if odd:
                unread = zip(cells, values, strict=True)
                first = next(cell for cell, v in unread if np.isnan(v) and not is_missing(cell))
                said = f"{odd:,} cells are not numbers and count as missing"
                notes.append(f"{where}: {said}, first: {clipped(first)}")
            return _number(name, values, chosen, where, notes)
        words = sum(len(cell.split()) for cell in present)
        is_text = words >= WORDS_OF_A_TEXT * len(present) and len(counts) > len(present) / 2
        if is_text and not chosen:
            notes.append(f"{where} holds sentences; used as text")
            return "text"
    kept = [value for value, _ in counts.most_common(MAX_VALUES) if len(value) <= LONGEST_NAME]
    rest = len(counts) - len(kept)
    if rest and not chosen and len(counts) > len(present) / 2:
        notes.append(
            f"{where} looks like names ({len(counts):,} different values); "
            "not used, unless given as text or feature"
        )
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
    cells: Cells,
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
    return _number(name, numbers(cells, name, cells.source)[0], chosen, where, notes)


def _number(
    name: str, values: np.ndarray, chosen: bool, where: str, notes: list[str]
) -> Column | None:
    known = values[~np.isnan(values)]
    missing = len(known) < len(values)
    whole = bool((known == np.rint(known)).all())
    if whole and len(np.unique(known)) == len(values) > 2:
        if not chosen and np.ptp(known) + 1 == len(values):
            notes.append(f"{where} only numbers the rows; not used")
            return None
        notes.append(
            f"{where} has another whole number in every row, as ids have; used nevertheless"
        )
    if (known == 0).mean() > MOSTLY_ZERO:
        return Column(name, "count", has_missing=missing)
    # Quantiles that are values of the column; every node is above the lowest.
    cuts = np.unique(np.quantile(known, np.arange(1, RANGES) / RANGES, method="higher"))
    cuts = cuts[cuts > known.min()]
    cuts = cuts if len(cuts) else np.array([known.max()])
    spread = float(known.std()) or 1.0
    return Column(
        name, "number", tuple(cuts.tolist()), float(known.mean()), spread, has_missing=missing
    )


def stays_numbers(columns: Sequence[Column], blocks: Sequence[sp.csr_array]) -> bool:
    """Whether features are kept as numbers: most entries are non-zero when they are."""
    entries = sum(block.nnz for block in blocks)
    size = sum(block.shape[0] * block.shape[1] for block in blocks)
    return bool(columns) and entries >= DENSE_ENOUGH * size


def clipped(text: str, most: int = 40) -> str:
    return repr(text if len(text) <= most else text[: most - 3] + "...")
