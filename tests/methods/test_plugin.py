"""A user's own method from a file: found, or refused in one sentence."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from nodenova.bench.registry import encoder_for, name_of
from nodenova.errors import SettingError
from nodenova.files.own_code import is_path
from nodenova.methods import get_method
from nodenova.methods._plugin import load_from_file, origin_of

GOOD = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Mine:
    prefers = "sage"
    starts: int = 3
    def discover(self, model, task): ...
@dataclass
class Bare:
    size: int
    def discover(self, model, task): ...
class Plain:
    def discover(self, model, task): ...
@dataclass
class Silent:
    size: int = 1
number = 3
"""


def test_the_class_is_found_and_takes_settings_as_text(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(GOOD)
    name = f"{file}:Mine"
    assert is_path(name)
    assert get_method(name, {"starts": "7"}).starts == 7
    assert encoder_for(name, None) == "sage"
    mine = get_method(name, {})
    assert name_of(mine) == "Mine"
    assert load_from_file(name) is load_from_file(name)  # two looks at one file are one class
    before = origin_of(mine)
    assert before is not None
    assert before.name == name
    file.write_text(GOOD.replace("starts: int = 3", "starts: int = 4"))
    changed = get_method(name, {})
    assert changed.starts == 4
    assert origin_of(changed).digest != before.digest  # type: ignore[union-attr]
    assert origin_of(mine) == before  # what was read before stays what it is


def test_a_method_goes_to_another_process_as_its_file_and_its_settings(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD)
    mine = get_method(f"{tmp_path / 'mine.py'}:Mine", {"starts": "7"})
    code = (
        "import pickle, sys; m = pickle.loads(sys.stdin.buffer.read()); "
        "print(type(m).__name__, m.starts, m.prefers)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(mine), capture_output=True, check=True
    )
    assert told.stdout.split() == [b"Mine", b"7", b"sage"]
    assert pickle.loads(pickle.dumps(mine)) == mine


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("Nope", "mine.py has no class Nope"),
        ("number", "mine.py has no class number"),
        (
            "Plain",
            r"mine.py:Plain is not a method: it must be a dataclass with a function discover",
        ),
        ("Silent", "mine.py:Silent is not a method"),
        ("Bare", "mine.py:Bare: every setting needs a default, size has none"),
    ],
)
def test_what_is_not_a_method_is_refused(tmp_path: Path, wanted: str, sentence: str) -> None:
    (tmp_path / "mine.py").write_text(GOOD)
    with pytest.raises(SettingError, match=sentence):
        load_from_file(f"{tmp_path / 'mine.py'}:{wanted}")


def test_a_file_that_is_not_there_or_does_not_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        SettingError, match=r"none.py: cannot be read \(No such file or directory\)"
    ):
        load_from_file(f"{tmp_path / 'none.py'}:Mine")
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(SettingError, match=r"broken.py: cannot be imported \(ModuleNotFoundError"):
        load_from_file(f"{tmp_path / 'broken.py'}:Mine")
    with pytest.raises(
        SettingError, match=r"a method in a file is named path/to/mine.py:Mine, not 'mine.py'"
    ):
        load_from_file("mine.py")
