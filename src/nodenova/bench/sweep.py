"""Many runs in a few processes, into one row file; a crash loses at most the run in progress."""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from nodenova.bench.embeddings import map_content
from nodenova.bench.plan import RunSpec
from nodenova.bench.row import Row
from nodenova.bench.rowfile import RowFile
from nodenova.bench.run import Phase1Result, fit_phase1, run_one
from nodenova.data.labels import LabelledGraph
from nodenova.files.atomic import write_atomically
from nodenova.io.datasets import load_dataset
from nodenova.io.load import load_graph
from nodenova.nn.seeding import fixed_threads
from nodenova.progress import Progress, no_progress

MAX_CRASHES = 2  # a run whose process dies this often has failed; once may have been an accident


@dataclass(frozen=True)
class Source:
    """Where a process finds a dataset by its name.

    Attributes:
        data_root: Folder with raw dataset files; None for the environment variable NODENOVA_DATA.
        split: Number of the published split, where there are several.

    Examples:
        >>> Source().load("synthetic:nodes=200,classes=4").graph.num_nodes
        200
    """

    data_root: str | None = None
    split: int = 0

    def load(self, name: str) -> LabelledGraph:
        """Load a file by its path, or a dataset by its name."""
        if Path(name).exists():
            return load_graph(name)
        return load_dataset(name, self.data_root, split=self.split)


@dataclass(frozen=True, eq=False)
class RunOutcome:
    """Row of a run, phase 1 for the next run that shares it, and the content of its map file."""

    row: Row
    fitted: Phase1Result | None
    map: bytes | None = None


class Runner:
    """Does runs one after the other, and keeps the graphs they are on."""

    def __init__(self, source: Source, progress: Progress = no_progress) -> None:
        self.source = source
        self.progress = progress
        self.graphs: dict[str, LabelledGraph] = {}

    def attempt(self, spec: RunSpec, fitted: Phase1Result | None = None) -> RunOutcome:
        """Do one run; `fitted` is its phase 1 if it was fitted before. An error is its result."""
        name, plan, seed = spec.plan.dataset, spec.plan, spec.seed
        try:
            if name not in self.graphs:
                self.graphs[name] = self.source.load(name)
            graph = self.graphs[name]
            fitted = fitted or fit_phase1(graph, plan, seed, self.progress)
            outcome = run_one(graph, plan, seed, self.progress, fitted)
            content = map_content(outcome) if spec.keep_map else None
            file_name = f"{spec.key}.npz" if spec.keep_map else None
            return RunOutcome(replace(outcome.row, key=spec.key, map=file_name), fitted, content)
        except Exception as error:  # the other runs go on
            return RunOutcome(failed_row(spec, f"{type(error).__name__}: {error}"), fitted)


def store_map(spec: RunSpec, outcome: RunOutcome, maps: Path) -> Row:
    """Write the map of a run into the folder `maps` and return its row, failed if that fails."""
    if outcome.map is not None:
        try:
            write_atomically(maps / str(outcome.row.map), outcome.map)
        except OSError as error:
            return failed_row(spec, f"{type(error).__name__}: {error}")
    return outcome.row


def failed_row(spec: RunSpec, error: str) -> Row:
    """Return the row of a run without a result."""
    return Row.of(spec.plan, spec.seed, spec.data, key=spec.key, status="failed", error=error)


@dataclass(frozen=True)
class Started:
    """A run has started."""


@dataclass(frozen=True)
class Epoch:
    """Progress of a phase of the run in progress."""

    phase: str
    epoch: int
    epochs: int


@dataclass(frozen=True)
class Event:
    """What happened to a run in the process with number `worker`; a row ends the run."""

    spec: RunSpec
    worker: int
    what: Started | Epoch | Row


def unfinished(specs: Iterable[RunSpec], rows: Iterable[Row], retry: bool = False) -> list[RunSpec]:
    """Return the runs without a row.

    Args:
        specs: Runs of a bench.
        rows: Rows that exist; of two with one key the later counts.
        retry: Whether to repeat failed runs; otherwise they count as finished.
    """
    last = {row.key: row for row in rows}
    ended = {key for key, row in last.items() if row.is_done or not retry}
    return [spec for spec in specs if spec.key not in ended]


