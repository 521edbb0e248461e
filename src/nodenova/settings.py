"""Settings of methods, and the registries that list methods by name.

A setting is declared on a field, read from text and checked here. A registry knows names, titles
and settings as strings, before any class is imported.
"""

from __future__ import annotations

import math
import os
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, fields
from functools import cache
from importlib import import_module
from numbers import Integral, Real
from os import PathLike
from types import SimpleNamespace, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from nodenova.errors import SettingError, brief, one_of


def setting(default: Any, *, at_least: float | None = None, above: float | None = None) -> Any:
    """Declare a field of a method's dataclass together with its bounds; see `check_settings`.

    Args:
        default: Default value.
        at_least: Lowest possible value.
        above: Exclusive lower bound.

    Examples:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Mine:
        ...     epochs: int = setting(200, at_least=1)
        ...     def __post_init__(self) -> None:
        ...         check_settings(self)
        >>> Mine(epochs=0)
        Traceback (most recent call last):
        ...
        nodenova.errors.SettingError: epochs must be at least 1, it is 0
    """
    return field(default=default, metadata={"at_least": at_least, "above": above})


def choice(default: str, *others: str) -> Any:
    """Declare a field that holds one of several words.

    Args:
        default: Default word.
        *others: Other possible words.
    """
    return field(default=default, metadata={"one_of": (default, *others)})


def check_settings(method: object) -> None:
    """Raise unless int fields are whole numbers and every field is within its bounds.

    Args:
        method: Dataclass whose fields were declared by `setting` and `choice`.

    Raises:
        SettingError: If a field has an impossible value.
    """
    for each in fields(method):  # type: ignore[arg-type]
        name, value = each.name, getattr(method, each.name)
        at_least, above, known = (each.metadata.get(key) for key in ("at_least", "above", "one_of"))
        if each.type == "int" and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise SettingError(f"{name} must be a whole number, it is {brief(value)}")
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if (above is not None or at_least is not None) and not is_number:
            raise SettingError(f"{name} must be a number, it is {brief(value)}")
        if above is not None and not above < value < math.inf:
            bound = "positive" if above == 0 else f"above {above:g}"
            raise SettingError(f"{name} must be {bound}, it is {value}")
        if at_least is not None and not at_least <= value < math.inf:
            bound = "not be negative" if at_least == 0 else f"be at least {at_least:g}"
            raise SettingError(f"{name} must {bound}, it is {value}")
        if known is not None and value not in known:
            raise SettingError(f"{name} must be one of {', '.join(known)}, it is {value!r}")


def from_text(key: str, text: str, default: object) -> object:
    """Convert the text of a setting to the type of its default.

    Args:
        key: Name of the setting, for the error message.
        text: Text from the command line.
        default: Any value of the wanted type.

    Raises:
        SettingError: If the text cannot be converted.

    Examples:
        >>> from_text("lr", "0.1", default=0.01), from_text("refit", "False", default=True)
        (0.1, False)
    """
    kind = type(default)
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        return kind(text)  # type: ignore[call-arg]
    except (ValueError, KeyError):
        raise SettingError(
            f"{key} must be {kind.__name__} (like {default}), it is {text!r}"
        ) from None


class Entry:
    """One method of a registry.

    Args:
        path: Module and class, `package.module:Class`.
        title: Name in tables.
        **settings: Default of every setting of the class.
    """

    def __init__(self, path: str, title: str, /, **settings: Any) -> None:
        self.path, self.title, self.settings = path, title, settings


