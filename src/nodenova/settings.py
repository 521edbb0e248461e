"""Checking a method's settings where they enter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from nodenova.errors import SettingError


def check_settings(
    method: object,
    *,
    counts: Sequence[str] = (),
    positive: Sequence[str] = (),
    not_negative: Sequence[str] = (),
    choices: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Raise unless the named fields are whole numbers from 1 on, positive, not negative, or one of their choices."""
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
