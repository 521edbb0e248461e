"""The public names are where `nodenova/__init__.py` says, for a type checker and at run time."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nodenova as nova


def test_the_stub_lists_the_public_names() -> None:
    tree = ast.parse(Path(nova.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    listed = [
        alias.asname
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert sorted(listed) == sorted(set(nova.__all__))
    assert {"fit", "discover", "Graph", "Model", "Prism", "load_graph"} <= set(listed)


def test_every_public_name_has_a_docstring() -> None:
    assert set(nova.__all__) <= set(dir(nova))
    assert [name for name in nova.__all__ if not getattr(nova, name).__doc__] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="disover"):
        nova.disover  # noqa: B018


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys, nodenova.cli; sys.exit('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(nova.__file__).parent.parent)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
