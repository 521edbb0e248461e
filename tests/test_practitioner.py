"""A practitioner's hour, on the command line alone: from a messy table to an exported graph.

A table of packages as a distribution has one (`tests/packages.py`): 40 % of the sections are
hidden, a fifth of the packages of the others are labelled, and nobody says which are which.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from typer.testing import CliRunner

from nodenova.cli import app
from nodenova.errors import NodenovaError
from tests.packages import CAME, COLUMNS, HIDDEN, KNOWN, Packages

READING = ("--label-column", "section", "--text-column", "description", "--drop-unknown-edges")
SMALL, LARGE = Packages(800, 300), Packages(7500, 1500)


def nodenova(*arguments: object, code: int = 0) -> str:
    """What a command says; a refusal is one sentence, as `main` prints it."""
    told = CliRunner().invoke(app, [*map(str, arguments)])
    if isinstance(told.exception, NodenovaError):
        assert code == 2, told.exception
        return str(told.exception)
    assert told.exception is None or isinstance(told.exception, SystemExit), told.exception
    assert told.exit_code == code, told.output
    return told.output


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Scores:
    """Of the packages that have no label.

    Attributes:
        known_called_discovered: Share of those of known sections that are in discovered classes.
        known_right: Share of those of known sections that are in theirs.
        discovered_right: Share of the others that are in the class matched to their section, one to
            one.
        sections: The section that each discovered class is matched to, by id.
    """

    known_called_discovered: float
    known_right: float
    discovered_right: float
    sections: dict[int, str]


def scores(world: Packages, run: Path) -> Scores:
    """Against the truth that the commands never saw."""
    asked = [row for row in table(run / "predictions.csv") if not row["label"]]
    old = [row for row in asked if world.truth[row["node"]] in KNOWN]
    new = [row for row in asked if world.truth[row["node"]] not in KNOWN]
    found = sorted({int(row["class"]) for row in asked if row["kind"] == "discovered"})
    true = sorted({world.truth[row["node"]] for row in new})
    counts = np.zeros((len(found), len(true)), dtype=int)
    for row in new:
        if row["kind"] == "discovered":
            counts[found.index(int(row["class"])), true.index(world.truth[row["node"]])] += 1
    pairs = list(zip(*linear_sum_assignment(-counts), strict=True))
    return Scores(
        sum(row["kind"] == "discovered" for row in old) / len(old),
        sum(row["name"] == world.truth[row["node"]] for row in old) / len(old),
        sum(counts[pair] for pair in pairs) / len(new),
        {found[i]: true[j] for i, j in pairs},
    )


def check_run(world: Packages, run: Path, count: int) -> Scores:
    """What holds of every run: its files are whole, labels stay, groups are the true ones."""
    rows = table(run / "predictions.csv")
    assert [row["node"] for row in rows] == world.names[:count]
    assert {row["kind"] for row in rows} == {"known", "discovered"}
    told = {row["node"]: row for row in rows}
    for name in world.labelled & set(told):  # labels are kept
        assert told[name]["label"] == told[name]["name"] == world.truth[name]
    listed = {row["id"]: row for row in table(run / "classes.csv")}
    assert Counter(row["class"] for row in rows).keys() <= listed.keys()
    for row in rows[:50]:
        assert (listed[row["class"]]["name"], listed[row["class"]]["kind"]) == (
            row["name"],
            row["kind"],
        )
    assert not [path for path in run.rglob("*") if path.suffix in (".tmp", ".part")]
    graded = scores(world, run)
    assert graded.known_called_discovered < 0.15
    assert graded.known_right > 0.75
    assert graded.discovered_right > 0.7
    return graded


def review(run: Path, path: Path, *decisions: dict[str, object]) -> Path:
    model = document(run / "model" / "model.json")["sha256"]
    said = {"format": "nodenova review", "version": 1, "model": model, "decisions": decisions}
    path.write_text(json.dumps(said, ensure_ascii=False), encoding="utf-8")
    return path


def check_refusals(world: Packages, folder: Path) -> None:
    """Before anything works, a messy table is refused in one sentence that says what to do."""
    dirty = world.write(folder / "dirty", world.spring, again=12)
    command = [sys.executable, "-m", "nodenova", "inspect", *dirty]
    told = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8",
        env={**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert told.returncode == 2
    assert told.stdout == ""
    (said,) = [line for line in told.stderr.splitlines() if line.startswith("error: ")]
    assert "ids must be unique" in said
    assert f"(lines 2 and {world.spring + 2})" in said
    assert "Traceback" not in told.stderr
    files = world.write(folder / "spring", world.spring)
    assert "--drop-unknown-edges" in nodenova("inspect", *files, code=2)
    assert "no column 'topic'" in nodenova("inspect", *files, "--label-column", "topic", code=2)


def hour(world: Packages, folder: Path, *growing: str) -> None:
    """All of it; every command's answer is read as a user would.

    Args:
        world: The packages.
        folder: An empty one.
        *growing: Options of the discovery in summer.
    """
    check_refusals(world, folder)
    spring = [*world.write(folder / "spring", world.spring), *READING]
    one = ("--threads", 1, "--seed", 0)

    nodenova("inspect", *spring, "--json", folder / "inspect.json")
    seen = document(folder / "inspect.json")
    assert seen["nodes"] == world.spring
    assert [name for name, _ in seen["old_classes"]] == list(KNOWN)
    notes = " ".join(seen["notes"])
    assert "'md5sum' looks like names" in notes
    assert "self-loops were dropped" in notes

    first, asked = folder / "auto", folder / "four"
    said = nodenova("discover", *spring, "--out", first, *one)
    assert "unlabelled nodes seem to belong to new classes" in said
    graded = check_run(world, first, world.spring)
    assert 3 <= len(graded.sections) <= 6  # four are hidden; nobody said so
    assert (first / "report.html").stat().st_size > 50_000
    nodenova("discover", *spring, "--num-new", 4, "--out", asked, "--no-report", "-q", *one)
    named = check_run(world, asked, world.spring)
    assert sorted(named.sections.values()) == sorted(HIDDEN)
    assert "is not empty" in nodenova("discover", *spring, "--out", asked, code=2)

    by_section = {section: number for number, section in named.sections.items()}
    after = decide(world, folder, asked, by_section)
    changed(world, folder, asked)
    grow(world, folder, asked, after, growing)


def decide(
    world: Packages, folder: Path, run: Path, by_section: dict[str, int]
) -> tuple[dict[int, str], str]:
    """Name two classes, split one, merge its parts again, move a node; the names, and the node."""
    moved = next(
        row["node"]
        for row in table(run / "predictions.csv")
        if not row["label"] and row["kind"] == "known" and world.truth[row["node"]] in KNOWN
    )
    wanted = {"do": "rename", "class": by_section["fonts"], "name": "Schriften & 文字"}
    split = {"do": "split", "class": by_section["web"], "into": 2}
    move = {"do": "relabel", "nodes": [moved], "class": by_section["fonts"]}
    path = review(run, folder / "review.json", wanted, split, move)
    assert "3 decisions" in nodenova("apply-review", run, path)
    nodenova("classes", run, "--json", folder / "classes.json")
    parts = [c["id"] for c in document(folder / "classes.json")["classes"]][-2:]
    assert by_section["web"] not in parts
    merge = {"do": "merge", "classes": parts, "name": "web"}
    rename = {"do": "rename", "class": by_section["gnu-r"], "name": "statistics"}
    path = review(run, folder / "review-2.json", merge, rename)
    nodenova("apply-review", run, path, "-q")
    nodenova("classes", run, "--json", folder / "classes.json")
    listed = document(folder / "classes.json")["classes"]
    names = {c["id"]: c["name"] for c in listed}
    assert names[by_section["fonts"]] == "Schriften & 文字"
    assert names[by_section["gnu-r"]] == "statistics"
    assert names[parts[0]] == "web"
    assert [names[i] for i in range(len(KNOWN))] == list(KNOWN)
    assert {c["kind"] for c in listed if c["id"] >= len(KNOWN)} == {"discovered"}
    told = {row["node"]: row for row in table(run / "predictions.csv")}
    assert told[moved]["name"] == "Schriften & 文字"
    wrong = nodenova("apply-review", run, review(folder / "auto", folder / "r.json"), code=2)
    assert "another model" in wrong
    return names, moved


def changed(world: Packages, folder: Path, run: Path) -> None:
    """Packages left, columns changed places, descriptions changed: the model is asked again."""
    left = world.names[100 : world.spring]
    rows = {row["package"]: row for row in table(folder / "spring" / "nodes.csv")}
    for number, name in enumerate(left):
        rows[name]["description"] += " brandnew" if number % 3 else ""
    later = folder / "later.csv"
    with later.open("w", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, [*reversed(COLUMNS)])
        lines.writeheader()
        lines.writerows(rows[name] for name in left)
    files = ["--nodes", later, "--edges", folder / "spring" / "edges.csv", "--id-column", "package"]
    given = [*files, "--label-column", "section", "--drop-unknown-edges", "--threads", 1]
    summary, out = folder / "summary.json", folder / "later-predictions.csv"
    nodenova("predict", run, *given, "--max-drift", 0.1, "--json", summary, "--out", out)
    before = {row["node"]: row["class"] for row in table(run / "predictions.csv")}
    now = {row["node"]: row["class"] for row in table(out)}
    assert list(now) == left
    assert np.mean([now[name] == before[name] for name in left]) > 0.95
    assert document(summary)["nodes"] == len(left)
    with later.open("w", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, [*reversed(COLUMNS)])
        lines.writeheader()
        lines.writerows(rows[name] for name in left if world.truth[name] in ("fonts", "games"))
    said = nodenova("predict", run, *given, "--max-drift", 0.1, "--out", out, code=3)
    assert "more than --max-drift 0.1 allows" in " ".join(said.split())
    only = nodenova("predict", run, "--only", f"{left[0]},{left[1]}")
    assert left[0] in only
    assert left[2] not in only


def grow(
    world: Packages,
    folder: Path,
    run: Path,
    after: tuple[dict[int, str], str],
    growing: tuple[str, ...],
) -> None:
    """Summer: more packages and a section that came; ids, names and decisions stay."""
    names, moved = after
    summer = world.write(folder / "summer")
    grown = folder / "grown"
    nodenova("discover", "--from", run, *summer, "--out", grown, "--threads", 1, *growing)
    graded = check_run(world, grown, len(world.names))
    nodenova("classes", grown, "--json", folder / "grown.json", "-q")
    listed = {c["id"]: c for c in document(folder / "grown.json")["classes"]}
    for number, name in names.items():
        if name in (*KNOWN, "Schriften & 文字", "statistics", "web"):
            assert (listed[number]["name"], listed[number]["stage"]) == (name, number >= len(KNOWN))
    came = [number for number in listed if number not in names]
    assert CAME in {graded.sections.get(number) for number in came}
    told = {row["node"]: row for row in table(grown / "predictions.csv")}
    assert told[moved]["name"] == "Schriften & 文字"

    said = nodenova("diff", run, grown, "--json", folder / "diff.json")
    assert f"{world.came:,} came, 0 went." in " ".join(said.split())
    found = document(folder / "diff.json")
    assert [c["id"] for c in found["classes"] if c["what"] == "came"] == came
    assert len(found["moves"]) < 0.1 * world.spring

    exported = folder / "exported.csv"
    given = folder / "summer" / "nodes.csv"
    nodenova("export", grown, "--to", "table", "--table", given, "--out", exported)
    rows = table(exported)
    assert [{c: row[c] for c in COLUMNS} for row in rows] == table(given)  # cell by cell
    assert [row["name"] for row in rows] == [told[row["package"]]["name"] for row in rows]
    files = [
        "--nodes",
        exported,
        "--edges",
        folder / "summer" / "edges.csv",
        "--drop-unknown-edges",
    ]
    nodenova("inspect", *files, "--json", folder / "again.json", "-q")
    again = document(folder / "again.json")
    sizes = Counter(row["name"] for row in told.values())
    assert dict(again["old_classes"]) == sizes  # the class is the label now, and no feature


@pytest.mark.slow
def test_an_hour_with_a_table_of_packages(tmp_path: Path) -> None:
    hour(SMALL, tmp_path)


@pytest.mark.slow
def test_an_hour_with_a_table_as_large_as_a_distribution(tmp_path: Path) -> None:
    # Few features came beside so many: that alone is no reason to fit the representation anew.
    hour(LARGE, tmp_path, "--refresh", "always")
