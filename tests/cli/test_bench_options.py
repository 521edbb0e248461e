"""What the options of `nodenova bench` make of a table's runs, and what they refuse."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova import cli
from nodenova.bench import plan as plan_module
from nodenova.bench import sweep as sweep_module
from nodenova.bench.plan import RunSpec
from nodenova.bench.rowfile import RowFile
from nodenova.bench.run import Phase1Result, fit_phase1, run_one
from nodenova.bench.runs import ABLATION, LAYERS, SENSITIVITY

DATA = "synthetic:nodes=60,classes=4,words=40"
SMALL = ["--datasets", DATA, "--encoders", "gcn", "--num-old", "2", "--seeds", "1", "--quiet"]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The command with its runs done here and now, or, unless run=True, not at all.

    Returns the runs it asked for.
    """

    def call(*arguments: str, run: bool = False) -> list[RunSpec]:
        specs: list[RunSpec] = []

        def here(todo: list[RunSpec], source: Any, rows: RowFile, jobs: int, on_event: Any) -> None:
            specs.extend(todo)
            fitted: dict[object, Phase1Result] = {}
            for spec in todo if run else ():
                graph = source.load(spec.plan.dataset)
                if spec.phase_1 not in fitted:
                    fitted[spec.phase_1] = fit_phase1(graph, spec.plan, spec.seed)
                outcome = run_one(graph, spec.plan, spec.seed, fitted=fitted[spec.phase_1])
                rows.append(replace(outcome.row, key=spec.key))

        monkeypatch.setattr(sweep_module, "sweep", here)
        result = CliRunner().invoke(
            cli.app,
            ["bench", *arguments, *SMALL, "--out", str(tmp_path / "out")],
            catch_exceptions=False,
        )
        assert result.exit_code == 0, result.output
        return specs

    return call


def test_hidden_schedule_and_visibility_reach_every_run(bench) -> None:
    plain = bench("comparison", "--methods", "sword,prism")
    assert {(cell.plan.fit_settings, cell.plan.visibility) for cell in plain} == {
        ((), "transductive")
    }
    wide = bench(
        "comparison", "--methods", "sword,prism", "--hidden", "64", "--setting", "inductive"
    )
    assert {
        cell.plan.method_name: (dict(cell.plan.fit_settings), cell.plan.visibility) for cell in wide
    } == {
        "sword": ({"hidden": 64}, "inductive"),
        "prism": ({}, "inductive"),
    }
    assert not {cell.key for cell in plain} & {cell.key for cell in wide}
    assert [
        cell.key for cell in bench("comparison", "--methods", "sword,prism", "--hidden", "paper")
    ] == [cell.key for cell in plain]


def test_settings_of_phase_1_reach_every_run_that_trains(bench) -> None:
    cells = bench(
        "comparison",
        "--methods",
        "sword,prism",
        "--fit-set",
        "head=cosine",
        "--fit-set",
        "weight_decay=0.002",
    )
    assert {cell.plan.method_name: dict(cell.plan.fit_settings) for cell in cells} == {
        "sword": {"head": "cosine", "weight_decay": 0.002},
        "prism": {},
    }
    both = bench("layers", "--fit-set", "dropout=0.3", "--hidden", "8")
    assert {
        (dict(cell.plan.fit_settings)["dropout"], dict(cell.plan.fit_settings)["hidden"])
        for cell in both
    } == {(0.3, 8)}


@pytest.mark.parametrize(
    ("table", "runs"),
    [
        ("ablation", len(ABLATION)),
        ("sensitivity", sum(map(len, SENSITIVITY.values())) - len(SENSITIVITY) + 1),
        ("layers", len(LAYERS)),
    ],
)
def test_set_and_hidden_are_on_top_of_what_a_table_of_sword_varies(
    bench, table: str, runs: int
) -> None:
    cells = bench(table, "--set", "reading=printed", "--set", "draws=7", "--hidden", "8")
    assert len(cells) == runs
    assert {cell.plan.method_name for cell in cells} == {"sword"}
    for cell in cells:
        printed = dict(nova.Sword.READINGS["printed"]) | {"draws": 7}
        assert printed.items() <= asdict(cell.plan.method).items()
        assert dict(cell.plan.fit_settings)["hidden"] == 8
    assert len({(cell.plan.method, cell.plan.fit_settings) for cell in cells}) == runs
    assert not {cell.key for cell in cells} & {cell.key for cell in bench(table)}


def test_a_setting_that_the_table_varies_is_varied(bench) -> None:
    values = {cell.plan.method.eta for cell in bench("sensitivity", "--set", "eta=0.3")}
    assert values == {0.3, *SENSITIVITY["eta"]}


