"""Columns of values as JSON and NetworkX have them: text to whoever reads them as a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from nodenova.io.frames import is_several, refuse_several, text_of
from nodenova.io.text_column import TextColumn


@dataclass(frozen=True, eq=False)
class Values(TextColumn):
    """A column in which some cells hold lists or records.

    Attributes:
        values: (N,) what the cells hold, None where there is nothing.
        source: What messages call the table.
        name: What messages call the column.
        unit: What messages count the cells in.
    """

    values: Sequence[object]
    source: str
    name: str
    unit: str = "row"

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def texts(self) -> list[str]:
        """(N,) cells as text.

        Raises:
            GraphError: A cell holds several values.
        """
        refuse_several(self.values, self.source, self.name, unit=self.unit)
        return [text_of(value) for value in self.values]


def column_of(values: Sequence[object], source: str, name: str, unit: str) -> Sequence[str]:
    """A column as text; as `Values` where a cell holds a list or a record.

    Args:
        values: (N,) what the cells hold, None where there is nothing.
        source: What messages call the table.
        name: What messages call the column.
        unit: What messages count the cells in.

    Examples:
        >>> column_of([1, None, "a"], "nodes", "kind", "row")
        ['1', '', 'a']
        >>> type(column_of([[0.5, 1.5], None], "nodes", "v", "row")).__name__
        'Values'
    """
    if any(map(is_several, values)):
        return Values(values, source, name, unit)
    return [text_of(value) for value in values]
