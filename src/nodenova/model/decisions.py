"""A person's decisions about classes, as values with one JSON form.

Positional fields are the request. Keyword-only fields are filled in when a model applies it: `was`
is the earlier name of a class, `after` the number of stages before. review.json holds requests, the
edits in model.json applied decisions:

    requested                                               applied, further keys
    {"do": "rename", "class": 7, "name": "plants"}          "was": "new-7", "after": 2
    {"do": "merge", "classes": [5, 8], "name": "places"}    "class": 5, "after": 2
    {"do": "reject", "class": 9}                            "name": "new-9", "to": [3, 8],
                                                            "after": 2
    {"do": "split", "class": 6, "into": 2}                  "parts": [10, 11], "names": […],
                                                            "was": …, "after": 2; no "into"
    {"do": "create", "nodes": ["p3", …], "name": "ferns"}   "class": 12, "from": [3, 8],
                                                            "size": 40, "after": 2; no "nodes"
    {"do": "relabel", "nodes": ["p17"], "class": 3}         never among edits
    {"do": "unlabel", "nodes": ["p17"]}                     never among edits

The name of a merge or of a created class and the number of parts (2) are optional. The request of a
created class may have two more keys: "class", the id that it shall get, and "among", the number of
nodes that were shown when these were chosen, where a map shows a sample. A relabel corrects labels
of the user and an unlabel removes wrong ones. A model does not keep labels: the run that holds them
changes, the model does not. The nodes of a created class get it as their label in the run; the
model keeps their number, not their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from itertools import combinations, product
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
        name: Name of the class; by default that of the oldest that is known or was named, else of
            the oldest.
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
        to: Ids of the classes that got several of its nodes; empty where no graph was given.
        after: Number of stages before.
    """

    do: ClassVar[str] = "reject"
    class_id: int
    name: str | None = field(default=None, kw_only=True)
    to: tuple[int, ...] = field(default=(), kw_only=True)
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


@dataclass(frozen=True)
class Unlabel:
    """Remove wrong labels of the user: the class of the nodes is not known.

    Attributes:
        nodes: Ids of the nodes.
        after: None, as a model does not keep it.
    """

    do: ClassVar[str] = "unlabel"
    nodes: tuple[str | int, ...]
    after: ClassVar[int | None] = None

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of all classes in it: none."""
        return ()


@dataclass(frozen=True)
class Create:
    """Make a class of chosen nodes.

    Attributes:
        nodes: Ids of the nodes; empty once applied, as a model keeps no node.
        name: Name of the class; by default "new-" and its id.
        class_id: Id of the class: the next free one. None in a request leaves it open.
        among: Number of nodes that were shown when these were chosen; None for all. Of a sample,
            the class gets its share of all nodes.
        sources: Ids of the classes that the nodes were in.
        size: Number of nodes.
        after: Number of stages before.
    """

    do: ClassVar[str] = "create"
    nodes: tuple[str | int, ...]
    name: str | None = None
    class_id: int | None = None
    among: int | None = None
    sources: tuple[int, ...] = field(default=(), kw_only=True)
    size: int | None = field(default=None, kw_only=True)
    after: int | None = field(default=None, kw_only=True)

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of all classes in it: the class that was made."""
        return () if self.class_id is None else (self.class_id,)


Edit: TypeAlias = Rename | Merge | Reject | Split | Create  # kept in a model
Decision: TypeAlias = Edit | Relabel | Unlabel
EDITS: dict[str, type[Edit]] = {kind.do: kind for kind in (Rename, Merge, Reject, Split, Create)}
DECISIONS: dict[str, type[Decision]] = {**EDITS, Relabel.do: Relabel, Unlabel.do: Unlabel}
# JSON keys that differ from their fields.
KEYS = {"class_id": "class", "class_ids": "classes", "kept": "class", "sources": "from"}
ONLY_REQUESTS = ("into", "nodes", "among")  # fields that applied edits lack
MAX_CHOSEN = 100_000  # nodes in one decision
LATER = ("to",)  # keys that edits of earlier versions lack


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_encodable(value)


def _is_node(value: object) -> bool:
    return _is_text(value) or _is_id(value)


def _list_of(each: Callable[[object], bool], most: int | None = None) -> Callable[[object], bool]:
    def is_list(value: object) -> bool:
        return (isinstance(value, list) and (most is None or len(value) <= most)) and all(
            map(each, value)
        )

    return is_list


# Description and test of the value of each key.
VALUES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "class": ("the id of a class", _is_id),
    "classes": ("a list of ids of classes", _list_of(_is_id)),
    "parts": ("a list of ids of classes", _list_of(_is_id)),
    "to": ("a list of ids of classes", _list_of(_is_id)),
    "from": ("a list of ids of classes", _list_of(_is_id)),
    "nodes": (f"a list of at most {MAX_CHOSEN:,} ids of nodes", _list_of(_is_node, MAX_CHOSEN)),
    "among": ("a whole number", _is_id),
    "size": ("a whole number", _is_id),
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
        k: list(v) if isinstance(v, tuple) else v
        for k, v in values.items()
        if v is not None and (v or k not in LATER)
    }


