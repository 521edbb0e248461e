"""What `nodenova bench` tells its caller."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodenova.bench.rowfile import RowFile
from nodenova.cli.app import app

BROKEN = """
from dataclasses import dataclass

import nodenova as nova


@dataclass(frozen=True)
class Broken:
    def discover(self, model, task):
        raise ValueError("no luck today")
"""


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_failed_runs_are_said_and_the_others_are_in_the_table(
    tmp_path: Path, quiet: list[str]
) -> None:
    (tmp_path / "mine.py").write_text(BROKEN)
    options = [
        "--datasets",
        "synthetic:nodes=80,classes=4,words=40",
        "--encoders",
        "gcn",
        "--num-old",
        "2",
        "--seeds",
        "1",
    ]
    methods = ["--methods", f"never_new,{tmp_path / 'mine.py'}:Broken"]
    result = CliRunner().invoke(
        app,
        [
            "bench",
            "comparison",
            *options,
            *methods,
            "--fit-epochs",
            "3",
            "--out",
            str(tmp_path / "out"),
            *quiet,
        ],
    )
    assert result.exit_code == 1
    assert "no luck today" in result.stderr
    assert "1 of 2 runs failed" in result.stderr
    assert sorted(row.status for row in RowFile(tmp_path / "out/rows.jsonl").read()) == [
        "done",
        "failed",
    ]
    assert (tmp_path / "out/comparison.md").is_file()
