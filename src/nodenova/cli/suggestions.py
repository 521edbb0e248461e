"""What a run suggests, on the terminal."""

from __future__ import annotations

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
    names = {info.id: info.name for info in run.classes}
    said = run.suggestions.sentences(names, most)
    if said:
        out.print("\nSuggested:")
    for sentence in said:
        out.print(f"- {escape(sentence)}", highlight=False, soft_wrap=True)
