"""One class of nodes, and its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def shown_names(classes: Sequence[NodeClass], auto_names: Mapping[int, str]) -> list[str]:
    """What classes are called before people: by the name one was given, or by its automatic one where nobody has named it.

    auto_names: by id, as far as there are any. No two classes are called alike; a name that was given stays as it is.
    """
    given = [None if c.is_new and _is_default(c) and auto_names.get(c.id) else c.name for c in classes]
    taken = [name for name in given if name is not None]
    wanted = [auto_names[c.id] for c, name in zip(classes, given, strict=True) if name is None]
    automatic = iter(unused_names(wanted, taken))
    return [next(automatic) if name is None else name for name in given]


def _is_default(c: NodeClass) -> bool:
    """Whether this is the name with which a class is born: new-7, or new-7 (2) where that was taken."""
    return c.name == f"new-{c.id}" or c.name.startswith(f"new-{c.id} (")
