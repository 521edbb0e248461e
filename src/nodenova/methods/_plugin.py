"""A user's own method from a file: path/to/mine.py:Mine."""

from __future__ import annotations

import copyreg
import hashlib
import importlib.util
import sys
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from nodenova.errors import SettingError


@dataclass(frozen=True)
class Origin:
    """Where a user's own method comes from. A changed file gives another method and digest.

    Attributes:
        name: path/to/mine.py:Mine.
        digest: Of the file's content.
    """

    name: str
    digest: str

    @property
    def class_name(self) -> str:
        return self.name.rpartition(":")[2]


_ORIGINS: dict[type[Any], Origin] = {}


def is_own(name: str) -> bool:
    """Whether a method's name is a file's and a class's: mine.py:Mine."""
    return ".py:" in name or name.endswith(".py")


def own_method(name: str) -> type[Any]:
    """The class of a user's own method. Its file is run, as `import` would.

    Args:
        name: path/to/mine.py:Mine.

    Raises:
        SettingError: The file cannot be read or run, or the class is not there or not a method.
    """
    path, code = _source(name)
    _, _, wanted = name.rpartition(":")
    # The same file gives the same module, so that two looks at it are the same class.
    digest = hashlib.sha256(str(path.resolve()).encode() + code).hexdigest()[:16]
    module_name = f"nodenova_own_{digest}"
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module  # dataclasses look their module up while they are made
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[module_name]
            said = f"{type(error).__name__}: {error}"
            raise SettingError(f"{path}: cannot be imported ({said})") from error
    found = getattr(sys.modules[module_name], wanted, None)
    if not isinstance(found, type):
        raise SettingError(f"{path} has no class {wanted}")
    if not is_dataclass(found) or not callable(getattr(found, "discover", None)):
        raise SettingError(
            f"{path}:{wanted} is not a method: "
            "it must be a dataclass with a function discover(self, model, task)"
        )
    bare = [f.name for f in fields(found) if f.default is MISSING and f.default_factory is MISSING]
    if bare:
        raise SettingError(f"{path}:{wanted}: every setting needs a default, {bare[0]} has none")
    if found not in _ORIGINS:
        _ORIGINS[found] = Origin(name, hashlib.sha256(code).hexdigest()[:16])
        copyreg.pickle(found, _reduce)
    return found


def origin_of(method: object) -> Origin | None:
    """The file and the class of a user's own method; None for any other."""
    return _ORIGINS.get(type(method))


def _reduce(method: Any) -> tuple[Any, ...]:
    """Another process has not imported the file: a method goes as its name and its settings."""
    values = {f.name: getattr(method, f.name) for f in fields(method) if f.init}
    return _restored, (_ORIGINS[type(method)].name, values)


def _restored(name: str, values: dict[str, object]) -> Any:
    return own_method(name)(**values)


def _source(name: str) -> tuple[Path, bytes]:
    file, _, wanted = name.rpartition(":")
    if not file or not wanted.isidentifier():
        raise SettingError(f"a method of your own is given as path/to/mine.py:Mine, not {name!r}")
    path = Path(file)
    try:
        return path, path.read_bytes()
    except OSError as error:
        raise SettingError(f"{path}: cannot be read ({error.strerror})") from error
