"""Curves as SVG: losses over epochs, scores over the values of a setting.

No script; the ink is the page's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from markupsafe import Markup

from nodenova.drawing.svg import COLORS, DASHES, svg, text

MAX_POINTS = 400  # of one loss


class Measured(Protocol):
    """A mean and its spread; None where nothing was measured."""

    @property
    def mean(self) -> float | None: ...
    @property
    def std(self) -> float | None: ...


def loss_curves(history: Mapping[str, Sequence[float]], what: str) -> Markup:
    """One line a term over the epochs.

    The scale is logarithmic where no loss is negative and they are far apart. A value that is not
    finite, or zero on a logarithmic scale, leaves a gap.

    Args:
        history: Losses of each epoch by the name of their term.
        what: Read out to those who cannot see it.

    Returns:
        A figure; "" for no losses.
    """
    values = [v for term in history.values() for v in term if math.isfinite(v)]
    if not values:
        return Markup()
    width, height, left, right, top, bottom = 460.0, 220.0, 54.0, 10.0, 10.0, 26.0
    positive = [v for v in values if v > 0]
    logarithmic = min(values) >= 0 and len(positive) > 1 and max(positive) > 20 * min(positive)
    low, high = (
        (min(positive), max(positive)) if logarithmic else (min(*values, 0.0), max(*values, 0.0))
    )
    if low == high:
        high = low + 1.0
    epochs = max(map(len, history.values()))

    def y(v: float) -> float:
        part = math.log(v / low) / math.log(high / low) if logarithmic else (v - low) / (high - low)
        return top + (1 - part) * (height - top - bottom)

    def x(epoch: int) -> float:
        return left + (width - left - right) * epoch / max(epochs - 1, 1)

    lines, names = [], []
    for i, (name, term) in enumerate(history.items()):
        drawn = [
            (x(e), y(term[e]))
            if math.isfinite(term[e]) and (term[e] > 0 or not logarithmic)
            else None
            for e in range(0, len(term), max(1, len(term) // MAX_POINTS))
        ]
        if any(drawn):
            look = (
                f'class="curve tone-{i % len(COLORS)}" stroke-dasharray="{DASHES[i % len(DASHES)]}"'
            )
            lines.append(f'<path d="{_broken_line(drawn)}" {look}/>')
            names.append(
                f'<li><svg viewBox="0 0 24 8"><path d="M0 4h24" {look}/></svg> {text(name)}</li>'
            )
    ticks = (high, math.sqrt(low * high), low) if logarithmic else (high, (low + high) / 2, low)
    marks = [
        f'<path class="grid" d="M{left:g} {y(v):.1f}H{width - right:g}"/>'
        f'<text x="{left - 6:g}" y="{y(v) + 4:.1f}" text-anchor="end">{v:.3g}</text>'
        for v in ticks
    ]
    ends = f'<text x="{left:g}" y="{height - 6:g}">1</text>'
    ends += (
        f'<text x="{width - right:g}" y="{height - 6:g}" text-anchor="end">epoch {epochs}</text>'
    )
    drawing = svg(width, height, what, [*marks, *lines, ends])
    return Markup(
        f'<figure class="losses">{drawing}<ul class="keys">{"".join(names)}</ul></figure>'
    )


def score_curves(
    what: str, x_title: str, ticks: Sequence[str], series: Mapping[str, Sequence[Measured]]
) -> Markup:
    """Scores (0 to 100) over the values of a setting, with bars of one standard deviation.

    Args:
        what: Read out to those who cannot see it.
        x_title: Of the setting.
        ticks: Its values, evenly spaced; " (default)" behind one marks it.
        series: A score for each value, by the name of the line.
    """
    width, height, left, right, top, bottom = 440.0, 290.0, 42.0, 14.0, 34.0, 48.0
    step = (width - left - right) / max(len(ticks), 1)

    def x(i: int) -> float:
        return left + (i + 0.5) * step

    def y(value: float) -> float:
        return top + (100 - min(max(value, 0.0), 100.0)) / 100 * (height - top - bottom)

    parts = []
    for level in range(0, 101, 20):
        rule = f'd="M{left:g} {y(level):.1f}H{width - right:g}"'
        parts.append(f'<path {rule} stroke="currentColor" opacity=".18"/>')
        parts.append(
            f'<text x="{left - 6:g}" y="{y(level) + 4:.1f}" text-anchor="end">{level}</text>'
        )
    for i, tick in enumerate(ticks):
        value, default, _ = tick.partition(" (default)")
        at = f'x="{x(i):.1f}" y="{height - bottom + 17:g}" text-anchor="middle"'
        parts.append(f"<text {at}>{text(value)}</text>")
        if default:
            rule = f'd="M{x(i):.1f} {top:g}V{height - bottom:g}" stroke-dasharray="3 4"'
            under = (
                f'x="{x(i):.1f}" y="{height - bottom + 29:g}" text-anchor="middle" font-size="10"'
            )
            parts.append(
                f'<path {rule} stroke="currentColor" opacity=".5"/><text {under}>default</text>'
            )
    at = f'x="{(left + width - right) / 2:g}" y="{height - 6:g}" text-anchor="middle"'
    parts.append(f"<text {at}>{text(x_title)}</text>")
    for number, (name, cells) in enumerate(series.items()):
        color = COLORS[number]
        dash = DASHES[number % len(DASHES)]
        shift = 2.0 * number - (len(series) - 1)
        line = f'fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dash}"'
        there = [(x(i) + shift, y(c.mean)) for i, c in enumerate(cells) if c.mean is not None]
        parts.append(f'<path d="{_broken_line(there)}" {line}/>')
        for i, cell in enumerate(cells):
            if cell.mean is not None:
                spread = cell.std or 0.0
                bar = f"M{x(i) + shift:.1f} {y(cell.mean - spread):.1f}V{y(cell.mean + spread):.1f}"
                parts.append(f'<path d="{bar}" stroke="{color}" opacity=".55"/>')
                parts.append(
                    f'<path d="{_marker(number, x(i) + shift, y(cell.mean))}" fill="{color}"/>'
                )
        start = left + 95 * number
        parts.append(f'<path d="M{start:g} 14h26" {line}/>')
        parts.append(f'<path d="{_marker(number, start + 13, 14)}" fill="{color}"/>')
        parts.append(f'<text x="{start + 32:g}" y="18">{text(name)}</text>')
    return svg(width, height, what, parts)


def _broken_line(points: Sequence[tuple[float, float] | None]) -> str:
    """A line through the points; None is a gap, and a point between two gaps a dot."""
    drawn = []
    before = False
    for i, point in enumerate(points):
        if point is not None:
            drawn.append(f"{'L' if before else 'M'}{point[0]:.1f} {point[1]:.1f}")
            if not before and (i + 1 == len(points) or points[i + 1] is None):
                drawn.append("h0")
        before = point is not None
    return "".join(drawn)


def _marker(number: int, x: float, y: float) -> str:
    """A circle, a square, a triangle or a diamond about (x, y)."""
    at = f"M{x:.1f} {y:.1f}"
    shapes = (
        "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
        "m-3.5-3.5h7v7h-7z",
        "m0-4.5l4.5 8h-9z",
        "m0-5l5 5-5 5-5-5z",
    )
    return at + shapes[number % len(shapes)]
