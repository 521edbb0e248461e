"""What one phase did to a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodenova.nn.training import History
from nodenova.prism.count import Count


@dataclass(frozen=True)
class Refresh:
    """How the representation was fitted anew on a grown graph, before a phase.

    Attributes:
        why: What had changed, in words.
        carried: For each class its id, and by how many nodes of the grown graph it was carried
            over: those that the model was sure of before, and labelled ones.
        told: How many of these nodes the user had labelled.
        notes: A sentence on each class that hardly any node could carry over.

    Examples:
        >>> Refresh("9 % of the features were not known", ((0, 75), (4, 60)), 30).sentence()
        'The representation was fitted anew: 9 % of the features were not known. 2 classes were \
carried over by 135 nodes, 60 to 75 each; 30 of them are labelled.'
    """

    why: str
    carried: tuple[tuple[int, int], ...]
    told: int = 0
    notes: tuple[str, ...] = ()

    def sentence(self) -> str:
        """What was done, for a person."""
        counts = [count for _, count in self.carried]
        most, least = max(counts), min(counts)
        each = f"{least:,} to {most:,}" if least < most else f"{least:,}"
        told = f"; {self.told:,} of them are labelled" if self.told else ""
        return (
            f"The representation was fitted anew: {self.why}. {len(counts)} classes were carried "
            f"over by {sum(counts):,} nodes, {each} each{told}."
        )

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Refresh:
        """From what `dataclasses.asdict` made of one."""
        carried = tuple((int(c), int(count)) for c, count in saved["carried"])
        return cls(saved["why"], carried, saved["told"], tuple(saved["notes"]))


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
        refresh: How the representation was fitted anew before it, where it was.
        found_in: For each class that was found, by its id, in how many groupings of resampled nodes
            it was met again, and how many there were; of methods that group more than once.
    """

    method: str
    settings: Mapping[str, object]
    seed: int
    sees: tuple[str, ...]
    history: History = field(default_factory=dict)
    count: Count | None = None
    mixed: bool = False
    refresh: Refresh | None = None
    found_in: Mapping[int, tuple[int, int]] = field(default_factory=dict)
