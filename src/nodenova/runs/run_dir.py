"""What a run folder holds, read without loading PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nodenova.errors import GraphError, StorageError, brief
from nodenova.files.documents import (
    boolean,
    check,
    list_of,
    map_of,
    number,
    plain,
    read_columns,
    read_json,
    record,
    text,
    to_number,
    to_whole,
    whole,
)
from nodenova.files.folders import is_empty, lock_folder, recover
from nodenova.model.classes import normalize_kind

FORMAT = "nodenova discovery"
RUN = record(
    {
        "version": whole(1, 1),
        "title": text,
        "facts": map_of(plain),
        "unsure_below": number(),
        "rows": list_of(map_of(plain)),
        "versions": map_of(text),
    },
    {  # younger than the first runs
        "keep_labels": boolean,
        "none_share": number(0, 1),
        "lineage": list_of(text),
        "moves": list_of(map_of(plain)),
        "reading": map_of(plain),
        "safe_csv": boolean,
        "held_out": record({"labels": whole(0), "right": whole(0), "in_new": whole(0)}),
        "calibration": map_of(number()),
        "suggested_names": map_of(text),
    },
)


def is_discovery(path: Path) -> bool:
    """Whether this is the folder of a discovery, not of a graded run or a saved model."""
    return (path / "features.json").is_file()


def run_document(path: Path) -> dict[str, Any]:
    """Read the run.json of a discovery."""
    document = _recognize(path)
    check(document, RUN, str(path / "run.json"))
    return document


def _recognize(path: Path) -> dict[str, Any]:
    """Read the run.json of a discovery, which may be damaged otherwise."""
    if path.is_dir():
        recover(path)
    if not (path / "run.json").is_file():
        what = "has no run.json" if path.is_dir() else "does not exist"
        raise StorageError(f"{path} is not a run of `nodenova discover`: it {what}")
    document: dict[str, Any] = read_json(path / "run.json")
    if document.get("format") != FORMAT:
        raise StorageError(
            f"{path} is not a run of `nodenova discover`: {path / 'run.json'} has another format"
        )
    return document


def check_place(path: Path, overwrite: bool) -> None:
    """Raise if a run may not be written to `path`; only another run may be overwritten."""
    if path.exists() and not path.is_dir():
        raise StorageError(f"{path} is a file, not a folder for a run")
    if path.is_dir():
        recover(path)
    if path.is_dir() and not is_empty(path):
        if not overwrite:
            raise StorageError(
                f"{path} is not empty; choose another --out, or give --overwrite to replace it"
            )
        _recognize(path)


@contextmanager
def reserve(path: Path, overwrite: bool) -> Iterator[None]:
    """Keep `path` for the run of this process: hours later it must still be free."""
    check_place(path, overwrite)
    with lock_folder(path):
        check_place(path, overwrite)
        yield


def read_predictions(path: Path) -> dict[str, list[Any]]:
    """Read the columns of a run's predictions.csv."""
    table = path / "predictions.csv"
    if not table.is_file():
        raise StorageError(f"{path} has no predictions.csv: nodenova report writes it")
    texts: dict[str, Callable[[str], Any]] = {"node": str, "kind": str}
    return read_columns(table, texts | {"class": to_whole, "probability": to_number})


def prediction_columns(
    path: Path, ids: Sequence[str], min_confidence: float
) -> dict[str, list[object]]:
    """Rows of predictions.csv for these nodes, by column and with typed values."""
    stored = read_predictions(path)
    row_of = {node: row for row, node in enumerate(stored["node"])}
    unknown = [node for node in ids if node not in row_of]
    if unknown:
        more = f", nor {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        raise GraphError(f"{path} has no node {brief(unknown[0])}{more}")
    rows = [row_of[node] for node in ids]
    columns: dict[str, list[object]] = {
        name: [cells[row] for row in rows] for name, cells in stored.items()
    }
    columns["kind"] = [normalize_kind(stored["kind"][row]) for row in rows]
    unsure = (stored["probability"][row] < min_confidence for row in rows)
    columns["unsure"] = ["yes" if is_unsure else "no" for is_unsure in unsure]
    return columns
