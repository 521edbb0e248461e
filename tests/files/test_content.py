"""Files that are opened to be read: a pipe, a device or a folder is refused at once."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import NodenovaError, StorageError
from nodenova.files.content import open_file
from nodenova.files.documents import parse_json, read_columns, read_json, read_lines
from nodenova.methods import get_method

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe.json")
    return tmp_path / "pipe.json"


@pytest.mark.parametrize(
    "read",
    [
        read_json,
        read_lines,
        lambda path: read_columns(path, {}),
        lambda path: open_file(path, StorageError),
    ],
)
def test_a_pipe_is_refused(read: object, pipe: Path) -> None:
    assert callable(read)
    with pytest.raises(StorageError, match="a folder, a pipe or a device"):
        read(pipe)


@pytest.mark.parametrize(
    "name", ["n.csv", "n.json", "n.jsonl", "n.parquet", "n.csv.gz", "g.npz", "g.gml", "e.txt"]
)
def test_a_pipe_or_a_device_is_no_graph(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(NodenovaError, match=r"pipe|no such file"):
        nova.load_graph(tmp_path / name)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(NodenovaError, match=r"device|no such file"):
        nova.load_graph(tmp_path / name)


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 300])
def test_what_is_no_file_has_one_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        open_file(tmp_path / name, StorageError)


def test_a_key_that_is_there_twice_is_found_among_many() -> None:
    keys = "".join(f'"k{number}": 0, ' for number in range(200_000))
    with pytest.raises(StorageError, match="'twice' is there twice"):
        parse_json("{" + keys + '"twice": 1, "twice": 2}', "model.json")


def test_a_small_file_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python makes room for as many bytes as are asked for."""
    (tmp_path / "rows.jsonl").write_bytes(b"{}\n")
    asked = []
    fdopen = os.fdopen

    class Watched:
        def __init__(self, handle: int, mode: str) -> None:
            self._file = fdopen(handle, mode)

        def __enter__(self) -> Watched:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def fileno(self) -> int:
            return self._file.fileno()

        def read(self, size: int) -> bytes:
            asked.append(size)
            return self._file.read(size)

    monkeypatch.setattr(os, "fdopen", Watched)
    assert read_lines(tmp_path / "rows.jsonl") == [b"{}", b""]
    assert asked == [3]


def test_a_method_is_not_read_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.py")
    with pytest.raises(NodenovaError, match="a folder, a pipe or a device"):
        get_method(f"{tmp_path / 'mine.py'}:Mine", {})


def test_half_precision_class_numbers_have_no_warning(tmp_path: Path) -> None:
    x, edges = np.eye(3, dtype=np.float32), np.array([[0, 1], [1, 2]])
    np.savez(tmp_path / "g.npz", x=x, edge_index=edges, y=np.array([0, 1, -1], np.float16))
    assert nova.load_graph(tmp_path / "g.npz").y.tolist() == [0, 1, -1]