def by_phase_1(specs: Iterable[RunSpec]) -> list[list[RunSpec]]:
    """Group the runs that share phase 1."""
    groups: dict[tuple[object, ...], list[RunSpec]] = {}
    for spec in specs:
        groups.setdefault(spec.phase_1, []).append(spec)
    return list(groups.values())


def sweep(
    specs: Sequence[RunSpec],
    source: Source,
    rows: RowFile,
    jobs: int = 1,
    on_event: Callable[[Event], None] = lambda event: None,
) -> None:
    """Run all of `specs` and append a row for each, failures too.

    Phase 1 is fitted once for runs that share it. A process that dies is replaced.

    Args:
        specs: Runs to do.
        source: Place of their datasets.
        rows: File for the rows; maps are written into the folder maps beside it.
        jobs: Number of processes.
        on_event: Called with every event of a run.
    """
    groups = by_phase_1(specs)
    waiting = deque(groups)
    deaths: Counter[str] = Counter()
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < min(jobs, len(groups)):
                busy = {worker.number for worker in workers}
                number = next(n for n in range(jobs) if n not in busy)
                workers.append(_Worker(number, source, rows.path.parent / "maps"))
                workers[-1].start(waiting.popleft())
            for pipe in wait([worker.pipe for worker in workers]):
                worker = next(worker for worker in workers if worker.pipe is pipe)
                if not _receive(worker, rows, on_event):
                    _handle_crash(worker, deaths, rows, on_event)
                    workers.remove(worker)
                    if worker.specs:
                        waiting.appendleft(worker.specs)
                elif not worker.specs and waiting:
                    worker.start(waiting.popleft())
                elif not worker.specs:
                    workers.remove(worker)
                    worker.stop()
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process, the pipe to it, and its remaining runs, the one in progress first."""

    def __init__(self, number: int, source: Source, maps: Path) -> None:
        context = get_context("spawn")
        self.number = number
        self.specs: list[RunSpec] = []
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=work, args=(theirs, os.getpid(), source, maps), daemon=True
        )
        self.process.start()
        theirs.close()

    def start(self, specs: list[RunSpec]) -> None:
        self.specs = list(specs)
        # A process that is already dead is noticed when its pipe is read.
        with suppress(BrokenPipeError):
            self.pipe.send(specs)

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def _receive(worker: _Worker, rows: RowFile, on_event: Callable[[Event], None]) -> bool:
    """Handle a message of a worker; return False when its end of the pipe is closed: it died."""
    try:
        what: Started | Epoch | Row = worker.pipe.recv()
    except (EOFError, ConnectionResetError):
        return False
    spec = worker.specs[0]
    if isinstance(what, Row):
        rows.append(what)
        worker.specs.pop(0)
    on_event(Event(spec, worker.number, what))
    return True


def _handle_crash(
    worker: _Worker, deaths: Counter[str], rows: RowFile, on_event: Callable[[Event], None]
) -> None:
    """Stop a dead process; its run has failed after two crashes, the others go to a new process."""
    worker.stop()
    spec, code = worker.specs[0], worker.process.exitcode or 0
    deaths[spec.key] += 1
    if deaths[spec.key] >= MAX_CRASHES:
        how = f"ended with exit code {code}"
        if code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        row = failed_row(spec, f"the process of this run {how}, {MAX_CRASHES} times")
        rows.append(row)
        worker.specs.pop(0)
        on_event(Event(spec, worker.number, row))


@fixed_threads(1)  # the others have cores of their own
def work(pipe: Connection, parent: int, source: Source, maps: Path) -> None:
    """Do groups of runs and send what happens, until the parent is gone."""
    # Ctrl-C goes to every process of the terminal; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def send_progress(phase: str, done: float, total: float = 1.0, /, **losses: float) -> None:
        if done and (done % 20 == 0 or done == total):
            if os.getppid() != parent:
                os._exit(1)
            pipe.send(Epoch(phase, int(done), int(total)))

    runner = Runner(source, send_progress)
    with suppress(EOFError, BrokenPipeError):  # the parent is gone
        while True:
            fitted = None
            for spec in pipe.recv():
                pipe.send(Started())
                outcome = runner.attempt(spec, fitted)
                fitted = outcome.fitted
                pipe.send(store_map(spec, outcome, maps))
