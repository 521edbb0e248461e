"""An encoder of one's own in the bench: its rows belong to its file."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

import nodenova as nova
from nodenova.bench.plan import Plan, RunSpec
from nodenova.bench.ray_sweep import attempts
from nodenova.bench.row import Row
from nodenova.bench.rowfile import RowFile
from nodenova.bench.runs import BenchConfig, runs_of
from nodenova.bench.sweep import Runner, RunOutcome, Source, sweep
from nodenova.bench.tables import TABLES
from nodenova.cli.bench import own_encoder_notes
from nodenova.encoders import registry
from tests.bench.rows import row
from tests.encoders.own import of_page

DATA = "synthetic:nodes=80,classes=4,words=40"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(of_page("mine.py"))


def specs(*more: tuple[str, object]) -> list[RunSpec]:
    settings = (("epochs", 2), *more)
    encoders, methods = ["gcn", "mine.py:Net"], [nova.Sword(epochs=2)]
    config = BenchConfig([(nova.load_dataset(DATA), 2)], encoders, methods, [0], settings)
    return runs_of("comparison", config)


def test_a_key_has_the_content_of_the_file_and_not_its_place() -> None:
    gcn, own = specs()
    assert own.plan.encoder_name == "Net"
    assert own.plan.to_json()["encoder"] == "mine.py:Net"
    Path("moved").mkdir()
    Path("moved/mine.py").write_text(of_page("mine.py"))
    assert replace(own, plan=replace(own.plan, encoder="moved/mine.py:Net")).key == own.key
    Path("mine.py").write_text(of_page("mine.py") + "# changed\n")
    again = specs()
    assert again[0].key == gcn.key
    assert again[1].key != own.key
    assert again[1].phase_1 != own.phase_1
    assert specs(("layers", 2))[1].key != again[1].key
    assert own.key == pickle.loads(pickle.dumps(own)).key


def test_a_class_that_was_registered_from_a_file_is_planned_by_its_file() -> None:
    registry.register_encoder("mine.py:Net")
    plan = Plan("cora", nova.Sword(), "Net", old=(0, 1), num_new=2)
    assert (plan.encoder, plan.encoder_name) == ("mine.py:Net", "Net")


def test_a_file_that_changes_while_a_bench_runs_is_a_failed_run() -> None:
    _, own = specs()
    done = Runner(Source()).attempt(own)
    assert (done.row.status, done.row.encoder) == ("done", "Net")
    Path("mine.py").write_text(of_page("mine.py") + "# changed\n")
    failed = Runner(Source()).attempt(own)
    assert failed.row.error == (
        "SettingError: mine.py:Net: the file has changed since the run was planned"
    )


def test_a_worker_of_a_cluster_runs_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    _, own = specs()
    content, place = pickle.dumps([own]), Path.cwd()
    alone = Runner(Source()).attempt(own).row
    monkeypatch.setattr(registry, "_OWN", {})
    monkeypatch.chdir("/")
    _, outcome = attempts(content, Source(), str(place))
    assert isinstance(outcome, RunOutcome)
    assert outcome.row.confusion == alone.confusion
    monkeypatch.chdir(place)
    Path("mine.py").unlink()
    _, outcome = attempts(content, Source(), str(place))
    assert outcome.row.error == (
        "SettingError: mine.py: cannot be read (No such file or directory)"
    )


@pytest.mark.slow
def test_processes_of_a_sweep_run_it() -> None:
    file, wanted = RowFile(Path("rows.jsonl")), specs()
    with file.writing():
        sweep(wanted, Source(), file, jobs=2)
    rows = {one.key: one for one in file.read()}
    assert [(rows[s.key].status, rows[s.key].encoder) for s in wanted] == [
        ("done", "gcn"), ("done", "Net"),
    ]  # fmt: skip
    assert own_encoder_notes(wanted) == []


def test_it_is_a_block_of_its_own_with_its_settings() -> None:
    def of(encoder: str, method: str = "sword", **fit: object) -> list[Row]:
        return [row(method, seed, encoder=encoder, fit_changed=fit) for seed in range(2)]

    rows = of("gcn") + of("Net") + of("Net", depth=3) + of("prism", "prism")
    found = [(line.group, line.labels[0]) for line in TABLES["comparison"](rows)[0].lines]
    assert found == [
        ("GCN", "SWORD"), ("GCN", "Prism (own encoder)"),
        ("Net", "SWORD"), ("Net", "SWORD, phase 1 depth=3"), ("Net", "Prism (own encoder)"),
    ]  # fmt: skip
    assert TABLES["ablation"](rows) == TABLES["ablation"](of("gcn") + of("Net"))
