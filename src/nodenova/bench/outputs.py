"""What a bench leaves behind: for each table Markdown, LaTeX, CSV and figures, and one page with everything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from nodenova.bench.page import bench_page
from nodenova.bench.panels import figures_of
from nodenova.bench.row import Row
from nodenova.bench.tables import TABLES
from nodenova.bench.text import to_csv, to_latex, to_markdown
from nodenova.errors import one_of
from nodenova.files import write_atomically


def write_outputs(table_name: str, rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write <table>.md, .tex, .csv and its figures as <table>-*.svg into `folder`; return their paths.

    Maps that rows name are looked for in `folder`/maps. Equal rows give equal bytes, whatever their order.
    """
    if table_name not in TABLES:
        raise one_of("table", table_name, TABLES)
    tables = TABLES[table_name](rows)
    content = {
        f"{table_name}.md": to_markdown(tables),
        f"{table_name}.tex": to_latex(table_name, tables),
        f"{table_name}.csv": to_csv(tables),
    }
    for figure in figures_of(table_name, rows, folder / "maps"):
        name = f"{table_name}-{_file_name(figure.group + ' ' + figure.title.rpartition(';')[0])}"
        twins = sum(re.fullmatch(re.escape(name) + r"(-\d+)?\.svg", other) is not None for other in content)
        content[f"{name}-{twins + 1}.svg" if twins else f"{name}.svg"] = figure.svg + "\n"
    for name, text in content.items():
        write_atomically(folder / name, text.encode())
    return [folder / name for name in content]


def _file_name(title: str) -> str:
    """Small letters, digits and hyphens."""
    for letter, name in {"α": "alpha", "η": "eta", "λ": "lambda"}.items():
        title = title.replace(letter, name)
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def write_page(rows: Sequence[Row], folder: Path) -> Path:
    """Write bench.html, the page of all rows, into `folder` and return its path."""
    path = folder / "bench.html"
    write_atomically(path, bench_page(rows, folder / "maps").encode())
    return path
