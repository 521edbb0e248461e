"""Rows are appended whole, read back, and survive what can happen to a file."""

from __future__ import annotations

import errno
import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

import nodenova as nova
from nodenova.bench.registry import ALL_METHODS
from nodenova.bench.rowfile import RowFile, as_line
from nodenova.bench.runs import BenchConfig, open_world_runs, runs_of
from nodenova.bench.sweep import unfinished
from nodenova.errors import StorageError
from tests.bench.rows import document, failed, row

ROOT = Path(__file__).parent.parent.parent
COMMITTED = ROOT / "results/bench.jsonl.gz"
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
        (b"{broken\n", "line 2: damaged, not readable as JSON"),
        (b"[1]\n", "line 2 is not a result row, it has no key"),
        (b'{"key": "a"}\n', "line 2: not a result row, it has no dataset"),
        (
            lines(document(confusion=[[1, 2]])),
            "line 2: a damaged result row: its confusion is not 3 × 3",
        ),
        (
            lines(document() | {"seed": "first"}),
            r"line 2: a result row: damaged, seed must be a whole number, it is",
        ),
        (
            lines(document(schema=3)),
            "line 2: a row of schema 3, but this version of nodenova reads schemas up to 2",
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
        pytest.raises(StorageError, match=rf"process {os.getpid()} \(.*\) is writing there"),
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


# No run twice


def test_a_finished_run_is_not_appended_again_but_a_failed_one_may_be(tmp_path: Path) -> None:
    file = RowFile(tmp_path / "rows.jsonl")
    with file.writing():
        file.append(failed(seed=0))
        file.append(A)
        with pytest.raises(StorageError, match=r"rows.jsonl: the run .*seed 0\) is already there"):
            file.append(A)
    with pytest.raises(StorageError, match="is already there"):
        file.append(failed(seed=0))
    assert file.read() == [failed(seed=0), A]


def test_a_line_that_repeats_a_finished_run_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(as_line(A) + as_line(B) + as_line(A))
    with pytest.raises(StorageError, match=r"line 3 repeats the finished run of line 1"):
        RowFile(path).read()


def test_one_run_under_two_keys_of_earlier_versions_counts_once(tmp_path: Path) -> None:
    """The row under the key of today counts, wherever it stands; else the later one."""
    whole = next(row for row in RowFile(COMMITTED).read() if row.method == "sword")
    path = tmp_path / "rows.jsonl"
    older = [replace(whole, key=f"older-{i}", commit=str(i)) for i in range(2)]
    path.write_bytes(b"".join(map(as_line, older)))
    assert RowFile(path).read() == [replace(older[1], key=whole.key)]
    path.write_bytes(b"".join(map(as_line, [older[0], whole, older[1]])))
    assert RowFile(path).read() == [whole]


def test_committed_rows_are_the_rows_of_the_runs_planned_today() -> None:
    """A bench on top of the committed rows runs nothing that has a row."""
    rows = RowFile(COMMITTED).read()
    assert len({row.key for row in rows}) == len(rows)
    graph = replace(nova.load_dataset("citeseer"), name="citeseer")
    methods = [kind() for kind in ALL_METHODS.values()]
    config = BenchConfig([(graph, 4)], ["gcn", "sage"], methods, list(range(10)))
    for table in ("comparison", "settings", "forgetting", "heads"):
        assert unfinished(runs_of(table, config), rows) == [], table
    sword = replace(config, encoders=["gcn"], methods=[nova.Sword()])
    assert unfinished(runs_of("ablation", sword), rows) == []
    assert unfinished(runs_of("sensitivity", replace(sword, seeds=range(5))), rows) == []
    drawn = replace(sword, methods=[nova.Prism(), nova.Sword(), nova.FrozenKMeans()])
    assert unfinished(runs_of("class-splits", drawn), rows) == []
    hidden = replace(drawn, seeds=range(5), visibility="inductive")
    assert unfinished(runs_of("comparison", replace(hidden, methods=[nova.Sword()])), rows) == []
    released = replace(sword, encoders=["gat"], seeds=range(5), schedule="released")
    assert unfinished(runs_of("comparison", released), rows) == []


def test_committed_open_world_rows_are_found_too() -> None:
    rows = RowFile(ROOT / "results/league.jsonl.gz").read()
    graph = replace(nova.load_dataset("citeseer"), name="citeseer")
    specs = open_world_runs("pown", [graph], ["prism", "gcd", "all-new"], range(5))
    assert specs
    there = {row.key for row in rows if (row.protocol, row.dataset) == ("pown", "citeseer")}
    assert there <= {spec.key for spec in specs}
    assert len(there) > 10
