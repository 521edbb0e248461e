"""The page that a run keeps, ready to be served: found without loading PyTorch.

A page that can send nothing, and the same page where it may send a review.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

from nodenova.files import read_json
from nodenova.review.review_file import History, Review


def as_served(page: str) -> str:
    """A page that can send nothing, as one that may send a review to where it came from.

    Args:
        page: What `review_page` gave with served=False.

    Returns:
        What it gives with served=True, to the letter.
    """
    # The policy comes before any text of the user's, and no text in JSON or HTML has plain quotes.
    page = page.replace("connect-src 'none'", "connect-src 'self'", 1)
    return page.replace('"served":false', '"served":true', 1)


def is_current(page: str, model: str, edits: int, revision: int) -> bool:
    """Whether a page shows a run as it is now.

    Args:
        page: What `review_page` gave.
        model: The sha256 of the run's model.
        edits: How many decisions are part of that model.
        revision: Of the run.
    """
    # As the page has it, see `nodenova.review.page`.
    now = {"review": Review(model, after=revision).to_json(), "edits": edits}
    return json.dumps(now, separators=(",", ":"))[1:-1] + "," in page


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
