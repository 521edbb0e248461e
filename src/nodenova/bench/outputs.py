"""What a bench leaves behind: each table as Markdown, LaTeX, CSV and figures, and one page."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from nodenova.bench.page import bench_page
from nodenova.bench.panels import figures_of
from nodenova.bench.row import Row
from nodenova.bench.tables import TABLES, tables_of
from nodenova.bench.text import to_csv, to_latex, to_markdown
from nodenova.errors import one_of
from nodenova.files import write_atomically


def write_outputs(
    table_name: str, rows: Sequence[Row], folder: Path, asked: Collection[str] = ()
) -> list[Path]:
    """Write <table>.md, .tex, .csv and its figures as <table>-*.svg.

    Equal arguments give equal bytes, whatever the order of the rows.

    Args:
        table_name: One of `tables.TABLES`.
        rows: Of any tables.
        folder: Where to; maps that rows name are looked for in `folder`/maps.
        asked: Keys of the runs that a command asked for; the comparison shows them all.

    Returns:
        The paths of the files.

    Raises:
        SettingError: There is no such table.
    """
    if table_name not in TABLES:
        raise one_of("table", table_name, TABLES)
    tables = tables_of(table_name, rows, asked)
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
        write_atomically(folder / name, text.encode())
    return [folder / name for name in content]


def _file_name(title: str) -> str:
    """Small letters, digits and hyphens."""
    for letter, name in {"α": "alpha", "η": "eta", "λ": "lambda"}.items():
        title = title.replace(letter, name)
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def write_page(rows: Sequence[Row], folder: Path, asked: Collection[str] = ()) -> Path:
    """Write bench.html, the page of all rows, into `folder`.

    Args:
        rows: Of any tables.
        folder: Where to; maps that rows name are looked for in `folder`/maps.
        asked: Keys of the runs that a command asked for; the comparison shows them all.

    Returns:
        The path of the page.
    """
    path = folder / "bench.html"
    write_atomically(path, bench_page(rows, folder / "maps", asked).encode())
    return path
