"""Without POSIX's locks and folders (Windows) the package imports, locks and saves all the same."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import nodenova as nova
from nodenova.bench import rowfile
from nodenova.errors import StorageError
from nodenova.files import atomic, folders

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
def without_fcntl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are locked as they are where there is no fcntl: a byte of the file, by msvcrt."""
    locked: dict[tuple[int, int], int] = {}

    def locking(handle: int, mode: int, count: int) -> None:
        assert (mode, count) == (2, 1)
        assert os.lseek(handle, 0, os.SEEK_CUR) == 1 << 30
        found = os.fstat(handle)
        holder = locked.setdefault((found.st_dev, found.st_ino), handle)
        if holder != handle and _is_open(holder):
            raise OSError(13, "Permission denied")

    module = ModuleType("msvcrt")
    module.locking, module.LK_NBLCK = locking, 2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "msvcrt", module)
    monkeypatch.setattr(atomic, "fcntl", None)


def _is_open(handle: int) -> bool:
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True


@pytest.mark.usefixtures("without_fcntl")
def test_without_posix_locks_a_second_writer_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    first, second = rowfile.RowFile(path), rowfile.RowFile(path)
    with first.writing(), pytest.raises(StorageError, match=r"process \d+ .* is writing there"):
        second.writing().__enter__()
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


@pytest.mark.usefixtures("without_fcntl")
def test_models_and_rows_are_saved_where_folders_cannot_be_opened(
    monkeypatch: pytest.MonkeyPatch, discovered: nova.Model, tmp_path: Path
) -> None:
    for module in (atomic, folders, rowfile):
        monkeypatch.setattr(module, "os", Windows())
    discovered.save(tmp_path / "m")
    assert nova.load_model(tmp_path / "m").classes == discovered.classes
    path = tmp_path / "rows.jsonl"
    path.write_text("torn")
    with rowfile.RowFile(path).writing():
        assert path.read_bytes() == b""
