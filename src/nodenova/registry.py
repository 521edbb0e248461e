"""Registries of strings: names, titles and settings are known before a class is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from nodenova.errors import one_of
from nodenova.settings import from_text


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
