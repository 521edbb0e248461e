"""What is asked of a column before anybody knows what it holds: its values, how often each is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from nodenova.errors import GraphError
from nodenova.io.streamed import StreamedCells
from nodenova.io.tables import is_missing


class Counts(Collection[str], Protocol):
    """Different values and how often each is there, as a `Counter` tells."""

    def most_common(self, n: int | None = None) -> list[tuple[str, int]]:
        """The most frequent values; of two as frequent, the one that is there first."""


@dataclass(frozen=True, eq=False)
class Summary:
    """The cells of a column that are not empty, without spaces around them.

    Attributes:
        present: How many.
        counts: Their values.
        blank: Of these, what is empty after all, but for the spaces around it.
        texts: The cells; none where they were counted as they went by.
        counted_words: How many words they have, if they were counted as they went by.
    """

    present: int
    counts: Counts
    blank: Counter[str]
    texts: Sequence[str] = ()
    counted_words: int | None = None

    @property
    def words(self) -> int:
        """How many words they have."""
        if self.counted_words is not None:
            return self.counted_words
        return sum(len(cell.split()) for cell in self.texts)


def summary_of(cells: Sequence[str]) -> Summary:
    """Summarize a column.

    Raises:
        GraphError: Its cells hold several values.

    Examples:
        >>> found = summary_of(["red oak ", "NA", "elm", "elm"])
        >>> found.present, found.counts.most_common(1), found.words
        (3, [('elm', 2)], 4)
    """
    if isinstance(cells, StreamedCells):
        present, tally, blank, words = cells.summary
        return Summary(present, tally, blank, counted_words=words)
    texts = [cell.strip() for cell in cells if not is_missing(cell)]
    counts = Counter(texts)
    blank = Counter({value: count for value, count in counts.items() if is_missing(value)})
    return Summary(len(texts), counts, blank, texts)


def plain_summary(cells: Sequence[str]) -> Summary:
    """The same; a column whose cells hold several values counts as empty."""
    try:
        return summary_of(cells)
    except GraphError:
        return Summary(0, Counter(), Counter())
