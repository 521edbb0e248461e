"""What is shown while files are read.

How far a command is: a bar for each phase on a terminal, plain lines elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from nodenova.cli.app import err, log_line

if TYPE_CHECKING:
    from nodenova.bench.row import Row
    from nodenova.nn.training import Watcher


PHASES = {"fit": "learning the known classes", "discover": "discovering classes"}
# What steps of a method are that is computed: see `nodenova.nn.training.progress`.
STEPS = {"counting": "how many there are", "grouping": "grouping"}
MAX_SILENCE = 10.0  # seconds without a line while a phase goes on


class Bars:
    """One bar for each phase under way, with its current losses; a context manager.

    Where the console is no terminal (a file, a pipe, CI), a plain line when a phase begins and
    every ten seconds while it goes on.

    Args:
        console: Where to draw.
        show: If False nothing is said and training is not slowed by a watcher.
        seeds: Whether it says of which seed a phase is.
    """

    def __init__(self, console: Console, show: bool, seeds: bool = False) -> None:
        self._show = show
        self._seeds = seeds
        self._plain = not console.is_terminal
        self._bars = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=15)),
            BarColumn(bar_width=16),
            MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=7)),
            TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5)),
            # Losses give way first on a narrow terminal.
            TextColumn(
                "{task.fields[losses]}", style="dim", table_column=Column(no_wrap=True, ratio=1)
            ),
            console=console,
            disable=not show or self._plain,
            transient=True,
        )

    def watcher(self, seed: int, phase: str) -> Watcher | None:
        """A watcher that draws the training of one phase of one seed."""
        if not self._show:
            return None
        said = PHASES.get(phase, phase)
        if self._plain:
            return _logged(f"seed {seed}: {said}" if self._seeds else said)
        name = f"seed {seed} {phase}" if self._seeds else said
        task = self._bars.add_task(name, total=None, losses="")

        def watch(epoch: int, epochs: int, losses: Mapping[str, float]) -> None:
            step = next((name for name in STEPS if name in losses), None)
            if step is not None:  # few and long, of a method that is computed
                self._bars.update(task, total=epochs, completed=epoch, losses=STEPS[step])
            elif epoch == 1 or epoch % 10 == 0 or epoch == epochs:
                text = "  ".join(f"{name} {value:.3f}" for name, value in losses.items())
                self._bars.update(task, total=epochs, completed=epoch, losses=text)

        return watch

    def done(self, row: Row) -> None:
        """Replace a seed's bars by one line with its scores."""
        for task in self._bars.task_ids:
            self._bars.remove_task(task)
        if self._show:
            shown = {key: row.scores()[key] for key in ("old", "new", "all", "h")}
            scores = "  ".join(f"{key.capitalize()} {value:.1f}" for key, value in shown.items())
            self._bars.console.print(f"seed {row.seed}: {scores}", highlight=False)

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()


def _logged(phase: str) -> Watcher:
    """A watcher that writes a line now, and one from time to time."""
    log_line(phase)
    last = time.monotonic()

    def watch(epoch: int, epochs: int, losses: Mapping[str, float]) -> None:
        nonlocal last
        if time.monotonic() - last >= MAX_SILENCE:
            last = time.monotonic()
            step = next((f"{said} " for name, said in STEPS.items() if name in losses), "")
            log_line(f"{phase}, {step}{epoch} of {epochs}")

    return watch


@contextmanager
def mapping(show: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar for the layout of the map, the last long step; lines where there is no terminal.

    Gives the function to call with (steps done, steps).
    """
    plain = show and not err.is_terminal
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    asking, drawing = "what is in the classes", "drawing the map"
    if plain:
        log_line(asking)
    with Progress(*columns, console=err, disable=not show or plain, transient=True) as bars:
        task = bars.add_task(asking, total=None)

        def step(done: int, of: int) -> None:
            if plain and bars.tasks[task].description != drawing:
                log_line(drawing)
            bars.update(task, description=drawing, completed=done, total=of)

        yield step


class Reading:
    """A bar for what `load_graph` is doing; a context manager that gives the function to call.

    Where the console is no terminal, a plain line for each thing it does.
    """

    def __init__(self, console: Console, show: bool) -> None:
        self._plain = show and not console.is_terminal
        self._stage = ""
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            console=console,
            disable=not show or self._plain,
            transient=True,
        )

    def __enter__(self) -> Any:
        if self._plain:
            self._log("reading", 0.0)
            return self._log
        self._bars.start()
        task = self._bars.add_task("reading", total=1.0)
        return lambda stage, share: self._bars.update(
            task, description=escape(stage), completed=share
        )

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def _log(self, stage: str, share: float) -> None:
        if stage != self._stage:
            log_line(stage)
        self._stage = stage
