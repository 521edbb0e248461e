"""The report of a run: one HTML file that needs nothing else, not even a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from nodenova.errors import StorageError
from nodenova.evaluation import metrics
from nodenova.experiments.folder import RunFolder
from nodenova.experiments.run import Row
from nodenova.model import Stage
from nodenova.report import figures
from nodenova.report.html import count, facts, policy_hash, section, table, text
from nodenova.report.scores import scores
from nodenova.storage import write_atomically

SEEN = {
    "graph": "the graph (features and edges)",
    "new_ids": "which nodes are the unlabelled ones, and how many classes to find",
}


def write_report(folder: RunFolder) -> Path:
    """Write report.html into the run's folder and return its path. Equal folders give equal pages, byte for byte."""
    rows = folder.rows()
    if not rows:
        raise StorageError(f"{folder.path}: this run has no finished seed yet, so there is nothing to report")
    path = folder.path / "report.html"
    write_atomically(path, page(rows, folder.model().stages, folder.map()).encode())
    return path


def page(rows: Sequence[Row], stages: Sequence[Stage], node_map: Mapping[str, np.ndarray] | None) -> str:
    """The page of one run: its rows, and of the first of them the phases and, if kept, the embeddings of some nodes."""
    first = rows[0]
    title = f"{first['dataset']} · {first['method']} · {first['encoder']}"
    sections = [_header(rows, title), scores(rows), _losses(first, stages), _confusions(first), _map(rows, node_map)]
    body = "\n".join([*sections, _record(rows)])
    scripts = [get_plotlyjs().replace("\r", ""), figures.SCRIPT]
    policy = " ".join(policy_hash(script) for script in scripts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        # Only the two scripts below may run, and nothing may be fetched.
        f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; script-src {policy}; '
        "style-src 'unsafe-inline'; img-src data: blob:\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        + "".join(f"<script>{script}</script>\n" for script in scripts)
        + "</body>\n</html>\n"
    )


def _header(rows: Sequence[Row], title: str) -> str:
    first = rows[0]
    n_old, n_true, told, nodes = first["num_old"], first["sizes"][-1], first["num_new"], first["nodes"]
    found = any(np.array(row["confusion"])[:, n_old:].any() for row in rows)
    among = f"among {count(nodes['unlabelled_new'], 'unlabelled node')}"
    new = f"{told} new {'one' if told == 1 else 'ones'} {_was(told)}"
    lead = f"{count(n_old, 'labelled class', 'labelled classes')} {_was(n_old)} learnt, "
    lead += f"{new} discovered {among}, " if found else f"{new} looked for {among} but no test node was put into one, "
    lead += f"graded on {count(nodes['test'], 'test node')}."
    if told != n_true:
        lead += f" In truth there {_was(n_true)} {count(n_true, 'new class', 'new classes')}."
    listed = {
        "Dataset": first["dataset"],
        "Method": first["method"],
        "Encoder": first["encoder"],
        "Old classes": ", ".join(first["class_names"][:n_old]),
        "New classes": f"{', '.join(first['class_names'][n_old:])} (phase 2 was told to find {told})",
        "Split": first["split"],
        "Visibility": first["visibility"],
        "Seeds": ", ".join(str(row["seed"]) for row in rows),
    }
    given = [what for what in first["sees"] if "label" in what]
    warning = f'<p class="mark">This method was given labels in phase 2 ({text(", ".join(given))}).</p>' if given else ""
    return f'<header>\n<h1>{text(title)}</h1>\n<p class="lead">{text(lead)}</p>\n{warning}{facts(listed)}\n</header>'


def _losses(first: Row, stages: Sequence[Stage]) -> str:
    parts = []
    for i, stage in enumerate(stages):
        phase = f"Phase {i + 1}: {stage.method}"
        if any(stage.history.values()):
            plot = figures.embedded(f"loss-{i + 1}", figures.loss_curves(stage.history), f"Loss curves of phase {i + 1}")
        else:
            plot = '<p class="quiet">No losses were recorded: this phase trained nothing.</p>'
        parts.append(f"<div><h3>{text(phase)}</h3>{plot}</div>")
    note = f"Seed {first['seed']}. Each line is one term of the loss times its weight; their sum is what is minimised."
    return section("Losses", f'<p>{note}</p>\n<div class="pair">{"".join(parts)}</div>')


def _confusions(first: Row) -> str:
    n_old, names = first["num_old"], list(first["class_names"])
    counts = np.array(first["confusion"])
    matched = metrics.match_block(counts, first["sizes"], first["predicted_sizes"])
    predicted = figures.predicted_names(names, n_old, counts.shape[1])
    partner = {int(t): predicted[p] for p, t in enumerate(matched) if t >= n_old}
    extra = [predicted[p] for p in np.flatnonzero(matched < 0)]
    notes = ["" if t < n_old else f"= {partner[t]}" if t in partner else "not found" for t in range(len(names))]
    before = figures.confusion(counts, names, predicted, n_old)
    moved = metrics.matched_confusion(counts, matched)
    after = figures.confusion(moved, names, names + extra, n_old, notes + ["no partner"] * len(extra))
    plots = {
        "Before matching": figures.embedded("before", before, "Confusion matrix before matching"),
        "After matching (block)": figures.embedded("after", after, "Confusion matrix after matching"),
    }
    pair = "".join(f"<div><h3>{title}</h3>{plot}</div>" for title, plot in plots.items())
    note = (
        f"Test nodes of seed {first['seed']} by true class (rows) and predicted class (columns). The shade is the share of "
        "the true class; orange lines part old classes from new."
    )
    return section("Confusion matrix", f'<p>{note}</p>\n<div class="pair">{pair}</div>')


