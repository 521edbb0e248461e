"""The live table of a bench: what is done, what is running, and how long is left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nodenova.cli.app import log_line

if TYPE_CHECKING:
    from nodenova.bench.grid import RunSpec
    from nodenova.bench.sweep import Event


class Board:
    """The live table, drawn by Rich.

    Args:
        specs: All runs of the bench.
        todo: Those without a row.
        jobs: How many run at the same time.
        log: Whether a run that ends is a plain line, where no table is drawn.
    """

    def __init__(
        self, specs: Sequence[RunSpec], todo: Sequence[RunSpec], jobs: int, log: bool = False
    ) -> None:
        self.log = log
        self.total = len(specs)
        self.done = len(specs) - len(todo)
        self.failed = 0
        self.jobs = jobs
        self.places = Counter(_place(spec) for spec in specs)
        self.ended = self.places - Counter(_place(spec) for spec in todo)
        self.left = Counter(_kind(spec) for spec in todo)
        self.running: dict[int, tuple[RunSpec, str]] = {}
        self.seconds: dict[tuple[str, ...], list[float]] = {}
        self.since: dict[int, float] = {}

    def on_event(self, event: Event) -> None:
        """Take in what happened to a run."""
        from nodenova.bench.sweep import Epoch, Started

        spec = event.spec
        worker = event.worker
        what = event.what
        if isinstance(what, Started):
            self.running[worker] = (spec, "starting")
            self.since[worker] = time.monotonic()
        elif isinstance(what, Epoch):
            phase = {"fit": "phase 1", "discover": "phase 2"}[what.phase]
            self.running[worker] = (spec, f"{phase}, epoch {what.epoch} of {what.epochs}")
        else:
            self.running.pop(worker, None)
            self.done += 1
            self.failed += what.is_failed
            self.ended[_place(spec)] += 1
            self.left[_kind(spec)] -= 1
            now = time.monotonic()
            self.seconds.setdefault(_kind(spec), []).append(now - self.since.get(worker, now))
            if self.log:
                how = "failed" if what.is_failed else "done"
                log_line(f"{self.done} of {self.total} runs, {how}: {_describe(spec)}")

    def remaining(self) -> float | None:
        """Seconds left, by what runs of the same kind took; of other kinds by the mean of all."""
        means = {kind: sum(took) / len(took) for kind, took in self.seconds.items()}
        if not means:
            return None
        typical = sum(means.values()) / len(means)
        alone = sum(count * means.get(kind, typical) for kind, count in self.left.items())
        return alone / self.jobs

    def __rich__(self) -> Group:
        left = self.remaining()
        head = Text(f"{self.done} of {self.total} runs done")
        if self.failed:
            head.append(f", {self.failed} failed", style="yellow")
        when = ", time left not known yet" if left is None else f", about {_duration(left)} left"
        head.append(when)
        table = Table("", "encoder", "done", "", box=None, pad_edge=False)
        for (dataset, encoder), total in self.places.items():
            ended = self.ended[dataset, encoder]
            bar = ProgressBar(total=total, completed=ended, width=24)
            table.add_row(escape(dataset), encoder, f"{ended}/{total}", bar)
        now = [
            Text(f"  {_describe(spec)}: {doing}", style="cyan")
            for spec, doing in self.running.values()
        ]
        return Group(head, table, *now)


def _place(spec: RunSpec) -> tuple[str, str]:
    return spec.plan.dataset, spec.plan.encoder


def _kind(spec: RunSpec) -> tuple[str, ...]:
    return (*_place(spec), spec.plan.method_name, *(f"{k}={v}" for k, v in spec.plan.fit_settings))


def _describe(spec: RunSpec) -> str:
    from nodenova.bench.schedules import changed

    settings = (*changed(spec.plan).items(), *spec.plan.fit_settings)
    given = [f"{name}={value}" for name, value in settings]
    return " ".join([*_place(spec), spec.plan.method_name, *given, f"seed {spec.seed}"])


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{round(seconds / 3600, 1)} h"
