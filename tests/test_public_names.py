"""The public names are where `nodenova/__init__.py` says, and the same for a type checker as at run time."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nodenova as nova


def test_type_checkers_and_python_see_the_same_names() -> None:
    tree = ast.parse(Path(nova.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    declared = {(node.module, alias.name) for node in block.body for alias in node.names}  # type: ignore[attr-defined]
    assert declared == {(place, name) for name, place in nova._PLACE_OF.items()}


@pytest.mark.parametrize("name", sorted(nova._PLACE_OF))
def test_every_public_name_is_there_and_has_a_docstring(name: str) -> None:
    value = getattr(nova, name)
    assert name in dir(nova)
    assert name in ("METHODS", "LABELLED") or value.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'disover'"):
        nova.disover  # noqa: B018


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys, nodenova.cli; sys.exit('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(nova.__file__).parent.parent)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
