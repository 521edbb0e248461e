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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from nodenova.errors import GraphError
from nodenova.io.frames import Cells
from nodenova.io.lists import vectors_in
from nodenova.io.streamed import THOUSANDS, WITH_COMMAS, StreamedCells
from nodenova.io.tables import is_missing

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
            matrix = vectors_in(cells, self.name, source, self.width)
            missing = np.isnan(matrix[:, 0])
            if cut and self.means:
                part = np.repeat(np.arange(self.width), [len(cuts) for cuts in self.part_cuts])
                own = sp.csr_array(matrix[:, part] >= np.concatenate(self.part_cuts))
            else:
                if self.means:
                    matrix = (matrix - np.array(self.means)) / self.spread
                own = sp.csr_array(np.where(missing[:, None], 0, matrix).astype(np.float32))
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
        GraphError: A number is infinite, in a column that mostly holds numbers.
    """
    typed = values_of(cells)
    if typed is None and isinstance(cells, StreamedCells):
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
