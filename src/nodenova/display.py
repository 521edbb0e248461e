"""Numbers as text (`42%`, `2 edges`), and tables as HTML for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

MAX_ROWS = 60  # of a table; a last line counts the others


def percent(share: float | None, decimals: int = 0) -> str:
    """Format a share, 0.42, as a percentage; a positive share is never shown as 0.

    Examples:
        >>> percent(0.42), percent(0.1234, 1), percent(0.001), percent(None)
        ('42%', '12.3%', '<1%', '–')
    """
    if share is None or math.isnan(share):
        return "–"
    text = f"{share:.{decimals}%}"
    least = f"{10.0**-decimals:g}%"
    return f"<{least}" if share > 0 and float(text[:-1]) == 0 else text


def plural(n: int, one: str, many: str | None = None) -> str:
    """Format a number and its noun.

    Examples:
        >>> plural(1, "class", "classes"), plural(1200, "node")
        ('1 class', '1,200 nodes')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]], caption: str) -> str:
    """Format a table as HTML without colors of its own, which suits light and dark notebooks.

    Values are shown as text: None as a dash, floats with three digits. Heads that are all "" are
    left out.

    Examples:
        >>> html_table(("class", "nodes"), [("oak", 12)], "2 classes").count("<td")
        2
    """
    body = list(rows)
    lines = ["<tr>" + "".join(map(_cell, row)) + "</tr>" for row in body[:MAX_ROWS]]
    if len(body) > MAX_ROWS:
        more = f"and {len(body) - MAX_ROWS:,} more"
        lines.append(f'<tr><td colspan="{len(heads)}">{more}</td></tr>')
    top = "".join(f'<th style="text-align:left">{escape(head)}</th>' for head in heads)
    head = f"<thead><tr>{top}</tr></thead>" if any(heads) else ""
    title = f'<caption style="text-align:left;font-weight:bold">{escape(caption)}</caption>'
    return f'<table class="nodenova">{title}{head}<tbody>{"".join(lines)}</tbody></table>'


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
