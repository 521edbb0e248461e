"""The page on which a reader looks at the classes, names, merges, splits and rejects them.

One HTML file, no network. `sections` says what is on it and the templates how it is marked up; the
scripts in `assets` draw the map and collect the decisions.
"""

from __future__ import annotations

from nodenova.drawing.node_map import map_data, packed
from nodenova.model.decisions import to_json
from nodenova.pages.html import MAP_SCRIPTS, START, render_page
from nodenova.review import sections
from nodenova.review.decisions import Review
from nodenova.review.page_data import MAX_SUGGESTED, PageData
from nodenova.review.user_labels import labels_in_new_classes
from nodenova.review.verdict import verdict

SCRIPTS = (*MAP_SCRIPTS, "cards.js", "suggestions.js", "review.js", START)


def review_page(page: PageData, served: bool = False) -> str:
    """The page as HTML. Equal data give equal pages.

    Args:
        page: What it tells.
        served: Whether it may send the review to where it came from; else it can send nothing.
    """
    sampled = len(page.nodes.names) < page.num_nodes
    views = {"class": "class", "unsure": "how sure"}
    if page.true_names:
        views["true"] = "true class"
    return render_page(
        "nodenova.review",
        "review.html.j2",
        page.title,
        kind="review",
        scripts=SCRIPTS,
        data=_data(page, served),
        served=served,
        page=page,
        lead=sections.lead(page),
        verdict=verdict(page.stages, page.classes),
        warning=labels_in_new_classes(page.classes),
        shows=sections.shows(page),
        offers=sections.offers(page),
        more_labels=max(len(page.suggested.labels) - MAX_SUGGESTED, 0),
        farthest=sections.fit_none(page),
        sampled=len(page.nodes.names) if sampled else None,
        views=views,
        map_note="",
        cards=sections.cards(page),
        moved=sections.moved(page),
        border=sections.ambiguous(page, page.border),
        unsure=sections.ambiguous(page, page.unsure),
        graded=sections.graded(page),
        facts_listed={**page.facts, "Model": page.model},
        stages=sections.phases(page),
    )


def _data(page: PageData, served: bool) -> dict[str, object]:
    """What the scripts read: the map, the neighbors of each node, the review that they fill in."""
    nodes = page.nodes
    return {
        "review": Review(page.model).to_json(),
        "edits": page.edits,
        "served": served,
        "suggestions": [to_json(one.decision) for one in sections.offered(page.suggested)],
        **map_data(
            nodes.names,
            nodes.xy,
            [(c.id, c.name, c.stage > 0, c.size or 0) for c in page.classes],
            nodes.best,
            p=nodes.p,
            true=nodes.true,
            true_names=page.true_names,
            true_as=page.true_as,
            min_confidence=page.min_confidence,
        ),
        "degree": packed(nodes.degree, "<u4"),
        "near": packed(nodes.near, "<u2"),
        "nearCount": packed(nodes.near_count, "<u4"),
        "start": packed(nodes.start, "<u4"),
        "targets": packed(nodes.targets, "<u4"),
        "given": None if nodes.given is None else packed(nodes.given, "<u2"),
    }
