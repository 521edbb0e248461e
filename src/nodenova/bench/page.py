"""The bench as one HTML page: all tables, and the figures as SVG.

No script, no network; equal rows give equal bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nodenova.bench.cells import Cell, Line, Table, Tests
from nodenova.bench.panels import Figure, figures_of
from nodenova.bench.row import Row
from nodenova.bench.select import latest
from nodenova.bench.tables import TABLES, tables_of
from nodenova.bench.text import blocks, failed_text, headed, labels, sign, value_text
from nodenova.bench.titles import DATASETS, ENCODERS, METHODS, in_order
from nodenova.bench.titles import TABLES as HEADINGS
from nodenova.evaluation.scores import number
from nodenova.pages.html import render_page


@dataclass(frozen=True)
class ShownCell:
    """A cell in words; `tag` is the element that marks it: b for the best, u for the runner-up."""

    value: str
    tag: str
    sign: str
    tests: str
    failed: str
    paper: str
    notes: str


@dataclass(frozen=True)
class ShownLine:
    """A line of a table in words."""

    labels: Sequence[str]
    cells: Sequence[ShownCell]
    n: str
    reference: bool


@dataclass(frozen=True)
class ShownTable:
    """`over` and `under` are the two lines of its head; `width` is how many columns there are."""

    title: str
    heads: Sequence[str]
    over: Sequence[tuple[str, int]]
    under: Sequence[str]
    width: int
    blocks: Sequence[tuple[str, Sequence[ShownLine]]]
    caption: str
    notes: Sequence[str]


@dataclass(frozen=True)
class Section:
    """One table of the paper in the page.

    Attributes:
        name: Of the table, on the command line.
        title: Over the section.
        reading: How its figures are read.
        figures: By what they have in common.
        tables: In their order.
    """

    name: str
    title: str
    reading: str
    figures: Mapping[str, Sequence[Figure]]
    tables: Sequence[ShownTable]


def bench_page(rows: Sequence[Row], maps_folder: Path, asked: Collection[str] = ()) -> str:
    """The page of all rows.

    Args:
        rows: Of any tables.
        maps_folder: Holds the npz files that rows name in `map`; those not there are left out.
        asked: Keys of the runs that a command asked for; the comparison shows them all.
    """
    rows = latest(rows)
    done = sum(row.is_done for row in rows)
    failed = [row for row in rows if row.is_failed]
    return render_page(
        "nodenova.bench",
        "bench.html.j2",
        "nodenova bench",
        kind="bench",
        lead=f"{done} finished runs" + (f", {len(failed)} failed" if failed else "") + ".",
        about={
            "Datasets": _named((row.dataset for row in rows), DATASETS),
            "Encoders": _named((row.encoder for row in rows), ENCODERS),
            "Methods": _named((row.method for row in rows), METHODS),
        },
        sections=[
            s for name in TABLES if (s := _section(name, rows, maps_folder, asked)) is not None
        ],
        made={
            "Commit": _counted(row.commit or "unknown" for row in rows),
            "Versions": _counted(
                ", ".join(f"{k} {v}" for k, v in row.versions.items()) or "unknown" for row in rows
            ),
            "Data": _counted(
                f"{row.dataset} {row.data}" for row in rows if row.data and row.class_split is None
            ),
        },
        failed=[
            f"{row.dataset}, {row.method} on {row.encoder}, seed {row.seed}: {_error(row)}"
            for row in failed
        ],
    )


def _error(row: Row) -> str:
    return " ".join(row.error.strip()[-300:].split()) or "no message"


def _named(names: Iterable[str], titles: Mapping[str, str]) -> str:
    return ", ".join(titles.get(name, name) for name in in_order(names, titles)) or "–"


def _counted(values: Iterable[str]) -> str:
    counts = sorted(Counter(values).items())
    return "; ".join(f"{value} ({n} {'run' if n == 1 else 'runs'})" for value, n in counts) or "–"


def _section(
    name: str, rows: Sequence[Row], maps_folder: Path, asked: Collection[str]
) -> Section | None:
    figures = figures_of(name, rows, maps_folder)
    found = [] if name == "confusion" else tables_of(name, rows, asked)
    tables = [_table(table) for table in found if table.lines]
    if not figures and not tables:
        return None
    grouped: dict[str, list[Figure]] = {}
    for figure in figures:
        grouped.setdefault(figure.group, []).append(figure)
    return Section(name, HEADINGS[name].title, HEADINGS[name].figures, grouped, tables)


def _table(table: Table) -> ShownTable:
    return ShownTable(
        title=table.title,
        heads=table.heads,
        over=headed(table),
        under=[column.title for column in table.columns],
        width=len(table.heads) + len(table.columns) + 1,
        blocks=[(title, [_line(line) for line in lines]) for title, lines in blocks(table)],
        caption=" ".join(table.caption),
        notes=table.notes,
    )


def _line(line: Line) -> ShownLine:
    return ShownLine(labels(line), [_cell(cell) for cell in line.cells], line.n, line.reference)


def _cell(cell: Cell) -> ShownCell:
    return ShownCell(
        value=value_text(cell),
        tag={"best": "b", "second": "u"}.get(cell.mark, ""),
        sign=sign(cell),
        tests=_tests(cell.tests) if cell.tests else "",
        failed=failed_text(cell),
        paper=number(cell.paper) if cell.paper is not None else "",
        notes=",".join(map(str, cell.notes)),
    )


def _tests(tests: Tests) -> str:
    return (
        f"difference {tests.difference:+.1f} on {tests.pairs} pairs; "
        f"paired t-test p = {tests.t:.2g}, corrected {tests.t_holm:.2g}; "
        f"Wilcoxon p = {tests.wilcoxon:.2g}, corrected {tests.wilcoxon_holm:.2g}"
    )