def test_epochs_that_were_asked_for_stand_over_the_released_schedule(
    bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they are what SWORD has by default."""
    monkeypatch.setitem(plan_module.RELEASED_FIT, (DATA, "gcn"), {"epochs": 3})
    monkeypatch.setitem(plan_module.RELEASED_EPOCHS, (DATA, "gcn"), 2)
    options = ["comparison", "--methods", "sword", "--schedule", "released"]
    assert [cell.plan.method for cell in bench(*options)] == [nova.Sword(epochs=2)]
    assert [cell.plan.method for cell in bench(*options, "--set", "eta=0.3")] == [
        nova.Sword(epochs=2, eta=0.3)
    ]
    assert [cell.plan.method for cell in bench(*options, "--set", "epochs=600")] == [nova.Sword()]


def test_an_ablation_with_set_and_hidden_has_its_own_block_in_the_table(
    bench, tmp_path: Path
) -> None:
    bench("ablation", "--set", "epochs=2", "--set", "draws=7", "--hidden", "8", run=True)
    rows = RowFile(tmp_path / "out/rows.jsonl").read()
    assert {
        (row.changed["epochs"], row.changed["draws"], row.fit_changed["hidden"]) for row in rows
    } == {(2, 7, 8)}
    text = (tmp_path / "out/ablation.md").read_text()
    assert "GCN, epochs=2, draws=7" in text


def test_a_comparison_with_set_shows_its_runs_as_lines_of_their_own(bench, tmp_path: Path) -> None:
    options = ["comparison", "--methods", "sword"]
    bench(*options, "--set", "epochs=2", "--set", "draws=7", run=True)
    for name in ("comparison.md", "comparison.csv", "bench.html"):
        assert "SWORD, epochs=2, draws=7" in (tmp_path / "out" / name).read_text(), name
    bench(*options)
    assert "draws=7" not in (tmp_path / "out/comparison.md").read_text()
    bench("ablation", "--set", "epochs=2", "--set", "draws=7", run=True)
    page = (tmp_path / "out/bench.html").read_text()
    assert (
        "SWORD, epochs=2, draws=7" not in page
    )  # that row is the ablation's, in a block of its own
    assert "GCN, epochs=2, draws=7" in page


def test_induced_runs_are_in_a_table_of_their_own(bench, tmp_path: Path) -> None:
    bench("comparison", "--methods", "never_new", run=True)
    assert "inductive" not in (tmp_path / "out/comparison.md").read_text()
    bench("comparison", "--methods", "never_new", "--setting", "inductive", run=True)
    first, _, third = (
        (tmp_path / "out/comparison.md").read_text().partition("Comparison, inductive")
    )
    assert "never new" in first
    assert "never new" in third
    rows = RowFile(tmp_path / "out/rows.jsonl").read()
    assert [row.visibility for row in rows] == ["transductive", "inductive"]
    assert nova.load_dataset(DATA).fingerprint() == rows[0].data


@pytest.mark.parametrize("table", ["collapse", "settings"])
def test_the_newer_tables_are_run_and_written(bench, table: str, tmp_path: Path) -> None:
    cells = bench(table, "--methods", "never_new,prism", run=True)
    assert {cell.plan.method_name for cell in cells} == {"never_new", "prism"}
    text = (tmp_path / f"out/{table}.md").read_text()
    assert "never new (floor)" in text
    assert "Prism (own encoder)" in text


def refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    *arguments: str,
) -> str:
    monkeypatch.setattr(
        sys, "argv", ["nodenova", "bench", *arguments, "--out", str(folder / "out")]
    )
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert not (folder / "out").exists()
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    return said[0]


NAMES_OTHERS = "--set is a setting of SWORD in {}; leave --methods out"
ONE_METHOD = "--set is for one method: name it with --methods, in a table other than all"
HIDDEN = "--hidden must be a number of dimensions or paper, it is {!r}"
NO_SCHEDULE = (
    f"there is no released schedule for {DATA} with gcn; there is one for cora, citeseer, pubmed"
)
REFUSED = [
    (["ablation", "--methods", "dtc", "--set", "eta=1"], NAMES_OTHERS.format("ablation")),
    (["layers", "--methods", "sword,dtc", "--set", "eta=1"], NAMES_OTHERS.format("layers")),
    (["comparison", "--set", "eta=1"], ONE_METHOD),
    (["all", "--methods", "sword", "--set", "eta=1"], ONE_METHOD),
    (
        ["sensitivity", "--set", "reading=mine"],
        "unknown reading of sword 'mine'; known: printed, released",
    ),
    (["ablation", "--set", "eta"], "--set takes name=value, not 'eta'"),
    (["ablation", "--set", "gamma=1"], "unknown setting of sword 'gamma'; known: alpha1"),
    *(
        (["comparison", "--hidden", text], HIDDEN.format(text))
        for text in ("many", "0", "1.5", "²")
    ),
    (["comparison", "--hidden", "70000"], "hidden must lie in 1..65536, it is 70000"),
    (
        ["comparison", "--fit-set", "hidden=8"],
        "--fit-set hidden=…: use --hidden for the size of the representation",
    ),
    (["comparison", "--fit-set", "head"], "--fit-set takes name=value, not 'head'"),
    (["comparison", "--fit-set", "head=odd"], "unknown head 'odd'; known: cosine, linear"),
    (["comparison", "--fit-set", "eta=1"], "unknown setting of fit 'eta'; known: attention"),
    (["comparison", "--setting", "seen"], "unknown setting 'seen'; known: inductive, transductive"),
    (["comparison", "--schedule", "mine"], "unknown schedule 'mine'; known: paper, released"),
    (["comparison", "--schedule", "released"], NO_SCHEDULE),
    (
        ["comparison", "--encoders", "prism"],
        "--encoders takes gcn, gat and sage; methods that prefer prism run on it",
    ),
    (["collaps"], "unknown table 'collaps'; known: ablation, all, cfc, class-splits, closed"),
]


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED)
def test_what_is_refused(
    monkeypatch, capsys, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    data = [option for option in SMALL if option != "--quiet"]
    given = [*data[:2], *data[4:]] if "--encoders" in arguments else data
    assert sentence in refused(monkeypatch, capsys, tmp_path, *arguments, *given)
