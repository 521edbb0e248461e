"""Many runs on a Ray cluster, into one row file that this process alone writes."""

from __future__ import annotations

import os
import pickle
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from nodenova.bench.plan import RunSpec
from nodenova.bench.row import Row
from nodenova.bench.rowfile import RowFile
from nodenova.bench.sweep import (
    MAX_CRASHES,
    Event,
    Runner,
    RunOutcome,
    Source,
    Started,
    by_phase_1,
    failed_row,
    store_map,
)
from nodenova.cluster.session import capacity, ray_module, remote
from nodenova.io.dataset_table import find_root
from nodenova.nn.seeding import fixed_threads

CAPACITY_SECONDS = 5.0  # between two looks at the size of the cluster


@dataclass(eq=False)
class _Task:
    """A task and its remaining runs, the one in progress first."""

    number: int
    specs: list[RunSpec] = field(default_factory=list)
    stream: Any = None


def sweep_on_ray(
    specs: Sequence[RunSpec],
    source: Source,
    rows: RowFile,
    jobs: int | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
) -> None:
    """Do what `sweep` does, on the cluster that this process is connected to.

    Runs that share phase 1 are one task, which sends each row when it is ready. A row is written
    when it arrives; a run whose machine or process is lost before that is repeated. `jobs` limits
    the number of tasks (default: the number of processors).
    """
    ray, root = ray_module(), find_root(source.data_root)
    if root is not None:  # other machines do not have the environment variable
        source = replace(source, data_root=str(root.absolute()))
    # Ray does not repeat tasks: rows that have arrived would come again.
    submit = remote(attempts, max_retries=0, num_returns="streaming")
    waiting, deaths = deque(by_phase_1(specs)), Counter[str]()
    running: list[_Task] = []
    limit, checked = min(jobs or capacity(), capacity()), time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < limit:
                busy = {task.number for task in running}
                task = _Task(next(n for n in range(limit) if n not in busy), waiting.popleft())
                task.stream = submit.remote(pickle.dumps(task.specs), source, os.getcwd())
                running.append(task)
            ready, _ = ray.wait([task.stream for task in running], timeout=CAPACITY_SECONDS)
            for stream in ready:
                task = next(task for task in running if task.stream is stream)
                if not _receive(ray, task, deaths, rows, on_event):
                    running.remove(task)
                    if task.specs:
                        waiting.appendleft(task.specs)
            if time.monotonic() - checked > CAPACITY_SECONDS:  # machines come and go
                limit, checked = min(jobs or capacity(), capacity()), time.monotonic()
    finally:
        for task in running:
            ray.cancel(task.stream, force=True)


def _receive(
    ray: Any,
    task: _Task,
    deaths: Counter[str],
    rows: RowFile,
    on_event: Callable[[Event], None],
) -> bool:
    """Handle a message of a task; return False when the task has ended."""

    def end(row: Row) -> None:
        rows.append(row)
        on_event(Event(task.specs.pop(0), task.number, row))

    try:
        what: Started | RunOutcome = ray.get(next(task.stream))
    except StopIteration:
        return False
    except ray.exceptions.RayTaskError as error:  # for example, its file is not on that machine
        end(failed_row(task.specs[0], f"{type(error.cause).__name__}: {error.cause}"))
        return False
    except ray.exceptions.RayError:
        deaths[task.specs[0].key] += 1
        if deaths[task.specs[0].key] >= MAX_CRASHES:
            lost = f"the process of this run, or its machine, was lost {MAX_CRASHES} times"
            end(failed_row(task.specs[0], lost))
        return False
    if isinstance(what, Started):
        on_event(Event(task.specs[0], task.number, what))
    else:
        end(store_map(task.specs[0], what, rows.path.parent / "maps"))
    return True


def attempts(content: bytes, source: Source, here: str) -> Iterator[Started | RunOutcome]:
    """Do pickled runs that share phase 1, yielding when each starts and its outcome.

    The file of a user's own method may be relative to the folder `here`.
    """
    with suppress(OSError):
        os.chdir(here)
    # Bytes that the driver of this sweep made; no file is unpickled.
    specs: Sequence[RunSpec] = pickle.loads(content)
    fitted = None
    for spec in specs:
        yield Started()
        with fixed_threads(1):  # the others have cores of their own
            outcome = _runner(source).attempt(spec, fitted)
        fitted = outcome.fitted
        yield replace(outcome, fitted=None)


@cache
def _runner(source: Source) -> Runner:
    """Return one runner per process of the cluster, which reads each graph once."""
    return Runner(source)
