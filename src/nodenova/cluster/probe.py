"""What a machine of a cluster has.

This module is sent as it is: it runs where nodenova may not be installed.
"""

from __future__ import annotations

import importlib
from pathlib import Path


def look(file: str | None = None) -> tuple[str | None, bytes | None]:
    """The version of nodenova here, and what is in a file.

    Args:
        file: Its path, if one is asked for.

    Returns:
        Each is None where there is none.

    Examples:
        >>> version, content = look(__file__)
        >>> version is not None, content is not None
        (True, True)
    """
    try:
        version = str(importlib.import_module("nodenova").__version__)
        importlib.import_module("nodenova.cluster")
    except (ImportError, AttributeError):
        return None, None
    try:
        return version, None if file is None else Path(file).read_bytes()
    except OSError:
        return version, None
