"""One language: classes are known or discovered wherever a user looks, in lines of 80 columns."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.cli.app import OWN, err, out

ROOT = Path(__file__).parent.parent.parent
# Words of papers, which stay in research pages and in names of Python.
RESEARCH = re.compile(r"\bold\b|\bphase [12]\b|NC-?NCD|\bNew-N\b|\bH \d", re.IGNORECASE)
LONG = "a section whose name is far too long for a table, as names of sections sometimes are"


def nodenova(*arguments: object, code: int = 0) -> str:
    told = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert told.exit_code == code, told.output
    return told.output


def tables(folder: Path, nodes: int) -> list[str]:
    """Four classes, of which two are known; the first has a long name, as have some nodes."""
    folder.mkdir(parents=True)
    data = nova.synthetic(nodes=140, classes=4, words=80, seed=4)
    x = data.graph.x.toarray()
    names = [
        f"n{i}" if i % 2 else f"https://example.org/packages/{'very-' * 12}{i}" for i in range(140)
    ]
    called = {0: LONG, 1: "short"}
    with (folder / "nodes.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "label", "text"])
        for i in range(nodes):
            words = " ".join(f"multisyllabic{j}" for j in np.flatnonzero(x[i]))
            lines.writerow([names[i], called.get(data.y[i], "") if i % 3 else "", words])
    with (folder / "edges.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["source", "target"])
        pairs = data.graph.edge_index.T
        lines.writerows((names[a], names[b]) for a, b in pairs if max(a, b) < nodes)
    return ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv")]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the main commands say on a terminal of 80 columns, and the folder they wrote to."""
    place = tmp_path_factory.mktemp("language")
    first, later = tables(place / "first", 120), tables(place / "later", 140)
    mine, next_run = place / "mine", place / "next"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(out, "_width", 80)
        patch.setattr(err, "_width", 80)
        yield {
            "inspect": nodenova("inspect", *first),
            "count": nodenova("count", *first),
            "discover": nodenova("discover", *first, "--num-new", 2, "--out", mine),
            "classes": nodenova("classes", mine, "--json", place / "classes.json"),
            "predict": nodenova("predict", mine, *later, "--out", place / "p.csv"),
            "only": nodenova("predict", mine, "--only", "n1,n3,n5"),
            "from": nodenova("discover", "--from", mine, *later, "--num-new", 1, "--out", next_run),
            "diff": nodenova("diff", mine, next_run, "--json", place / "diff.json"),
            "export": nodenova("export", mine, "--to", "csv", "--out", place / "csv"),
            "place": str(place),
        }


def rows(text: str, *first: str) -> list[str]:
    """Lines of a table: they begin with one of these words and a number in the next column."""
    return [line for line in text.splitlines() if re.match(rf"({'|'.join(first)}) +[\d…]", line)]


def test_tables_have_a_line_a_class_on_80_columns(said: dict[str, str]) -> None:
    kinds = ("known", "discovered")
    for command, classes in (("discover", 4), ("classes", 4), ("predict", 4), ("from", 5)):
        found = rows(said[command], *kinds)
        assert len(found) == classes, said[command]
        assert max(map(len, found)) <= 80
        assert sum(LONG[:10] in line and "…" in line for line in found) == 1
    found = rows(said["diff"], "same", "grew", "shrank", "came", "went")
    assert len(found) == 5
    assert max(map(len, found)) <= 80
    lines = said["only"].splitlines()
    assert len(lines) == 4  # a heading and three nodes
    assert max(map(len, lines)) <= 80


def test_a_discovered_class_says_by_which_discovery_where_there_were_two(
    said: dict[str, str],
) -> None:
    assert "stage" not in said["discover"]
    (heading,) = [line for line in said["from"].splitlines() if "verdict" in line]
    assert heading.split()[:2] == ["stage", "class"]
    stages = [line.split()[:2] for line in rows(said["from"], "discovered")]
    assert stages == [["discovered", "1"], ["discovered", "1"], ["discovered", "2"]]
    page = (Path(said["place"]) / "next" / "report.html").read_text()
    assert page.count("discovered in stage 1 ·") == 2
    assert page.count("discovered in stage 2 ·") == 1


def test_commands_speak_of_known_and_discovered_classes(said: dict[str, str]) -> None:
    for command, text in said.items():
        assert not RESEARCH.search(text), f"{command}: {text}"
    assert "unknown classes  probability" in said["count"]
    assert "You asked for 2 new classes; " in said["discover"]
    page = (Path(said["place"]) / "mine" / "report.html").read_text()
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert "Discovered classes" in shown
    assert not RESEARCH.search(re.sub(r"<[^>]+>", " ", shown))


def test_files_say_known_or_discovered(said: dict[str, str]) -> None:
    place, kinds = Path(said["place"]), {"known", "discovered"}
    for name in ("mine/predictions.csv", "mine/classes.csv", "p.csv", "csv/nodes.csv"):
        with (place / name).open(newline="") as file:
            assert {row["kind"] for row in csv.DictReader(file)} == kinds, name
    for name in ("classes.json", "diff.json"):
        told = json.loads((place / name).read_text())["classes"]
        assert {c["kind"] for c in told} == kinds, name


def test_a_run_of_an_earlier_version_is_read_in_todays_words(
    said: dict[str, str], tmp_path: Path
) -> None:
    run = Path(said["place"]) / "mine"
    table = run / "predictions.csv"
    now = table.read_text()
    then = now.replace(",known,", ",old,").replace(",discovered,", ",new,")
    assert then.count(",old,") > 20
    table.write_text(then)
    try:
        nodenova(
            "predict", run, "--only", "n1,n3,n5,n7,n9,n11", "--json", tmp_path / "j.json", "-q"
        )
    finally:
        table.write_text(now)
    told = json.loads((tmp_path / "j.json").read_text())["predictions"]
    assert {line["kind"] for line in told} == {"known", "discovered"}


def test_the_help_of_commands_for_a_graph_of_your_own_has_no_words_of_papers() -> None:
    commands = typer.main.get_group(app).commands
    own = [name for name, command in commands.items() if command.rich_help_panel == OWN]  # type: ignore[attr-defined]
    assert {"inspect", "count", "discover", "predict", "diff", "review"} <= {*own}
    for name in own:
        text = nodenova(name, "--help")
        assert not RESEARCH.search(text), f"{name}: {text}"


@pytest.mark.parametrize("page", ["files.md", "own-graph.md", "classes.md", "growth.md"])
def test_pages_for_users_have_no_words_of_papers(page: str) -> None:
    for line in (ROOT / "docs" / page).read_text().splitlines():
        accepted = line.replace("`old` and `new` for `known`", "")  # what earlier files say
        assert not RESEARCH.search(accepted), line
