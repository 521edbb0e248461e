"""Many runs on a few processes, into one row file. Whatever dies, at most the run under way is lost."""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from nodenova.data.answers import Labelled
from nodenova.data.datasets import load_dataset
from nodenova.data.load import load_graph
from nodenova.experiments import schedules
from nodenova.experiments.cells import Cell
from nodenova.experiments.contenders import contender, title
from nodenova.experiments.maps import write_map
from nodenova.experiments.rowfile import RowFile
from nodenova.experiments.run import Learnt, Row, changed, commit, learn, run_one, versions
from nodenova.training import Watcher

DEATHS = 2  # a run whose process dies this often has failed; once may have been an accident


@dataclass(frozen=True)
class Source:
    """Where a process finds a dataset again by its name."""

    data_root: str | None = None
    split: int = 0

    def load(self, name: str) -> Labelled:
        return load_graph(name) if Path(name).exists() else load_dataset(name, self.data_root, split=self.split)


@dataclass(frozen=True)
class News:
    """What happened: "start", "epoch" (with phase, epoch, epochs) or "row" (with the row)."""

    what: str
    cell: Cell
    worker: int
    detail: Mapping[str, Any] = field(default_factory=dict)


def unfinished(cells: Iterable[Cell], rows: Iterable[Row], retry: bool = False) -> list[Cell]:
    """The cells without a row. A failed one counts as finished unless it is to be tried again."""
    last = {row["key"]: row["status"] for row in rows}
    ended = {key for key, status in last.items() if status == "done" or not retry}
    return [cell for cell in cells if cell.key not in ended]


def sweep(
    cells: Sequence[Cell],
    source: Source,
    rows: RowFile,
    jobs: int = 1,
    tell: Callable[[News], None] = lambda news: None,
) -> None:
    """Run `cells` and append a row for each, failures too. Phase 1 is done once for cells that share it."""
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.phase_1, []).append(cell)
    waiting = deque(groups.values())
    deaths: Counter[str] = Counter()
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < min(jobs, len(groups)):
                number = next(n for n in range(jobs) if n not in {worker.number for worker in workers})
                workers.append(_Worker(number, source, rows.path.parent / "maps"))
                workers[-1].give(waiting.popleft())
            for pipe in wait([worker.pipe for worker in workers]):
                worker = next(worker for worker in workers if worker.pipe is pipe)
                if not _listen(worker, rows, tell):
                    _bury(worker, deaths, rows, tell)
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
        self.number, self.cells = number, list[Cell]()
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=work, args=(theirs, os.getpid(), source, maps), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, cells: list[Cell]) -> None:
        self.cells = list(cells)
        with suppress(BrokenPipeError):  # it is dead already, and is found so when it is listened to
            self.pipe.send(cells)

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def _listen(worker: _Worker, rows: RowFile, tell: Callable[[News], None]) -> bool:
    """Take what a worker sent; False when it is dead, for then its end of the pipe is closed."""
    try:
        what, detail = worker.pipe.recv()
    except (EOFError, ConnectionResetError):
        return False
    cell = worker.cells[0]
    if what == "row":
        rows.append(detail)
        worker.cells.pop(0)
    tell(News(what, cell, worker.number, detail))
    return True


def _bury(worker: _Worker, deaths: Counter[str], rows: RowFile, tell: Callable[[News], None]) -> None:
    """A process died. Its run is tried again, and after that has failed; the others it had to do go on elsewhere."""
    worker.stop()
    cell, code = worker.cells[0], worker.process.exitcode or 0
    deaths[cell.key] += 1
    if deaths[cell.key] >= DEATHS:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        row = failed_row(cell, f"the process of this run {how}, {DEATHS} times")
        rows.append(row)
        worker.cells.pop(0)
        tell(News("row", cell, worker.number, row))


def failed_row(cell: Cell, error: str) -> Row:
    """The row of a run that gave no result: what was to be run, and what went wrong."""
    plan = cell.plan
    method, plain = (contender(plan.method, schedules.method_settings(plan, alone=alone)) for alone in (False, True))
    return {
        "key": cell.key,
        "status": "failed",
        "error": error,
        "dataset": plan.dataset,
        "method": title(plan.method),
        "encoder": plan.encoder,
        "seed": cell.seed,
        "num_old": len(plan.old),
        "num_new": plan.num_new,
        "old_classes": list(plan.old),
        "class_split": plan.class_split,
        "draw": plan.draw,
        "visibility": plan.visibility,
        "changed": changed(method, plain),
        "fit_changed": dict(plan.fit_settings),
        "versions": versions(),
        "commit": commit(),
        "data": cell.data,
    }


def work(pipe: Connection, parent: int, source: Source, maps: Path) -> None:
    """A worker's life: take a group of cells, do one after the other, send what happens. Ends when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to everybody in the terminal; the parent ends us
    graphs: dict[str, Labelled] = {}

    def watch(seed: int, phase: str) -> Watcher:
        def epoch_done(epoch: int, epochs: int, losses: Mapping[str, float]) -> None:
            if epoch % 20 == 0 or epoch == epochs:
                if os.getppid() != parent:
                    os._exit(1)
                pipe.send(("epoch", {"phase": phase, "epoch": epoch, "epochs": epochs}))

        return epoch_done

    def do(cell: Cell, learnt: Learnt | None) -> tuple[Row, Learnt | None]:
        name = cell.plan.dataset
        try:
            if name not in graphs:
                graphs[name] = source.load(name)
            learnt = learnt or learn(graphs[name], cell.plan, cell.seed, watch)
            outcome = run_one(graphs[name], cell.plan, cell.seed, watch, learnt)
            kept = f"{cell.key}.npz" if cell.keep_map else None
            if kept:
                write_map(outcome, maps / kept)
            return {"key": cell.key, "status": "done", **outcome.row, "map": kept}, learnt
        except Exception as error:  # whatever goes wrong in one run is its result, and the others go on
            return failed_row(cell, f"{type(error).__name__}: {error}"), learnt

    with suppress(EOFError, BrokenPipeError):  # the parent is gone
        while True:
            learnt = None
            for cell in pipe.recv():
                pipe.send(("start", {}))
                row, learnt = do(cell, learnt)
                pipe.send(("row", row))
