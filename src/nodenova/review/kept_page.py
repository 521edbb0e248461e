"""The page that a run keeps, ready to be served: found without loading PyTorch."""

from __future__ import annotations

import csv
from pathlib import Path

from nodenova.files import read_json
from nodenova.review.history import History
from nodenova.review.served import as_served, is_current


def kept_page(folder: Path) -> str | None:
    """The page of a run as it is served.

    Args:
        folder: Of the run.

    Returns:
        None if there is none, or one of the model as it was before.
    """
    page, model = folder / "report.html", folder / "model" / "model.json"
    if not page.is_file() or not model.is_file():
        return None
    document = read_json(model)
    content = page.read_text(encoding="utf-8")
    digest, edits = str(document.get("sha256")), len(document.get("edits", ()))
    if not is_current(content, digest, edits, History.read(folder).revision):
        return None
    return as_served(content)


def kept_names(folder: Path) -> dict[int, str]:
    """What the classes of a run are called, by id, as its classes.csv says."""
    with (folder / "classes.csv").open(newline="", encoding="utf-8") as file:
        return {int(line["id"]): line["name"] for line in csv.DictReader(file)}
