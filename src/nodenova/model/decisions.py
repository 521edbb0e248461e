"""A person's decisions about classes, as values with one JSON form.

Positional fields are the request. Keyword-only fields are filled in when a model applies it: `was`
is the earlier name of a class, `after` the number of stages before. review.json holds requests, the
edits in model.json applied decisions:

    requested                                               applied, further keys
    {"do": "rename", "class": 7, "name": "plants"}          "was": "new-7", "after": 2
    {"do": "merge", "classes": [5, 8], "name": "places"}    "class": 5, "after": 2
    {"do": "reject", "class": 9}                            "name": "new-9", "after": 2
    {"do": "split", "class": 6, "into": 2}                  "parts": [10, 11], "names": […],
                                                            "was": …, "after": 2; no "into"
    {"do": "relabel", "nodes": ["p17"], "class": 3}         never among edits

The name of a merge and the number of parts (2) are optional. A relabel corrects labels of the user,
which a model does not keep: the run that holds them changes, the model does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

from nodenova.errors import SettingError, brief
from nodenova.files.documents import is_encodable


class _OfOneClass:
    class_id: int

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of all classes in it."""
        return (self.class_id,)


@dataclass(frozen=True)
class Rename(_OfOneClass):
    """Give a class another name.

    Attributes:
        class_id: Id of the class.
        name: Its new name.
        was: Its earlier name.
        after: Number of stages before.
    """

    do: ClassVar[str] = "rename"
    class_id: int
    name: str
    was: str | None = field(default=None, kw_only=True)
    after: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Merge:
    """Make several classes one: the oldest of them.

    Attributes:
        class_ids: Ids of the classes.
        kept: Id of the oldest, which the class keeps.
        name: Name of the class; that of the oldest by default.
        after: Number of stages before.
    """

    do: ClassVar[str] = "merge"
    class_ids: tuple[int, ...]
    kept: int | None = field(default=None, kw_only=True)
    name: str | None = None
    after: int | None = field(default=None, kw_only=True)

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of all classes in it."""
        return self.class_ids


@dataclass(frozen=True)
class Reject(_OfOneClass):
    """Remove a discovered class; its nodes go to the next likely one.

    Attributes:
        class_id: Id of the class.
        name: Its name.
        after: Number of stages before.
    """

    do: ClassVar[str] = "reject"
    class_id: int
    name: str | None = field(default=None, kw_only=True)
    after: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Split:
    """Split a class into several, found among its nodes.

    Attributes:
        class_id: Id of the class.
        into: Number of parts.
        parts: Ids of the parts.
        names: Names of the parts.
        was: Name of the class.
        after: Number of stages before.
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
        """Ids of all classes in it."""
        return (self.class_id, *self.parts)


@dataclass(frozen=True)
class Relabel(_OfOneClass):
    """Correct labels of the user: the nodes belong to another class.

    Attributes:
        nodes: Ids of the nodes.
        class_id: Id of their class.
        after: None, as a model does not keep it.
    """

    do: ClassVar[str] = "relabel"
    nodes: tuple[str | int, ...]
    class_id: int
    after: ClassVar[int | None] = None


Edit: TypeAlias = Rename | Merge | Reject | Split  # kept in a model
Decision: TypeAlias = Edit | Relabel
EDITS: dict[str, type[Edit]] = {kind.do: kind for kind in (Rename, Merge, Reject, Split)}
DECISIONS: dict[str, type[Decision]] = {**EDITS, Relabel.do: Relabel}
# JSON keys that differ from their fields.
KEYS = {"class_id": "class", "class_ids": "classes", "kept": "class"}


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_encodable(value)


def _is_node(value: object) -> bool:
    return _is_text(value) or _is_id(value)


def _list_of(each: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(each, value))


# Description and test of the value of each key.
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
    """The JSON form: as applied if it is, else as requested."""
    done = decision.after is not None
    values = {key: getattr(decision, f.name) for key, f in _fields(type(decision), done).items()}
    return {"do": decision.do} | {
        k: list(v) if isinstance(v, tuple) else v for k, v in values.items() if v is not None
    }


def from_json(value: object, *, done: bool = False, where: str = "decision") -> Decision:
    """The decision in a JSON value; `done` for an applied one, `where` begins error messages."""
    do = value.get("do") if isinstance(value, dict) else None
    kinds: Mapping[str, type[Decision]] = EDITS if done else DECISIONS
    if not isinstance(value, dict) or not isinstance(do, str) or do not in kinds:
        raise SettingError(f'{where}: "do" must be one of {", ".join(kinds)}, not {brief(do)}')
    known = _fields(kinds[do], done)
    for key, f in known.items():
        if key not in value and (done or f.default is MISSING):
            raise SettingError(f"{where} ({do}): {key} is missing")
    values: dict[str, Any] = {}
    for key, given in value.items():
        if key == "do":
            continue
        if key not in known:
            raise SettingError(f"{where} ({do}): unknown key {brief(key)}")
        kind, is_valid = VALUES[key]
        if not is_valid(given):
            raise SettingError(f"{where} ({do}): {key} must be {kind}, not {brief(given)}")
        values[known[key].name] = tuple(given) if isinstance(given, list) else given
    if done and do == Split.do:
        values["into"] = len(values["parts"])
    return kinds[do](**values)


def _fields(kind: type[Decision], done: bool) -> dict[str, Field[Any]]:
    """Fields that JSON holds for this kind of decision, by key, in writing order."""
    written = [f for f in fields(kind) if (f.name != "into" if done else not f.kw_only)]
    return {KEYS.get(f.name, f.name): f for f in written}
