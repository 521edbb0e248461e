"""Examples in docstrings run, and every public name has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import nodenova as nova

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(nova.__path__, "nodenova.")
    if module.name != "nodenova.__main__"
)
# Dictionaries have no docstring of their own; their modules show what is in them.
WITHOUT = {"METHODS", "LABELLED"}


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0, f"{found.failed} of {found.attempted} examples in {name} fail"


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = [importlib.import_module(name) for name in MODULES]
    assert sum(len(test.examples) for m in modules for test in finder.find(m)) > 200


def test_every_public_name_has_an_example() -> None:
    public = {name: getattr(nova, name) for name in nova.__all__ if name not in WITHOUT}
    assert not [
        name for name, value in public.items() if ">>>" not in (inspect.getdoc(value) or "")
    ]
