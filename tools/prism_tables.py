"""Prism's tables from the rows of tools/prism_results.py: seven graphs, and those made later."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from statistics import fmean
from typing import Any

from nodenova.bench.render import markdown
from nodenova.evaluation.scores import mean_std, number, spread_text

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "results/prism.jsonl.gz"
FURTHER_ROWS = ROOT / "results/further.jsonl.gz"
Rows = list[dict[str, Any]]
Column = tuple[str, str, str]  # title, split, and field of a row

OURS: list[Column] = [
    ("public split", "published", "scores"),
    ("class splits", "balanced", "scores"),
    ("ceiling", "balanced", "ceiling"),
    ("class splits, U as it comes", "as they come", "scores"),
    ("ceiling", "as they come", "ceiling"),
]
EARLIER: list[Column] = [
    ("class splits: simple", "balanced", "simple"),
    ("single", "balanced", "single"),
    ("many", "balanced", "many"),
    ("Prism", "balanced", "scores"),
    ("U as it comes: many", "as they come", "many"),
    ("Prism", "as they come", "scores"),
    ("public split: many", "published", "many"),
    ("Prism", "published", "scores"),
]
FURTHER: list[Column] = [
    ("class splits: many", "balanced", "many"),
    ("Prism", "balanced", "scores"),
    ("ceiling", "balanced", "ceiling"),
    ("U as it comes: many", "as they come", "many"),
    ("Prism", "as they come", "scores"),
    ("ceiling", "as they come", "ceiling"),
]


def read_rows(path: Path) -> Rows:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def short_table() -> str:
    """The mean over the graphs only."""
    lines = []
    for title, path, columns in (
        ("seven graphs", ROWS, OURS),
        ("five made afterwards", FURTHER_ROWS, FURTHER),
    ):
        rows = read_rows(path)
        wanted = [c for c in columns if c[1] == "balanced" and c[2] in ("scores", "ceiling")]
        lines.append([title, *(_mean(rows, column) for column in wanted)])
    return markdown(["mean over", "Prism, class splits", "the same with the true groups"], lines)


def page() -> str:
    return PAGE.format(
        table=_table(read_rows(ROWS), OURS, with_costs=True),
        earlier=_table(read_rows(ROWS), EARLIER),
        further=_table(read_rows(FURTHER_ROWS), FURTHER, with_costs=True),
    )


def _table(rows: Rows, columns: list[Column], with_costs: bool = False) -> str:
    """One line per graph and the mean of all graphs, All and H in each cell."""
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    lines = []
    for graph in graphs:
        pairs = [
            [spread_text(mean_std(_over(rows, column, score, graph))) for score in ("all", "h")]
            for column in columns
        ]
        lines.append([graph, *map(" · ".join, pairs)])
    lines.append(["mean", *(_mean(rows, column) for column in columns)])
    titles = [title for title, _, _ in columns]
    if with_costs:
        titles = [*titles, "ECE", "seconds"]
        for line, name in zip(lines, [*graphs, None], strict=True):
            mine = [row for row in rows if row["graph"] == name or name is None]
            line += [
                number(fmean(row["ece"] for row in mine)),
                number(fmean(row["seconds"] for row in mine)),
            ]
    return markdown(["graph", *titles], lines)


def _over(rows: Rows, column: Column, score: str, graph: str) -> list[float]:
    """Scores of a graph, one per draw of classes, in the order of the draws."""
    _, split, which = column
    mine = [row | row["earlier"] for row in rows if row["graph"] == graph and row["split"] == split]
    return [row[which][score] for row in sorted(mine, key=lambda row: row.get("seed") or 0)]


def _mean(rows: Rows, column: Column) -> str:
    """Mean over the graphs, ± over the draws."""
    graphs = dict.fromkeys(row["graph"] for row in rows)
    return " · ".join(
        spread_text(
            mean_std(
                [
                    fmean(draw)
                    for draw in zip(*(_over(rows, column, score, g) for g in graphs), strict=True)
                ]
            )
        )
        for score in ("all", "h")
    )


PAGE = """# Prism, All · H

One set of defaults for all graphs. Public split: the published training nodes, first class ids old. Class splits: ten random choices
of as many old classes, with redrawn training nodes (20 per class, at most half of it), graded on the published test nodes. U as it
comes: the unlabelled new nodes drawn at random from the new classes instead of evenly. Ceiling: the same classifier with the
unlabelled nodes grouped by their true classes. Settings were chosen on other draws and class splits, on nodes outside the
published tests, without acm, and without facebook except for the last of them ([decision 8](../decisions/0008-own-words.md)). ECE with 15 bins over
all of a graph's runs; seconds for both phases on one thread of a busy machine. Rows: `results/prism.jsonl.gz`, by `tools/prism_results.py`.

{table}

## Compared with earlier forms

Earlier ways of discovering without training, on the same tasks (`tools/earlier_forms.py`). simple: S²X with idf, rank 32, whitened, k-means, nearest
mean. single: personalised PageRank, rows centred and of unit length. many: four depths at three ranks, whitened; pooled covariance, prior,
smoothed probabilities. Higher numbers are known for them from other tasks, on which they were chosen by their test scores.

{earlier}

## On graphs made afterwards

Graphs that were made when Prism was finished except for its view of counts, by `tools/make_further.py` from public packages. Nothing
tried on them before was adopted ([decision 9](../decisions/0009-further-graphs.md)); when that view was chosen and weighed, glossary, genes, symptoms
and kernel were among the graphs looked at, and anatomy was not ([decision 10](../decisions/0010-counts.md)). many: as above. Glossary, entries of a
dictionary of computing, 35 subjects; genes, terms of the Gene Ontology, 17 branches; anatomy, terms of the Human Phenotype Ontology, 19 parts of the
body, with no edge between classes; symptoms, the same terms linked where diseases show both, 14 parts of the body; kernel, C files of Linux, 62
parts, half of the files linked to nothing. Half of the classes are old. Rows: `results/further.jsonl.gz`.

{further}
"""  # noqa: E501
