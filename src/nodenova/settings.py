"""Settings where they enter: declared on a field, read from text, and checked."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from numbers import Integral
from typing import Any, ParamSpec, TypeVar

from nodenova.errors import SettingError, warn_renamed

AType = TypeVar("AType")
T = TypeVar("T")
P = ParamSpec("P")


def setting(default: Any, *, at_least: float | None = None, above: float | None = None) -> Any:
    """A field of a method's dataclass with what its value must be; see `check_settings`.

    Args:
        default: What it is unless given.
        at_least: The lowest value that is possible.
        above: What every possible value lies above.

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
    """A field that is one of several words.

    Args:
        default: What it is unless given.
        *others: What else it may be.
    """
    return field(default=default, metadata={"one_of": (default, *others)})


def check_settings(method: object) -> None:
    """Raise unless int fields are whole numbers and every field is what its `setting` says.

    Args:
        method: A dataclass whose fields were made by `setting` and `choice`.

    Raises:
        SettingError: A field is not what it must be.
    """
    for each in fields(method):  # type: ignore[arg-type]
        name, value = each.name, getattr(method, each.name)
        at_least, above, known = (each.metadata.get(key) for key in ("at_least", "above", "one_of"))
        if each.type == "int" and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise SettingError(f"{name} must be a whole number, it is {value!r}")
        if above is not None and not above < value < math.inf:
            said = "positive" if above == 0 else f"above {above:g}"
            raise SettingError(f"{name} must be {said}, it is {value}")
        if at_least is not None and not at_least <= value < math.inf:
            said = "not be negative" if at_least == 0 else f"be at least {at_least:g}"
            raise SettingError(f"{name} must {said}, it is {value}")
        if known is not None and value not in known:
            raise SettingError(f"{name} must be one of {', '.join(known)}, it is {value!r}")


def from_text(key: str, text: str, default: object) -> object:
    """A setting given as text, as on the command line, in the type of its default.

    Args:
        key: Its name, for the error.
        text: What was given.
        default: Of the type that is wanted.

    Raises:
        SettingError: The text is no such value.

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


def accepts_old_names(
    renamed: Mapping[str, str],
    moved: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
) -> Callable[[type[AType]], type[AType]]:
    """A class whose settings may still be given by the names they had, with a DeprecationWarning.

    Args:
        renamed: {old name: new name}.
        moved: {name: what to say} of settings that are elsewhere now; `{name}` stands for the name.
        values: {setting: {old value: new value}}.

    Returns:
        A decorator for the class.
    """

    def decorate(kind: type[AType]) -> type[AType]:
        init = kind.__init__

        @functools.wraps(init)
        def with_old_names(self: Any, *args: Any, **settings: Any) -> None:
            init(self, *args, **current_names(kind, settings))

        kind.__init__ = with_old_names  # type: ignore[method-assign]
        kind.OLD_NAMES = dict(renamed)  # type: ignore[attr-defined]
        kind.MOVED = dict(moved or {})  # type: ignore[attr-defined]
        kind.OLD_VALUES = dict(values or {})  # type: ignore[attr-defined]
        return kind

    return decorate


def accepts_old_arguments(**renamed: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function whose arguments may still be given by the names they had.

    Args:
        **renamed: old_name="new_name".

    Returns:
        A decorator for the function.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def with_old_names(*args: P.args, **kwargs: P.kwargs) -> T:
            for old, new in renamed.items():
                if old in kwargs:
                    warn_renamed(f"{function.__name__}({old}=...)", f"{new}", stacklevel=3)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return with_old_names

    return decorate


def current_names(kind: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a class by the names they have now.

    Args:
        kind: The class, as `accepts_old_names` left it.
        settings: By old names or new ones.

    Raises:
        SettingError: One of them is elsewhere now.
    """
    renamed: Mapping[str, str] = getattr(kind, "OLD_NAMES", {})
    for name, sentence in getattr(kind, "MOVED", {}).items():
        if name in settings:
            raise SettingError(sentence.format(name=name))
    for name in settings:
        if name in renamed:
            warn_renamed(name, renamed[name], stacklevel=4)
    now = {renamed.get(name, name): value for name, value in settings.items()}
    for name, known in getattr(kind, "OLD_VALUES", {}).items():
        if isinstance(now.get(name), str) and now[name] in known:
            warn_renamed(f"{name}={now[name]}", f"{name}={known[now[name]]}", stacklevel=4)
            now[name] = known[now[name]]
    return now
