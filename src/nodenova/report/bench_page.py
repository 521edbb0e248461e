"""The bench as one HTML page: all tables, and the figures as SVG. No script, no network; equal rows give equal bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodenova.experiments.run import Row
from nodenova.report.bench_cells import DATASETS, Cell, Line, Table, Tests, in_order
from nodenova.report.bench_figures import text
from nodenova.report.bench_panels import Figure, figures_of
from nodenova.report.bench_rows import ENCODERS, METHODS, latest
from nodenova.report.bench_tables import TABLES
from nodenova.report.bench_text import blocks, failed_text, headed, labels, sign, value_text
from nodenova.report.page import STYLE
from nodenova.report.tables import number

HEADINGS = {
    "comparison": "Comparison",
    "collapse": "Use of the new classes",
    "settings": "Settings",
    "heads": "Task-specific head",
    "ablation": "Ablation",
    "forgetting": "Forgetting",
    "sensitivity": "Sensitivity",
    "layers": "Number of layers",
    "confusion": "Confusion matrices",
    "tsne": "Maps of the nodes (t-SNE)",
    "class-splits": "Random class splits",
}
SAID = {
    "sensitivity": "One curve a score; bars are one standard deviation over seeds, the dashed line is the default.",
    "layers": "One curve a score; bars are one standard deviation over seeds.",
    "confusion": "Percent of each true class (lines) by predicted class (columns), mean over seeds, matched (block). "
    "Orange lines part old classes from new.",
    "tsne": "Test nodes of one seed, laid out by t-SNE of their embeddings, or of the graph's own features, coloured by "
    "true class: neighbours are alike, distances between groups mean little. Circles are old classes, diamonds new ones.",
}


def bench_page(rows: Sequence[Row], maps_folder: Path) -> str:
    """The page of all rows. `maps_folder` holds the npz files that rows name in `map`; those not there are left out."""
    rows = latest(rows)
    sections, contents = [], []
    for name, tables_of in TABLES.items():
        tables, figures = tables_of(rows), figures_of(name, rows, maps_folder)
        shown = [] if name == "confusion" else [table for table in tables if table.lines]
        if shown or figures:
            body = "".join(_table(f"{name}-{i}", table) for i, table in enumerate(shown))
            if figures:
                folded = f"<details><summary>In numbers</summary>{body}</details>" if body else ""
                body = f"<p>{text(SAID[name])}</p>\n{_gallery(figures)}{folded}"
            sections.append(f'<section id="{name}">\n<h2>{text(HEADINGS[name])}</h2>\n{body}\n</section>')
            contents.append(f'<li><a href="#{name}">{text(HEADINGS[name])}</a></li>')
    nav = f'<nav aria-label="Contents"><ul>{"".join(contents)}</ul></nav>' if contents else "<p>No finished runs yet.</p>"
    body = "\n".join([_header(rows), nav, *sections, _record(rows)])
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        # Nothing may run and nothing may be fetched.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>nodenova bench</title>\n<style>{STYLE}{MORE_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def _header(rows: Sequence[Row]) -> str:
    done = [row for row in rows if row.get("status", "done") == "done"]
    failed = len(rows) - len(done)
    lead = f"{len(done)} finished runs" + (f", {failed} failed" if failed else "") + "."

    def named(key: str, titles: Mapping[str, str]) -> str:
        return ", ".join(titles.get(n, n) for n in in_order({row[key] for row in rows}, list(titles))) or "–"

    facts = {
        "Datasets": named("dataset", DATASETS),
        "Encoders": named("encoder", ENCODERS),
        "Methods": named("method", METHODS),
    }
    items = "".join(f"<div><dt>{key}</dt><dd>{text(value)}</dd></div>" for key, value in facts.items())
    return f'<header>\n<h1>nodenova bench</h1>\n<p class="lead">{lead}</p>\n<dl class="facts">{items}</dl>\n</header>'


def _gallery(figures: Sequence[Figure]) -> str:
    """Figures by what they have in common; the first group is open."""
    parts = []
    for i, group in enumerate(dict.fromkeys(figure.group for figure in figures)):
        shown = "".join(
            f"<figure>{figure.svg}<figcaption>{text(figure.title)}</figcaption></figure>"
            for figure in figures
            if figure.group == group
        )
        is_open = " open" if i == 0 else ""
        parts.append(f'<details{is_open}><summary>{text(group)}</summary><div class="figures">{shown}</div></details>\n')
    return "".join(parts)


def _table(name: str, table: Table) -> str:
    span = len(table.heads)
    over = "".join(f'<th scope="colgroup" colspan="{width}">{text(title)}</th>' for title, width in headed(table))
    first = "".join(f'<th scope="col" rowspan="2">{text(head)}</th>' for head in table.heads)
    under = "".join(f'<th scope="col">{text(column.title)}</th>' for column in table.columns)
    bodies = []
    for title, lines in blocks(table):
        width = span + len(table.columns) + 1
        head = f'<tr class="block"><th scope="rowgroup" colspan="{width}">{text(title)}</th></tr>\n' if title else ""
        bodies.append(f"<tbody>\n{head}{''.join(map(_line, lines))}</tbody>")
    notes = "".join(f"<li>{text(note)}</li>" for note in table.notes)
    return (
        f'<div class="scroll" role="region" aria-label="{text(table.title)}" tabindex="0"><table id="{name}" class="bench">'
        f"<caption>{text(table.title)}</caption>\n"
        f'<thead><tr>{first}{over}<th scope="col" rowspan="2">n</th></tr><tr>{under}</tr></thead>\n{"".join(bodies)}'
        f'</table></div>\n<p class="quiet small">{text(" ".join(table.caption))}</p>\n'
        + (f'<ol class="quiet small">{notes}</ol>\n' if notes else "")
    )


def _line(line: Line) -> str:
    named = "".join(f'<th scope="row">{text(label)}</th>' for label in labels(line))
    look = ' class="reference"' if line.reference else ""
    return f"<tr{look}>{named}{''.join(map(_cell, line.cells))}<td>{text(line.n)}</td></tr>\n"


def _cell(cell: Cell) -> str:
    tag = {"best": "b", "second": "u"}.get(cell.mark)
    shown = f"<{tag}>{value_text(cell)}</{tag}>" if tag else value_text(cell)
    if cell.tests and sign(cell):
        shown += f' <abbr title="{text(_tests(cell.tests))}">{sign(cell)}</abbr>'
    said = f"<sup>{','.join(map(str, cell.notes))}</sup>" if cell.notes else ""
    if cell.failed:
        shown += f' <span class="failed">{failed_text(cell)}</span>'
    paper = f'<span class="paper">({number(cell.paper)}){said}</span>' if cell.paper is not None else said
    return f"<td>{shown}{paper}</td>"


def _tests(tests: Tests) -> str:
    return (
        f"difference {tests.difference:+.1f} on {tests.pairs} pairs; paired t-test p = {tests.t:.2g}, corrected "
        f"{tests.t_holm:.2g}; Wilcoxon p = {tests.wilcoxon:.2g}, corrected {tests.wilcoxon_holm:.2g}"
    )


def _record(rows: Sequence[Row]) -> str:
    """Where the numbers come from: code, packages, data; and what failed."""

    def counted(values: Sequence[Any]) -> str:
        counts: dict[str, int] = {}
        for value in values:
            counts[str(value)] = counts.get(str(value), 0) + 1
        return "; ".join(f"{value} ({n} {'run' if n == 1 else 'runs'})" for value, n in sorted(counts.items())) or "–"

    versions = [", ".join(f"{k} {v}" for k, v in (row.get("versions") or {}).items()) or "unknown" for row in rows]
    facts = {"Commit": counted([row.get("commit") or "unknown" for row in rows]), "Versions": counted(versions)}
    done = [row for row in rows if row.get("data")]
    facts["Data"] = counted([f"{row['dataset']} {row['data']}" for row in done if row.get("class_split") is None])
    items = "".join(f"<div><dt>{key}</dt><dd>{text(value)}</dd></div>" for key, value in facts.items())
    failed = "".join(
        f"<li>{text(row['dataset'])}, {text(row['method'])} on {text(row['encoder'])}, seed {text(row['seed'])}: "
        f"{text(str(row.get('error') or 'no message').strip()[-300:])}</li>"
        for row in rows
        if row.get("status") == "failed"
    )
    failures = f"<h3>Failed runs</h3><ul>{failed}</ul>" if failed else ""
    return f'<section id="record">\n<h2>How it was made</h2>\n<dl class="facts">{items}</dl>{failures}\n</section>'


MORE_STYLE = """
main { max-width: 1500px } a { color: var(--blue) }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 6px 18px }
.bench { width: auto; min-width: 60% } .bench td { white-space: nowrap; vertical-align: top }
.bench thead th { text-align: center } .bench thead tr:first-child th:first-child, .bench tbody th { text-align: left }
.bench .block th { color: var(--blue); padding-top: 14px }
.bench th[scope=row]:first-child { position: sticky; left: 0; background: var(--card); min-width: 10em }
.reference td, .reference th { background: color-mix(in srgb, var(--blue) 12%, var(--card)) !important }
.paper { display: block; color: var(--quiet); font-size: .8em } .failed { color: var(--bad, #b3261e); font-size: .85em }
u { text-decoration-thickness: 2px; text-underline-offset: 3px }
abbr { text-decoration: none; cursor: help; color: var(--blue) } .small { font-size: .85rem } sup { line-height: 0 }
.figures { display: flex; flex-wrap: wrap; gap: 12px 28px } figure { margin: 8px 0; max-width: 100% }
figure svg { max-width: 100%; height: auto; color: var(--ink) } figcaption { color: var(--quiet); font-size: .9rem }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80 } }
@media (max-width: 600px) { section { padding: 8px 12px 16px } .bench th[scope=row]:first-child { min-width: 7em } }
@page { size: landscape }
@media print { nav { display: none } figure { break-inside: avoid } .scroll { overflow: visible }
  .bench { font-size: .5rem } .bench td, .bench th { padding: 2px } .bench th[scope=row]:first-child { position: static }
  ::details-content { content-visibility: visible; display: block } }
"""