def _map(rows: Sequence[Row], kept: Mapping[str, np.ndarray] | None) -> str:
    if kept is None:
        return section("Map", '<p class="quiet">No embeddings were kept with this run (map.npz), so there is no map.</p>')
    xy = figures.positions(kept["z"])
    if xy is None:
        return section("Map", '<p class="quiet">There is no map: too few nodes, or their embeddings do not differ.</p>')
    n_old, names, n_predicted = rows[0]["num_old"], rows[0]["class_names"], rows[0]["num_old"] + rows[0]["num_new"]
    y, predicted, seed = kept["y"], kept["predicted"], int(kept["seed"])
    counts = metrics.confusion_matrix(y, predicted, len(names), n_predicted)
    for row in rows:  # all test nodes, where they are known, say better than some which class stands for which
        if row["seed"] == seed:
            counts = np.array(row["confusion"])
    matched = metrics.match_block(counts, rows[0]["sizes"], rows[0]["predicted_sizes"])
    figure = figures.node_map(xy, kept["node_ids"].tolist(), y, predicted, names, n_old, matched)
    note = (
        f"{count(len(y), 'test node')} of seed {seed}, laid out by t-SNE of their embeddings: neighbours on the map are "
        "alike, distances between groups mean little. Circles are old classes, diamonds new ones; a discovered class has "
        "the colour of the true class it stands for. Drag to zoom, double-click to go back."
    )
    radio = '<label><input type="radio" name="view" autocomplete="off" value='
    choice = f'{radio}"true" checked> true class</label>{radio}"predicted"> predicted class</label>'
    plot = figures.embedded("map", figure, "Map of the test nodes")
    return section("Map", f"<p>{note}</p>\n<fieldset><legend>Colour by</legend>{choice}</fieldset>\n{plot}")


def _record(rows: Sequence[Row]) -> str:
    def shared(values: Sequence[Any]) -> str:
        """The value, or, where seeds differ, each value with its seeds."""
        seeds: dict[str, list[str]] = {}
        for row, value in zip(rows, values, strict=True):
            seeds.setdefault(str(value), []).append(str(row["seed"]))
        return next(iter(seeds)) if len(seeds) == 1 else "; ".join(f"{v} (seed {', '.join(s)})" for v, s in seeds.items())

    def settings(caption: str, key: str) -> str:
        names = dict.fromkeys(name for row in rows for name in row[key])
        lines = [[name, shared([row[key].get(name, "–") for row in rows])] for name in names]
        return f"<div>{table(caption, ['Name', 'Value'], lines, key)}</div>"

    listed = {"Phase 2 was shown": "; ".join(SEEN.get(what, what) for what in rows[0]["sees"])}
    listed["Fingerprint of the data"] = shared([row["data"] for row in rows])
    phase_2 = settings(f"Phase 2: {rows[0]['method']}", "settings")
    tables = settings("Phase 1", "fit_settings") + phase_2 + settings("Versions", "versions")
    return section("How it was made", f'{facts(listed)}\n<div class="pair">{tables}</div>')


def _was(n: int) -> str:
    return "was" if n == 1 else "were"


STYLE = """
:root { --page: #f6f7f9; --card: #fff; --ink: #1c2430; --quiet: #5b6675; --line: #dde2e9; --blue: #0b63a5; --mark: #fff3d6 }
@media (prefers-color-scheme: dark) { :root {
  --page: #12161c; --card: #1b2129; --ink: #e7ebf0; --quiet: #a3adba; --line: #333c48; --blue: #7cc0f5; --mark: #4a3a10 } }
* { box-sizing: border-box } :focus-visible { outline: 2px solid var(--blue); outline-offset: 2px }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif }
main { max-width: 1120px; margin: 0 auto; padding: 24px 16px 48px } dd { margin: 0; overflow-wrap: anywhere }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 8px 24px 20px }
h1 { font-size: 1.9rem; line-height: 1.25; margin: 8px 0; overflow-wrap: anywhere } h2 { font-size: 1.3rem; margin: 12px 0 }
h3 { font-size: 1rem; margin: 8px 0 } .quiet, h3, caption, dt { color: var(--quiet) } .lead { font-size: 1.15rem }
.mark { background: var(--mark); border-radius: 8px; padding: 8px 12px } .facts dt { font-size: .85rem }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 12px 24px; margin: 0 }
.meaning { display: grid; grid-template-columns: minmax(6em, max-content) 1fr; gap: 4px 20px; font-size: .92rem }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 20px }
.pair > * { min-width: 0 } .scroll { overflow-x: auto; margin: 12px 0 } section { margin-top: 20px }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums }
caption { text-align: left } th, td { padding: 6px 8px; border-bottom: 1px solid var(--line); text-align: right }
th:first-child { text-align: left } td { overflow-wrap: anywhere } #scores td, #seeds td { white-space: nowrap }
#scores tbody tr:first-child { background: color-mix(in srgb, var(--blue) 12%, transparent); font-weight: 600 }
summary { cursor: pointer; padding: 6px 0; color: var(--blue) } label { margin-left: 18px }
.plot .infolayer text, .plot .xaxislayer-above text, .plot .yaxislayer-above text { fill: var(--ink) !important }
.plot .gridlayer path { stroke: var(--line) !important } fieldset { border: 0; padding: 0 } legend { float: left }
@media print { :root { --page: #fff; --card: #fff; --ink: #000; --quiet: #444; --line: #bbb; --blue: #000; --mark: #eee }
  main { max-width: none; padding: 0 } section { border: 0; padding: 0 } .pair { display: block } fieldset { display: none }
  .plot, tr { break-inside: avoid } h2, h3 { break-after: avoid } table { font-size: .66rem } th, td { padding: 3px } }
"""
