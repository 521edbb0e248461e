"""Charts as SVG without scripts: confusion matrices, losses over epochs, scores over settings.

Lines differ in color, dash and marker, classes in color and shape, so that they stay apart for
every kind of color vision and in print. `what` is always the description for screen readers.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from markupsafe import Markup

from nodenova.display import percent
from nodenova.evaluation import metrics

# Paul Tol's "vibrant" palette: apart for every kind of color vision, on white and on black.
COLORS = ("#0077bb", "#ee7733", "#009988", "#cc3311", "#33bbee", "#ee3377", "#999999")
ORANGE = COLORS[1]
BLUES = ("#f2f6fb", "#c3d9ee", "#7fb2da", "#3a7fbd", "#0b4a8b")  # from nothing to all
DASHES = ("none", "7 4", "2 3", "9 3 2 3", "12 5")
MAX_LETTERS = 24  # of a name in a drawing


def text(value: object) -> str:
    """Escape a name and put it on one line."""
    return html.escape(" ".join(str(value).split()))


def short(name: object, letters: int = MAX_LETTERS) -> str:
    """Put a name or a text on one line of at most that many letters; not escaped."""
    line = " ".join(str(name).split())
    return line if len(line) <= letters else line[: letters - 1] + "…"


def svg(width: float, height: float, what: str, parts: Iterable[str]) -> Markup:
    """Wrap parts into an SVG that can stand alone or in a page."""
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" aria-label="{text(what)}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">'
        f"<title>{text(what)}</title>{''.join(parts)}</svg>"
    )


def blue(share: float) -> str:
    """Color of a share from 0 to 1 on the scale of blues."""
    at = min(max(share, 0.0), 1.0) * (len(BLUES) - 1)
    i = min(int(at), len(BLUES) - 2)
    low, high = ([int(BLUES[k][c : c + 2], 16) for c in (1, 3, 5)] for k in (i, i + 1))
    return "#" + "".join(
        f"{round(a + (b - a) * (at - i)):02x}" for a, b in zip(low, high, strict=True)
    )


NO_PARTNER = "no partner"


def confusion(
    what: str,
    share: np.ndarray,
    names: Sequence[str],
    n_old: int,
    *,
    predicted: Sequence[str] | None = None,
    counts: np.ndarray | None = None,
) -> Markup:
    """Draw a confusion matrix: true classes down, predicted across; orange lines part old from new.

    `share` is (true, predicted) in percent. Cells show `counts` if given, with a hint. Names of the
    columns default to the true classes and "no partner".
    """
    n_true, n_columns = share.shape
    if predicted is None:
        predicted = [*names, *[NO_PARTNER] * (n_columns - n_true)]
    down = [short(name) for name in names]
    across = [short(name, 2 * MAX_LETTERS) for name in predicted]
    numbers = share.round().astype(int) if counts is None else counts
    cell = max(30.0, 10 + 6.5 * len(f"{numbers.max(initial=0):,}"))
    left = 18 + 6.6 * max(map(len, down))
    upright = 7 * max(map(len, across)) <= cell
    bottom = 34.0 if upright else 24 + 6.4 * max(map(len, across))
    width, height = left + n_columns * cell + 6, 6 + n_true * 30.0 + bottom
    parts = []
    for i in range(n_true):
        middle = 6 + (i + 0.5) * 30 + 4
        parts.append(
            f'<text x="{left - 6:.1f}" y="{middle:g}" text-anchor="end">{text(down[i])}</text>'
        )
        for j in range(n_columns):
            at = f'x="{left + j * cell + 0.5:.1f}" y="{6 + i * 30 + 0.5:g}"'
            at += f' width="{cell - 1:g}" height="29"'
            hint = "" if counts is None else _hint(names[i], predicted[j], counts[i], j)
            parts.append(f'<rect {at} fill="{blue(share[i, j] / 100)}">{hint}</rect>')
            if numbers[i, j]:
                ink = "#fff" if share[i, j] > 60 else "#111"
                where = f'x="{left + (j + 0.5) * cell:.1f}" y="{middle:g}" pointer-events="none"'
                look = f'text-anchor="middle" fill="{ink}" font-size="11"'
                parts.append(f"<text {where} {look}>{numbers[i, j]:,}</text>")
    for j, name in enumerate(across):
        x, y = left + (j + 0.5) * cell, 6 + n_true * 30 + 8
        flat = f'x="{x:.1f}" y="{y + 8:g}" text-anchor="middle"'
        turned = f'transform="translate({x + 4:.1f} {y:g}) rotate(-90)" text-anchor="end"'
        parts.append(f"<text {flat if upright else turned}>{text(name)}</text>")
    edge, end, foot = left + n_old * cell, left + n_columns * cell, 6 + n_true * 30
    border = f"M{edge:.1f} 6V{foot:g}M{left:.1f} {6 + n_old * 30:g}H{end:.1f}"
    parts.append(f'<path d="{border}" stroke="{ORANGE}" stroke-width="2" fill="none"/>')
    where = f'x="{(left + end) / 2:.1f}" y="{height - 4:.1f}" text-anchor="middle"'
    parts.append(f'<text {where} font-size="11">predicted</text>')
    return svg(round(width, 1), round(height, 1), what, parts)


def before_and_after_matching(
    counts: np.ndarray,
    names: Sequence[str],
    n_old: int,
    sizes: Sequence[int],
    predicted_sizes: Sequence[int],
    called: Mapping[int, str] | None = None,
) -> Mapping[str, Markup]:
    """Draw the confusion of one graded run as predicted, and after matching; two drawings by title.

    `sizes` and `predicted_sizes` are as for `metrics.match_block`; `called` has names of discovered
    classes by id.
    """
    matched = metrics.match_block(counts, sizes, predicted_sizes)
    across = [
        (called or {}).get(i, name)
        for i, name in enumerate(predicted_names(names, n_old, counts.shape[1]))
    ]
    partner = {int(t): across[p] for p, t in enumerate(matched) if t >= n_old}
    found = [
        f"{name} = {partner[t]}" if t in partner else f"{name}, not found"
        for t, name in enumerate(names)
        if t >= n_old
    ]
    extra = [f"{across[p]}, {NO_PARTNER}" for p in np.flatnonzero(matched < 0)]
    views = {
        "Before matching": (counts, across),
        "After matching (block)": (
            metrics.matched_confusion(counts, matched),
            [*names[:n_old], *found, *extra],
        ),
    }
    return {
        title: confusion(
            f"Confusion matrix, {title.lower()}",
            shares(view),
            names,
            n_old,
            predicted=columns,
            counts=view,
        )
        for title, (view, columns) in views.items()
    }


def predicted_names(names: Sequence[str], n_old: int, n_predicted: int) -> list[str]:
    """Names of predicted classes before matching: old ones their own, discovered ones new-<id>."""
    return [*names[:n_old], *(f"new-{i}" for i in range(n_old, n_predicted))]


def shares(counts: np.ndarray) -> np.ndarray:
    """Percent of each row."""
    return 100 * counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)


def _hint(true: str, predicted: str, line: np.ndarray, j: int) -> str:
    of = int(line.sum())
    nodes = f"{line[j]:,} of {of:,} nodes ({percent(line[j] / max(of, 1), 1)})"
    return f"<title>{text(f'true {true}, predicted {predicted}: {nodes}')}</title>"


MAX_POINTS = 400  # of one loss


class Measured(Protocol):
    """A mean and its spread; None where nothing was measured."""

    @property
    def mean(self) -> float | None: ...
    @property
    def std(self) -> float | None: ...


def loss_curves(history: Mapping[str, Sequence[float]], what: str) -> Markup:
    """Draw one line per loss term over the epochs; "" without losses.

    The scale is logarithmic where no loss is negative and they differ much. Values that are not
    finite, or zero on a logarithmic scale, leave a gap.
    """
    values = [v for term in history.values() for v in term if math.isfinite(v)]
    if not values:
        return Markup()
    width, height, left, right, top, bottom = 460.0, 220.0, 54.0, 10.0, 10.0, 26.0
    positive = [v for v in values if v > 0]
    logarithmic = min(values) >= 0 and len(positive) > 1 and max(positive) > 20 * min(positive)
    on_scale = positive if logarithmic else [*values, 0.0]
    low, high = min(on_scale), max(on_scale)
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
        points = [
            (x(e), y(term[e]))
            if math.isfinite(term[e]) and (term[e] > 0 or not logarithmic)
            else None
            for e in range(0, len(term), max(1, len(term) // MAX_POINTS))
        ]
        if any(points):
            dash = DASHES[i % len(DASHES)]
            look = f'class="curve tone-{i % len(COLORS)}" stroke-dasharray="{dash}"'
            lines.append(f'<path d="{_broken_line(points)}" {look}/>')
            names.append(
                f'<li><svg viewBox="0 0 24 8"><path d="M0 4h24" {look}/></svg> {text(name)}</li>'
            )
    ticks = (high, math.sqrt(low * high), low) if logarithmic else (high, (low + high) / 2, low)
    marks = [
        f'<path class="grid" d="M{left:g} {y(v):.1f}H{width - right:g}"/>'
        f'<text x="{left - 6:g}" y="{y(v) + 4:.1f}" text-anchor="end">{v:.3g}</text>'
        for v in ticks
    ]
    at = f'x="{width - right:g}" y="{height - 6:g}" text-anchor="end"'
    ends = f'<text x="{left:g}" y="{height - 6:g}">1</text><text {at}>epoch {epochs}</text>'
    drawing, keys = svg(width, height, what, [*marks, *lines, ends]), "".join(names)
    return Markup(f'<figure class="losses">{drawing}<ul class="keys">{keys}</ul></figure>')


def score_curves(
    what: str, x_title: str, ticks: Sequence[str], series: Mapping[str, Sequence[Measured]]
) -> Markup:
    """Draw scores (0 to 100) over evenly spaced values of a setting, with standard deviations.

    " (default)" at the end of a tick marks the default value.
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
            parts.append(f'<path {rule} stroke="currentColor" opacity=".5"/>')
            under = f'x="{x(i):.1f}" y="{height - bottom + 29:g}" text-anchor="middle"'
            parts.append(f'<text {under} font-size="10">default</text>')
    at = f'x="{(left + width - right) / 2:g}" y="{height - 6:g}" text-anchor="middle"'
    parts.append(f"<text {at}>{text(x_title)}</text>")
    for number, (name, cells) in enumerate(series.items()):
        color, dash = COLORS[number], DASHES[number % len(DASHES)]
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
    """Path through the points; None is a gap, and a point between two gaps a dot."""
    path, before = [], False
    for i, point in enumerate(points):
        if point is not None:
            path.append(f"{'L' if before else 'M'}{point[0]:.1f} {point[1]:.1f}")
            if not before and (i + 1 == len(points) or points[i + 1] is None):
                path.append("h0")
        before = point is not None
    return "".join(path)


def _marker(number: int, x: float, y: float) -> str:
    """Path of a circle, a square, a triangle or a diamond around (x, y)."""
    at = f"M{x:.1f} {y:.1f}"
    shapes = (
        "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
        "m-3.5-3.5h7v7h-7z",
        "m0-4.5l4.5 8h-9z",
        "m0-5l5 5-5 5-5-5z",
    )
    return at + shapes[number % len(shapes)]
