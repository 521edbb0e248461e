"""A person's decisions about classes, as values: what is asked, and once done what came of it.

Positional fields are what is asked. Keyword-only ones are filled in when a model takes the
decision: `was` is the name that a class had, `after` the number of stages that went before. Each
has one JSON form, `to_json` and `from_json`, for review.json (asked) and for the edits in
model.json (done):

    asked                                                   done, further
    {"do": "rename", "class": 7, "name": "plants"}          "was": "new-7", "after": 2
    {"do": "merge", "classes": [5, 8], "name": "places"}    "class": 5, "after": 2
    {"do": "reject", "class": 9}                            "name": "new-9", "after": 2
    {"do": "split", "class": 6, "into": 2}                  "parts": [10, 11], "names": […],
                                                            "was": …, "after": 2; no "into"
    {"do": "relabel", "nodes": ["p17"], "class": 3}         never among edits

The name of a merge may be left out when it is asked, and into how many parts to split, which is 2
then. A relabel is about labels of the user's, which a model does not keep: the run that holds them
corrects them, and the model stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

from nodenova.errors import SettingError


@dataclass(frozen=True)
class Rename:
    """Another name for a class.

    Attributes:
        class_id: Which class.
        name: Its name from now on.
        was: The name it had.
        after: Stages that went before.
    """

    do: ClassVar[str] = "rename"
    class_id: int
    name: str
    was: str | None = field(default=None, kw_only=True)
    after: int | None = field(default=None, kw_only=True)

    @property
    def ids(self) -> tuple[int, ...]:
        """All classes that it names."""
        return (self.class_id,)


@dataclass(frozen=True)
class Merge:
    """Several classes become one, the oldest of them.

    Attributes:
        class_ids: Which classes.
        kept: The oldest of them, whose id the one class keeps.
        name: Its name; that of the oldest unless given.
        after: Stages that went before.
    """

    do: ClassVar[str] = "merge"
    class_ids: tuple[int, ...]
    kept: int | None = field(default=None, kw_only=True)
    name: str | None = None
    after: int | None = field(default=None, kw_only=True)

    @property
    def ids(self) -> tuple[int, ...]:
        """All classes that it names."""
        return self.class_ids


@dataclass(frozen=True)
class Reject:
    """A discovered class is none; its nodes go to the next likely one.

    Attributes:
        class_id: Which class.
        name: What it was called.
        after: Stages that went before.
    """

    do: ClassVar[str] = "reject"
    class_id: int
    name: str | None = field(default=None, kw_only=True)
    after: int | None = field(default=None, kw_only=True)

    @property
    def ids(self) -> tuple[int, ...]:
        """All classes that it names."""
        return (self.class_id,)


@dataclass(frozen=True)
class Split:
    """A class becomes several, found among its nodes.

    Attributes:
        class_id: Which class.
        into: How many parts.
        parts: Their ids.
        names: What they are called.
        was: The name the class had.
        after: Stages that went before.
    """

    do: ClassVar[str] = "split"
    class_id: int
    into: int = 2
    parts: tuple[int, ...] = field(default=(), kw_only=True)
    names: tuple[str, ...] = field(default=(), kw_only=True)
    was: str | None = field(default=None, kw_only=True)
    after: int | None = field(default=None, kw_only=True)

    @property
    def ids(self) -> tuple[int, ...]:
        """All classes that it names."""
        return (self.class_id, *self.parts)


@dataclass(frozen=True)
class Relabel:
    """Labels of the user's were wrong: the nodes are of another class.

    Attributes:
        nodes: Ids of the nodes.
        class_id: The class they are of.
        after: None: a model does not keep it.
    """

    do: ClassVar[str] = "relabel"
    nodes: tuple[str | int, ...]
    class_id: int
    after: ClassVar[int | None] = None

    @property
    def ids(self) -> tuple[int, ...]:
        """All classes that it names."""
        return (self.class_id,)


Edit: TypeAlias = Rename | Merge | Reject | Split  # what becomes part of a model
Decision: TypeAlias = Edit | Relabel
EDITS: dict[str, type[Edit]] = {kind.do: kind for kind in (Rename, Merge, Reject, Split)}
DECISIONS: dict[str, type[Decision]] = {**EDITS, Relabel.do: Relabel}
# Field: its key, where they differ.
KEYS = {"class_id": "class", "class_ids": "classes", "kept": "class"}


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_node(value: object) -> bool:
    return _is_text(value) or _is_id(value)


def _list_of(each: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(each, value))


# What the value of a key must be, in words and as a test.
VALUES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "class": ("the id of a class", _is_id),
    "classes": ("a list of ids of classes", _list_of(_is_id)),
    "parts": ("a list of ids of classes", _list_of(_is_id)),
    "nodes": ("a list of ids of nodes", _list_of(_is_node)),
    "name": ("a text", _is_text),
    "was": ("a text", _is_text),
    "names": ("a list of texts", _list_of(_is_text)),
    "into": ("a whole number", _is_id),
    "after": ("a whole number", _is_id),
}


def to_json(decision: Decision) -> dict[str, Any]:
    """The decision as JSON has it: as done if it is, else as asked.

    Examples:
        >>> to_json(Split(6, into=3))
        {'do': 'split', 'class': 6, 'into': 3}
    """
    done = decision.after is not None
    told = {key: getattr(decision, f.name) for key, f in _fields(type(decision), done).items()}
    return {"do": decision.do} | {
        k: list(v) if isinstance(v, tuple) else v for k, v in told.items() if v is not None
    }


def from_json(value: object, *, done: bool = False, where: str = "decision") -> Decision:
    """The decision that JSON tells.

    Args:
        value: What was read.
        done: Whether it is one that was done, or one that is asked.
        where: What begins the sentence of an error.

    Raises:
        SettingError: It is no decision; the sentence says what is wrong.

    Examples:
        >>> from_json({"do": "merge", "classes": [5, 8]})
        Merge(class_ids=(5, 8), kept=None, name=None, after=None)
    """
    do = value.get("do") if isinstance(value, dict) else None
    kinds: Mapping[str, type[Decision]] = EDITS if done else DECISIONS
    if not isinstance(value, dict) or not isinstance(do, str) or do not in kinds:
        raise SettingError(f"{where}: must say what to do, one of {', '.join(kinds)}, not {do!r}")
    known = _fields(kinds[do], done)
    for key, f in known.items():
        if key not in value and (done or f.default is MISSING):
            raise SettingError(f"{where} ({do}): {key} is missing")
    told: dict[str, Any] = {}
    for key, said in value.items():
        if key == "do":
            continue
        if key not in known:
            raise SettingError(f"{where} ({do}): unknown key {key!r}")
        kind, is_one = VALUES[key]
        if not is_one(said):
            raise SettingError(f"{where} ({do}): {key} must be {kind}, not {said!r}")
        told[known[key].name] = tuple(said) if isinstance(said, list) else said
    if done and do == Split.do:
        told["into"] = len(told["parts"])
    return kinds[do](**told)


def _fields(kind: type[Decision], done: bool) -> dict[str, Field[Any]]:
    """What JSON says of such a decision, by key, in the order in which it is written."""
    told = [f for f in fields(kind) if (f.name != "into" if done else not f.kw_only)]
    return {KEYS.get(f.name, f.name): f for f in told}
