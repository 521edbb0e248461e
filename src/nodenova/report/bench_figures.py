"""Figures of the bench as SVG: vector graphics that print, need no script and take their ink from the page around them.

Lines differ in colour, dash and marker, classes in colour and shape, so that neither colour vision nor a printer matters.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nodenova.report.bench_cells import Cell
from nodenova.report.figures import BLUES, COLOURS, LONGEST

DASHES = ("", "7 3", "2 3", "9 3 2 3")
ORANGE = "#ee7733"


def text(value: object) -> str:
    return html.escape(" ".join(str(value).split()))


def svg(width: float, height: float, what: str, parts: Iterable[str]) -> str:
    """A figure of its own that can also stand in a page. `what` is read out to those who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" aria-label="{text(what)}" font-family="system-ui, sans-serif" font-size="12" fill="currentColor">'
        f"<title>{text(what)}</title>{''.join(parts)}</svg>"
    )


def curves(what: str, x_title: str, ticks: Sequence[str], series: Mapping[str, Sequence[Cell]]) -> str:
    """Scores (0 to 100) over the values in `ticks`, evenly spaced, with bars of one standard deviation."""
    width, height, left, right, top, bottom = 440.0, 290.0, 42.0, 14.0, 34.0, 48.0
    step = (width - left - right) / max(len(ticks), 1)

    def x(i: int) -> float:
        return left + (i + 0.5) * step

    def y(value: float) -> float:
        return top + (100 - min(max(value, 0.0), 100.0)) / 100 * (height - top - bottom)

    parts = []
    for level in range(0, 101, 20):
        parts.append(f'<path d="M{left:g} {y(level):.1f}H{width - right:g}" stroke="currentColor" opacity=".18"/>')
        parts.append(f'<text x="{left - 6:g}" y="{y(level) + 4:.1f}" text-anchor="end">{level}</text>')
    for i, tick in enumerate(ticks):
        value, default, _ = tick.partition(" (default)")
        parts.append(f'<text x="{x(i):.1f}" y="{height - bottom + 17:g}" text-anchor="middle">{text(value)}</text>')
        if default:
            rule = f'd="M{x(i):.1f} {top:g}V{height - bottom:g}" stroke-dasharray="3 4"'
            under = f'x="{x(i):.1f}" y="{height - bottom + 29:g}" text-anchor="middle" font-size="10"'
            parts.append(f'<path {rule} stroke="currentColor" opacity=".5"/><text {under}>default</text>')
    parts.append(f'<text x="{(left + width - right) / 2:g}" y="{height - 6:g}" text-anchor="middle">{text(x_title)}</text>')
    for number, (name, cells) in enumerate(series.items()):
        colour, dash, shift = COLOURS[number], DASHES[number], 2.0 * number - (len(series) - 1)
        line = f'fill="none" stroke="{colour}" stroke-width="2"'
        parts.append('<path d="' + _line([(x(i) + shift, y(c.mean)) for i, c in enumerate(cells) if c.mean is not None])
                     + f'" {line} stroke-dasharray="{dash}"/>')  # fmt: skip
        for i, cell in enumerate(cells):
            if cell.mean is not None:
                spread = cell.std or 0.0
                bar = f"M{x(i) + shift:.1f} {y(cell.mean - spread):.1f}V{y(cell.mean + spread):.1f}"
                parts.append(f'<path d="{bar}" stroke="{colour}" opacity=".55"/>')
                parts.append(f'<path d="{_marker(number, x(i) + shift, y(cell.mean))}" fill="{colour}"/>')
        at = left + 95 * number
        parts.append(f'<path d="M{at:g} 14h26" {line} stroke-dasharray="{dash}"/>')
        parts.append(
            f'<path d="{_marker(number, at + 13, 14)}" fill="{colour}"/><text x="{at + 32:g}" y="18">{text(name)}</text>'
        )
    return svg(width, height, what, parts)


def _line(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points) if points else ""