def from_json(value: object, *, done: bool = False, where: str = "decision") -> Decision:
    """The decision in a JSON value; `done` for an applied one, `where` begins error messages."""
    do = value.get("do") if isinstance(value, dict) else None
    kinds: Mapping[str, type[Decision]] = EDITS if done else DECISIONS
    if not isinstance(value, dict) or not isinstance(do, str) or do not in kinds:
        raise SettingError(f'{where}: "do" must be one of {", ".join(kinds)}, not {brief(do)}')
    known = _fields(kinds[do], done)
    for key, f in known.items():
        if key not in value and (done or f.default is MISSING) and key not in LATER:
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
    if done and do == Create.do:
        values["nodes"] = ()
    return kinds[do](**values)


def _fields(kind: type[Decision], done: bool) -> dict[str, Field[Any]]:
    """Fields that JSON holds for this kind of decision, by key, in writing order."""
    written = [f for f in fields(kind) if (f.name not in ONLY_REQUESTS if done else not f.kw_only)]
    return {KEYS.get(f.name, f.name): f for f in written}


def trace(class_id: int, edits: Iterable[Decision]) -> set[int]:
    """Ids of the classes that hold a class after applied edits; empty if it was rejected.

    Examples:
        >>> trace(5, [Split(5, parts=(7, 8)), Merge((3, 8), kept=3)])
        {3, 7}
    """
    ids = {class_id}
    for edit in edits:
        match edit:
            case Merge(class_ids=merged, kept=int(kept)) if ids & {*merged}:
                ids = ids - {*merged} | {kept}
            case Split(class_id=whole, parts=parts) if whole in ids:
                ids = ids - {whole} | {*parts}
            case Reject(class_id=gone):
                ids -= {gone}
    return ids


def last_edits(edits: Iterable[Decision]) -> dict[int, Edit]:
    """The last applied edit about each class that a person named, merged or split off, by id."""
    decided: dict[int, Edit] = {}
    for edit in edits:
        match edit:
            case Rename(class_id=class_id):
                decided[class_id] = edit
            case Merge(class_ids=merged, kept=int(kept)):
                decided = {c: last for c, last in decided.items() if c not in merged}
                decided[kept] = edit
            case Split(class_id=class_id, parts=parts):
                decided.pop(class_id, None)
                decided |= dict.fromkeys(parts, edit)
            case Create(class_id=int(class_id)):
                decided[class_id] = edit
            case Reject(class_id=class_id):
                decided.pop(class_id, None)
    return decided


def own_classes(edits: Iterable[Decision]) -> dict[int, Edit]:
    """Those that a person named, merged or made: each is one class, unlike every named one.

    A merge names its class: the page asks for the name.
    """
    last = last_edits(edits)
    return {c: edit for c, edit in last.items() if not isinstance(edit, Split)}


def find_reversed(
    suggestion: Decision, decisions: Sequence[Decision], known: Collection[int] = ()
) -> Decision | None:
    """The decision of a person that a suggested one would reverse; None if there is none.

    `decisions` are applied edits in order, and relabels anywhere among them. `known` are the ids of
    classes learned from labels: they have names of the user too.

    Examples:
        >>> halves = Split(5, parts=(7, 8), after=1)
        >>> find_reversed(Merge((7, 8)), [halves]) == halves
        True
        >>> find_reversed(Split(7), [halves]), find_reversed(Merge((6, 7)), [halves])
        (None, None)
    """
    if isinstance(suggestion, Relabel):
        return _find_move({*map(str, suggestion.nodes)}, suggestion.class_id, decisions)
    own = own_classes(decisions)
    match suggestion:
        case Merge(class_ids=ids):
            named = [own[c] for c in ids if c in own]
            if named and sum(c in own or c in known for c in ids) > 1:
                return named[0]
            apart = find_separations(decisions)
            return next(
                (apart[pair] for pair in combinations(sorted(ids), 2) if pair in apart), None
            )
        case Split(class_id=class_id) if class_id not in own:
            return _find_reject(class_id, decisions)
        case Split() | Rename() | Reject():
            return own.get(suggestion.class_id)
    return None


def find_separations(decisions: Sequence[Decision]) -> dict[tuple[int, int], Edit]:
    """The first decision that set two classes apart, by their ids, the lower first.

    They hold different parts of a split, or a created class and the rest of a class of its nodes.
    """
    found: dict[tuple[int, int], Edit] = {}
    for number, edit in enumerate(decisions, start=1):
        match edit:
            case Split(parts=parts):
                pairs = list(combinations(parts, 2))
            case Create(class_id=int(made), sources=sources):
                pairs = [(made, source) for source in sources]
            case _:
                continue
        held = {c: trace(c, decisions[number:]) for pair in pairs for c in pair}
        for one, other in pairs:
            for a, b in product(held[one], held[other]):
                if a != b:
                    found.setdefault((min(a, b), max(a, b)), edit)
    return found


def _find_reject(class_id: int, decisions: Sequence[Decision]) -> Reject | None:
    """The rejection whose nodes are in this class: as a half of it they would be a class again."""
    for number, reject in enumerate(decisions, start=1):
        if isinstance(reject, Reject):
            held = [trace(to, decisions[number:]) for to in reject.to]
            if class_id in set().union(*held):
                return reject
    return None


def _find_move(nodes: set[str], class_id: int, decisions: Sequence[Decision]) -> Relabel | None:
    """The last relabel of one of these nodes, if it chose another class that still exists."""
    for move in reversed(decisions):
        if isinstance(move, Relabel) and not nodes.isdisjoint(map(str, move.nodes)):
            # Ids are never used again: edits before the relabel cannot concern its class.
            now = trace(move.class_id, decisions)
            return move if now and class_id not in now else None
    return None
