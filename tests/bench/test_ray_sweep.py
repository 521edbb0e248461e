"""Many runs on a cluster whose processes and machines may be lost: nothing is lost or doubled."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import nodenova as nova
from nodenova.bench.plan import RunSpec
from nodenova.bench.ray_sweep import sweep_on_ray
from nodenova.bench.row import Row
from nodenova.bench.rowfile import RowFile
from nodenova.bench.run import run_one
from nodenova.bench.sweep import Event, Source, Started, unfinished
from nodenova.cluster.session import connect
from tests.bench.test_sweep import DATA, METHODS, lasting, specs
from tests.cluster.machines import Machines, two_machines

pytestmark = pytest.mark.slow  # Ray starts processes

WAITS = """
import time
import ray

@dataclass(frozen=True)
class Waits:
    def discover(self, model, task):
        machine = Path("MARK").with_name(ray.get_runtime_context().get_node_id())
        machine.touch()
        until = time.monotonic() + 60
        while not machine.with_suffix(".goes-on").exists() and time.monotonic() < until:
            time.sleep(0.01)
        return NeverNew().discover(model, task)
"""


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    with two_machines() as machines, connect(machines.address):
        yield machines


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    text = (METHODS + WAITS).replace("MARK", str(folder / "mark"))
    (folder / "own.py").write_text(text)
    return folder / "own.py"


def sweep_rows(
    wanted: list[RunSpec], folder: Path, on_event: Callable[[Event], None] = lambda event: None
) -> tuple[list[Row], list[Event]]:
    file = RowFile(folder / "rows.jsonl")
    events: list[Event] = []

    def take(event: Event) -> None:
        events.append(event)
        on_event(event)

    with file.writing():
        sweep_on_ray(unfinished(wanted, file.read()), Source(), file, on_event=take)
    rows = file.read()
    assert sorted(row.key for row in rows) == sorted(spec.key for spec in wanted)
    return rows, events


def alone(row: Row, wanted: list[RunSpec]) -> Row:
    """The row of the same run in this process."""
    (spec,) = [spec for spec in wanted if spec.key == row.key]
    made = run_one(nova.load_dataset(DATA), spec.plan, spec.seed).row
    return replace(made, key=row.key, seconds=row.seconds, commit=row.commit)


def test_rows_are_those_of_single_runs_whatever_process_dies_or_run_fails(
    machines: Machines, tmp_path: Path, own: Path
) -> None:
    wanted = specs(["never_new", f"{own}:Fails", "frozen_kmeans"])
    wanted += specs([f"{own}:Dies"], seeds=1) + specs([f"{own}:DiesOnce"], seeds=2)[1:]
    rows, events = sweep_rows(wanted, tmp_path)
    for row in rows:
        if row.method == "Fails":
            assert (row.status, row.error) == ("failed", "RuntimeError: no luck")
        elif row.method == "Dies":
            lost = "the process of this run, or its machine, was lost 2 times"
            assert (row.status, row.error) == ("failed", lost)
        else:
            assert row == alone(row, wanted)
    assert sum(isinstance(event.what, Row) for event in events) == len(rows)
    assert {event.worker for event in events} == {0, 1}


def test_a_stopped_sweep_keeps_its_rows_and_goes_on(machines: Machines, tmp_path: Path) -> None:
    wanted, file = specs(["never_new", "frozen_kmeans"]), RowFile(tmp_path / "rows.jsonl")

    def stop(event: Event) -> None:
        if isinstance(event.what, Row):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep_rows(wanted, tmp_path, stop)
    (kept,) = file.read()
    rows, events = sweep_rows(wanted, tmp_path)
    assert rows[0] == kept
    assert kept.key not in {event.spec.key for event in events}
    assert [lasting(row) for row in rows] == [lasting(alone(row, wanted)) for row in rows]


def test_maps_that_are_kept_are_written_by_this_process(machines: Machines, tmp_path: Path) -> None:
    file, [spec] = RowFile(tmp_path / "rows.jsonl"), specs(["never_new"], seeds=1)
    with file.writing():
        sweep_on_ray([replace(spec, keep_map=True)], Source(), file)
    [row] = file.read()
    assert (tmp_path / "maps" / str(row.map)).is_file()


def test_a_method_whose_file_a_machine_lacks_is_a_failed_run_that_says_so(
    machines: Machines, tmp_path: Path, own: Path
) -> None:
    copy = tmp_path / "gone.py"
    copy.write_text(own.read_text())
    file, wanted = RowFile(tmp_path / "rows.jsonl"), specs([f"{copy}:Fails"], seeds=1)
    copy.unlink()
    with file.writing():
        sweep_on_ray(wanted, Source(), file)
    [row] = file.read()
    assert row.error == f"SettingError: {copy}: cannot be read (No such file or directory)"


def test_runs_of_a_machine_that_is_lost_are_done_elsewhere(
    machines: Machines, tmp_path: Path, own: Path
) -> None:
    wanted, started = specs([f"{own}:Waits", "never_new"], seeds=2), []
    machine = machines.others[0]

    def lose(event: Event) -> None:
        if isinstance(event.what, Started):
            started.append(event.spec.key)
        if len(started) == 2 and machine in machines.others:
            # Runs wait for the loss, so each machine has one, and the lost one never ends its own.
            while not (own.parent / machine.node_id).exists():
                time.sleep(0.01)
            machines.lose(machine)
            head = machines.cluster.head_node
            (own.parent / f"{head.node_id}.goes-on").touch()

    try:
        rows, _ = sweep_rows(wanted, tmp_path, lose)
    finally:
        machines.add()
    assert machine not in machines.others
    assert all(row.is_done for row in rows)
    assert len(started) > len(rows)  # a run that was under way was begun again
    row = next(row for row in rows if row.method == "never_new")
    assert row == alone(row, wanted)


@pytest.mark.slow
def test_a_bench_on_a_cluster_that_is_stopped_goes_on_to_the_rows_of_plain_processes(
    machines: Machines, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "nodenova", "bench", "comparison", "--datasets", DATA]
    command += ["--encoders", "gcn", "--methods", "frozen_kmeans,never_new", "--num-old", "2"]
    command += ["--seeds", "6", "--fit-epochs", "400", "--quiet"]
    on_ray = [*command, "--ray", machines.address, "--out", str(tmp_path / "ray")]
    file = RowFile(tmp_path / "ray" / "rows.jsonl")
    process = subprocess.Popen(on_ray, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not file.read():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    before = file.read()
    assert process.returncode == 130
    assert re.search(r"stopped with \d+ of 18 runs done; the same command resumes", said)
    assert 0 < len(before) < 18
    subprocess.run(on_ray, check=True, timeout=120)
    subprocess.run([*command, "--jobs", "2", "--out", str(tmp_path / "plain")], check=True)
    assert file.read()[: len(before)] == before
    plain = RowFile(tmp_path / "plain" / "rows.jsonl").read()
    assert sorted(map(lasting, file.read())) == sorted(map(lasting, plain))
