"""Tables in which ids, labels and texts look like formulas of a spreadsheet."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.files.content import guard_formula, table_content, unguard_formula
from nodenova.runs.export import file_content
from tests.runs.tables import COLUMNS, SPRING, files, nodenova, tables, write_tables

FAST = ["--num-new", 1, "--set", "n_resamples=0", "-q"]
STARTS = ("=", "+", "-", "@", "'=", "n")
RUN_TABLES = ("predictions.csv", "classes.csv", "shown.csv")


def hostile(node: str) -> str:
    number = int(node.removeprefix("n"))
    return f"{STARTS[number % len(STARTS)]}cmd{number}"


def write_hostile(folder: Path, last: int) -> Path:
    """The usual tables, with other ids and labels, and texts that begin with =."""
    write_tables(folder, last=last)
    for name in ("nodes.csv", "edges.csv"):
        rows = list(csv.DictReader((folder / name).read_text().splitlines()))
        for row in rows:
            for column in {"key", "a", "b"} & set(row):
                row[column] = hostile(row[column])
            if row.get("topic"):
                row["topic"] = f"={row['topic']}"
            if "text" in row:
                row["text"] = f"=1 {row['text']}"
        with (folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return folder


def formulas(path: Path) -> Iterator[str]:
    """Cells that a spreadsheet would run."""
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            for cell in row:
                if re.match(r"[=+\-@\t\r]", cell) and not re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell):
                    yield cell


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A safe run of the first season, a plain one, and the tables of two seasons."""
    place = tmp_path_factory.mktemp("formulas")
    spring = files(write_hostile(place / "spring", SPRING))
    write_hostile(place / "autumn", 120)
    nodenova("discover", *spring, *COLUMNS, *FAST, "--out", place / "plain")
    nodenova("discover", *spring, *COLUMNS, *FAST, "--safe-csv", "--out", place / "run")
    return place


@pytest.fixture
def run(place: Path, tmp_path: Path) -> Path:
    """A copy of the safe run."""
    return Path(shutil.copytree(place / "run", tmp_path / "run"))


IDS = [hostile(f"n{i}") for i in range(SPRING)]


def test_without_the_option_ids_are_written_as_they_are(place: Path) -> None:
    for name in RUN_TABLES:
        assert any(formulas(place / "plain" / name)), name
    assert list(nova.open_run(place / "plain").class_of_nodes()) == IDS


def test_a_safe_run_has_no_formula_and_reads_its_own_ids(place: Path, run: Path) -> None:
    for name in RUN_TABLES:
        assert not [*formulas(run / name)], name
    safe, plain = nova.open_run(run), nova.open_run(place / "plain")
    assert list(safe.class_of_nodes()) == IDS
    assert safe.class_of_nodes() == plain.class_of_nodes()
    assert safe.class_names == plain.class_names
    assert safe.run.node_texts == plain.run.node_texts
    assert not safe.diff(plain).moves
    assert (run / "report.html").read_bytes() == (
        (place / "plain" / "report.html").read_bytes().replace(b"plain", b"run")
    )


def test_a_review_of_a_safe_run_stays_safe_and_its_labels_are_read(place: Path, run: Path) -> None:
    opened = nova.open_run(run)
    opened.apply([
        {"do": "rename", "class": 2, "name": "=plants"},
        {"do": "relabel", "nodes": [IDS[0], IDS[4]], "class": 0},
    ])  # fmt: skip
    for name in (*RUN_TABLES, "labels.csv"):
        assert not [*formulas(run / name)], name
    assert "=plants" in opened.class_names
    labels = ["--labels", run / "labels.csv"]
    autumn = [*files(place / "autumn"), *FAST]
    nodenova("discover", "--from", run, *autumn, *labels, "--out", run.parent / "later")
    later = nova.open_run(run.parent / "later")
    assert later.safe_csv
    assert not [*formulas(later.path / "predictions.csv")]
    assert later.labels[IDS[4]] == opened.labels[IDS[4]]
    assert "=plants" in later.class_names
    opened.continue_with(**tables(place / "autumn"), num_new=1).write(run.parent / "too")
    assert nova.open_run(run.parent / "too").safe_csv


