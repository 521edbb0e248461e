"""Classes in a user's file, named path/to/mine.py:Mine: methods and encoders of one's own."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodenova.errors import SettingError
from nodenova.files.content import open_file


@dataclass(frozen=True)
class Origin:
    """File and class of a user's method or encoder; a changed file has another digest."""

    name: str  # path/to/mine.py:Mine
    digest: str  # hash of the content of the file

    @property
    def class_name(self) -> str:
        return self.name.rpartition(":")[2]


def is_path(name: str) -> bool:
    """Return whether a name is that of a class in a file: mine.py:Mine."""
    return ".py:" in name or name.endswith(".py")


def load_class(name: str, what: str = "a method") -> tuple[type[Any], Origin]:
    """Run a user's file, like `import`, and return the class that `name` refers to."""
    path, code = _source(name, what)
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
    return found, Origin(name, hashlib.sha256(code).hexdigest()[:16])


def _source(name: str, what: str) -> tuple[Path, bytes]:
    """Return the path and the content of the file that a name refers to."""
    file, _, wanted = name.rpartition(":")
    if not file or not wanted.isidentifier():
        raise SettingError(f"{what} in a file is named path/to/mine.py:Mine, not {name!r}")
    path = Path(file)
    with open_file(path, SettingError) as code:
        return path, code.read()
