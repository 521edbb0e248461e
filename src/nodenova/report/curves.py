"""Loss curves as SVG: coloured by the page's style sheet, readable without a script, on paper and in the dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from nodenova.report.html import text

WIDTH, HEIGHT = 460, 220
LEFT, RIGHT, TOP, BOTTOM = 54, 10, 10, 26
MOST_POINTS = 400
DASHES = ("none", "7 4", "2 3", "9 3 2 3", "12 5")


def loss_curves(history: Mapping[str, Sequence[float]], title: str) -> str:
    """One line a term over the epochs, on a logarithmic scale where all are positive and far apart; "" for none."""
    values = [v for term in history.values() for v in term if math.isfinite(v)]
    if not values or max(map(len, history.values())) < 2:
        return ""
    positive = [v for v in values if v > 0]
    logarithmic = min(values) >= 0 and len(positive) > 1 and max(positive) > 20 * min(positive)
    low, high = (min(positive), max(positive)) if logarithmic else (min(*values, 0.0), max(values))
    if low == high:
        high = low + 1.0
    epochs = max(map(len, history.values()))

    def height(v: float) -> float:
        part = math.log(v / low) / math.log(high / low) if logarithmic else (v - low) / (high - low)
        return TOP + (1 - part) * (HEIGHT - TOP - BOTTOM)

    def along(epoch: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * epoch / (epochs - 1)

    lines, names = [], []
    for i, (name, term) in enumerate(history.items()):
        step = max(1, len(term) // MOST_POINTS)
        drawn = [(e, term[e]) for e in range(0, len(term), step) if math.isfinite(term[e])]
        points = " ".join(f"{along(e):.1f},{height(v):.1f}" for e, v in drawn if v > 0 or not logarithmic)
        look = f'class="curve tone-{i % 7}" stroke-dasharray="{DASHES[i % len(DASHES)]}"'
        if points:
            lines.append(f'<polyline points="{points}" {look}/>')
            names.append(f'<li><svg viewBox="0 0 24 8"><path d="M0 4h24" {look}/></svg> {text(name)}</li>')
    ticks = (high, math.sqrt(low * high), low) if logarithmic else (high, (low + high) / 2, low)
    marks = "".join(
        f'<path class="grid" d="M{LEFT} {height(v):.1f}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 6}" y="{height(v) + 4:.1f}" text-anchor="end">{v:.3g}</text>'
        for v in ticks
    )
    ends = f'<text x="{LEFT}" y="{HEIGHT - 6}">1</text><text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">'
    ends += f"epoch {epochs}</text>"
    return (
        f'<figure class="losses"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(title)}">{marks}'
        f'{"".join(lines)}{ends}</svg><ul class="keys">{"".join(names)}</ul></figure>'
    )
