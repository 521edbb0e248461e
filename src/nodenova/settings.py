"""Settings where they enter: declared on a field, read from text, and checked."""

from __future__ import annotations

import math
from dataclasses import field, fields
from numbers import Integral
from typing import Any

from nodenova.errors import SettingError


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
