"""Confusion matrices as SVG.

True classes down, predicted classes across, shaded by the share of the true class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from nodenova.drawing.svg import MAX_LETTERS, ORANGE, blue, short, svg, text
from nodenova.evaluation import metrics

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
    """Percent of each true class by predicted class; orange lines part old from new.

    Args:
        what: Read out to those who cannot see it.
        share: (true, predicted) in percent; what a cell says unless there are counts.
        names: Of the true classes.
        n_old: How many of these are old.
        predicted: Names of the columns: of the true classes unless given, and "no partner" for
            further ones.
        counts: (true, predicted) nodes: said instead of percent, with both where the pointer rests.
    """
    n_true, n_columns = share.shape
    across_full = (
        [*names, *[NO_PARTNER] * (n_columns - n_true)] if predicted is None else list(predicted)
    )
    said = [short(name) for name in names]
    across = [short(name, 2 * MAX_LETTERS) for name in across_full]
    shown = share.round().astype(int) if counts is None else counts
    cell = max(30.0, 10 + 6.5 * len(f"{shown.max(initial=0):,}"))
    left = 18 + 6.6 * max(map(len, said))
    upright = 7 * max(map(len, across)) <= cell
    bottom = 34.0 if upright else 24 + 6.4 * max(map(len, across))
    width, height = left + n_columns * cell + 6, 6 + n_true * 30.0 + bottom
    parts = []
    for i in range(n_true):
        middle = 6 + (i + 0.5) * 30 + 4
        parts.append(
            f'<text x="{left - 6:.1f}" y="{middle:g}" text-anchor="end">{text(said[i])}</text>'
        )
        for j in range(n_columns):
            at = f'x="{left + j * cell + 0.5:.1f}" y="{6 + i * 30 + 0.5:g}"'
            at += f' width="{cell - 1:g}" height="29"'
            hint = "" if counts is None else _hint(names[i], across_full[j], counts[i], j)
            parts.append(f'<rect {at} fill="{blue(share[i, j] / 100)}">{hint}</rect>')
            if shown[i, j]:
                ink = "#fff" if share[i, j] > 60 else "#111"
                where = f'x="{left + (j + 0.5) * cell:.1f}" y="{middle:g}" pointer-events="none"'
                look = f'text-anchor="middle" fill="{ink}" font-size="11"'
                parts.append(f"<text {where} {look}>{shown[i, j]:,}</text>")
    for j, name in enumerate(across):
        x, y = left + (j + 0.5) * cell, 6 + n_true * 30 + 8
        flat = f'x="{x:.1f}" y="{y + 8:g}" text-anchor="middle"'
        turned = f'transform="translate({x + 4:.1f} {y:g}) rotate(-90)" text-anchor="end"'
        parts.append(f"<text {flat if upright else turned}>{text(name)}</text>")
    edge = left + n_old * cell
    end = left + n_columns * cell
    foot = 6 + n_true * 30
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
    """The confusion of one graded run: as predicted, and with discovered classes at true ones.

    Args:
        counts: (true, predicted) nodes.
        names: Of the true classes.
        n_old: How many of these are old.
        sizes: How many true classes each phase brought, as for `metrics.match_block`.
        predicted_sizes: How many predicted ones.
        called: Names of discovered classes by id, where they have any.

    Returns:
        Two drawings by their titles.
    """
    matched = metrics.match_block(counts, sizes, predicted_sizes)
    said = [
        (called or {}).get(i, name)
        for i, name in enumerate(predicted_names(names, n_old, counts.shape[1]))
    ]
    partner = {int(t): said[p] for p, t in enumerate(matched) if t >= n_old}
    found = [
        f"{name} = {partner[t]}" if t in partner else f"{name}, not found"
        for t, name in enumerate(names)
        if t >= n_old
    ]
    extra = [f"{said[p]}, {NO_PARTNER}" for p in np.flatnonzero(matched < 0)]
    views = {
        "Before matching": (counts, said),
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
            predicted=across,
            counts=view,
        )
        for title, (view, across) in views.items()
    }


def predicted_names(names: Sequence[str], n_old: int, n_predicted: int) -> list[str]:
    """What predicted classes are called before they are matched.

    Old ones have their names, discovered ones are new-<id>.

    Examples:
        >>> predicted_names(["cell", "gene", "virus"], 2, 4)
        ['cell', 'gene', 'new-2', 'new-3']
    """
    return [*names[:n_old], *(f"new-{i}" for i in range(n_old, n_predicted))]


def shares(counts: np.ndarray) -> np.ndarray:
    """Percent of each line."""
    return 100 * counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)


def _hint(true: str, predicted: str, line: np.ndarray, j: int) -> str:
    of = int(line.sum())
    percent = 100 * line[j] / max(of, 1)
    nodes = f"{line[j]:,} of {of:,} nodes ({percent:.1f} %)"
    return f"<title>{text(f'true {true}, predicted {predicted}: {nodes}')}</title>"
