"""What a run folder holds, read without loading PyTorch."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nodenova.errors import GraphError, StorageError
from nodenova.files import read_json
from nodenova.model.classes import normalize_kind

FORMAT = "nodenova discovery"


def is_discovery(path: Path) -> bool:
    """Whether this is the folder of a discovery, not of a graded run or a saved model."""
    return (path / "features.json").is_file()


def run_document(path: Path) -> dict[str, Any]:
    """Read the run.json of a discovery."""
    if not (path / "run.json").is_file():
        what = "has no run.json" if path.is_dir() else "does not exist"
        raise StorageError(f"{path} is not a run of `nodenova discover`: it {what}")
    document = read_json(path / "run.json")
    if document.get("format") != FORMAT:
        raise StorageError(
            f"{path} is not a run of `nodenova discover`: {path / 'run.json'} has another format"
        )
    return document


def check_place(path: Path, overwrite: bool) -> None:
    """Raise if a run may not be written to `path`; only another run may be overwritten."""
    if path.exists() and not path.is_dir():
        raise StorageError(f"{path} is a file, not a folder for a run")
    if path.is_dir() and any(path.iterdir()):
        if not overwrite:
            raise StorageError(
                f"{path} is not empty; choose another --out, or give --overwrite to replace it"
            )
        run_document(path)


def read_predictions(path: Path) -> list[dict[str, str]]:
    """Read the rows of a run's predictions.csv."""
    table = path / "predictions.csv"
    if not table.is_file():
        raise StorageError(f"{path} has no predictions.csv: nodenova report writes it")
    with table.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def prediction_columns(
    path: Path, ids: Sequence[str], min_confidence: float
) -> dict[str, list[object]]:
    """Rows of predictions.csv for these nodes, by column and with typed values."""
    rows_by_node = {row["node"]: row for row in read_predictions(path)}
    unknown = [node for node in ids if node not in rows_by_node]
    if unknown:
        more = f", nor {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        raise GraphError(f"{path} has no node {unknown[0]!r}{more}")
    rows = [rows_by_node[node] for node in ids]
    columns: dict[str, list[object]] = {name: [row[name] for row in rows] for name in rows[0]}
    probability = [float(row["probability"]) for row in rows]
    columns["class"] = [int(row["class"]) for row in rows]
    columns["kind"] = [normalize_kind(row["kind"]) for row in rows]
    columns["probability"] = list(probability)
    columns["unsure"] = ["yes" if p < min_confidence else "no" for p in probability]
    return columns
