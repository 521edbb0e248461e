"""What a machine of the cluster has; sent by value, to run where nodenova may be missing."""

from __future__ import annotations

import importlib
from pathlib import Path


def look(file: str | None = None) -> tuple[str | None, bytes | None]:
    """Return the version of nodenova and the content of a file on this machine, or None."""
    try:
        version = str(importlib.import_module("nodenova").__version__)
        importlib.import_module("nodenova.cluster")
    except (ImportError, AttributeError):
        return None, None
    try:
        return version, None if file is None else Path(file).read_bytes()
    except OSError:
        return version, None
