"""How a column is to be used: what it holds is judged once, on the file it is learned from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodenova.io.columns import YES_NO, Column, numbers
from nodenova.io.frames import Cells
from nodenova.io.keys import key_reason
from nodenova.io.lists import RecordCells, TextLists, Vectors
from nodenova.io.summaries import summary_of
from nodenova.io.tables import Table, clipped, is_missing

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
    if isinstance(cells, Vectors):
        return _vector(name, cells.matrix, where, notes)
    if isinstance(cells, TextLists):
        notes.append(f"{where} holds lists of texts; their words are used")
        return "text"
    if isinstance(cells, RecordCells) and not chosen:
        notes.append(f"{where} holds records; not used")
        return None
    if isinstance(cells, Cells) and cells.values is not None:
        return _measured(name, cells, cells.values, chosen, notes)
    found = summary_of(cells)
    counts, present = found.counts, found.present
    missing = present < len(cells)
    if not counts or (len(counts) == 1 and not missing):
        notes.append(f"{where} is {'the same in every row' if counts else 'empty'}; not used")
        return None
    few = len(counts) <= MAX_SPELLINGS
    if few and any({value.lower() for value in counts} <= pair for pair in YES_NO):
        return Column(name, "yes/no", has_missing=missing)
    if not (isinstance(cells, Cells) and cells.is_category):
        values, odd, commas = numbers(cells, name, source, table.lines, table.unit)
        if odd <= (1 - NUMERIC_FROM) * present:
            if commas:
                notes.append(f"{where}: numbers with {commas}")
            if odd:
                unread = zip(cells, values, strict=True)
                first = next(cell for cell, v in unread if np.isnan(v) and not is_missing(cell))
                said = f"{odd:,} cells are not numbers and count as missing"
                notes.append(f"{where}: {said}, first: {clipped(first)}")
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


def stays_numbers(columns: Sequence[Column], entries: int, size: int) -> bool:
    """Whether features are kept as numbers: most of `size` entries are non-zero when they are."""
    return bool(columns) and entries >= DENSE_ENOUGH * size
