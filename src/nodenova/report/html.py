"""Pages from templates: one skeleton, one style sheet, every value shown as text unless markup.

`templates` and `assets` here hold what pages share: base.html.j2, the macros, the map and its
scripts. A room that has pages keeps its own templates and scripts in folders of the same names.
A page is one file that opens without a network: its style and scripts are in it, and its policy
allows those and nothing else.

What the terms on pages mean, in a sentence each: shown when the pointer rests on one.
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

GLOSSARY = {
    "cosine": "How alike the middles of two classes are: 1 the same, 0 nothing in common.",
    "Typical": "What its nodes have more often than all others, the most telling first; "
    "low: they have less of it.",
    "Typical features": "How far the class lies off all other nodes, in standard errors: "
    "above 4 is plain, below 2 may be chance.",
    "labels held out": "Of your labelled nodes of this class, judged without their labels, "
    "so many land in it.",
    "clear-cut": "How clearly the model prefers this class for its nodes, on average. It is not "
    "how often it is right: only labels can say that.",
    "unsure": "Nodes in it that are less likely than the limit to be of this class.",
    "cohesion": "How much closer its nodes are to its own middle than to the next class: "
    "near 0 is hardly a class.",
    "own edges": "The share of its nodes' edges that stay inside the class.",
    "fit none": "Nodes in it that are farther from every class than nearly all labelled nodes are.",
    "of known classes": "Of test nodes of known classes, so many are in theirs.",
    "of discovered classes": "Of test nodes whose class had no label, so many are in the "
    "discovered class that stands for theirs, one to one.",
    **{score.title: score.meaning for score in SCORES.values()},
}


SHARED = "nodenova.report"
# What a map needs; START comes last.
MAP_SCRIPTS = ("story.js", "points.js", "map.js", "search.js", "legend.js")
START = "start.js"


def decimal(value: float | None) -> str:
    """Two decimals; a dash where there is nothing."""
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
    """A whole page. Equal values give equal pages.

    Args:
        room: The package whose page it is; its templates and assets go before the shared ones.
        template: One that extends base.html.j2.
        title: Of the page.
        kind: Class of the body, for the style sheet.
        scripts: Assets that run, in this order.
        data: What they read, as JSON in the block `story`.
        served: Whether the page may send something to where it came from; else it can send nothing.
        **values: What the template shows. One that it needs and does not get is an error.
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
    """What a content security policy calls an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def asset(room: str, name: str) -> str:
    """A style sheet or script of a room, or the shared one of that name."""
    own = files(room).joinpath("assets", name)
    found = own if own.is_file() else files(SHARED).joinpath("assets", name)
    return found.read_text(encoding="utf-8")


@cache
def _environment(room: str) -> Environment:
    made = Environment(
        loader=ChoiceLoader([PackageLoader(room), PackageLoader(SHARED)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {"plural": plural, "glossary": GLOSSARY}
    made.filters |= {"percent": percent, "decimal": decimal}
    return made


def _policy(scripts: Sequence[str], style: str, served: bool) -> str:
    """Only the scripts and the style of this page, and nothing may be fetched."""
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
    """JSON for a block that scripts read. No text in it can end the block."""
    content = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    for sign in "<>&":
        content = content.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(content)
