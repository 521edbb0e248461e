"""Progress bars for a terminal: one for each phase under way, with its current losses."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from nodenova.nn.training import Watcher

if TYPE_CHECKING:
    from nodenova.bench.row import Row


class Bars:
    """One bar for each phase under way; a context manager.

    Args:
        console: Where to draw.
        show: If False nothing is drawn and training is not slowed by a watcher.
    """

    def __init__(self, console: Console, show: bool) -> None:
        self._show = show
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
            disable=not show,
            transient=True,
        )

    def watcher(self, seed: int, phase: str) -> Watcher | None:
        """A watcher that draws the training of one phase of one seed."""
        if not self._show:
            return None
        task = self._bars.add_task(f"seed {seed} {phase}", total=None, losses="")

        def watch(epoch: int, epochs: int, losses: Mapping[str, float]) -> None:
            if epoch == 1 or epoch % 10 == 0 or epoch == epochs:
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
