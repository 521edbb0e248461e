"""One class of nodes, and its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class NodeClass:
    """One class. `stage` 0 was learnt from labels, stage s > 0 was discovered by the s-th `discover`.

    Its `id` is its own for ever: it survives renaming, merging, later stages, save and load, and is never given out again.
    """

    id: int
    name: str
    stage: int

    @property
    def is_new(self) -> bool:
        return self.stage > 0


def unused_names(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """The names, made different from those taken and from each other where they are not: a, a (2), a (3)."""
    result: list[str] = []
    for name in names:
        unused, number = name, 2
        while unused in taken or unused in result:
            unused, number = f"{name} ({number})", number + 1
        result.append(unused)
    return result