def test_a_report_made_safe_later_makes_the_shown_columns_safe(place: Path, run: Path) -> None:
    opened = nova.open_run(run)
    opened.report(safe_csv=False)
    for name in RUN_TABLES:
        assert [*formulas(run / name)], name
    opened.report(safe_csv=True)
    for name in RUN_TABLES:
        assert not [*formulas(run / name)], name


def test_predict_and_diff_do_as_the_run_does_unless_told(place: Path, run: Path) -> None:
    out = run.parent / "p.csv"
    later = files(place / "autumn")
    for words in (["predict", run, *later], ["predict", run, "--only", f"{IDS[0]},{IDS[2]}"]):
        nodenova(*words, "-q", "--out", out)
        assert not [*formulas(out)]
        nodenova(*words, "-q", "--out", out, "--no-safe-csv")
        assert IDS[0] in [*formulas(out)]
    nodenova("predict", place / "plain", "-q", "--out", out, "--safe-csv")
    assert not [*formulas(out)]
    nova.open_run(run).apply([{"do": "reject", "class": 2}])
    for option, is_safe in ((), True), (("--no-safe-csv",), False):
        nodenova("diff", place / "plain", run, "-q", "--out", out, *option)
        assert bool([*formulas(out)]) != is_safe


@pytest.mark.parametrize(
    ("form", "name", "tables_of"),
    [
        ("table", "t.csv", ["t.csv"]),
        ("table", "t.tsv", ["t.tsv"]),
        ("csv", "t", ["t/nodes.csv", "t/edges.csv"]),
        ("embeddings", "z.csv", ["z.csv"]),
    ],
)
def test_exports_do_as_the_run_does_unless_told(
    place: Path, tmp_path: Path, form: str, name: str, tables_of: list[str]
) -> None:
    words = ["export", place / "run", "--to", form, "-q", "--out", tmp_path / name]
    words += ["--table", place / "spring" / "nodes.csv"] if form == "table" else []
    for option, is_safe in ((), True), (("--no-safe-csv",), False), (("--safe-csv",), True):
        nodenova(*words, *option)
        for table in tables_of:
            text = (tmp_path / table).read_text().replace("\t", ",")
            (tmp_path / "commas.csv").write_text(text)
            assert bool([*formulas(tmp_path / "commas.csv")]) != is_safe, (table, option)
    run = nova.open_run(place / "plain")
    table = place / "spring" / "nodes.csv" if form == "table" else None
    run.export(form, tmp_path / name, table=table, safe_csv=True)
    assert not [*formulas(tmp_path / tables_of[0])]


def test_report_changes_what_later_reviews_do(run: Path) -> None:
    nodenova("report", run, "-q", "--no-safe-csv")
    assert any(formulas(run / "predictions.csv"))
    nova.open_run(run).apply([{"do": "rename", "class": 2, "name": "plants"}])
    assert any(formulas(run / "predictions.csv"))
    nodenova("report", run, "-q", "--safe-csv")
    for name in RUN_TABLES:
        assert not [*formulas(run / name)], name
    assert list(nova.open_run(run).class_of_nodes()) == IDS


def test_report_of_a_graded_run_has_no_tables(tmp_path: Path) -> None:
    data = "synthetic:nodes=80,classes=4,words=40"
    nodenova("run", "--dataset", data, "--num-old", 2, "--out", tmp_path / "graded", "-q")
    with pytest.raises(SettingError, match="--safe-csv is for runs of `nodenova discover`"):
        nodenova("report", tmp_path / "graded", "--safe-csv")


@pytest.mark.parametrize("text", ["=1", "'=1", "''-", "-", "\t", "\rx", "'", "'a", "-1", "1e5", ""])
def test_a_guarded_cell_comes_back(text: str) -> None:
    guarded = str(guard_formula(text))
    assert unguard_formula(guarded) == text
    assert not guarded.startswith(("=", "+", "@", "\t", "\r"))


def test_names_of_columns_are_guarded_and_numbers_are_not() -> None:
    columns: dict[str, list[object]] = {"=a": [-1, -0.5, "-2", "+3.1e-5", "-inf"]}
    expected = b"'=a\n-1\n-0.5\n-2\n+3.1e-5\n'-inf\n"
    assert table_content(columns, Path("t.csv"), safe_csv=True) == expected
    assert file_content(columns, Path("t.csv"), safe_csv=True) == expected