def _marker(number: int, x: float, y: float) -> str:
    """A circle, a square, a triangle or a diamond about (x, y)."""
    at = f"M{x:.1f} {y:.1f}"
    shapes = ("m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "m-3.5-3.5h7v7h-7z", "m0-4.5l4.5 8h-9z", "m0-5l5 5-5 5-5-5z")
    return at + shapes[number % len(shapes)]


def confusion(what: str, share: np.ndarray, names: Sequence[str], n_old: int) -> str:
    """Percent of each true class (lines) by matched predicted class (columns); orange lines part old from new."""
    n_true, n_columns = share.shape
    said = [_short(name) for name in names]
    across = [*said, *["no partner"] * (n_columns - n_true)]
    cell = 30.0
    left = 18 + 6.6 * max(map(len, said))
    upright = max(map(len, across)) <= 4
    bottom = 34.0 if upright else 24 + 6.4 * max(map(len, across))
    width, height = left + n_columns * cell + 6, 6 + n_true * cell + bottom
    parts = []
    for i in range(n_true):
        middle = 6 + (i + 0.5) * cell + 4
        parts.append(f'<text x="{left - 6:.1f}" y="{middle:g}" text-anchor="end">{text(said[i])}</text>')
        for j in range(n_columns):
            at = f'x="{left + j * cell + 0.5:.1f}" y="{6 + i * cell + 0.5:g}" width="{cell - 1:g}" height="{cell - 1:g}"'
            parts.append(f'<rect {at} fill="{_blue(share[i, j] / 100)}"/>')
            if share[i, j] >= 0.5:
                ink = "#fff" if share[i, j] > 60 else "#111"
                where = f'x="{left + (j + 0.5) * cell:.1f}" y="{middle:g}"'
                parts.append(f'<text {where} text-anchor="middle" fill="{ink}" font-size="11">{share[i, j]:.0f}</text>')
    for j, name in enumerate(across):
        x, y = left + (j + 0.5) * cell, 6 + n_true * cell + 8
        turned = f'x="{x:.1f}" y="{y + 8:g}" text-anchor="middle"' if upright else (
            f'transform="translate({x + 4:.1f} {y:g}) rotate(-90)" text-anchor="end"')  # fmt: skip
        parts.append(f"<text {turned}>{text(name)}</text>")
    edge, end, foot = left + n_old * cell, left + n_columns * cell, 6 + n_true * cell
    border = f"M{edge:.1f} 6V{foot:g}M{left:.1f} {6 + n_old * cell:g}H{end:.1f}"
    parts.append(f'<path d="{border}" stroke="{ORANGE}" stroke-width="2" fill="none"/>')
    parts.append(
        f'<text x="{(left + end) / 2:.1f}" y="{height - 4:.1f}" text-anchor="middle" font-size="11">predicted</text>'
    )
    return svg(round(width, 1), round(height, 1), what, parts)


def _blue(share: float) -> str:
    """The colour of a share from 0 to 1 on the scale of blues."""
    at = min(max(share, 0.0), 1.0) * (len(BLUES) - 1)
    i = min(int(at), len(BLUES) - 2)
    low, high = ([int(str(BLUES[k][1])[c : c + 2], 16) for c in (1, 3, 5)] for k in (i, i + 1))
    return "#" + "".join(f"{round(a + (b - a) * (at - i)):02x}" for a, b in zip(low, high, strict=True))


def node_map(what: str, xy: np.ndarray, y: np.ndarray, names: Sequence[str], n_old: int) -> str:
    """Nodes at `xy` by their true classes: old ones circles, new ones diamonds; from the eighth class on hollow."""
    size, pad = 330.0, 8.0
    low, high = xy.min(axis=0), xy.max(axis=0)
    place = pad + (xy - low) / np.maximum(high - low, 1e-9) * (size - 2 * pad)  # (n, 2)
    parts, legend = [], []
    for c, name in enumerate(names):
        shape = "m-2.4 0a2.4 2.4 0 1 0 4.8 0a2.4 2.4 0 1 0-4.8 0" if c < n_old else "m0-3.4l3.4 3.4-3.4 3.4-3.4-3.4z"
        colour = COLOURS[c % len(COLOURS)]
        look = f'fill="{colour}"' if c < len(COLOURS) else f'fill="none" stroke="{colour}" stroke-width="1.2"'
        dots = "".join(f"M{px:.1f} {py:.1f}{shape}" for px, py in place[y == c])
        if dots:
            parts.append(f'<path d="{dots}" {look} opacity=".85"/>')
        at = (8 + 165 * (c % 2), size + 14 + 18 * (c // 2))
        legend.append(f'<path d="M{at[0]} {at[1]:g}{shape}" {look}/><text x="{at[0] + 9}" y="{at[1] + 4:g}">')
        legend.append(f"{text(_short(name))} ({'old' if c < n_old else 'new'})</text>")
    return svg(size, size + 12 + 18 * ((len(names) + 1) // 2), what, [*parts, *legend])


def _short(name: str) -> str:
    said = " ".join(str(name).split())
    return said if len(said) <= LONGEST else said[: LONGEST - 1] + "…"
