"""A class of nodes, and its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodenova.errors import SettingError
from nodenova.files.documents import check_encodable

KNOWN, DISCOVERED = "known", "discovered"


@dataclass(frozen=True)
class NodeClass:
    """One class of nodes.

    Attributes:
        id: Permanent id: it survives renaming, merging, later stages, save and load, and is never
            used again.
        name: Name, unique within a model.
        stage: 0 if it was learned from labels, s > 0 if it was discovered by the s-th `discover`.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> nova.discover(nova.fit(old), new).classes[-1]
        NodeClass(id=3, name='new-3', stage=1)
    """

    id: int
    name: str
    stage: int

    def __post_init__(self) -> None:
        check_encodable([self.name], "the name of a class", SettingError)

    @property
    def is_new(self) -> bool:
        """Whether it was discovered."""
        return self.stage > 0

    @property
    def kind(self) -> str:
        """ "known" (learned from labels) or "discovered"."""
        return DISCOVERED if self.is_new else KNOWN


def normalize_kind(word: str) -> str:
    """ "known" or "discovered"; tables of earlier versions have old and new."""
    return {"old": KNOWN, "new": DISCOVERED}.get(word, word)


def make_unique(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """The names, made unique: ['a', 'a'] -> ['a (2)', 'a (3)'] where 'a' is taken."""
    result: list[str] = []
    for name in names:
        unused, number = name, 2
        while unused in taken or unused in result:
            unused, number = f"{name} ({number})", number + 1
        result.append(unused)
    return result


def display_names(classes: Sequence[NodeClass], auto_names: Mapping[int, str]) -> list[str]:
    """Names to show, all different: the given name of each class, else its automatic one by id."""
    given = [
        None if c.is_new and not has_own_name(c) and auto_names.get(c.id) else c.name
        for c in classes
    ]
    taken = [name for name in given if name is not None]
    wanted = [auto_names[c.id] for c, name in zip(classes, given, strict=True) if name is None]
    automatic = iter(make_unique(wanted, taken))
    return [next(automatic) if name is None else name for name in given]


def has_own_name(c: NodeClass) -> bool:
    """Whether its name differs from the first one: new-7, or new-7 (2) where that was taken."""
    return c.name != f"new-{c.id}" and not c.name.startswith(f"new-{c.id} (")
