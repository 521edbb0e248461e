"""What is shown while files are read."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from nodenova.cli.app import log_line


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
