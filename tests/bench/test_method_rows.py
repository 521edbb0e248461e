"""Rows of a method as one file: what it states, what is refused, and the tables that show it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from nodenova.bench import grader
from nodenova.bench.method_rows import (
    graded_document,
    method_document,
    read_method_rows,
    with_others,
)
from nodenova.bench.page import bench_page
from nodenova.bench.render import to_latex
from nodenova.bench.rowfile import RowFile
from nodenova.bench.tables import TABLES, comparison
from nodenova.cli import app
from nodenova.errors import SettingError, StorageError
from nodenova.evaluation.graded import versions
from nodenova.files.content import to_json
from nodenova.methods.frozen_kmeans import FrozenKMeans
from tests.bench import rows as made
from tests.documents import is_refused, mutate

MINE = '''"""A method that never calls a node new; the setting does nothing."""
from dataclasses import dataclass

from nodenova.methods.never_new import NeverNew


@dataclass(frozen=True)
class Mine(NeverNew):
    """Never new."""

    level: int = 1
'''
DATA = "synthetic:nodes=60,classes=4,words=40"


def cli(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def document(**more: Any) -> dict[str, Any]:
    """A file of three rows of somebody's method."""
    rows = [made.document("theirs", seed) for seed in range(3)]
    return {
        "format": "nodenova method rows",
        "version": 1,
        "method": {"name": "theirs", "source": "d1"},
        "verdict": "passes",
        "checks": [{"encoder": "gcn", "check": "one new class", "problem": None}],
        "rows": rows,
        "versions": {"nodenova": "0.1"},
        "commit": "c0ffee",
    } | more


def write(folder: Path, content: dict[str, Any], name: str = "lab.json") -> Path:
    path = folder / name
    path.write_bytes(to_json(content))
    return path


def test_rows_of_others_are_lines_that_are_marked(tmp_path: Path) -> None:
    ours = [*made.seeds(3), *made.seeds(3, "theirs", 40)]
    rows = with_others(ours, [write(tmp_path, document())])
    table = comparison(rows)[0]
    labels = [line.labels[0] for line in table.lines]
    assert "theirs" in labels  # our own runs of it stay a line of their own
    line = table.lines[labels.index("theirs ‡ lab")]
    assert [cell.n for cell in line.cells] == [3] * len(line.cells)
    note = "Rows of others, lab.json: check-method passes (1 check); nodenova 0.1, commit c0ffee."
    assert note in table.notes
    assert table.notes.index(note) + 1 in line.cells[0].notes
    assert r"theirs \ddag{} lab" in to_latex("comparison", [table])
    assert "theirs ‡ lab" in bench_page(rows, tmp_path)


def test_other_data_a_failed_check_and_changed_settings_are_stated(tmp_path: Path) -> None:
    wrong = [{"encoder": "gcn", "check": "one new class", "problem": "raised"}]
    rows = [made.document("theirs", 0, data="x", changed={"eta": 0.5})]
    path = write(tmp_path, document(verdict="fails", checks=wrong, rows=rows))
    found = with_others(made.seeds(1), [path])
    (theirs,) = [row for row in found if row.source]
    assert "check-method fails (1 of 1 check)" in theirs.source
    assert "on other data than ours (x)" in theirs.source
    keys = [row.key for row in found]
    labels = [line.labels[0] for line in comparison(found, keys)[0].lines]
    assert "theirs ‡ lab, η=0.5" in labels


