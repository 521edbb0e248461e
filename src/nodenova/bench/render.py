"""Tables of the bench as Markdown, LaTeX (booktabs) and CSV, and summaries of rows over seeds.

Every name is escaped: none can end a cell or start a command.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from nodenova.bench.row import Row
from nodenova.bench.table import Cell, Line, Table
from nodenova.bench.titles import dataset_title
from nodenova.evaluation.metrics import MATCHINGS
from nodenova.evaluation.scores import ONCE, SCORES, SECONDS, Spread, mean_std, number, spread_text


@dataclass(frozen=True)
class Summary:
    """The runs of one cell over its seeds: what was run, and the spread of each score.

    `scores` is {matching: {score: spread}}, `once` has the scores that need no matching, `seconds`
    those of each phase.
    """

    dataset: str
    method: str
    encoder: str
    num_old: int
    num_new: int
    split: str
    visibility: str
    seeds: tuple[int, ...]
    scores: Mapping[str, Mapping[str, Spread]]
    once: Mapping[str, Spread]
    seconds: Mapping[str, Spread]

    def to_json(self) -> dict[str, Any]:
        """Return the summary for JSON; scores that need no matching stand beside the others."""
        document = asdict(self)
        return document | document.pop("once")


def summarize(rows: Sequence[Row]) -> Summary:
    """Return mean and spread over the seeds of one dataset, method and encoder."""
    first = rows[0]
    for row in rows:
        if _cell(row) != _cell(first):
            raise ValueError(
                "a summary is over the seeds of one cell, "
                f"but the rows are of {_cell(first)} and {_cell(row)}"
            )
    return Summary(
        *_cell(first),
        split=first.split,
        visibility=first.visibility,
        seeds=tuple(row.seed for row in rows),
        scores={
            m: {name: mean_std([r.score(name, m) for r in rows]) for name in first.scores(m)}
            for m in MATCHINGS
        },
        once={name: mean_std([row.score(name) for row in rows]) for name in ONCE},
        seconds={name: mean_std([getattr(row.seconds, name) for row in rows]) for name in SECONDS},
    )


def _cell(row: Row) -> tuple[str, str, str, int, int]:
    return row.dataset, row.method, row.encoder, row.num_old, row.num_new


def scores_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Return header and lines of a summary: one line per score, one column per matching."""
    by_matching = summary.scores
    rows = [
        [title.title, *(spread_text(scores[name]) for scores in by_matching.values())]
        for name, title in SCORES.items()
        if name in by_matching["block"]
    ]
    empty_cells = [""] * (len(by_matching) - 1)
    rows += [[t.long, spread_text(summary.once[name]), *empty_cells] for name, t in ONCE.items()]
    return ["matched by", *by_matching], rows


def describe(summary: Summary) -> str:
    """Return a line on what the numbers are about."""
    seeds = summary.seeds
    over = (
        f"mean ± std over {len(seeds)} seeds ({', '.join(map(str, seeds))})"
        if len(seeds) > 1
        else f"seed {seeds[0]}"
    )
    return (
        f"{summary.dataset}, {summary.method} on {summary.encoder}: {summary.num_old} old classes, "
        f"{summary.num_new} new; {summary.split} split, {summary.visibility}; {over}, percent"
    )


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


SUPERSCRIPT = str.maketrans("0123456789,", "⁰¹²³⁴⁵⁶⁷⁸⁹˒")
TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$",
    ">": r"$>$", "|": r"$|$", '"': "''", "±": r"$\pm$", "−": "$-$", "–": "--", "†": r"\dag{}",
    "‡": r"\ddag{}",
    "✓": r"$\checkmark$", "▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$",
    "△": r"$\vartriangle$", "▽": r"$\triangledown$", "α": r"$\alpha$", "η": r"$\eta$",
    "λ": r"$\lambda$", "²": r"$^2$", "…": r"\dots{}", "·": r"$\cdot$",
}  # fmt: skip
PACKAGES = "% needs \\usepackage{booktabs,graphicx,amssymb}\n"
CSV_HEAD = [
    "table", "matching", "block", "line", "dataset", "score", "mean", "std", "n", "failed", "mark",
    "paper", "notes", "sees", "pairs", "difference", "p_t", "p_t_holm", "p_wilcoxon",
    "p_wilcoxon_holm",
]  # fmt: skip


