"""A column that is text to whoever reads it as a sequence, whatever its cells hold."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import overload


class TextColumn(Sequence[str]):
    """Cells as text; how many there are is known before any of them becomes one."""

    @property
    @abstractmethod
    def texts(self) -> Sequence[str]:
        """(N,) cells as text."""

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        return self.texts[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)
