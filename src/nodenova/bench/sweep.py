"""Many runs on a few processes, into one row file.

Whatever dies, at most the run under way is lost.
"""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from nodenova.bench.row import Row
from nodenova.bench.rowfile import RowFile
from nodenova.bench.runs import RunSpec
from nodenova.bench.worker import Runner, Source, failed_row, kept
from nodenova.nn.seeding import fixed_threads

MAX_CRASHES = 2  # a run whose process dies this often has failed; once may have been an accident


@dataclass(frozen=True)
class Started:
    """A run is under way."""


@dataclass(frozen=True)
class Epoch:
    """So far is a phase, "fit" or "discover", of the run under way."""

    phase: str
    epoch: int
    epochs: int


@dataclass(frozen=True)
class Event:
    """What happened to a run.

    Attributes:
        spec: The run.
        worker: The number of the process it is in.
        what: A row ends it.
    """

    spec: RunSpec
    worker: int
    what: Started | Epoch | Row


def unfinished(specs: Iterable[RunSpec], rows: Iterable[Row], retry: bool = False) -> list[RunSpec]:
    """The runs without a row.

    Args:
        specs: The runs that are wanted.
        rows: Those there are; of two with one key the later counts.
        retry: Whether a run that failed is to be tried again; else it counts as finished.
    """
    last = {row.key: row for row in rows}
    ended = {key for key, row in last.items() if row.is_done or not retry}
    return [spec for spec in specs if spec.key not in ended]


def by_phase_1(specs: Iterable[RunSpec]) -> list[list[RunSpec]]:
    """Runs that share phase 1, together."""
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

    Phase 1 is done once for runs that share it. A process that dies is replaced.

    Args:
        specs: The runs.
        source: Where their datasets are.
        rows: Where the rows go; maps that are kept go into the folder maps beside it.
        jobs: How many processes at the same time.
        on_event: Called with whatever happens to a run.
    """
    groups = by_phase_1(specs)
    waiting = deque(groups)
    deaths: Counter[str] = Counter()
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < min(jobs, len(groups)):
                taken = {worker.number for worker in workers}
                number = next(n for n in range(jobs) if n not in taken)
                workers.append(_Worker(number, source, rows.path.parent / "maps"))
                workers[-1].give(waiting.popleft())
            for pipe in wait([worker.pipe for worker in workers]):
                worker = next(worker for worker in workers if worker.pipe is pipe)
                if not _listen(worker, rows, on_event):
                    _bury(worker, deaths, rows, on_event)
                    workers.remove(worker)
                    if worker.specs:
                        waiting.appendleft(worker.specs)
                elif not worker.specs and waiting:
                    worker.give(waiting.popleft())
                elif not worker.specs:
                    workers.remove(worker)
                    worker.stop()
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process, the pipe to it, and the runs it has still to do, the one under way first."""

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

    def give(self, specs: list[RunSpec]) -> None:
        self.specs = list(specs)
        # A process that is dead already is found so when it is listened to.
        with suppress(BrokenPipeError):
            self.pipe.send(specs)

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def _listen(worker: _Worker, rows: RowFile, on_event: Callable[[Event], None]) -> bool:
    """Take what a worker sent; False when it is dead, for then its end of the pipe is closed."""
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


def _bury(
    worker: _Worker, deaths: Counter[str], rows: RowFile, on_event: Callable[[Event], None]
) -> None:
    """A process died. Its run is tried again, and after that has failed.

    The others it had to do go on elsewhere.
    """
    worker.stop()
    spec = worker.specs[0]
    code = worker.process.exitcode or 0
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
    """A worker's life: take a group of runs, do one after the other, send what happens.

    Ends when the parent is gone.
    """
    # Ctrl-C goes to everybody in the terminal; the parent ends us.
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
                made = runner.attempt(spec, fitted)
                fitted = made.fitted
                pipe.send(kept(spec, made, maps))
