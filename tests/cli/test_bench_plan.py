"""A plan file is a command of the bench: the same runs, keys that are named when they are wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nodenova.bench import sweep as sweep_module
from nodenova.bench.plan import RunSpec
from nodenova.bench.rowfile import RowFile
from nodenova.bench.run import run_one
from nodenova.cli import app
from nodenova.cli.bench_plan import SHARED_KEYS, TABLE_KEYS, read_plan
from nodenova.errors import SettingError

ROOT = Path(__file__).parent.parent.parent
DATA = "synthetic:nodes=60,classes=4,words=40"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The command, its runs done here or, unless run=True, not at all; returns those it asked for.

    A text is written as the plan plan.toml.
    """
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, plan: str = "", run: bool = False) -> list[RunSpec]:
        asked: list[RunSpec] = []

        def here(todo: list[RunSpec], source: Any, rows: RowFile, jobs: int, on_event: Any) -> None:
            asked.extend(todo)
            for spec in todo if run else ():
                outcome = run_one(source.load(spec.plan.dataset), spec.plan, spec.seed)
                rows.append(replace(outcome.row, key=spec.key))

        monkeypatch.setattr(sweep_module, "sweep", here)
        words = ["bench", *arguments, "-q"]
        if plan:
            (tmp_path / "plan.toml").write_text(plan)
            words += ["--plan", "plan.toml"]
        result = CliRunner().invoke(app, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return asked

    return call


WHOLE = f"""
table = "comparison"
datasets = ["{DATA}"]
encoders = ["gcn", "sage"]
methods = ["sword"]
set = {{ epochs = 7, class_mean = true }}
seeds = [4]
num-old = 2
hidden = 8
setting = "inductive"
fit-set = ["dropout=0.25"]
fit-epochs = 3
out = "here"
"""
SAME = (
    "comparison", "--datasets", DATA, "--encoders", "gcn,sage", "--methods", "sword", "--set",
    "epochs=7", "--set", "class_mean=True", "--seeds", "4,", "--num-old", "2", "--hidden", "8",
    "--setting", "inductive", "--fit-set", "dropout=0.25", "--fit-epochs", "3", "--out", "there",
)  # fmt: skip


def test_a_plan_has_the_runs_of_the_command_with_these_options(bench, tmp_path: Path) -> None:
    planned = bench(plan=WHOLE)
    assert [spec.key for spec in planned] == [spec.key for spec in bench(*SAME)]
    assert len(planned) == 2  # one for each encoder
    assert {spec.seed for spec in planned} == {4}
    assert (tmp_path / "here").is_dir()


def test_every_option_that_decides_runs_is_a_key() -> None:
    import typer

    command = typer.main.get_command(app).commands["bench"]  # type: ignore[attr-defined]
    options = {max(p.opts, key=len).removeprefix("--") for p in command.params}
    assert options - {"plan", "ray", "retry", "write-only", "quiet"} == {*TABLE_KEYS, *SHARED_KEYS}


TWO = f"""
datasets = "{DATA}"
num-old = 2
encoders = "gcn"
seeds = 1

[[tables]]
table = "comparison"
methods = "never_new"

[[tables]]
table = "comparison"
methods = "frozen_kmeans"
set = {{ restarts = 3 }}

[[tables]]
table = "heads"
methods = "frozen_kmeans"
"""


def test_several_tables_are_one_sweep_that_is_resumed(bench, tmp_path: Path) -> None:
    specs = bench(plan=TWO, run=True)
    assert len(specs) == 3  # never_new, restarts=3, and the default
    assert bench(plan=TWO, run=True) == []
    text = (tmp_path / "results/comparison.md").read_text()
    assert "restarts=3" in text
    assert "never new" in text
    assert (tmp_path / "results/heads.md").is_file()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("heads",), "TABLE heads contradicts plan.toml, where table is comparison"),
        (("--seeds", "3"), r"--seeds 3 contradicts plan\.toml, where seeds is 4,"),
        (("--hidden", "16"), r"--hidden 16 contradicts plan\.toml, where hidden is 8"),
        (("--out", "x"), r"--out x contradicts plan\.toml, where out is here"),
        (("--set", "epochs=3"), "--set epochs=3 contradicts"),
        (("--encoders", "gat"), "--encoders gat contradicts"),
    ],
)
def test_an_option_that_contradicts_the_plan_is_refused(bench, options: Any, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        bench(*options, plan=WHOLE)


def test_an_option_that_agrees_or_adds_is_fine(bench, tmp_path: Path) -> None:
    same = [spec.key for spec in bench(plan=WHOLE)]
    agreed = bench("comparison", "--seeds", "4,", "--encoders", "gcn,sage", plan=WHOLE)
    assert [spec.key for spec in agreed] == same
    rest = WHOLE.replace('out = "here"', "").replace("seeds = [4]", "")
    assert {s.seed for s in bench("--seeds", "2", "--out", "mine", plan=rest)} == {0, 1}
    assert (tmp_path / "mine").is_dir()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('datset = "cora"', r"unknown key in plan\.toml: 'datset'; known: data-root, datasets"),
        ("seeds = 1.5", r"plan\.toml: seeds must be .*whole number.*, it is 1\.5"),
        ("seeds = 1979-05-27", r"plan\.toml: seeds must be"),
        ("encoders = []", r"plan\.toml: encoders must be a text or a list of at least 1 texts"),
        ("set = 3", r"plan\.toml: set must be"),
        ("seeds = 3", r"plan\.toml: table is missing"),
        ("seeds = ", r"plan\.toml: not readable as TOML"),
        ("tables = 3", r"plan\.toml: tables: it must be a list"),
        ("[[tables]]\njobs = 2", r"unknown key in plan\.toml: tables 1: 'jobs'"),
        ('table = "x"', "unknown table 'x'"),
        ('table = "heads"\nmethods = "nope"', "unknown method 'nope'"),
        ("a = " + "[" * 5000, r"plan\.toml: (lists or tables|not readable)"),
    ],
)
def test_a_wrong_plan_is_refused_by_its_key(bench, content: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        bench(plan=content)


def test_a_table_or_a_plan_is_needed(bench) -> None:
    with pytest.raises(SettingError, match="name a table, such as comparison, or give --plan"):
        bench()
    with pytest.raises(SettingError, match=r"nowhere\.toml: cannot be read"):
        bench("--plan", "nowhere.toml")


def test_the_plan_in_the_documentation_is_one() -> None:
    plan = read_plan(ROOT / "docs/plans/paper.toml", {})
    tables = [table["table"] for table in plan.tables]
    assert tables == ["comparison", "comparison", "ablation", "mixed"]
    assert plan.tables[2]["set"] == ["reading=printed"]
    assert plan.tables[3]["seeds"] == "0,1,2,3,4,"
    assert plan.shared == {"jobs": 2, "out": "results"}
