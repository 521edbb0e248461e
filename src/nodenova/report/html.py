"""HTML pages from templates: one skeleton, one style sheet, all values escaped unless markup.

`templates` and `assets` here hold what pages share. A room with pages keeps its own templates and
scripts in folders of the same names. A page is one file that opens without a network: its style and
scripts are in it, and its content security policy allows only those.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nodenova.display import percent, plural
from nodenova.evaluation.scores import SCORES

# Meanings of the terms on pages, shown when the pointer rests on one.
GLOSSARY = {
    "cosine": "Similarity of the class means: 1 is the same, 0 nothing in common.",
    "Typical": "What its nodes have more often than all others, the most telling first; "
    "low: they have less of it.",
    "Typical features": "Distance of the class from all other nodes in standard errors: "
    "above 4 is clear, below 2 may be chance.",
    "cross-check": "Share of your labelled nodes of this class that are put into it by a "
    "classifier that has not seen their labels.",
    "confidence": "Average probability of this class for its nodes, by the model itself. It is "
    "not an accuracy: only labels can measure that.",
    "unsure": "Nodes in it whose probability of this class is below the limit.",
    "cohesion": "How much closer its nodes are to its own mean than to the next class: "
    "near 0 is hardly a class.",
    "own edges": "Share of the edges of its nodes that stay inside the class.",
    "fit none": "Nodes in it that are farther from every class than nearly all labelled nodes are.",
    "known classes": "Share of the test nodes of known classes that are put into their class.",
    "discovered classes": "Share of the test nodes of unlabelled classes that are in the "
    "discovered class matched to theirs, one to one.",
    **{score.title: score.meaning for score in SCORES.values()},
}


SHARED = "nodenova.report"
# Scripts of a map; START comes last.
MAP_SCRIPTS = (
    "story.js", "points.js", "map.js", "search.js", "legend.js", "selection.js", "links.js",
)  # fmt: skip
START = "start.js"


def decimal(value: float | None) -> str:
    """Format with two decimals; None and NaN as a dash."""
    return "–" if value is None or math.isnan(value) else f"{value:.2f}".replace("-", "−")


def render_page(
    room: str,
    template: str,
    title: str,
    *,
    kind: str,
    scripts: Sequence[str] = (),
    data: object = None,
    served: bool = False,
    **values: object,
) -> str:
    """Render a whole page; equal values give equal pages.

    Templates and assets of the package `room` precede the shared ones. The scripts run in order and
    read `data` as JSON in the block `story`. Only a `served` page may send data, to its server.
    """
    codes = [asset(room, name) for name in scripts]
    style = asset(SHARED, "page.css")
    return _environment(room).get_template(template).render(
        title=title,
        kind=kind,
        policy=Markup(_policy(codes, style, served)),
        style=Markup(style),
        scripts=[Markup(code) for code in codes],
        data=None if data is None else _json(data),
        **values,
    )  # fmt: skip


def policy_hash(content: str) -> str:
    """The source of an inline script or style in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def asset(room: str, name: str) -> str:
    """A style sheet or script of a room, or the shared one of that name."""
    own = files(room).joinpath("assets", name)
    found = own if own.is_file() else files(SHARED).joinpath("assets", name)
    return found.read_text(encoding="utf-8")


@cache
def _environment(room: str) -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(room), PackageLoader(SHARED)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"plural": plural, "glossary": GLOSSARY}
    environment.filters |= {"percent": percent, "decimal": decimal}
    return environment


def _policy(scripts: Sequence[str], style: str, served: bool) -> str:
    """A policy that allows only the scripts and the style of this page, and no requests."""
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(map(policy_hash, scripts)) or "'none'",
        "style-src": policy_hash(style),
        "img-src": "data:",
        "connect-src": "'self'" if served else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{rule} {allowed}" for rule, allowed in rules.items())


def _json(value: object) -> Markup:
    """JSON for a script block; no text in it can end the block."""
    content = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    for sign in "<>&":
        content = content.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(content)
