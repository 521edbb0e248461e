"""Many runs in processes that may die: nothing is lost, nothing is run twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import nodenova as nova
from nodenova.bench.plan import RunSpec
from nodenova.bench.registry import get_method
from nodenova.bench.row import Row
from nodenova.bench.rowfile import RowFile
from nodenova.bench.run import run_one
from nodenova.bench.runs import BenchConfig, runs_of
from nodenova.bench.sweep import Epoch, Event, Source, sweep, unfinished

DATA = "synthetic:nodes=80,classes=4,words=40"
METHODS = """
import os, signal
from dataclasses import dataclass
from pathlib import Path
from nodenova.methods.never_new import NeverNew

@dataclass(frozen=True)
class Fails:
    def discover(self, model, task):
        raise RuntimeError("no luck")

@dataclass(frozen=True)
class DiesOnce:
    mark: str = "MARK"
    def discover(self, model, task):
        if not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return NeverNew().discover(model, task)

@dataclass(frozen=True)
class Dies:
    def discover(self, model, task):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def specs(methods: list[str], seeds: int = 2) -> list[RunSpec]:
    graph = nova.load_dataset(DATA)
    values = [get_method(name, {}) for name in methods]
    config = BenchConfig([(graph, 2)], ["gcn"], values, range(seeds), (("epochs", 5),))
    return runs_of("comparison", config)


def lasting(row: Row) -> str:
    """A row without what differs from run to run.

    How long it took, and whether somebody commits meanwhile.
    """
    return json.dumps(
        {key: value for key, value in row.to_json().items() if key not in ("seconds", "commit")},
        sort_keys=True,
    )


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.py").write_text(METHODS.replace("MARK", str(folder / "mark")))
    return folder / "own.py"


@pytest.mark.slow
def test_rows_are_those_of_single_runs_whatever_dies_or_fails_on_the_way(
    tmp_path: Path, own: Path
) -> None:
    file = RowFile(tmp_path / "rows.jsonl")
    names = ["never_new", f"{own}:Fails", f"{own}:DiesOnce", f"{own}:Dies", "frozen_kmeans"]
    wanted = specs(names)
    events: list[Event] = []
    with file.writing():
        sweep(wanted, Source(), file, jobs=2, on_event=events.append)
    rows = {row.key: row for row in file.read()}
    assert len(file.read()) == len(rows) == len(wanted)
    for spec in wanted:
        row, method = rows[spec.key], spec.plan.method_name
        assert row.method == method
        if method == "Fails":
            assert (row.status, row.error) == ("failed", "RuntimeError: no luck")
        elif method == "Dies":
            assert row.is_failed
            assert row.error == "the process of this run was killed by SIGKILL, 2 times"
        else:
            alone = run_one(nova.load_dataset(DATA), spec.plan, spec.seed).row
            assert replace(row, key="", seconds=alone.seconds, commit=alone.commit) == alone
    assert sum(isinstance(event.what, Row) for event in events) == len(wanted)
    assert {event.what.epochs for event in events if isinstance(event.what, Epoch)} == {5}
    assert unfinished(wanted, file.read()) == []
    again = unfinished(wanted, file.read(), retry=True)
    assert {spec.plan.method_name for spec in again} == {"Fails", "Dies"}


def test_maps_are_kept_for_runs_that_ask_for_them(tmp_path: Path) -> None:
    file, [spec] = RowFile(tmp_path / "rows.jsonl"), specs(["never_new"], seeds=1)
    with file.writing():
        sweep([replace(spec, keep_map=True)], Source(), file)
    [row] = file.read()
    assert (tmp_path / "maps" / str(row.map)).is_file()


def bench(folder: Path, seeds: int) -> list[str]:
    options = [
        "--datasets",
        DATA,
        "--encoders",
        "gcn",
        "--methods",
        "frozen_kmeans,never_new,prism",
        "--num-old",
        "2",
    ]
    where = [
        "--seeds",
        str(seeds),
        "--fit-epochs",
        "5",
        "--jobs",
        "2",
        "--out",
        str(folder),
        "--quiet",
    ]
    return [sys.executable, "-m", "nodenova", "bench", "comparison", *options, *where]


@pytest.mark.slow
@pytest.mark.parametrize("kills", [2, 6])
def test_killed_at_random_moments_and_resumed_the_rows_are_those_of_an_undisturbed_run(
    tmp_path: Path, kills: int
) -> None:
    rng, seeds = random.Random(kills), max(kills, 4)
    subprocess.run(bench(tmp_path / "calm", seeds), check=True, timeout=300)
    calm = [lasting(row) for row in RowFile(tmp_path / "calm" / "rows.jsonl").read()]
    start = time.monotonic()
    subprocess.run(bench(tmp_path / "timed", seeds), check=True, timeout=300)
    whole = time.monotonic() - start
    rough, killed = tmp_path / "rough", 0
    while killed < kills:
        process = subprocess.Popen(bench(rough, seeds), start_new_session=True)
        try:
            process.wait(timeout=rng.uniform(0.1, 1.0) * whole)
            # It was done before its moment came: there is less to do, or the machine is faster now.
            whole *= 0.8
        except subprocess.TimeoutExpired:
            killed += 1
            # Now and then only the parent dies, and its workers must find out for themselves.
            (os.killpg if rng.random() < 0.7 else os.kill)(process.pid, signal.SIGKILL)
            process.wait()
    subprocess.run(bench(rough, seeds), check=True, timeout=300)
    assert sorted(lasting(row) for row in RowFile(rough / "rows.jsonl").read()) == sorted(calm)