def value_text(cell: Cell) -> str:
    """ "59.4 ± 1.8", or "59.4" where one run has no spread, or "–"."""
    return number(cell.mean) if cell.std is None else f"{number(cell.mean)} ± {number(cell.std)}"


def failed_text(cell: Cell) -> str:
    """ "2 failed", or ""."""
    return f"{cell.failed} failed" if cell.failed else ""


def sign(cell: Cell) -> str:
    """▲ ▼ △ ▽, or "" without a significant difference."""
    return cell.tests.sign if cell.tests else ""


def labels(line: Line) -> list[str]:
    """Return the labels of a line; the last one has the † of methods that were given labels."""
    return [*line.labels[:-1], line.labels[-1] + (" †" if line.given_labels else "")]


def column_groups(table: Table) -> list[tuple[str, int]]:
    """Return the titles of the groups of columns, with their numbers of columns."""
    grouped = groupby(column.group for column in table.columns)
    return [(dataset_title(name), len(list(each))) for name, each in grouped]


def blocks(table: Table) -> list[tuple[str, list[Line]]]:
    """Return the lines by block."""
    return [(name, list(each)) for name, each in groupby(table.lines, key=lambda line: line.group)]


def empty(tables: Sequence[Table]) -> bool:
    """Return whether no table has a line."""
    return not any(table.lines for table in tables)


# Markdown


def to_markdown(tables: Sequence[Table]) -> str:
    """Return one Markdown table per block of lines, with titles, captions and notes."""
    if empty(tables):
        return "No runs of this table yet.\n"
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: Table) -> str:
    parts = [f"## {_md(table.title)}", " ".join(map(_md, table.caption))]
    if table.per_dataset:
        parts += _md_datasets(table)
    else:
        over = [_md(f"{dataset_title(c.group)} {c.title}") for c in table.columns]
        for name, lines in blocks(table):
            head = [*map(_md, table.heads), *over, "n"]
            body = [_md_line(line) for line in lines]
            parts += [*([f"**{_md(name)}**"] if name else []), markdown(head, body)]
    if table.notes:
        parts.append("\n".join(f"{i}. {_md(note)}" for i, note in enumerate(table.notes, 1)))
    return "\n\n".join(parts) + "\n"


def _md_line(line: Line) -> list[str]:
    return [*map(_md, labels(line)), *map(_md_cell, line.cells), line.n]


def _md_datasets(table: Table) -> list[str]:
    """One Markdown table per dataset and block; lines without a number there are left out."""
    parts = []
    for group in dict.fromkeys(column.group for column in table.columns):
        at = [i for i, column in enumerate(table.columns) if column.group == group]
        head = [*map(_md, table.heads), *(_md(table.columns[i].title) for i in at), "n"]
        if dataset_title(group) not in table.title:
            parts.append(f"### {_md(dataset_title(group))}")
        for name, lines in blocks(table):
            mine = [replace(line, cells=tuple(line.cells[i] for i in at)) for line in lines]
            body = [_md_line(line) for line in mine if any(map(_is_filled, line.cells))]
            if body:
                parts += [*([f"**{_md(name)}**"] if name else []), markdown(head, body)]
    return parts


def _is_filled(cell: Cell) -> bool:
    return cell.mean is not None or cell.failed > 0


def _md_cell(cell: Cell) -> str:
    value = value_text(cell)
    value = {"best": f"**{value}**", "second": f"<u>{value}</u>"}.get(cell.mark, value)
    notes = ",".join(map(str, cell.notes)).translate(SUPERSCRIPT)
    printed = f"({number(cell.paper)})" if cell.paper is not None else ""
    return " ".join(filter(None, [value, sign(cell), printed, failed_text(cell)])) + notes


def _md(text: str) -> str:
    """Escape a text for Markdown, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#$&~])", r"\\\1", " ".join(str(text).split()))


# LaTeX


def to_latex(name: str, tables: Sequence[Table]) -> str:
    """Return LaTeX floats: our numbers, and under them, small, the paper's."""
    shown = [_latex(f"tab:{name}-{i}", table) for i, table in enumerate(tables, 1) if table.lines]
    return PACKAGES + ("\n".join(shown) or "% no runs of this table yet\n")


