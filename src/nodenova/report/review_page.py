"""The page on which a reader looks at the classes, names, merges, splits and rejects them: one HTML file, no network.

The HTML is written here and in `review_sections`; the scripts in `assets` draw the map and collect the decisions.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.graph import Graph
from nodenova.model import Model
from nodenova.report import review_sections as sections
from nodenova.report.html import asset, data_block, policy_hash, text
from nodenova.report.story import Story, tell
from nodenova.storage import write_atomically

SCRIPTS = ("story.js", "points.js", "map.js", "search.js", "cards.js", "review.js")
LOG_STEPS = 700  # a probability p is told as -700 ln p, from 0 to 61,000


def write_review_page(model: Model, graph: Graph, path: Path, **told: Any) -> Story:
    """Write the page of `model` on `graph` to `path`, whole or not at all; `told` are the arguments of `tell`."""
    story = tell(model, graph, **told)
    write_atomically(path, review_page(story).encode())
    return story


def review_page(story: Story, served: bool = False) -> str:
    """The page. Equal stories give equal pages. A served one may send the review to where it came from, else nothing."""
    scripts, style = [asset(name) for name in SCRIPTS], asset("review.css")
    body = "\n".join(
        [
            sections.header(story),
            sections.node_map(story),
            sections.cards(story),
            sections.moved_and_unsure(story),
            sections.graded(story),
            sections.made(story),
        ]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts, style, served)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{text(story.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#classes">Skip the map</a>\n<main>\n{body}\n</main>\n{asset("desk.html")}\n'
        f"{data_block('story', _data(story, served))}\n"
        + "".join(f"<script>{script}</script>\n" for script in scripts)
        + "</body>\n</html>\n"
    )


def _policy(scripts: list[str], style: str, served: bool) -> str:
    """Only the scripts and the style of this page, and nothing may be fetched."""
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(map(policy_hash, scripts)),
        "style-src": policy_hash(style),
        "img-src": "data:",
        "connect-src": "'self'" if served else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{rule} {allowed}" for rule, allowed in rules.items())


def _data(story: Story, served: bool) -> dict[str, Any]:
    """What the scripts read. Arrays are little-endian numbers in base64: 100,000 nodes are some megabytes."""
    nodes = story.nodes
    return {
        "model": story.model,
        "edits": story.edits,
        "served": served,
        "unsureBelow": story.unsure_below,
        "classes": [{"id": c.id, "name": c.name, "isNew": c.stage > 0, "size": c.size} for c in story.classes],
        "trueNames": list(story.true_names),
        "trueAs": list(story.true_as),
        "names": list(nodes.names),
        "xy": _packed(np.rint(nodes.xy * 65535), "<u2"),
        "likely": nodes.best.shape[1],
        "best": _packed(nodes.best, "<u2"),
        # Logarithms: when a sure class is rejected, the smallest of the others decide.
        "p": _packed(np.rint(-LOG_STEPS * np.log(np.maximum(nodes.p, 1e-38))), "<u2"),
        "logSteps": LOG_STEPS,
        "degree": _packed(nodes.degree, "<u4"),
        "near": _packed(nodes.near, "<u2"),
        "nearCount": _packed(nodes.near_count, "<u4"),
        "start": _packed(nodes.start, "<u4"),
        "targets": _packed(nodes.targets, "<u4"),
        "given": None if nodes.given is None else _packed(nodes.given, "<u2"),
        "true": None if nodes.true is None else _packed(nodes.true, "<u2"),
    }


def _packed(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode()
