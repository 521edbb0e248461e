"""Methods without labels in phase 2. To add one: write its file, add its line here (see CONTRIBUTING.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Protocol, runtime_checkable

from nodenova.errors import SettingError, one_of
from nodenova.methods.never_new import NeverNew
from nodenova.methods.sword import Sword
from nodenova.model import Model
from nodenova.task import NewTask


@runtime_checkable
class Method(Protocol):
    """A frozen dataclass: its fields are its settings, `discover` is its one function."""

    def discover(self, model: Model, task: NewTask) -> Model: ...


METHODS: dict[str, type[Any]] = {
    "sword": Sword,
    "never_new": NeverNew,
}


def make_method(name: str, settings: Mapping[str, str]) -> Method:
    """A method from its name and settings given as text, as on the command line: make_method("sword", {"eta": "0.5"})."""
    if name not in METHODS:
        raise one_of("method", name, METHODS)
    known = {f.name: f for f in fields(METHODS[name])}
    values: dict[str, object] = {}
    for key, text in settings.items():
        if key not in known:
            raise one_of(f"setting of {name}", key, known)
        values[key] = _parse(key, text, known[key].default)
    method: Method = METHODS[name](**values)
    return method


def _parse(key: str, text: str, default: object) -> object:
    kind = type(default)
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        return kind(text)  # type: ignore[call-arg]
    except (ValueError, KeyError):
        raise SettingError(f"{key} must be {kind.__name__} (like {default}), it is {text!r}") from None