@pytest.mark.parametrize("verdict", ["passes", "fails", "not checked", "given labels"])
def test_only_a_method_that_keeps_the_rules_may_be_best(verdict: str, tmp_path: Path) -> None:
    sees = {"sees": ["graph", "new_labels"]} if verdict == "given labels" else {}
    rows = [made.document("theirs", seed, level=90, **sees) for seed in range(3)]
    path = write(tmp_path, document(verdict=verdict, rows=rows))
    table = comparison(with_others([*made.seeds(3), *made.seeds(3, "dtc", 40)], [path]))[0]
    marks = {line.labels[0]: {cell.mark for cell in line.cells} - {""} for line in table.lines}
    assert marks["theirs ‡ lab"] == ({"best"} if verdict == "passes" else set())
    assert marks["SWORD"] == ({"second"} if verdict == "passes" else {"best"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "x"}, "not a file of this kind"),
        ({"version": 2}, "has version 2 of its format"),
        ({"verdict": "good"}, "verdict must be one of passes, fails, given labels"),
        ({"method": {"name": "a|b", "source": None}}, "name must be a name of letters"),
        ({"rows": []}, "rows must be a list of at least 1"),
        ({"rows": [made.document("other", 0)]}, r"rows\[0\] is not a row of theirs"),
        ({"rows": [{**made.document("theirs", 0), "key": ""}]}, "with a key"),
        ({"rows": [made.document("theirs", 0)] * 2}, r"rows\[1\] repeats the finished run"),
        ({"rows": [{**made.document("theirs", 0), "sizes": [5]}]}, r"rows\[0\]: a damaged result"),
    ],
)
def test_what_is_no_such_file_is_refused(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(StorageError, match=words):
        read_method_rows(write(tmp_path, document(**change)))


def test_mutated_files_are_read_or_refused_by_a_sentence(tmp_path: Path) -> None:
    random, refused = Random(0), 0
    for _ in range(150):
        path = tmp_path / "m.json"
        path.write_text(json.dumps(mutate(document(), random)))
        refused += is_refused(lambda path=path: read_method_rows(path), tmp_path)
    assert refused > 40


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    paths = [write(tmp_path, document()), write(tmp_path / "b", document())]
    with pytest.raises(SettingError, match="two files are called lab"):
        with_others([], paths)


def test_a_method_without_rows_is_refused() -> None:
    with pytest.raises(SettingError, match="there is no row of frozen_kmeans"):
        method_document(FrozenKMeans(), [], "frozen_kmeans")


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bench of a method in a file, and of one of ours."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    cli("bench", "comparison", "--datasets", DATA, "--encoders", "gcn", "--methods",
        "mine.py:Mine,never_new", "--num-old", 2, "--seeds", 1, "-q")  # fmt: skip
    return tmp_path


@pytest.mark.slow
def test_from_a_file_of_mine_to_a_table_of_others(results: Path) -> None:
    text = cli("export-rows", "mine.py:Mine")
    assert "Written: Mine.json, 1 row; check-method: passes" in text
    written = json.loads(Path("Mine.json").read_text())
    (row,) = RowFile(results / "results/rows.jsonl").read()[:1]
    assert written["rows"] == [json.loads(to_json(row.to_json()))]
    assert written["versions"] == dict(versions())
    assert {each["encoder"] for each in written["checks"]} == {"gcn"}
    with pytest.raises(SettingError, match=r"Mine\.json exists; choose another --out"):
        cli("export-rows", "mine.py:Mine")
    cli("export-rows", "mine.py:Mine", "--overwrite", "--set", "level=2", "-q")
    others = cli("bench", "comparison", "--datasets", DATA, "--encoders", "gcn", "--methods",
                 "never_new", "--num-old", 2, "--seeds", 1, "--others", "Mine.json")  # fmt: skip
    assert "Mine ‡ Mine" in others
    # Another version of the file: its rows are not rows of this method.
    Path("mine.py").write_text(MINE + "\n# changed\n")
    with pytest.raises(SettingError, match=r"there is no row of mine\.py:Mine"):
        cli("export-rows", "mine.py:Mine", "--out", "x.json")


@pytest.mark.slow
def test_rows_of_a_method_that_is_given_labels_are_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("bench", "comparison", "--datasets", DATA, "--encoders", "gcn", "--methods", "oracle",
        "--num-old", 2, "--seeds", 1, "-q")  # fmt: skip
    assert "check-method: given labels" in cli("export-rows", "oracle", "--rows", "results")
    assert json.loads(Path("oracle.json").read_text())["checks"] == []


