"""The sections of a review page. Buttons with `data-node` or `data-show` are brought to life by the scripts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from nodenova.evaluation import metrics
from nodenova.report.curves import loss_curves
from nodenova.report.html import asset, count, facts, scrolling, section, table, text
from nodenova.report.scores import scores
from nodenova.report.story import Doubt, Story

BAR = 100  # width of the longest bar, in the units of its drawing


def header(story: Story) -> str:
    new = sum(c.stage > 0 for c in story.classes)
    old = len(story.classes) - new
    lead = f"{count(old, 'class was', 'classes were')} known and {count(new, 'was', 'were')} discovered"
    lead += f" among {count(story.num_nodes, 'node')} and {count(story.num_edges, 'edge')}."
    share = story.num_unsure / max(story.num_nodes, 1)
    lead += f" {count(story.num_unsure, 'node is', 'nodes are')} unsure ({share:.1%}): "
    lead += f"less than {story.unsure_below:.0%} likely to be in the class they are put in."
    said = ""
    if len(story.nodes.names) < story.num_nodes:
        sample = count(len(story.nodes.names), "node")
        said = (
            f'<p class="mark">The map shows a sample of {sample}, every class by its share; cards and tables count all.</p>'
        )
    if story.edits:
        edits = count(story.edits, "earlier decision is", "earlier decisions are")
        said += f'<p class="quiet">{edits} part of this model.</p>'
    return f'<header>\n<h1>{text(story.title)}</h1>\n<p class="lead">{text(lead)}</p>\n{said}</header>'


def node_map(story: Story) -> str:
    views = {"class": "class", "unsure": "how sure"} | ({"true": "true class"} if story.true_names else {})
    choice = "".join(
        f'<label><input type="radio" name="view" autocomplete="off" value="{value}"{" checked" * (value == "class")}> '
        f"{text(label)}</label>"
        for value, label in views.items()
    )
    return asset("map.html").replace("<!-- views -->", choice)


def cards(story: Story) -> str:
    order = sorted(range(len(story.classes)), key=lambda i: (story.classes[i].stage == 0, -(story.classes[i].size or 0), i))
    note = (
        "Discovered classes first, the largest first. Type a better name into a card; tick several to merge them; reject "
        "what is no class. Nothing changes until the review is saved and applied, and any decision can be undone."
    )
    inner = "\n".join(_card(story, i) for i in order)
    return section("Classes", f'<p class="quiet help">{note}</p>\n<div class="cards">{inner}</div>', "classes")


def _card(story: Story, i: int) -> str:
    info = story.classes[i]
    place = {c.id: number for number, c in enumerate(story.classes)}
    counted = f"Class {info.id} · {'discovered' if info.stage else 'known'} · {count(info.size or 0, 'node')}"
    named = f'<p class="quiet">By its features: <b>{text(info.auto_name)}</b> '
    named += f'<button class="small" data-use="{text(info.auto_name)}">use</button></p>'
    numbers = {
        "confidence": _percent(info.confidence),
        "unsure": f"{info.unsure or 0:,}",
        "cohesion": _number(info.cohesion),
        "own edges": _percent(info.own_edges),
    }
    reject = '<button data-do="reject">Reject</button>' if info.stage else ""
    nearest = ""
    if info.nearest is not None:
        nearest = f'<p>Most like <span class="class" data-class="{place[info.nearest]}"></span> '
        nearest += f'<span class="quiet">(cosine {_number(info.nearest_similarity)})</span></p>'
    typical = "".join(_node(node, story.nodes.names[node]) for node in story.typical[i])
    lists = [
        ("Typical nodes", f'<p class="chips">{typical}</p>' if typical else ""),
        ("Typical features", _bars([(text(f.name), f.weight, f"{f.weight:.1f}") for f in info.features if f.weight > 0])),
        (
            "Edges lead to",
            _bars(
                [
                    (f'<span class="class" data-class="{place[n.id]}"></span>', n.share, _share(n.share))
                    for n in info.neighbours
                    if n.id in place
                ]
            ),
        ),
    ]
    return (
        f'<article class="card" data-card="{i}" aria-label="{text(info.name)}"><div class="head">'
        f'<span class="glyph" data-glyph="{i}"></span><input class="name" value="{text(info.name)}" maxlength="200" '
        f'autocomplete="off" aria-label="Name of class {info.id}"></div>\n<p class="quiet">{counted}</p>\n'
        f'<p class="verdict" role="status"></p>{named if info.auto_name != info.name else ""}'
        f"{facts(numbers)}{nearest}"
        + "".join(f"<h3>{title}</h3>{content}" for title, content in lists if content)
        + f'<div class="actions"><label><input type="checkbox" autocomplete="off" data-tick="{i}"> merge</label>'
        f'<button data-do="split">Split…</button>{reject}<button data-show="{i}">Show on map</button></div></article>'
    )


def _node(number: int, name: str) -> str:
    return f'<button class="node" data-node="{number}">{text(name)}</button>'


def _bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """Label (HTML), length and its text, a bar each."""
    if not rows:
        return ""
    longest = max(length for _, length, _ in rows) or 1.0
    lines = "".join(
        f'<tr><th scope="row">{label}</th><td><svg viewBox="0 0 {BAR} 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{BAR * length / longest:.1f}" height="8"/></svg></td><td>{said}</td></tr>'
        for label, length, said in rows
    )
    return f'<table class="bars">{lines}</table>'


def moved_and_unsure(story: Story) -> str:
    moved = []
    for i, row in enumerate(story.moved):
        total = sum(row)
        if total:
            best = np.argsort(-np.array(row), kind="stable")[:3]
            said = ", ".join(f"{_class(int(c))} {row[c] / total:.0%}" for c in best if row[c])
            moved.append(f'<tr><th scope="row">{_class(i)}</th><td>{total:,}</td><td class="words">{said}</td></tr>')
    parts = []
    if moved:
        head = '<th scope="col">Discovered class</th><th scope="col">Nodes</th><th scope="col">Would be in</th>'
        parts.append("<p>Without the discovered classes the same model would have to put their nodes into known ones:</p>")
        parts.append(scrolling("From known to discovered", head, "".join(moved), "moved"))
    border = "Nodes between a known and a discovered class, the closest calls first"
    parts.append(_doubts(story, story.border, border, "border"))
    low = f"Nodes that are less than {story.unsure_below:.0%} likely to be in their class, the closest calls first"
    parts.append(_doubts(story, story.unsure, low, "unsure"))
    return section("Moved and unsure", "\n".join(parts), "doubts")


def _doubts(story: Story, doubts: Sequence[Doubt], caption: str, name: str) -> str:
    if not doubts:
        return f'<p class="quiet">{text(caption.split(",")[0])}: none.</p>'
    head = "".join(f'<th scope="col">{title}</th>' for title in ("Node", "Class", "or", "Why"))
    lines = "".join(
        f'<tr><th scope="row">{_node(d.node, story.nodes.names[d.node])}</th>'
        f'<td class="words">{_class(d.first)} {d.p1:.0%}</td><td class="words">{_class(d.second)} {d.p2:.0%}</td>'
        f'<td class="words">{_why(d)}</td></tr>\n'
        for d in doubts
    )
    return scrolling(caption, head, lines, name)


def _why(d: Doubt) -> str:
    if not d.degree:
        return "no neighbours: only its own features speak"
    if d.in_first == d.in_second == 0:
        return f"none of its {count(d.degree, 'neighbour')} is in either class"
    side = "for the first" if not d.in_second else "against it" if not d.in_first else "on both sides"
    return f"neighbours {side}: {d.in_first} of {d.degree} in the first, {d.in_second} in the second"


def graded(story: Story) -> str:
    """Scores and confusion against an answer key, of the model as it was graded."""
    if not story.rows:
        return ""
    first = dict(story.rows[0])
    counts, names, n_old = np.array(first["confusion"]), list(first["class_names"]), int(first["num_old"])
    matched = metrics.match_block(counts, first["sizes"], first["predicted_sizes"])
    said = [*names[:n_old], *(f"new-{i}" for i in range(n_old, counts.shape[1]))]
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    order = np.argsort(np.where(matched < 0, len(names), matched), kind="stable")
    head = '<th scope="col">true \\ predicted</th>' + "".join(f'<th scope="col">{text(said[p])}</th>' for p in order)
    lines = "".join(
        f'<tr><th scope="row">{text(name)}</th>'
        + "".join(
            f'<td class="shade-{round(10 * counts[t, p] / total[t, 0])}{" partner" if matched[p] == t else ""}">'
            f"{counts[t, p]:,}</td>"
            for p in order
        )
        + "</tr>\n"
        for t, name in enumerate(names)
    )
    note = (
        f"Test nodes of seed {first['seed']}, as the model was graded. Discovered classes stand under the true class they "
    )
    note += "are matched to (framed); the shade is the share of the true class."
    grid = f"<p>{text(note)}</p>\n{scrolling('Confusion', head, lines, 'confusion')}"
    return scores([dict(row) for row in story.rows]) + section("Confusion", grid)


def made(story: Story) -> str:
    """Loss curves where a phase has them, settings, what each phase was shown, versions."""
    parts = []
    for i, stage in enumerate(story.stages):
        lines = [[name, str(value)] for name, value in stage.settings.items()]
        lines += [["seed", str(stage.seed)], ["was shown", ", ".join(stage.sees) or "–"]]
        drawn = loss_curves(stage.history, f"Losses of phase {i + 1}")
        parts.append(
            f"<div>{table(f'Phase {i + 1}: {stage.method}', ['Setting', 'Value'], lines, f'stage-{i}')}{drawn}</div>"
        )
    if story.versions:
        versions = [[name, version] for name, version in story.versions.items()]
        parts.append(f"<div>{table('Versions', ['Package', 'Version'], versions, 'versions')}</div>")
    listed: Mapping[str, object] = {**story.facts, "Model": story.model}
    return section("How it was made", f'{facts(listed)}\n<div class="pair">{"".join(parts)}</div>', "made")


def _class(i: int) -> str:
    """A place for a class's name, which the reader may change."""
    return f'<span class="class" data-class="{i}"></span>'


def _percent(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.0%}"


def _number(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.2f}".replace("-", "−")


def _share(value: float) -> str:
    return f"{value:.0%}" if value >= 0.005 else "&lt; 1%"
