"""Small tables for notebooks: plain HTML in the colors of the notebook, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MAX_ROWS = 60  # a table that is longer says how much longer


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]], caption: str) -> str:
    """A table as HTML; all of its values are shown as text.

    Nothing in it has a color of its own, so that it is readable on any background. Numbers stand
    at the right.

    Args:
        heads: Of its columns; all "" for none.
        rows: Values; None is shown as a dash, a share or another float with few digits.
        caption: Said above it.

    Examples:
        >>> html_table(("class", "nodes"), [("oak", 12)], "2 classes").count("<td")
        2
    """
    said = list(rows)
    lines = ["<tr>" + "".join(map(_cell, row)) + "</tr>" for row in said[:MAX_ROWS]]
    if len(said) > MAX_ROWS:
        more = f"and {len(said) - MAX_ROWS:,} more"
        lines.append(f'<tr><td colspan="{len(heads)}">{more}</td></tr>')
    top = "".join(f'<th style="text-align:left">{escape(head)}</th>' for head in heads)
    head = f"<thead><tr>{top}</tr></thead>" if any(heads) else ""
    title = f'<caption style="text-align:left;font-weight:bold">{escape(caption)}</caption>'
    return f'<table class="nodenova">{title}{head}<tbody>{"".join(lines)}</tbody></table>'


def share(value: float | None) -> str | None:
    """A share as a whole percentage.

    Examples:
        >>> share(0.256), share(None)
        ('26%', None)
    """
    return None if value is None else f"{value:.0%}"


def _cell(value: object) -> str:
    if value is None:
        return "<td>–</td>"
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    text = f"{value:,}" if isinstance(value, int) and is_number else str(value)
    if isinstance(value, float):
        text = f"{value:.3g}"
    numeric = is_number or text.rstrip("%").replace(",", "").isdigit()
    aligned = ' style="text-align:right"' if numeric else ' style="text-align:left"'
    return f"<td{aligned}>{escape(text)}</td>"
