"""Provenance of a result: versions of packages and the git commit."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

PACKAGES = ("nodenova", "torch", "torch_geometric", "numpy", "scipy", "scikit-learn")


def versions() -> Mapping[str, str]:
    """Return the versions of Python and of the installed packages that decide a result."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


@cache
def commit() -> str | None:
    """Return the git commit of the code, with +changed if files differ, None if installed."""
    here = Path(__file__)

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here.parent), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
        return done.stdout.strip()

    try:
        # A package that is installed inside another repository is not tracked there.
        git("ls-files", "--error-unmatch", here.name)
        differs = git(
            "status", "--porcelain", "--untracked-files=no", "--", str(here.parent.parent)
        )
        return git("rev-parse", "HEAD") + ("+changed" if differs else "")
    except (OSError, subprocess.SubprocessError):
        return None
