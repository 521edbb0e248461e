"""Open-world benches on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodenova import cli
from nodenova.bench.rowfile import RowFile
from nodenova.cli.app import app
from nodenova.cli.bench import ENCODERS, BenchOptions, open_world_specs
from nodenova.errors import SettingError
from nodenova.io import datasets

DATA = "synthetic:nodes=240,classes=4,words=40,homophily=0.9,topic_share=0.7"

OWN = """
from dataclasses import dataclass

import nodenova as nova


@dataclass(frozen=True)
class Mine:
    prefers = "prism"
    mixed = True

    def discover(self, model, task):
        assert task.mixed
        raise ValueError("no luck today")
"""


def call(folder: Path, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(
        app, ["bench", *arguments, "--datasets", DATA, "--seeds", "1", "--out", str(folder)]
    )
    return result.exit_code, result.output


def test_a_bench_is_run_written_and_gone_on_with(tmp_path: Path) -> None:
    code, said = call(tmp_path, "mixed", "--methods", "gcd")
    assert code == 0, said
    rows = RowFile(tmp_path / "rows.jsonl").read()
    assert [row.protocol for row in rows] == ["mixed-30", "mixed-50", "mixed-70", "mixed-95"]
    assert all(row.is_done for row in rows)
    table = (tmp_path / "mixed.md").read_text()
    assert "GCD's semi-supervised k-means †" in table
    assert "95% of the unlabelled are old" in table
    assert (tmp_path / "bench.html").is_file()
    code, _ = call(tmp_path, "mixed", "--methods", "gcd")
    assert code == 0
    assert RowFile(tmp_path / "rows.jsonl").read() == rows


def test_a_method_of_ones_own_takes_part_and_may_fail(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    code, said = call(tmp_path / "out", "stages", "--methods", f"{tmp_path / 'mine.py'}:Mine")
    assert code == 1
    assert "no luck today" in said
    (row,) = RowFile(tmp_path / "out/rows.jsonl").read()
    assert (row.status, row.protocol, row.method, row.handed) == (
        "failed",
        "stages",
        "Mine",
        "mixed",
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["pown", "--num-old", "2"], "--num-old cannot be changed for pown: its protocol fixes it"),
        (["mixed", "--set", "eta=1"], "--set cannot be changed for mixed"),
        (["pown", "--setting", "inductive"], "--setting cannot be changed for pown"),
        (
            ["mixed", "--setting", "blind"],
            "unknown setting 'blind'; known: inductive, transductive",
        ),
        (["openima", "--hidden", "64"], "--hidden cannot be changed for openima"),
        (["mixed", "--encoders", "gat"], "--encoders cannot be changed for mixed"),
        (["count", "--fit-set", "lr=1"], "--fit-set cannot be changed for count"),
        (["mixed", "--methods", "nobody", "--datasets", DATA], "unknown entrant 'nobody' of mixed"),
        (["pown", "--datasets", DATA], "POWN's graphs are cora, citeseer, photo, computers"),
        (
            ["openima", "--datasets", "citeseer", "--seeds", "11,12"],
            "OpenIMA's splits are 0..9, not 11",
        ),
        (["nothing"], "unknown table 'nothing'; known: ablation, all, cfc, class-splits"),
    ],
)
def test_what_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["nodenova", "bench", *arguments, "--out", str(tmp_path / "out")]
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def options(table: str, methods: str | None = None) -> BenchOptions:
    return BenchOptions(
        table, None, ENCODERS, methods, [], None, None, "paper", "paper", "transductive", [], None
    )


def test_a_bench_runs_on_its_graphs_that_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    from nodenova.bench.sweep import Source

    monkeypatch.delenv(datasets.DATA_ROOT, raising=False)
    specs = open_world_specs(options("openima", "gcd"), Source())
    assert {spec.plan.dataset for spec in specs} == {"citeseer"}
    assert [spec.plan.class_split for spec in specs] == list(range(10))
    with pytest.raises(
        SettingError, match=r"none of the graphs of gnnsafe \(cora, photo, cs\) is on"
    ):
        open_world_specs(options("gnnsafe"), Source())
