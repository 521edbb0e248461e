"""Whether a folder holds a discovery, or may be written to: answered without loading PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nodenova.errors import StorageError
from nodenova.files import read_json

FORMAT = "nodenova discovery"


def is_discovery(path: Path) -> bool:
    """Whether this folder is of a discovery on a graph of one's own.

    Other folders are of a graded run or a saved model.
    """
    return (path / "features.json").is_file()


def run_document(path: Path) -> dict[str, Any]:
    """The run.json of a discovery.

    Raises:
        StorageError: The folder is not of a discovery, or not there.
    """
    if not (path / "run.json").is_file():
        what = "has no run.json" if path.is_dir() else "does not exist"
        raise StorageError(f"{path} is not a run of `nodenova discover`: it {what}")
    document = read_json(path / "run.json")
    if document.get("format") != FORMAT:
        raise StorageError(
            f"{path} is not a run of `nodenova discover`; {path / 'run.json'} is of something else"
        )
    return document


def check_place(path: Path, overwrite: bool) -> None:
    """Raise, before anything is computed, if a run may not be written there.

    Args:
        path: The folder to be.
        overwrite: Whether a run that is there may be replaced; anything else may not.

    Raises:
        StorageError: There is a file, or a folder that is not empty and may not be replaced.
    """
    if path.exists() and not path.is_dir():
        raise StorageError(f"{path} is a file, not a folder for a run")
    if path.is_dir() and any(path.iterdir()):
        if not overwrite:
            raise StorageError(
                f"{path} is not empty; choose another --out, or give --overwrite to replace it"
            )
        run_document(path)
