"""The page on which a reader looks at the classes, names, merges, splits and rejects them: one HTML file, no network.

`sections` says what is on it and the templates how it is marked up; the scripts in `assets` draw the map and collect the
decisions.
"""

from __future__ import annotations

from nodenova.drawing.node_map import map_data, packed
from nodenova.pages.html import MAP_SCRIPTS, START, render_page
from nodenova.review import sections
from nodenova.review.decisions import Review
from nodenova.review.page_data import PageData

SCRIPTS = (*MAP_SCRIPTS, "cards.js", "review.js", START)


def review_page(story: PageData, served: bool = False) -> str:
    """The page. Equal stories give equal pages. A served one may send the review to where it came from, else nothing."""
    sampled = len(story.nodes.names) < story.num_nodes
    return render_page(
        "nodenova.review",
        "review.html.j2",
        story.title,
        kind="review",
        scripts=SCRIPTS,
        data=_data(story, served),
        served=served,
        story=story,
        lead=sections.lead(story),
        sampled=len(story.nodes.names) if sampled else None,
        views={"class": "class", "unsure": "how sure"}
        | ({"true": "true class"} if story.true_names else {}),
        map_note="",
        cards=sections.cards(story),
        moved=sections.moved(story),
        border=sections.doubts(story, story.border),
        unsure=sections.doubts(story, story.unsure),
        graded=sections.graded(story),
        facts_listed={**story.facts, "Model": story.model},
        stages=sections.phases(story),
    )


def _data(story: PageData, served: bool) -> dict[str, object]:
    """What the scripts read: the map, what is around each node, and the review that they fill in."""
    nodes = story.nodes
    return {
        "review": Review(story.model).to_json(),
        "edits": story.edits,
        "served": served,
        **map_data(
            nodes.names,
            nodes.xy,
            [(c.id, c.name, c.stage > 0, c.size or 0) for c in story.classes],
            nodes.best,
            p=nodes.p,
            true=nodes.true,
            true_names=story.true_names,
            true_as=story.true_as,
            min_confidence=story.min_confidence,
        ),
        "degree": packed(nodes.degree, "<u4"),
        "near": packed(nodes.near, "<u2"),
        "nearCount": packed(nodes.near_count, "<u4"),
        "start": packed(nodes.start, "<u4"),
        "targets": packed(nodes.targets, "<u4"),
        "given": None if nodes.given is None else packed(nodes.given, "<u2"),
    }