def _latex(label: str, table: Table) -> str:
    n_labels, n = len(table.heads), len(table.columns)
    over, rules, start = [""] * n_labels, [], n_labels + 1
    for title, width in column_groups(table):
        over.append(rf"\multicolumn{{{width}}}{{c}}{{{tex(title)}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    rows = [" & ".join([*over, ""]) + r" \\", " ".join(rules)]
    titles = [*table.heads, *(column.title for column in table.columns)]
    rows += [" & ".join([*map(tex, titles), "n"]) + r" \\"]
    for name, lines in blocks(table):
        rows += [r"\midrule"]
        if name:
            rows += [rf"\multicolumn{{{n_labels + n + 1}}}{{l}}{{\textit{{{tex(name)}}}}} \\"]
        for line in lines:
            shown = [*map(tex, labels(line)), *map(_tex_cell, line.cells), tex(line.n)]
            rows += [" & ".join(shown) + r" \\"]
            if any(cell.paper is not None for cell in line.cells):
                printed = [_tex_paper(cell) for cell in line.cells]
                first = [r"{\scriptsize paper}", *[""] * (n_labels - 1)]
                rows += [" & ".join([*first, *printed, ""]) + r" \\"]
    notes = [rf"\textsuperscript{{{i}}}~{tex(note)}" for i, note in enumerate(table.notes, 1)]
    # In LaTeX the paper's numbers stand under ours.
    caption = " ".join([table.title + ".", *table.caption])
    caption = caption.replace("In parentheses the", "Below, small, the")
    places = "l" * n_labels + "r" * (n + 1)
    small = [r"\par\smallskip\raggedright\scriptsize", "\\\\\n".join(notes)] if notes else []
    return "\n".join([
        r"\begin{table*}", r"\centering", rf"\caption{{{tex(caption)}}}", rf"\label{{{label}}}",
        r"\resizebox{\linewidth}{!}{%", rf"\begin{{tabular}}{{@{{}}{places}@{{}}}}", r"\toprule",
        *rows, r"\bottomrule", r"\end{tabular}}", *small, r"\end{table*}", "",
    ])  # fmt: skip


def _tex_cell(cell: Cell) -> str:
    value = tex(value_text(cell))
    marked = {"best": rf"\textbf{{{value}}}", "second": rf"\underline{{{value}}}"}
    value = marked.get(cell.mark, value)
    notes = ",".join(map(str, cell.notes)) if cell.paper is None else ""
    parts = [value, tex(sign(cell)), rf"{{\scriptsize {failed_text(cell)}}}" if cell.failed else ""]
    return " ".join(filter(None, parts)) + (rf"\textsuperscript{{{notes}}}" if notes else "")


def _tex_paper(cell: Cell) -> str:
    if cell.paper is None:
        return ""
    notes = rf"\textsuperscript{{{','.join(map(str, cell.notes))}}}" if cell.notes else ""
    return rf"{{\scriptsize {tex(number(cell.paper))}{notes}}}"


def tex(text: str) -> str:
    """Escape a text for LaTeX; letters that it may not have become plain."""

    def escape(letter: str) -> str:
        if letter in TEX or " " <= letter <= "~":
            return TEX.get(letter, letter)
        plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
        return "".join(TEX.get(c, c) for c in plain) or "?"

    return "".join(map(escape, " ".join(str(text).split())))


# CSV


def to_csv(tables: Sequence[Table]) -> str:
    """Return CSV with one line per cell: nothing is rounded, notes are written out."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_HEAD)
    for table in tables:
        for line in table.lines:
            for column, cell in zip(table.columns, line.cells, strict=True):
                t = cell.tests
                p = (t.t, t.t_holm, t.wilcoxon, t.wilcoxon_holm) if t else [""] * 4
                writer.writerow([
                    table.title, table.matching, line.group, " ".join(_csv_labels(table, line)),
                    column.group, column.score, cell.mean, cell.std, cell.n, cell.failed, cell.mark,
                    cell.paper, " ".join(table.notes[i - 1] for i in cell.notes),
                    " ".join(line.sees), *((t.pairs, t.difference) if t else [""] * 2), *p,
                ])  # fmt: skip
    return text.getvalue()


def _csv_labels(table: Table, line: Line) -> list[str]:
    """Return the names of what is ticked in a line of ticks, else the labels of the line."""
    if len(table.heads) == 1:
        return list(line.labels)
    return [head for head, tick in zip(table.heads, line.labels, strict=True) if tick]
