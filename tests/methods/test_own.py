"""A user's own method from a file: found, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodenova.errors import SettingError
from nodenova.experiments.contenders import contender, encoder_for, title
from nodenova.methods.own import is_own, own_method, source_hash

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
    assert is_own(name)
    assert contender(name, {"starts": "7"}).starts == 7
    assert encoder_for(name, None) == "sage"
    assert title(name) == "Mine"
    assert own_method(name) is own_method(name)  # two looks at one file are one class
    before = source_hash(name)
    file.write_text(GOOD.replace("starts: int = 3", "starts: int = 4"))
    assert contender(name, {}).starts == 4
    assert source_hash(name) != before


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("Nope", "mine.py has no class Nope"),
        ("number", "mine.py has no class number"),
        ("Plain", r"mine.py:Plain is not a method: it must be a dataclass with a function discover"),
        ("Silent", "mine.py:Silent is not a method"),
        ("Bare", "mine.py:Bare: every setting needs a default, size has none"),
    ],
)
def test_what_is_not_a_method_is_refused(tmp_path: Path, wanted: str, sentence: str) -> None:
    (tmp_path / "mine.py").write_text(GOOD)
    with pytest.raises(SettingError, match=sentence):
        own_method(f"{tmp_path / 'mine.py'}:{wanted}")


def test_a_file_that_is_not_there_or_does_not_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"none.py: cannot be read \(No such file or directory\)"):
        own_method(f"{tmp_path / 'none.py'}:Mine")
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(SettingError, match=r"broken.py: cannot be imported \(ModuleNotFoundError"):
        own_method(f"{tmp_path / 'broken.py'}:Mine")
    with pytest.raises(SettingError, match=r"a method of your own is given as path/to/mine.py:Mine, not 'mine.py'"):
        own_method("mine.py")
