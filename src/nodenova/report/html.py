"""Pieces of HTML that the pages share. Whatever they are given is shown as text."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files


def text(value: object) -> str:
    return html.escape(str(value))


def count(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun.

    >>> count(1, "class", "classes"), count(1200, "node")
    ('1 class', '1,200 nodes')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def facts(items: Mapping[str, object]) -> str:
    inner = "".join(f"<div><dt>{text(key)}</dt><dd>{text(value)}</dd></div>" for key, value in items.items())
    return f'<dl class="facts">{inner}</dl>'


def section(title: str, content: str, name: str = "") -> str:
    place = f' id="{name}"' if name else ""
    return f"<section{place}>\n<h2>{text(title)}</h2>\n{content}\n</section>"


def table(caption: str, head: Sequence[str], body: Sequence[Sequence[str]], name: str) -> str:
    """A table that scrolls in its own box where the screen is narrow; the first cell of a line names it."""
    columns = "".join(f'<th scope="col">{text(cell)}</th>' for cell in head)
    lines = "".join(
        f'<tr><th scope="row">{text(line[0])}</th>{"".join(f"<td>{text(cell)}</td>" for cell in line[1:])}</tr>\n'
        for line in body
    )
    return scrolling(caption, columns, lines, name)


def scrolling(caption: str, columns: str, lines: str, name: str) -> str:
    """The same from cells that are HTML already."""
    return (
        f'<div class="scroll" role="region" aria-label="{text(caption)}" tabindex="0"><table id="{name}">'
        f"<caption>{text(caption)}</caption>\n<thead><tr>{columns}</tr></thead>\n<tbody>\n{lines}</tbody></table></div>\n"
    )


def data_block(name: str, value: object) -> str:
    """A JSON block for scripts to read. No text in it can end the block."""
    content = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    for sign in "<>&":
        content = content.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json" id="{name}">{content}</script>'


def policy_hash(content: str) -> str:
    """What a content security policy calls an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def asset(name: str) -> str:
    """A style sheet, script or piece of HTML that comes with the package."""
    return files("nodenova.report").joinpath("assets", name).read_text(encoding="utf-8")
