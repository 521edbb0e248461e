"""Output files of a bench: tables as Markdown, LaTeX, CSV and figures, and one HTML page.

The page has all tables, and figures as SVG, without scripts or network. Equal rows give equal
bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodenova.bench.figures import Figure, figures_of
from nodenova.bench.render import (
    blocks,
    column_groups,
    failed_text,
    labels,
    sign,
    to_csv,
    to_latex,
    to_markdown,
    value_text,
)
from nodenova.bench.row import Row
from nodenova.bench.row_filters import latest
from nodenova.bench.table import Table, Tests
from nodenova.bench.tables import TABLES, tables_of
from nodenova.bench.titles import DATASETS, ENCODERS, METHODS, in_order
from nodenova.bench.titles import TABLES as HEADINGS
from nodenova.errors import one_of
from nodenova.evaluation.scores import number
from nodenova.files.atomic import write_atomically
from nodenova.report.html import render_page


@dataclass(frozen=True)
class Section:
    """A section of the page: tables and figures (by group) of one name; `reading` explains them."""

    name: str
    title: str
    reading: str
    figures: Mapping[str, Sequence[Figure]]
    tables: Sequence[Table]


def bench_page(rows: Sequence[Row], maps_folder: Path, run_keys: Collection[str] = ()) -> str:
    """Return the page of all rows; the comparison shows the runs of `run_keys` in any case."""
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
            "Datasets": _name_list((row.dataset for row in rows), DATASETS),
            "Encoders": _name_list((row.encoder for row in rows), ENCODERS),
            "Methods": _name_list((row.method for row in rows), METHODS),
        },
        sections=[
            s for name in TABLES if (s := _section(name, rows, maps_folder, run_keys)) is not None
        ],
        made={
            "Commit": _value_counts(row.commit or "unknown" for row in rows),
            "Versions": _value_counts(
                ", ".join(f"{k} {v}" for k, v in row.versions.items()) or "unknown" for row in rows
            ),
            "Data": _value_counts(
                f"{row.dataset} {row.data}" for row in rows if row.data and row.class_split is None
            ),
        },
        failed=[
            f"{row.dataset}, {row.method} on {row.encoder}, seed {row.seed}: {_error(row)}"
            for row in failed
        ],
        **TEXTS,
    )


def _error(row: Row) -> str:
    return " ".join(row.error.strip()[-300:].split()) or "no message"


def _name_list(names: Iterable[str], titles: Mapping[str, str]) -> str:
    return ", ".join(titles.get(name, name) for name in in_order(names, titles)) or "–"


def _value_counts(values: Iterable[str]) -> str:
    counts = sorted(Counter(values).items())
    return "; ".join(f"{value} ({n} {'run' if n == 1 else 'runs'})" for value, n in counts) or "–"


def _section(
    name: str, rows: Sequence[Row], maps_folder: Path, run_keys: Collection[str]
) -> Section | None:
    figures = figures_of(name, rows, maps_folder)
    found = [] if name == "confusion" else tables_of(name, rows, run_keys)
    tables = [table for table in found if table.lines]
    if not figures and not tables:
        return None
    grouped: dict[str, list[Figure]] = {}
    for figure in figures:
        grouped.setdefault(figure.group, []).append(figure)
    return Section(name, HEADINGS[name].title, HEADINGS[name].figures, grouped, tables)


def tests_text(tests: Tests) -> str:
    """Difference and p-values."""
    return (
        f"difference {tests.difference:+.1f} on {tests.pairs} pairs; "
        f"paired t-test p = {tests.t:.2g}, corrected {tests.t_holm:.2g}; "
        f"Wilcoxon p = {tests.wilcoxon:.2g}, corrected {tests.wilcoxon_holm:.2g}"
    )


# Functions that the template calls.
TEXTS: Mapping[str, Any] = {
    text.__name__: text
    for text in (blocks, column_groups, failed_text, labels, number, sign, tests_text, value_text)
}


def write_outputs(
    table_name: str, rows: Sequence[Row], folder: Path, run_keys: Collection[str] = ()
) -> list[Path]:
    """Write <table>.md, .tex, .csv and its figures as <table>-*.svg.

    Equal arguments give equal bytes, whatever the order of the rows.

    Args:
        table_name: Name of the table.
        rows: Rows of any tables.
        folder: Output folder; maps are read from `folder`/maps.
        run_keys: Keys of runs that the comparison shows with changed settings, too.

    Returns:
        Paths of the files.

    Raises:
        SettingError: If there is no such table.
    """
    if table_name not in TABLES:
        raise one_of("table", table_name, TABLES)
    tables = tables_of(table_name, rows, run_keys)
    content = {
        f"{table_name}.md": to_markdown(tables),
        f"{table_name}.tex": to_latex(table_name, tables),
        f"{table_name}.csv": to_csv(tables),
    }
    for figure in figures_of(table_name, rows, folder / "maps"):
        name = f"{table_name}-{_file_name(figure.group + ' ' + figure.title.rpartition(';')[0])}"
        twins = sum(
            re.fullmatch(re.escape(name) + r"(-\d+)?\.svg", other) is not None for other in content
        )
        content[f"{name}-{twins + 1}.svg" if twins else f"{name}.svg"] = figure.svg + "\n"
    for name, text in content.items():
        write_atomically(folder / name, text.encode(), follow=False)
    return [folder / name for name in content]


def _file_name(title: str) -> str:
    """Return a title in lower-case letters, digits and hyphens."""
    for letter, name in {"α": "alpha", "η": "eta", "λ": "lambda"}.items():
        title = title.replace(letter, name)
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def write_page(rows: Sequence[Row], folder: Path, run_keys: Collection[str] = ()) -> Path:
    """Write bench.html, the page of all rows, into `folder`.

    Args:
        rows: Rows of any tables.
        folder: Output folder; maps are read from `folder`/maps.
        run_keys: Keys of runs that the comparison shows with changed settings, too.

    Returns:
        Path of the page.
    """
    path = folder / "bench.html"
    content = bench_page(rows, folder / "maps", run_keys).encode()
    write_atomically(path, content, follow=False)
    return path
