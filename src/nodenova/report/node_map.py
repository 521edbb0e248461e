"""Maps of nodes: data for the scripts of a page, and SVG for the bench and for print."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from nodenova.report.charts import COLORS, short, svg, text

CIRCLE = "m-2.4 0a2.4 2.4 0 1 0 4.8 0a2.4 2.4 0 1 0-4.8 0"
DIAMOND = "m0-3.4l3.4 3.4-3.4 3.4-3.4-3.4z"
LOG_STEPS = 700  # a probability p is stored as -700 ln p, from 0 to 61,000


def map_data(
    names: Sequence[str],
    xy: np.ndarray,
    classes: Sequence[tuple[int, str, bool, int]],
    best: np.ndarray,
    *,
    p: np.ndarray | None = None,
    true: np.ndarray | None = None,
    true_names: Sequence[str] = (),
    true_as: Sequence[int] = (),
    min_confidence: float = 0.5,
) -> dict[str, object]:
    """Data of the scripts for n nodes; arrays are little-endian in base64, to stay small.

    `classes` are (id, name, whether new, number of nodes); `best` and `p` (n, k) likely classes and
    their probabilities; `true` (n,) rows of `true_names`, `true_as` the class matched to each.
    """
    keys = ("id", "name", "isNew", "size")
    return {
        "classes": [dict(zip(keys, values, strict=True)) for values in classes],
        "names": list(names),
        "xy": pack(np.rint(xy * 65535), "<u2"),
        "likely": best.shape[1],
        "best": pack(best, "<u2"),
        # Logarithms: when a sure class is rejected, the smallest of the others decide.
        "p": None if p is None else pack(np.rint(-LOG_STEPS * np.log(np.maximum(p, 1e-38))), "<u2"),
        "logSteps": LOG_STEPS,
        "unsureBelow": min_confidence,
        "true": None if true is None else pack(true, "<u2"),
        "trueNames": list(true_names),
        "trueAs": list(true_as),
    }


def pack(values: np.ndarray, kind: str) -> str:
    """Encode an array of a NumPy type such as "<u2" in base64."""
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode()


def node_map(what: str, xy: np.ndarray, y: np.ndarray, names: Sequence[str], n_old: int) -> Markup:
    """Draw nodes at (n, 2) `xy` by (n,) true class `y`.

    Old classes are circles, new ones diamonds, hollow from the eighth class on; `what` is the
    description for screen readers.
    """
    size, pad = 330.0, 8.0
    low, high = xy.min(axis=0), xy.max(axis=0)
    place = pad + (xy - low) / np.maximum(high - low, 1e-9) * (size - 2 * pad)  # (n, 2)
    parts, legend = [], []
    for c, name in enumerate(names):
        shape = CIRCLE if c < n_old else DIAMOND
        color = COLORS[c % len(COLORS)]
        hollow = f'fill="none" stroke="{color}" stroke-width="1.2"'
        look = f'fill="{color}"' if c < len(COLORS) else hollow
        dots = "".join(f"M{px:.1f} {py:.1f}{shape}" for px, py in place[y == c])
        if dots:
            parts.append(f'<path d="{dots}" {look} opacity=".85"/>')
        at = (8 + 165 * (c % 2), size + 14 + 18 * (c // 2))
        legend.append(
            f'<path d="M{at[0]} {at[1]:g}{shape}" {look}/><text x="{at[0] + 9}" y="{at[1] + 4:g}">'
        )
        legend.append(f"{text(short(name))} ({'old' if c < n_old else 'new'})</text>")
    return svg(size, size + 12 + 18 * ((len(names) + 1) // 2), what, [*parts, *legend])
