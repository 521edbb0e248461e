"""Progress of a command: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from nodenova.cli.app import err, log_line

if TYPE_CHECKING:
    from nodenova.bench.row import Row

MAX_SILENCE = 10.0  # seconds without a line while a phase goes on, where there is no terminal


class Bars:
    """A `nodenova.progress.Progress` that draws one bar; a context manager.

    Where standard error is no terminal (a file, a pipe, CI), it writes a line when a phase begins
    and every ten seconds while it goes on.

    Args:
        show: If False nothing is drawn or written.
        first: Name of a phase that begins at once.
    """

    def __init__(self, show: bool, first: str = "") -> None:
        self._show = show
        self._plain = not err.is_terminal
        self._phase, self._last = "", 0.0
        self._first = first
        self._bars = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=15)),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[done]}", table_column=Column(no_wrap=True, min_width=5)),
            TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5)),
            # Losses give way first on a narrow terminal.
            TextColumn(
                "{task.fields[losses]}", style="dim", table_column=Column(no_wrap=True, ratio=1)
            ),
            console=err,
            disable=not show or self._plain,
            transient=True,
        )
        self._task = self._bars.add_task("", done="", losses="", visible=False)

    def __call__(self, phase: str, done: float, total: float = 1.0, /, **losses: float) -> None:
        if not self._show:
            return
        begins = phase != self._phase
        self._phase = phase
        count = f"{done:.0f} of {total:.0f}" if total > 1 else f"{done:.0%}"
        if self._plain:
            self._write_line(phase if begins else f"{phase}, {count}", begins)
            return
        if begins:
            self._bars.reset(self._task, description=escape(phase), visible=True)
        # Drawing every epoch would slow training down; steps without losses are few and long.
        if begins or not losses or done % 10 == 0 or done == total:
            text = "  ".join(f"{name} {value:.3f}" for name, value in losses.items())
            self._bars.update(self._task, total=total, completed=done, done=count, losses=text)

    def _write_line(self, line: str, at_once: bool) -> None:
        now = time.monotonic()
        if at_once or now - self._last >= MAX_SILENCE:
            self._last = now
            log_line(line)

    def print_scores(self, row: Row) -> None:
        """Print the scores of a finished seed."""
        if self._show:
            shown = {key: row.scores()[key] for key in ("old", "new", "all", "h")}
            scores = "  ".join(f"{key.capitalize()} {value:.1f}" for key, value in shown.items())
            self._bars.console.print(f"seed {row.seed}: {scores}", highlight=False)

    def __enter__(self) -> Bars:
        self._bars.start()
        if self._first:
            self(self._first, 0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()
