"""The tables as Markdown, LaTeX and CSV: nothing lost, nothing a name could break."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nodenova.bench.render import tex, to_csv, to_latex, to_markdown
from nodenova.bench.tables import TABLES, comparison
from tests.bench.rows import bench, failed, row, seeds

HOSTILE = r"my_method|a & b $x$ 100% #1 ~^ \input{/etc/passwd} <b>é 木</b>"


def test_markdown_says_what_the_cells_say() -> None:
    rows = [
        *seeds(6),
        failed(seed=6),
        *seeds(6, "dtc", 90),
        *seeds(6, "gem", 95, sees=["graph", "new_labels"]),
    ]
    text = to_markdown(comparison(rows))
    sword = next(line for line in text.splitlines() if line.startswith("| SWORD"))
    assert re.search(r"<u>5\d\.\d ± \d\.\d</u> \(53\.5\) 1 failed¹", sword)
    dtc = next(line for line in text.splitlines() if line.startswith("| DTC"))
    assert re.search(r"\*\*9\d\.\d ± \d\.\d\*\* ▲ \(46\.9\)", dtc)
    assert "| GEM † |" in text
    assert (
        "1. Failed: cora, sword on gcn, seed 6: RuntimeError: 50% of\\_it \\& \\<b\\>x\\</b\\>"
        in text
    )
    assert to_markdown(comparison([])) == "No runs of this table yet.\n"


@pytest.mark.parametrize("name", TABLES)
def test_every_line_of_a_markdown_table_has_as_many_cells(name: str) -> None:
    tables = TABLES[name]([*bench(), row(HOSTILE)])
    for block in to_markdown(tables).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) <= 1


def test_text_is_text_in_latex() -> None:
    shown = tex(HOSTILE)
    assert r"\textbackslash{}input\{/etc/passwd\}" in shown
    assert r"my\_method$|$a \& b \$x\$ 100\% \#1 \textasciitilde{}\textasciicircum{}" in shown
    assert "$<$b$>$e ?$<$/b$>$" in shown
    assert shown.isascii()


@pytest.mark.parametrize("name", TABLES)
def test_latex_is_sound(name: str) -> None:
    text = to_latex(name, TABLES[name]([*bench(), row(HOSTILE), failed(seed=77, method="ncl")]))
    plain = re.sub(r"\\[{}$&%#_\\]", "", text)
    depth = 0
    for letter in plain:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0
    assert plain.count("$") % 2 == 0
    assert text.isascii()
    assert text.count(r"\begin{") == text.count(r"\end{")
    for body in re.findall(
        r"\\begin\{tabular\}\{@\{\}(l+r+)@\{\}\}\n(.*?)\\end\{tabular\}", text, flags=re.DOTALL
    ):
        for line in re.findall(r"^(.*) \\\\$", body[1], flags=re.MULTILINE):
            wide = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line))
            assert len(re.findall(r"(?<!\\)&", line)) + 1 + wide == len(body[0])


def test_latex_marks() -> None:
    rows = [*seeds(6), *seeds(6, "dtc", 90), *seeds(6, "gem", 95, sees=["graph", "new_labels"])]
    text = to_latex("comparison", comparison(rows))
    assert re.search(r"\\textbf\{9\d\.\d \$\\pm\$ \d\.\d\} \$\\blacktriangle\$", text)
    assert r"\underline{" in text
    assert r"GEM \dag{}" in text
    assert r"{\scriptsize paper}" in text
    assert r"\toprule" in text
    assert "In parentheses" not in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(tmp_path: Path) -> None:
    rows = [*bench(), row(HOSTILE), failed(seed=77, method="ncl")]
    parts = [
        to_latex(name, TABLES[name](rows))
        for name in ("comparison", "ablation", "sensitivity", "class-splits")
    ]
    head = "\\documentclass{article}\n\\usepackage{booktabs,graphicx,amssymb}\n\\begin{document}\n"
    (tmp_path / "x.tex").write_text(head + "\n".join(parts) + "\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_csv_has_a_line_for_every_cell_and_score() -> None:
    tables = comparison(bench())
    lines = list(csv.DictReader(io.StringIO(to_csv(tables))))
    assert len(lines) == sum(len(table.lines) * len(table.columns) for table in tables)
    prism = next(
        line for line in lines if line["line"] == "Prism (own encoder)" and line["score"] == "h"
    )
    cell = tables[0].lines[3].cells[3]
    assert float(prism["mean"]) == cell.mean
    assert cell.tests is not None
    assert float(prism["p_t_holm"]) == cell.tests.t_holm
    assert (prism["matching"], prism["n"], prism["mark"], prism["sees"]) == (
        "block",
        "6",
        "best",
        "graph new_ids",
    )
    noted = next(
        line
        for line in lines
        if line["block"] == "GAT" and line["line"] == "SWORD" and line["score"] == "new"
    )
    assert noted["paper"] == "30.54"
    assert noted["notes"] == "The paper's number is 51/167, an accuracy on validation nodes."


def test_csv_names_the_losses_that_are_on() -> None:
    lines = csv.DictReader(io.StringIO(to_csv(TABLES["ablation"](bench()))))
    assert list(dict.fromkeys(line["line"] for line in lines))[3] == "L_Ps L_Pt L_Re L_Ds"
