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

from nodenova.bench.row import Row
from nodenova.bench.rowfile import RowFile
from nodenova.bench.runs import RunSpec
from nodenova.bench.sweep import MAX_CRASHES, Event, Started, by_phase_1
from nodenova.bench.worker import Runner, RunOutcome, Source, failed_row, kept
from nodenova.cluster.session import capacity, ray_module, remote
from nodenova.io.dataset_table import find_root
from nodenova.nn.seeding import fixed_threads

GLANCE = 5.0  # seconds after which it is asked again how large the cluster is


@dataclass(eq=False)
class _Task:
    """A task, and the runs it has still to do, the one under way first."""

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
    """What `sweep` does, on the cluster that this process is connected to.

    Runs that share phase 1 are one task, which hands over each row when it is there. A row is
    written when it arrives; a run without one when its machine or process is lost is done again.

    Args:
        specs: The runs.
        source: Where their datasets are, on every machine.
        rows: Where the rows go; maps that are kept go into the folder maps beside it.
        jobs: How many tasks at the same time, at the most; as many as there are processors unless
            given.
        on_event: Called with whatever happens to a run but epochs.
    """
    ray, root = ray_module(), find_root(source.data_root)
    if root is not None:  # the environment of other machines does not say it
        source = replace(source, data_root=str(root.absolute()))
    # Tasks are not repeated by Ray: rows that have arrived would come again.
    submit = remote(attempts, max_retries=0, num_returns="streaming")
    waiting, deaths = deque(by_phase_1(specs)), Counter[str]()
    under_way: list[_Task] = []
    most, asked = min(jobs or capacity(), capacity()), time.monotonic()
    try:
        while waiting or under_way:
            while waiting and len(under_way) < most:
                taken = {task.number for task in under_way}
                task = _Task(next(n for n in range(most) if n not in taken), waiting.popleft())
                task.stream = submit.remote(pickle.dumps(task.specs), source, os.getcwd())
                under_way.append(task)
            ready, _ = ray.wait([task.stream for task in under_way], timeout=GLANCE)
            for stream in ready:
                task = next(task for task in under_way if task.stream is stream)
                if not _listen(ray, task, deaths, rows, on_event):
                    under_way.remove(task)
                    if task.specs:
                        waiting.appendleft(task.specs)
            if time.monotonic() - asked > GLANCE:  # machines come and go
                most, asked = min(jobs or capacity(), capacity()), time.monotonic()
    finally:
        for task in under_way:
            ray.cancel(task.stream, force=True)


def _listen(
    ray: Any,
    task: _Task,
    deaths: Counter[str],
    rows: RowFile,
    on_event: Callable[[Event], None],
) -> bool:
    """Take what a task sent; False when it has ended, in whatever way."""

    def end(row: Row) -> None:
        rows.append(row)
        on_event(Event(task.specs.pop(0), task.number, row))

    try:
        what: Started | RunOutcome = ray.get(next(task.stream))
    except StopIteration:
        return False
    except ray.exceptions.RayTaskError as error:  # its file is not on that machine, say
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
        end(kept(task.specs[0], what, rows.path.parent / "maps"))
    return True


def attempts(content: bytes, source: Source, here: str) -> Iterator[Started | RunOutcome]:
    """A task's life: runs that share phase 1, one after the other.

    Args:
        content: The runs, pickled: a method of a user's own is read from its file, whose path may
            be relative,
        source: Where their datasets are.
        here: and then to this folder, where there is one.

    Yields:
        That a run is started, and what came of it.
    """
    with suppress(OSError):
        os.chdir(here)
    specs: Sequence[RunSpec] = pickle.loads(content)
    fitted = None
    for spec in specs:
        yield Started()
        with fixed_threads(1):  # the others have cores of their own
            made = _runner(source).attempt(spec, fitted)
        fitted = made.fitted
        yield replace(made, fitted=None)


@cache
def _runner(source: Source) -> Runner:
    """Its graphs are read once in a process of the cluster."""
    return Runner(source)