class Registry(Mapping[str, type[Any]]):
    """A mapping from names to classes that imports a class when it is first looked up.

    Args:
        entries: Entry of every name.

    Examples:
        >>> methods = Registry({"sword": Entry("nodenova.methods.sword:Sword", "SWORD")})
        >>> list(methods), methods.titles
        (['sword'], {'sword': 'SWORD'})
        >>> methods["sword"]
        <class 'nodenova.methods.sword.Sword'>
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = dict(entries)

    def __getitem__(self, name: str) -> type[Any]:
        module, _, class_name = self.entries[name].path.partition(":")
        return getattr(import_module(module), class_name)

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __or__(self, other: Registry) -> Registry:
        return Registry(self.entries | other.entries)

    @property
    def titles(self) -> dict[str, str]:
        """Title of every name."""
        return {name: entry.title for name, entry in self.entries.items()}

    def name_of(self, kind: type) -> str | None:
        """Return the name of a class, None if it is not registered."""
        path = f"{kind.__module__}:{kind.__qualname__}"
        return next((name for name, entry in self.entries.items() if entry.path == path), None)

    def check_settings(self, name: str, settings: Mapping[str, str]) -> None:
        """Validate the names and types of settings given as text, without importing the class.

        Raises:
            SettingError: If a setting is unknown or its text has another type.
        """
        known = self.entries[name].settings
        for key, text in settings.items():
            if key not in known:
                raise one_of(f"setting of {name}", key, known)
            from_text(key, text, known[key])


def check_arguments(function: Callable[..., Any] | type, values: Mapping[str, Any]) -> None:
    """Raise a SettingError unless arguments of a function, or fields of a class, fit their types.

    A whole number is fine for a float, numbers of NumPy are fine, and any iterable is fine for a
    list, a tuple or a sequence. Arrays are not compared: what they hold is checked where it is
    used.

    Args:
        function: Function whose annotations are compared; its first line passes `locals()`.
        values: Arguments by name; those without an annotation are skipped.

    Raises:
        SettingError: If an argument has another type.

    Examples:
        >>> def draw(count: int, name: str | None = None) -> None: ...
        >>> check_arguments(draw, {"count": 3, "name": "oak"})
        >>> check_arguments(draw, {"count": "oak"})
        Traceback (most recent call last):
        ...
        nodenova.errors.SettingError: count must be int, it is 'oak'
    """
    for name, (text, hint) in _hints(function).items():
        if name in values and not _fits(values[name], hint):
            raise SettingError(f"{name} must be {text}, it is {brief(values[name])}")
        if name in values and "PathLike" in text:
            check_path(values[name], name)


def check_probability(value: float, name: str = "min_confidence") -> None:
    """Raise SettingError unless a value is in [0, 1]."""
    if not 0 <= value <= 1:
        raise SettingError(f"{name} is a probability from 0 to 1, not {value}")


def check_path(value: object, name: str) -> None:
    """Raise a SettingError for a path that the file system cannot have; other values are skipped.

    Examples:
        >>> check_path("nowhere.csv", "nodes")
        >>> try:
        ...     check_path("a" * 9999, "nodes")
        ... except SettingError as error:
        ...     print(error)
        nodes: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...' is no path
    """
    if not isinstance(value, str | PathLike):
        return
    try:
        os.lstat(value)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    except (OSError, ValueError):  # too long, a NUL byte, half of a surrogate pair
        raise SettingError(f"{name}: {brief(str(value))} is no path") from None


@cache
def _hints(function: Callable[..., Any] | type) -> dict[str, tuple[str, Any]]:
    """Annotations by name, as text and evaluated."""
    known = vars(typing) | vars(sys.modules[function.__module__])
    notes = {name: text for name, text in function.__annotations__.items() if type(text) is str}
    return {name: (text, _evaluate(text, known)) for name, text in notes.items()}


def _evaluate(text: str, known: dict[str, Any]) -> Any:
    """An annotation; a name that is not imported stays text, several are a tuple."""
    if "[" not in text and " | " in text:
        return tuple(_evaluate(part, known) for part in text.split(" | "))
    try:
        hint = get_type_hints(SimpleNamespace(__annotations__={"it": text}), known)["it"]
    except (NameError, TypeError):  # a TypeError for an alias that is text, in a union
        return text if text.isidentifier() else Any
    return _evaluate(hint, known) if isinstance(hint, str) else hint


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value fits an evaluated annotation."""
    origin = get_origin(hint)
    if isinstance(hint, tuple) or origin in (Union, UnionType):
        options = hint if isinstance(hint, tuple) else get_args(hint)
        return any(_fits(value, option) for option in options)
    if origin is Literal:
        return isinstance(value, str)  # which word it is, is checked where it is used
    if isinstance(hint, str):
        return hint in {kind.__name__ for kind in type(value).__mro__}
    kind = hint if origin is None else origin
    if kind is None:
        return value is None
    if kind in (int, bool):
        return isinstance(value, Integral) or type(value).__name__ in ("bool", "bool_")
    if kind is float:
        return isinstance(value, Real)
    if not isinstance(kind, type) or kind.__name__ == "ndarray":
        return True
    try:
        if issubclass(kind, Iterable) and not issubclass(kind, str | Mapping):
            return isinstance(value, Iterable)
        return isinstance(value, kind)
    except TypeError:  # a protocol
        return True
