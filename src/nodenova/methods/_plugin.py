"""Methods in a user's file, named path/to/mine.py:Mine."""

from __future__ import annotations

import copyreg
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from nodenova.errors import SettingError
from nodenova.files.own_code import Origin, load_class

_ORIGINS: dict[type[Any], Origin] = {}


def load_from_file(name: str) -> type[Any]:
    """Run a user's file, like `import`, and return the method class that `name` refers to."""
    found, origin = load_class(name)
    if not is_dataclass(found) or not callable(getattr(found, "discover", None)):
        raise SettingError(
            f"{name} is not a method: "
            "it must be a dataclass with a function discover(self, model, task)"
        )
    bare = [f.name for f in fields(found) if f.default is MISSING and f.default_factory is MISSING]
    if bare:
        raise SettingError(f"{name}: every setting needs a default, {bare[0]} has none")
    if found not in _ORIGINS:
        _ORIGINS[found] = origin
        copyreg.pickle(found, _reduce)
    return found


def origin_of(method: object) -> Origin | None:
    """Return the file and the class of a user's method, None for any other method."""
    return _ORIGINS.get(type(method))


def _reduce(method: Any) -> tuple[Any, ...]:
    """Pickle a method as its name and settings: another process has not imported the file."""
    values = {f.name: getattr(method, f.name) for f in fields(method) if f.init}
    return _restore, (_ORIGINS[type(method)].name, values)


def _restore(name: str, values: dict[str, object]) -> Any:
    """Build the method that `_reduce` pickled."""
    return load_from_file(name)(**values)
