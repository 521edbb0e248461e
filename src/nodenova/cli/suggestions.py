"""What a run suggests, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from nodenova.cli.app import out

if TYPE_CHECKING:
    from nodenova.review.run import DiscoveryRun

MOST = 3  # sentences after a discovery


def print_suggestions(run: DiscoveryRun, most: int | None = MOST) -> None:
    """The strongest suggestions of a run, a line each; nothing where there are none.

    Args:
        run: Whose.
        most: How many lines at the most.
    """
    _print(run.suggestions.sentences({info.id: info.name for info in run.classes}, most))


def print_kept_suggestions(path: Path, most: int | None = MOST) -> None:
    """The same of a run in a folder, as its files say it; nothing where it has none.

    Args:
        path: Of the folder.
        most: How many lines at the most.
    """
    from nodenova.review.kept_page import kept_names
    from nodenova.review.suggestions import Suggestions

    if (path / "suggestions.json").is_file():
        _print(Suggestions.load(path).sentences(kept_names(path), most))


def _print(said: Sequence[str]) -> None:
    if said:
        out.print("\nSuggested:")
    for sentence in said:
        out.print(f"- {escape(sentence)}", highlight=False, soft_wrap=True)
