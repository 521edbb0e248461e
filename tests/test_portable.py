"""Without POSIX's locks and folders (Windows) the package imports, locks and saves all the same."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import nodenova as nova
from nodenova import files
from nodenova.bench import rowfile
from nodenova.errors import StorageError

SRC = Path(nova.__file__).parent
POSIX_ONLY = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}


def unguarded(source: str) -> list[str]:
    """Modules of POSIX alone that are imported outside of a `try`."""
    tree = ast.parse(source)
    guarded = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        for part in node.body
        for inner in ast.walk(part)
    }
    imports = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in guarded
    ]
    names = [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    names += [str(node.module) for node in imports if isinstance(node, ast.ImportFrom)]
    return [name for name in names if name in POSIX_ONLY]


def test_no_module_needs_what_only_posix_has() -> None:
    assert (
        unguarded("import fcntl") == unguarded("def f():\n    from fcntl import flock") == ["fcntl"]
    )
    assert unguarded("try:\n    import fcntl\nexcept ImportError:\n    fcntl = None") == []
    assert {
        str(path): unguarded(path.read_text())
        for path in SRC.rglob("*.py")
        if unguarded(path.read_text())
    } == {}


def without_encoding(source: str) -> list[int]:
    """Lines that read or write text in whatever encoding the system has."""
    place = {"read_text": 0, "write_text": 1}  # where the encoding stands, if it has no name
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in place
        and len(node.args) <= place[node.func.attr]
        and "encoding" not in {keyword.arg for keyword in node.keywords}
    ]


def test_text_is_utf_8_on_every_system() -> None:
    wrong = 'a.read_text()\nb.write_text("x")\n'
    right = 'c.read_text("utf-8")\nd.write_text("y", encoding="utf-8")\n'
    assert without_encoding(wrong + right) == [1, 2]
    found = {
        str(path): without_encoding(path.read_text(encoding="utf-8")) for path in SRC.rglob("*.py")
    }
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.fixture
def without_fcntl(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of row files as it is where there is no fcntl."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    spec = importlib.util.spec_from_file_location("rowfile_without_fcntl", rowfile.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.fcntl is None
    return module


def test_without_posix_locks_a_second_writer_is_refused_too(
    without_fcntl: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    first, second = without_fcntl.RowFile(path), without_fcntl.RowFile(path)
    with first.writing():
        with pytest.raises(
            StorageError,
            match=r"another bench is writing there.*If none is running.*rows\.jsonl\.lock",
        ):
            second.writing().__enter__()
        assert {found.name for found in tmp_path.iterdir()} == {"rows.jsonl", "rows.jsonl.lock"}
    with pytest.raises(KeyError), second.writing():
        raise KeyError
    # The lock went with the block, however it ended.
    assert [found.name for found in tmp_path.iterdir()] == ["rows.jsonl"]


class Windows:
    """`os` as it is there: a folder cannot be opened, and there is no O_CLOEXEC."""

    name = "nt"

    def __getattr__(self, name: str) -> Any:
        if name == "O_CLOEXEC":
            raise AttributeError(name)
        return getattr(os, name)

    def open(self, path: Any, *arguments: Any) -> int:
        if Path(path).is_dir():
            raise PermissionError(13, "Permission denied", str(path))
        return os.open(path, *arguments)


def test_models_and_rows_are_saved_where_folders_cannot_be_opened(
    monkeypatch: pytest.MonkeyPatch,
    without_fcntl: ModuleType,
    discovered: nova.Model,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(files, "os", Windows())
    monkeypatch.setattr(without_fcntl, "os", Windows())
    discovered.save(tmp_path / "m")
    assert nova.load_model(tmp_path / "m").classes == discovered.classes
    path = tmp_path / "rows.jsonl"
    path.write_text("torn")
    with without_fcntl.RowFile(path).writing():
        assert path.read_bytes() == b""
