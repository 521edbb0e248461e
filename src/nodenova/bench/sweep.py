"""Many runs on a few processes, into one row file. Whatever dies, at most the run under way is lost."""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from nodenova.bench import schedules
from nodenova.bench.grid import RunSpec
from nodenova.bench.maps import write_map
from nodenova.bench.row import Row, frozen_settings
from nodenova.bench.rowfile import RowFile
from nodenova.bench.run import Fitted, learn, run_one
from nodenova.data.labels import LabelledGraph
from nodenova.evaluation.provenance import commit, versions
from nodenova.io.datasets import load_dataset
from nodenova.io.load import load_graph
from nodenova.nn.training import Watcher

MAX_CRASHES = 2  # a run whose process dies this often has failed; once may have been an accident


@dataclass(frozen=True)
class Source:
    """Where a process finds a dataset again by its name."""

    data_root: str | None = None
    split: int = 0

    def load(self, name: str) -> LabelledGraph:
        return (
            load_graph(name)
            if Path(name).exists()
            else load_dataset(name, self.data_root, split=self.split)
        )


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
    """What happened to a run, and in which process; a row ends it."""

    cell: RunSpec
    worker: int
    what: Started | Epoch | Row


def unfinished(cells: Iterable[RunSpec], rows: Iterable[Row], retry: bool = False) -> list[RunSpec]:
    """The cells without a row. A failed one counts as finished unless it is to be tried again."""
    last = {row.key: row for row in rows}
    ended = {key for key, row in last.items() if row.is_done or not retry}
    return [cell for cell in cells if cell.key not in ended]


def sweep(
    cells: Sequence[RunSpec],
    source: Source,
    rows: RowFile,
    jobs: int = 1,
    collect: Callable[[Event], None] = lambda news: None,
) -> None:
    """Run `cells` and append a row for each, failures too. Phase 1 is done once for cells that share it."""
    groups: dict[tuple[object, ...], list[RunSpec]] = {}
    for cell in cells:
        groups.setdefault(cell.phase_1, []).append(cell)
    waiting = deque(groups.values())
    deaths: Counter[str] = Counter()
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < min(jobs, len(groups)):
                number = next(
                    n for n in range(jobs) if n not in {worker.number for worker in workers}
                )
                workers.append(_Worker(number, source, rows.path.parent / "maps"))
                workers[-1].give(waiting.popleft())
            for pipe in wait([worker.pipe for worker in workers]):
                worker = next(worker for worker in workers if worker.pipe is pipe)
                if not _listen(worker, rows, collect):
                    _bury(worker, deaths, rows, collect)
                    workers.remove(worker)
                    if worker.cells:
                        waiting.appendleft(worker.cells)
                elif not worker.cells and waiting:
                    worker.give(waiting.popleft())
                elif not worker.cells:
                    workers.remove(worker)
                    worker.stop()
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process, the pipe to it, and the cells it has still to do, the one under way first."""

    def __init__(self, number: int, source: Source, maps: Path) -> None:
        context = get_context("spawn")
        self.number, self.cells = number, list[RunSpec]()
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=work, args=(theirs, os.getpid(), source, maps), daemon=True
        )
        self.process.start()
        theirs.close()

    def give(self, cells: list[RunSpec]) -> None:
        self.cells = list(cells)
        with suppress(
            BrokenPipeError
        ):  # it is dead already, and is found so when it is listened to
            self.pipe.send(cells)

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def _listen(worker: _Worker, rows: RowFile, collect: Callable[[Event], None]) -> bool:
    """Take what a worker sent; False when it is dead, for then its end of the pipe is closed."""
    try:
        what: Started | Epoch | Row = worker.pipe.recv()
    except (EOFError, ConnectionResetError):
        return False
    cell = worker.cells[0]
    if isinstance(what, Row):
        rows.append(what)
        worker.cells.pop(0)
    collect(Event(cell, worker.number, what))
    return True


def _bury(
    worker: _Worker, deaths: Counter[str], rows: RowFile, collect: Callable[[Event], None]
) -> None:
    """A process died. Its run is tried again, and after that has failed; the others it had to do go on elsewhere."""
    worker.stop()
    cell, code = worker.cells[0], worker.process.exitcode or 0
    deaths[cell.key] += 1
    if deaths[cell.key] >= MAX_CRASHES:
        how = (
            f"was killed by {signal.Signals(-code).name}"
            if code < 0
            else f"ended with exit code {code}"
        )
        row = failed_row(cell, f"the process of this run {how}, {MAX_CRASHES} times")
        rows.append(row)
        worker.cells.pop(0)
        collect(Event(cell, worker.number, row))


def failed_row(cell: RunSpec, error: str) -> Row:
    """The row of a run that gave no result: what was to be run, and what went wrong."""
    plan = cell.plan
    return Row(
        key=cell.key,
        status="failed",
        error=error,
        dataset=plan.dataset,
        method=plan.method_name,
        encoder=plan.encoder,
        seed=cell.seed,
        num_old=len(plan.old),
        num_new=plan.num_new,
        old_classes=plan.old,
        class_split=plan.class_split,
        draw=plan.draw,
        visibility=plan.visibility,
        changed=frozen_settings(schedules.changed(plan)),
        fit_changed=frozen_settings(dict(plan.fit_settings)),
        versions=versions(),
        commit=commit(),
        data=cell.data,
    )


def work(pipe: Connection, parent: int, source: Source, maps: Path) -> None:
    """A worker's life: take a group of cells, do one after the other, send what happens. Ends when the parent is gone."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C goes to everybody in the terminal; the parent ends us
    graphs: dict[str, LabelledGraph] = {}

    def watch(seed: int, phase: str) -> Watcher:
        def epoch_done(epoch: int, epochs: int, losses: Mapping[str, float]) -> None:
            if epoch % 20 == 0 or epoch == epochs:
                if os.getppid() != parent:
                    os._exit(1)
                pipe.send(Epoch(phase, epoch, epochs))

        return epoch_done

    def do(cell: RunSpec, learnt: Fitted | None) -> tuple[Row, Fitted | None]:
        name = cell.plan.dataset
        try:
            if name not in graphs:
                graphs[name] = source.load(name)
            learnt = learnt or learn(graphs[name], cell.plan, cell.seed, watch)
            outcome = run_one(graphs[name], cell.plan, cell.seed, watch, learnt)
            kept = f"{cell.key}.npz" if cell.keep_map else None
            if kept:
                write_map(outcome, maps / kept)
            return replace(outcome.row, key=cell.key, map=kept), learnt
        except (
            Exception
        ) as error:  # whatever goes wrong in one run is its result, and the others go on
            return failed_row(cell, f"{type(error).__name__}: {error}"), learnt

    with suppress(EOFError, BrokenPipeError):  # the parent is gone
        while True:
            learnt = None
            for cell in pipe.recv():
                pipe.send(Started())
                row, learnt = do(cell, learnt)
                pipe.send(row)
