"""What one phase did to a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodenova.nn.training import History
from nodenova.prism.count import Count


@dataclass(frozen=True)
class Stage:
    """What one phase did: written by the entrances of both phases, read by reports.

    Attributes:
        method: "fit", or the short name of the method.
        settings: With which it ran.
        seed: From which all its random numbers come.
        sees: What it was given, in words.
        history: Each loss in each epoch.
        count: How many new classes there seemed to be, where nobody had said it.
        mixed: Whether the nodes given could be of known classes too.
    """

    method: str
    settings: Mapping[str, object]
    seed: int
    sees: tuple[str, ...]
    history: History = field(default_factory=dict)
    count: Count | None = None
    mixed: bool = False