def test_a_failed_check_is_in_the_file_and_in_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = RowFile(tmp_path / "results/rows.jsonl")
    with file.writing():
        for row in made.seeds(2, "frozen_kmeans", settings={}, fit_settings={}):
            file.append(row)
    monkeypatch.setattr("nodenova.bench.method_rows.problem", lambda *_: "it saw a label")
    text = cli("export-rows", "frozen_kmeans", code=1)
    assert "frozen_kmeans on gcn, the same seed gives the same result: it saw a label" in text
    assert json.loads(Path("frozen_kmeans.json").read_text())["verdict"] == "fails"


@pytest.fixture
def graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Export a protocol, grade its answers as predictions, and return what grade.py wrote."""
    monkeypatch.chdir(tmp_path)

    def grade(name: str, seeds: str = "1") -> list[Path]:
        cli("protocols", "export", name, "--dataset", "synthetic:nodes=200,classes=4", "--seeds",
            seeds, "--out", name, "-q")  # fmt: skip
        monkeypatch.setattr(grader, "__file__", str(tmp_path / name / "grade.py"))
        written = []
        for split in sorted((tmp_path / name / "answers").iterdir()):
            key = [path.read_text().split() for path in sorted(split.glob("session-*.csv"))]
            lines = ["node,class,session"]
            lines += [f"{line},{s}" for s, each in enumerate(key, 1) for line in each[1:]]
            Path("p.csv").write_text("\n".join(lines))
            written.append(tmp_path / f"{split.name}.json")
            assert grader.main([split.name, "p.csv", "--json", str(written[-1])]) == 0
        return written

    return grade


@pytest.mark.parametrize("name", ["paper", "class-splits", "mixed-50", "count-70"])
def test_a_method_outside_nodenova_is_a_line_of_its_table(
    name: str, graded: Any, tmp_path: Path
) -> None:
    files = graded(name, "2")
    words = [word for path in files for word in ("--graded", path)]
    text = cli("export-rows", "theirs", *words, "--out", "lab.json")
    assert f"{len(files)} row" in text
    assert "check-method: not checked" in text
    rows = with_others([], [tmp_path / "lab.json"])
    table = {"paper": "comparison"}.get(name, name.partition("-5")[0].partition("-7")[0])
    shown = TABLES[table](rows) if table != "comparison" else comparison(rows)
    lines = [line for each in shown for line in each.lines if "theirs ‡ lab" in line.labels[0]]
    assert lines
    assert all(row.score("all") == 100.0 for row in rows)
    assert "the method's rules are not checked" in rows[0].source


def test_a_grade_that_is_no_row_is_refused(graded: Any, tmp_path: Path) -> None:
    (path,) = graded("paper")
    with pytest.raises(StorageError, match=r"there twice; grade\.py --seed"):
        graded_document("theirs", [path, path])
    with pytest.raises(SettingError, match="METHOD: it must be a name of letters"):
        graded_document("a|b", [path])
    with pytest.raises(SettingError, match="--set is for a method that runs in nodenova"):
        cli("export-rows", "theirs", "--graded", path, "--set", "a=1")
    document = json.loads(path.read_text())
    random = Random(0)
    for _ in range(150):
        mutated = tmp_path / "m.json"
        mutated.write_text(json.dumps(mutate(document, random)))
        is_refused(lambda path=mutated: graded_document("theirs", [path]), tmp_path)
    (stages,) = graded("stages")
    with pytest.raises(StorageError, match="a run of several sessions is no row"):
        graded_document("theirs", [stages])


def test_a_folder_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"has no rows\.jsonl: it is not the folder of a bench"):
        cli("export-rows", "prism", "--rows", tmp_path)
