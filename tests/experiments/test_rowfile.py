"""Rows are appended whole, read back, and survive what can happen to a file."""

from __future__ import annotations

import errno
import gzip
import json
import os
from pathlib import Path

import pytest

from nodenova.errors import StorageError
from nodenova.experiments.rowfile import RowFile


def test_rows_come_back_as_they_were_and_missing_numbers_are_null(tmp_path: Path) -> None:
    file = RowFile(tmp_path / "deep" / "rows.jsonl")
    assert file.read() == []
    with file.writing():
        file.append({"key": "a", "score": 1.5, "name": "é\n"})
        file.append({"key": "b", "score": float("nan")})
    assert file.read() == [{"key": "a", "score": 1.5, "name": "é\n"}, {"key": "b", "score": None}]


def test_compressed_rows_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"key": "a"}\n'))
    assert RowFile(path).read() == [{"key": "a"}]
    path.write_bytes(b"not gzip")
    with pytest.raises(StorageError, match=r"rows.jsonl.gz: damaged, not readable as gzip"):
        RowFile(path).read()


def test_a_torn_last_line_is_a_run_under_way_and_is_cut_off_before_writing_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "a"}\n{"key": "b", "sc')
    file = RowFile(path)
    assert file.read() == [{"key": "a"}]
    with file.writing():
        file.append({"key": "c"})
    assert path.read_text() == '{"key": "a"}\n{"key":"c"}\n'


@pytest.mark.parametrize(
    ("line", "sentence"),
    [("{broken", "line 2 is damaged, not readable as JSON"), ("[1]", "line 2 is not a result row, it has no key")],
)
def test_damage_in_the_middle_is_named_and_nothing_is_written(tmp_path: Path, line: str, sentence: str) -> None:
    path = tmp_path / "rows.jsonl"
    content = f'{{"key": "a"}}\n{line}\n{{"key": "b"}}\n'
    path.write_text(content)
    with pytest.raises(StorageError, match=sentence), RowFile(path).writing():
        pass
    assert path.read_text() == content


def test_a_second_writer_is_refused_and_the_lock_ends_with_the_first(tmp_path: Path) -> None:
    first, second = RowFile(tmp_path / "rows.jsonl"), RowFile(tmp_path / "rows.jsonl")
    with first.writing(), pytest.raises(StorageError, match="another bench is writing there"), second.writing():
        pass
    with second.writing():
        second.append({"key": "a"})


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RowFile(tmp_path / "rows.jsonl")
    file.append({"key": "a"})
    write, calls = os.write, 0

    def full(handle: int, content: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            return write(handle, content[:5])  # half of it still fits
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        file.append({"key": "b"})
    monkeypatch.undo()
    assert [json.loads(line) for line in file.path.read_text().splitlines()] == [{"key": "a"}]
