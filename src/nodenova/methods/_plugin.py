"""Methods in a user's file, named path/to/mine.py:Mine."""

from __future__ import annotations

import copyreg
import hashlib
import importlib.util
import sys
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from nodenova.errors import SettingError
from nodenova.files.content import open_file


@dataclass(frozen=True)
class Origin:
    """File and class of a user's method; a changed file has another digest."""

    name: str  # path/to/mine.py:Mine
    digest: str  # hash of the content of the file

    @property
    def class_name(self) -> str:
        return self.name.rpartition(":")[2]


_ORIGINS: dict[type[Any], Origin] = {}


def is_path(name: str) -> bool:
    """Return whether the name of a method is a file and a class: mine.py:Mine."""
    return ".py:" in name or name.endswith(".py")


def load_from_file(name: str) -> type[Any]:
    """Run a user's file, like `import`, and return the method class that `name` refers to."""
    path, code = _source(name)
    _, _, wanted = name.rpartition(":")
    # The same file gives the same module, so that loading it twice gives the same class.
    digest = hashlib.sha256(str(path.resolve()).encode() + code).hexdigest()[:16]
    module_name = f"nodenova_own_{digest}"
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module  # dataclasses look up their module while they are built
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[module_name]
            reason = f"{type(error).__name__}: {error}"
            raise SettingError(f"{path}: cannot be imported ({reason})") from error
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
    """Return the file and the class of a user's method, None for any other method."""
    return _ORIGINS.get(type(method))


def _reduce(method: Any) -> tuple[Any, ...]:
    """Pickle a method as its name and settings: another process has not imported the file."""
    values = {f.name: getattr(method, f.name) for f in fields(method) if f.init}
    return _restore, (_ORIGINS[type(method)].name, values)


def _restore(name: str, values: dict[str, object]) -> Any:
    """Build the method that `_reduce` pickled."""
    return load_from_file(name)(**values)


def _source(name: str) -> tuple[Path, bytes]:
    """Return the path and the content of the file that a method's name refers to."""
    file, _, wanted = name.rpartition(":")
    if not file or not wanted.isidentifier():
        raise SettingError(f"a method in a file is named path/to/mine.py:Mine, not {name!r}")
    path = Path(file)
    with open_file(path, SettingError) as code:
        return path, code.read()
