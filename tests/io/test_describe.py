from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nodenova as nova
from nodenova import cli
from nodenova.io.describe import describe, lines_of

NODES = "id,label,size\na,red,1.5\nb,red,2\nc,blue,3\nd,blue,4.5\ne,,5\nf,green,6\n"
EDGES = "source,target\na,b\nb,c\nc,d\nd,e\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path


def test_what_is_counted(folder: Path) -> None:
    d = describe(nova.load_graph(folder, new_nodes=["e", "f"]))
    assert (d.nodes, d.edges, d.unlabelled, d.new) == (6, 4, 1, 2)
    assert d.old_classes == (("blue", 2), ("red", 2))
    assert d.answer_key == (("green", 1),)
    assert d.features == (("number", 1),)
    assert d.form == "numbers"
    assert (d.components, d.largest, d.isolated) == (2, 5, 1)
    assert d.degree == (pytest.approx(8 / 6), 1, 2)
    # a-b and c-d of the three edges between labelled nodes that are not new
    assert d.homophily == pytest.approx(2 / 3)
    assert d.homophily_by_chance == pytest.approx(0.5)
    assert d.problems == ()


def test_the_lines(folder: Path) -> None:
    lines = lines_of(describe(nova.load_graph(folder, new_nodes=["e", "f"])))
    assert lines[0] == f"{folder.name}: 6 nodes, 4 edges"
    assert "classes    2 known: blue 2, red 2" in lines
    assert "to search  2 nodes; labels for grading only: green 1" in lines
    assert (
        "homophily  67% of the edges between labelled nodes stay within a class "
        "(50% would by chance)"
    ) in lines
    assert lines[-1] == "No problems found."


def test_one_thing_is_in_the_singular(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label,size\na,x,1\nb,y,2\nc,,3\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,b\n")
    lines = lines_of(describe(nova.load_graph(tmp_path)))
    assert lines[0].endswith("3 nodes, 1 edge")
    assert "unlabelled 1 node" in lines
    assert any("1 self-loop was dropped" in line for line in lines)
    assert not re.search(r"\b1 (edges|nodes|classes|self-loops)\b", "\n".join(lines))


def test_unequal_classes_are_not_to_be_merged(tmp_path: Path) -> None:
    """An exported table has classes of any size, and they are right as they are."""
    rows = [f"{i},{int(i < 2)},{'elm' if i < 2 else 'oak'},known,0.9" for i in range(60)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,class,name,kind,probability", *rows]))
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n2,3\n")
    problems = describe(nova.load_graph(tmp_path)).problems
    assert any("unequal" in problem for problem, _ in problems)
    assert not any("merge" in fix for _, fix in problems)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["nodenova", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_inspect_on_the_command_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (folder / "new.txt").write_text("e\nf\n")
    files = ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv")]
    new = ["--new-nodes", str(folder / "new.txt")]
    options = ["--id-column", "id", "--label-column", "label", "--features", "size", *new]
    columns = ["--source-column", "source", "--target-column", "target", "--delimiter", "comma"]
    given = [*files, *options, *columns, "--json", str(folder / "d.json")]
    assert run(monkeypatch, "inspect", *given) == 0
    assert "6 nodes, 4 edges" in capsys.readouterr().out
    document = json.loads((folder / "d.json").read_text())
    assert document["old_classes"] == [["blue", 2], ["red", 2]]
    assert run(monkeypatch, "inspect", "--graph", str(folder), "--quiet") == 0
    assert capsys.readouterr().out == ""


def test_inspect_shows_markup_as_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (folder / "nodes.csv").write_text(NODES.replace("red", "[red]x[/]").replace("blue", "<script>"))
    assert run(monkeypatch, "inspect", "--graph", str(folder)) == 0
    shown = capsys.readouterr().out
    assert "[red]x[/] 2" in shown
    assert "<script> 2" in shown


EITHER = "give either --graph FILE, or --nodes FILE and --edges FILE"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], EITHER),
        (["--graph", "a.csv", "--nodes", "b.csv"], EITHER),
        (["--graph", "gone.csv"], "gone.csv: no such file"),
    ],
)
def test_inspect_refuses(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    arguments: list[str],
    expected: str,
) -> None:
    assert run(monkeypatch, "inspect", *arguments) == 2
    assert expected in capsys.readouterr().err


def test_inspecting_does_not_wait_for_torch_or_pandas(folder: Path) -> None:
    code = (
        "import sys, nodenova as nova; from nodenova.io.describe import describe; "
        f"describe(nova.load_graph({str(folder)!r})); "
        "sys.exit(bool({'torch', 'pandas'} & set(sys.modules)))"
    )
    environment = {"PYTHONPATH": str(Path(nova.__file__).parent.parent)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
