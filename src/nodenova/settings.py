"""Settings where they enter: read from text, and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Integral

from nodenova.errors import SettingError


def check_settings(
    method: object,
    *,
    counts: Sequence[str] = (),
    positive: Sequence[str] = (),
    not_negative: Sequence[str] = (),
    choices: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Raise unless int fields are whole numbers, and the named ones from 1 on, positive, not negative, or a choice."""
    for field in fields(method):  # type: ignore[arg-type]
        value = getattr(method, field.name)
        if field.type == "int" and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise SettingError(f"{field.name} must be a whole number, it is {value!r}")
    for name in counts:
        if getattr(method, name) < 1:
            raise SettingError(f"{name} must be at least 1, it is {getattr(method, name)}")
    for name in positive:
        if not 0 < getattr(method, name) < math.inf:
            raise SettingError(f"{name} must be positive, it is {getattr(method, name)}")
    for name in not_negative:
        if not 0 <= getattr(method, name) < math.inf:
            raise SettingError(f"{name} must not be negative, it is {getattr(method, name)}")
    for name, known in (choices or {}).items():
        if getattr(method, name) not in known:
            raise SettingError(f"{name} must be one of {', '.join(known)}, it is {getattr(method, name)!r}")


def from_text(key: str, text: str, default: object) -> object:
    """A setting given as text, as on the command line, in the type of its default."""
    kind = type(default)
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        return kind(text)  # type: ignore[call-arg]
    except (ValueError, KeyError):
        raise SettingError(f"{key} must be {kind.__name__} (like {default}), it is {text!r}") from None
