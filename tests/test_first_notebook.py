"""The notebook in docs/ runs from top to bottom, and every cell shows something."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anywidget")
NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebooks" / "first.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> object:
    """Run a cell as Jupyter does; the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_the_notebook_runs_and_shows_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in cells)  # what it shows is what it shows when it runs
    names: dict[str, Any] = {}
    shown = [run_cell("".join(cell["source"]), names) for cell in cells]
    products, count, classes, run, widget, decisions, model, came = shown
    assert len(products) == 5
    assert count.number == 2
    assert "probability" in count._repr_html_()
    assert len(classes) == 4
    assert "discovered" in classes._repr_html_()
    assert "shop-run" in run._repr_html_() or "classes" in run._repr_html_()
    assert "<title>" in widget.page
    assert decisions == []
    assert "dogs" in model._repr_html_()
    assert came["name"].tolist() == ["dogs"]
