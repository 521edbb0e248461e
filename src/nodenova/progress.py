"""How long steps report their progress: one callable shape for the whole package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

FIT = "learning the known classes"
DISCOVER = "discovering classes"


class Progress(Protocol):
    """What every `progress=` argument takes: a function `progress(phase, done, total, **losses)`.

    Called with done=0 when a phase begins. `total` is 1 where `done` is a share, and is then left
    out of the call; in training `done` and `total` count epochs and `losses` are those of the last
    one.

    Examples:
        >>> def print_progress(phase, done, total=1.0, **losses):
        ...     print(f"{phase}: {done / total:.0%}", losses)
        >>> print_progress("learning the known classes", 30, 60, loss=0.25)
        learning the known classes: 50% {'loss': 0.25}
    """

    def __call__(self, phase: str, done: float, total: float = 1.0, /, **losses: float) -> None: ...


def no_progress(phase: str, done: float, total: float = 1.0, /, **losses: float) -> None:
    """Ignore progress."""


def add_prefix(progress: Progress, prefix: str) -> Progress:
    """Return a `progress` whose phases begin with `prefix`: "seed 3: "."""

    def prefixed(phase: str, done: float, total: float = 1.0, /, **losses: float) -> None:
        progress(prefix + phase, done, total, **losses)

    return prefixed


# A method has the signature `discover(model, task)`, which leaves no room for a `progress`
# argument; `report` reaches the one that was passed to `fit` or `discover` through this variable.
_CURRENT: ContextVar[tuple[Progress, str]] = ContextVar("progress", default=(no_progress, ""))


@contextmanager
def reporting_to(progress: Progress, phase: str) -> Iterator[None]:
    """Begin a phase; within this block `report` calls `progress` with it."""
    token = _CURRENT.set((progress, phase))
    try:
        progress(phase, 0)
        yield
    finally:
        _CURRENT.reset(token)


def current_phase() -> str:
    """Return "phase 1" or "phase 2" within `fit` or `discover`, for errors; else an empty text."""
    return {FIT: "phase 1", DISCOVER: "phase 2"}.get(_CURRENT.get()[1], "")


def report(done: float, total: float, step: str = "", /, **losses: float) -> None:
    """Report progress within the current phase; `step` names a part of the phase: "grouping"."""
    progress, phase = _CURRENT.get()
    progress(f"{phase}: {step}" if step else phase, done, total, **losses)
