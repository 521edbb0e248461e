"""Forms of `nodenova export`, and the one that is the user's own table of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nodenova.cli.app import print_notes
from nodenova.errors import SettingError

FORMS = ("table", "networkx", "pyg", "csv", "embeddings")
TablePath = Annotated[
    Path | None,
    typer.Option(
        "--table",
        help="For --to table: your table of nodes, CSV, TSV, Parquet or JSON lines "
        "(default: --nodes).",
    ),
]
Settled = Annotated[
    float,
    typer.Option(
        help="For --to table: nodes whose class is less probable than this, and that you did not "
        "label, get none."
    ),
]


def check_form(to: str, table: Path | None, settled: float) -> None:
    """Refuse options of `nodenova export` that cannot be used, before anything is loaded.

    Raises:
        SettingError: There is no such form, no table, or no probability.
    """
    if to not in FORMS:
        raise SettingError(f"--to is one of {', '.join(FORMS)}, not {to!r}")
    if to == "table" and table is None:
        raise SettingError("--to table needs your table of nodes: give --table FILE")
    if not 0 <= settled <= 1:
        raise SettingError(f"--settled is a probability from 0 to 1, not {settled}")


def write_table(*parts: Any, table: Path, settled: float, quiet: bool) -> None:
    """Write the table with the classes beside it, and say what was assumed."""
    from nodenova.review.table import to_table

    notes = to_table(*parts, table=table, settled=settled)
    print_notes([] if quiet else notes)
