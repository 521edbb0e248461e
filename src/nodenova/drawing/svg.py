"""What drawings have in common: the frame, names as text, colors.

Lines differ in color, dash and marker, classes in color and shape, so that neither color vision
nor a printer matters.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from markupsafe import Markup

# Seven colors that stay apart for every kind of color vision (Paul Tol's "vibrant"), on white and
# on black.
COLORS = ("#0077bb", "#ee7733", "#009988", "#cc3311", "#33bbee", "#ee3377", "#999999")
ORANGE = COLORS[1]
BLUES = ("#f2f6fb", "#c3d9ee", "#7fb2da", "#3a7fbd", "#0b4a8b")  # from nothing to all
DASHES = ("none", "7 4", "2 3", "9 3 2 3", "12 5")
MAX_LETTERS = 24  # of a name in a drawing


def text(value: object) -> str:
    """A name as text, never markup, on one line."""
    return html.escape(" ".join(str(value).split()))


def short(name: object, letters: int = MAX_LETTERS) -> str:
    """A name that is cut where it is long; not escaped."""
    said = " ".join(str(name).split())
    return said if len(said) <= letters else said[: letters - 1] + "…"


def svg(width: float, height: float, what: str, parts: Iterable[str]) -> Markup:
    """A figure of its own that can also stand in a page.

    `what` is read out to those who cannot see it.
    """
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" aria-label="{text(what)}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">'
        f"<title>{text(what)}</title>{''.join(parts)}</svg>"
    )


def blue(share: float) -> str:
    """The color of a share from 0 to 1 on the scale of blues."""
    at = min(max(share, 0.0), 1.0) * (len(BLUES) - 1)
    i = min(int(at), len(BLUES) - 2)
    low, high = ([int(BLUES[k][c : c + 2], 16) for c in (1, 3, 5)] for k in (i, i + 1))
    return "#" + "".join(
        f"{round(a + (b - a) * (at - i)):02x}" for a, b in zip(low, high, strict=True)
    )
