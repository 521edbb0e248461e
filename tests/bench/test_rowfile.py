"""Rows are appended whole, read back, and survive what can happen to a file."""

from __future__ import annotations

import errno
import gzip
import json
import os
from pathlib import Path

import pytest

from nodenova.bench.rowfile import RowFile, as_line
from nodenova.errors import StorageError
from tests.bench.rows import document, failed, row

A, B = row(seed=0), row(seed=1)


def lines(*rows: object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in rows)


def test_rows_come_back_as_they_were_one_line_each(tmp_path: Path) -> None:
    file = RowFile(tmp_path / "deep" / "rows.jsonl")
    assert file.read() == []
    named = row(seed=2, class_names=["é\n", "b", "c"])
    with file.writing():
        for each in (A, failed(seed=3), named):
            file.append(each)
    assert file.read() == [A, failed(seed=3), named]
    written = [json.loads(line) for line in file.path.read_text().splitlines()]
    assert [each["schema"] for each in written] == [2, 2, 2]
    assert [each["key"] for each in written] == [A.key, failed(seed=3).key, named.key]


def test_numbers_that_are_not_there_are_null(tmp_path: Path) -> None:
    file = RowFile(tmp_path / "rows.jsonl")
    file.append(row(settings={"eta": float("nan")}))
    assert json.loads(file.path.read_text())["settings"] == {"eta": None}
    assert file.read()[0].settings == {"eta": None}


def test_compressed_rows_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(as_line(A)))
    assert RowFile(path).read() == [A]
    path.write_bytes(b"not gzip")
    with pytest.raises(StorageError, match=r"rows.jsonl.gz: damaged, not readable as gzip"):
        RowFile(path).read()


def test_a_torn_last_line_is_a_run_under_way_and_is_cut_off_before_writing_goes_on(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(as_line(A) + as_line(B)[:40])
    file = RowFile(path)
    assert file.read() == [A]
    with file.writing():
        file.append(B)
    assert path.read_bytes() == as_line(A) + as_line(B)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"{broken\n", "line 2 is damaged, not readable as JSON"),
        (b"[1]\n", "line 2 is not a result row, it has no key"),
        (b'{"key": "a"}\n', "line 2 is not a result row, it has no dataset"),
        (
            lines(document(confusion=[[1, 2]])),
            "line 2 is a damaged result row: its confusion is not 3 × 3",
        ),
        (
            lines(document() | {"seed": "first"}),
            r"line 2 is a damaged result row \(invalid literal for int",
        ),
        (
            lines(document(schema=3)),
            "line 2 is a row of schema 3, but this version of nodenova reads schemas up to 2",
        ),
    ],
)
def test_damage_in_the_middle_is_named_and_nothing_is_written(
    tmp_path: Path, line: bytes, sentence: str
) -> None:
    path = tmp_path / "rows.jsonl"
    content = as_line(A) + line + as_line(B)
    path.write_bytes(content)
    with pytest.raises(StorageError, match=f"rows.jsonl: {sentence}"), RowFile(path).writing():
        pass
    assert path.read_bytes() == content


def test_a_second_writer_is_refused_and_the_lock_ends_with_the_first(tmp_path: Path) -> None:
    first, second = RowFile(tmp_path / "rows.jsonl"), RowFile(tmp_path / "rows.jsonl")
    with (
        first.writing(),
        pytest.raises(StorageError, match="another bench is writing there"),
        second.writing(),
    ):
        pass
    with second.writing():
        second.append(A)
    assert second.read() == [A]


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RowFile(tmp_path / "rows.jsonl")
    file.append(A)
    write, calls = os.write, 0

    def full(handle: int, content: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            return write(handle, content[:5])  # half of it still fits
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        file.append(B)
    monkeypatch.undo()
    assert file.path.read_bytes() == as_line(A)
