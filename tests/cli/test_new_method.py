from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodenova import LABELLED, METHODS
from nodenova.bench.titles import METHODS as TITLES
from nodenova.cli import app
from nodenova.cli.new_method import REGISTRY, add_entry, class_name
from nodenova.cli.run import METHOD_HELP
from nodenova.errors import SettingError

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with nothing of a checkout but the registry."""
    (tmp_path / REGISTRY).parent.mkdir(parents=True)
    (tmp_path / "tests/methods").mkdir(parents=True)
    (tmp_path / REGISTRY).write_text(
        (ROOT / REGISTRY).read_text(encoding="utf-8"), encoding="utf-8"
    )
    return tmp_path


def begin(name: str, folder: Path) -> str:
    return str(
        CliRunner().invoke(app, ["new-method", name, "--folder", str(folder)]).exception or ""
    )


def test_its_file_its_place_in_the_registry_its_page_and_a_test(checkout: Path) -> None:
    before = set(checkout.rglob("*.*"))
    assert begin("my_method", checkout) == ""
    written = {
        path.relative_to(checkout).as_posix() for path in set(checkout.rglob("*.*")) - before
    }
    assert written == {
        "src/nodenova/methods/my_method.py",
        "docs/methods/my_method.md",
        "tests/methods/test_my_method.py",
    }
    method, test = (
        checkout / "src/nodenova/methods/my_method.py",
        checkout / "tests/methods/test_my_method.py",
    )
    ast.parse(method.read_text())
    ast.parse(test.read_text())
    registry = (checkout / REGISTRY).read_text()
    entry = 'Entry("nodenova.methods.my_method:MyMethod", "MyMethod", epochs=200)'
    assert registry.count(f'        "my_method": {entry},\n    }}\n)') == 1
    assert (
        "::: nodenova.methods.my_method.MyMethod\n"
        in (checkout / "docs/methods/my_method.md").read_text()
    )


@pytest.mark.slow
def test_it_runs_as_it_is_and_its_test_fails(checkout: Path) -> None:
    begin("my_method", checkout)
    code = (checkout / "src/nodenova/methods/my_method.py").read_text()
    test = (
        (checkout / "tests/methods/test_my_method.py")
        .read_text()
        .replace("from nodenova.methods.my_method import MyMethod", "")
    )
    test = test.replace("from __future__ import annotations", "")
    whole = f"{code}\n{test}\ntest_it_finds_planted_classes()\n"
    (checkout / "both.py").write_text(whole)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(checkout / "both.py")], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert 'scores()["new"] > 40' in done.stderr


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("My", "lowercase letters"),
        ("a-b", "lowercase letters"),
        ("class", "lowercase letters"),
        ("sword", "already"),
        ("auto_novel", "already"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(
    checkout: Path, name: str, says: str
) -> None:
    before = sorted(checkout.rglob("*"))
    assert says in begin(name, checkout)
    assert sorted(checkout.rglob("*")) == before


def test_outside_a_checkout(tmp_path: Path) -> None:
    assert "not in a checkout" in begin("mine", tmp_path)


def test_a_second_time_nothing_is_overwritten(checkout: Path) -> None:
    begin("mine", checkout)
    (checkout / "src/nodenova/methods/mine.py").write_text("# my work\n")
    assert "exists already" in begin("mine", checkout)
    assert (checkout / "src/nodenova/methods/mine.py").read_text() == "# my work\n"


def test_names() -> None:
    assert class_name("my_new_method2") == "MyNewMethod2"
    with pytest.raises(SettingError, match="no table of methods"):
        add_entry("METHODS = {}\n", "mine", "Mine")


def test_the_help_of_run_names_every_method() -> None:
    given, labels = METHOD_HELP.removeprefix("Method: ").split("; given labels (†): ")
    assert given.split(", ") == list(METHODS)
    assert labels.split("; or ")[0].split(", ") == list(LABELLED)


def test_every_method_has_a_title() -> None:
    assert set(METHODS) | set(LABELLED) == set(TITLES)
    assert TITLES["frozen_kmeans"] == "frozen k-means"


@pytest.mark.parametrize("command", ["check-method", "run", "bench"])
def test_help_and_docs_name_a_method_from_a_file_as_code(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    words = " ".join(shown.replace("│", " ").split())
    assert "path/to/mine.py:Mine" in words
    assert "file is run" in words
    assert "The file is code" in (ROOT / "docs" / "own-method.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["check-encoder", "run", "bench", "discover"])
def test_help_and_docs_name_an_encoder_from_a_file_as_code(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    words = " ".join(shown.replace("│", " ").split())
    assert "path/to/mine.py:Net" in words
    assert "file is run" in words
    assert "The file is code" in (ROOT / "docs" / "own-encoder.md").read_text(encoding="utf-8")
