"""A table of the league: cells measured from rows run by run, and published lines below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import TypeAlias

from nodenova.bench.cells import Cell, Column, Line, Table, tested
from nodenova.bench.league.published import Printed
from nodenova.bench.league.scores import Measure
from nodenova.bench.row import Row
from nodenova.bench.titles import DATASETS, in_order
from nodenova.evaluation.scores import mean_std

HERE, THERE = "measured here", "published"
Runs: TypeAlias = "dict[tuple[str, str], dict[int, float]]"  # {(dataset, measure): {run: value}}


@dataclass(frozen=True)
class Entry:
    """A line to be measured.

    Attributes:
        label: What it is called.
        rows: Its runs.
        group: The block of lines it stands in.
        reference: Whether the others of its group are tested against it.
    """

    label: str
    rows: Sequence[Row]
    group: str = HERE
    reference: bool = False


def measured_table(
    title: str,
    caption: Sequence[str],
    entries: Sequence[Entry],
    measures: Mapping[str, Measure],
    *,
    others: Mapping[str, Printed] | None = None,
    others_source: str = "",
    average: bool = False,
) -> Table:
    """Measure the entries on every dataset they have.

    Args:
        title: Of the table.
        caption: Sentences.
        entries: Its lines.
        measures: Its columns, for each dataset.
        others: Published lines: their numbers.
        others_source: A note at each published number.
        average: Whether the mean over the datasets shown stands behind them.

    Returns:
        The table; published lines stand in a block of their own.
    """
    datasets = in_order({row.dataset for entry in entries for row in entry.rows}, DATASETS)
    groups = [*datasets, *(["average"] if average and len(datasets) > 1 else [])]
    places = product(groups, measures.items())
    columns = tuple(Column(group, name, each.title, each.tested) for group, (name, each) in places)
    values, lines, notes = list[Runs](), list[Line](), list[str]()
    for entry in entries:
        by_run = {
            (dataset, name): _values([r for r in entry.rows if r.dataset == dataset], measure)
            for dataset in datasets
            for name, measure in measures.items()
        }
        cells = dict[tuple[str, str], Cell]()
        for (dataset, name), found in by_run.items():
            cells[dataset, name] = _cell(found, measures[name], _failed(entry, dataset))
        for name in measures:
            means = [cells[dataset, name].mean for dataset in datasets]
            there = [mean for mean in means if mean is not None]
            whole = fmean(there) if there and len(there) == len(means) else None
            cells["average", name] = Cell(whole, n=min(cells[d, name].n for d in datasets))
        values.append(by_run)
        sees = tuple(sorted({what for row in entry.rows for what in row.sees}))
        shown = tuple(cells[column.group, column.score] for column in columns)
        lines.append(Line(entry.group, (entry.label,), shown, sees, entry.reference))
        notes += [note for note in _failures(entry.rows) if note not in notes]
    lines = tested(lines, columns, values)
    for name, numbers in (others or {}).items():
        theirs = [numbers.get((column.group, column.score)) for column in columns]
        if any(number is not None for number in theirs):
            note = _place(notes, others_source)
            shown = tuple(Cell(mean, notes=(note,) if mean is not None else ()) for mean in theirs)
            lines.append(Line(THERE, (name,), shown))
    heads = ("Method",)
    return Table(title, tuple(caption), heads, columns, tuple(lines), tuple(notes), unit="runs")


def _place(notes: list[str], note: str) -> int:
    """The number, from 1, of a note; it is added if it is not there."""
    if note not in notes:
        notes.append(note)
    return notes.index(note) + 1


def _values(rows: Sequence[Row], measure: Measure) -> dict[int, float]:
    """The measure of each run, by a number that is the same for the same fold and seed."""
    found = {}
    for row in rows:
        value = measure.read(row) if row.is_done else None
        if value is not None:
            found[1000 * (row.class_split or 0) + row.seed] = value
    return found


def _cell(found: Mapping[int, float], measure: Measure, failed: int) -> Cell:
    spread = mean_std(list(found.values()))
    return Cell(spread.mean, None if measure.is_share else spread.std, spread.n, failed)


def _failed(entry: Entry, dataset: str) -> int:
    return sum(row.is_failed for row in entry.rows if row.dataset == dataset)


def _failures(rows: Sequence[Row]) -> list[str]:
    return [
        f"Failed: {row.dataset}, {row.method}, {row.protocol} {row.class_split}, seed {row.seed}: "
        + (row.error.strip().splitlines() or ["no message"])[-1][:200]
        for row in rows
        if row.is_failed
    ]
