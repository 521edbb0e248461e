"""A page that can send nothing, and the same page where it may send a review."""

from __future__ import annotations

import json

from nodenova.review.document import Review


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
