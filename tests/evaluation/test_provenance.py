"""What code made a result."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nodenova.evaluation import graded as provenance


@pytest.fixture
def fresh() -> Iterator[None]:
    """The commit is asked for once in a process."""
    provenance.commit.cache_clear()
    yield
    provenance.commit.cache_clear()


def test_versions_are_those_that_run_and_what_is_not_installed_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provenance, "PACKAGES", ("numpy", "no-such-package"))
    assert provenance.versions() == {"python": platform.python_version(), "numpy": np.__version__}


@pytest.mark.usefixtures("fresh")
def test_the_commit_is_that_of_the_code_and_says_whether_it_was_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = tmp_path / "src" / "package" / "room" / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text("x = 1\n")
    monkeypatch.setattr(provenance, "__file__", str(module))

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(tmp_path), *who, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "--quiet")
    assert provenance.commit() is None  # installed inside somebody else's repository
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    provenance.commit.cache_clear()
    assert provenance.commit() == git("rev-parse", "HEAD")
    (module.parent.parent / "other.py").write_text("y = 1\n")  # not followed by git: no change
    provenance.commit.cache_clear()
    assert re.fullmatch("[0-9a-f]{40}", str(provenance.commit()))
    module.write_text("x = 2\n")
    provenance.commit.cache_clear()
    assert provenance.commit() == git("rev-parse", "HEAD") + "+changed"
