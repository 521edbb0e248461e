"""Memory for many nodes: z in a file where it takes too much; what is free is used again."""

from __future__ import annotations

import ctypes
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from torch import Tensor

MAX_IN_MEMORY = 2**29  # bytes of z
ROWS = 65_536  # of a file that are mapped at a time while it is written


# Of glibc's mallopt(3): which memory it keeps, and asks the system for in pieces of its own.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEEPING = {TRIM_THRESHOLD: 2**31 - 1, MMAP_THRESHOLD: 400 * 2**20}  # what is larger goes back
AS_USUAL = {TRIM_THRESHOLD: 2**26, MMAP_THRESHOLD: 2**25}


@contextmanager
def reuse_freed_memory() -> Iterator[None]:
    """Within this block memory that is freed is used again, and given back at its end.

    A large array is asked of the system and given back each time, which clears every page of it
    anew: on a virtual machine a third of the time of a discovery. Where the C library is not
    glibc's, nothing changes.
    """
    _tell(KEEPING)
    try:
        yield
    finally:
        _tell(AS_USUAL)
        release_freed_memory()


def release_freed_memory() -> None:
    """Have the C library return freed memory to the system; glibc keeps what threads have used."""
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _tell(options: dict[int, int]) -> None:
    set_option = _of_glibc("mallopt")
    if set_option is not None:
        for option, value in options.items():
            set_option(option, value)


@cache
def _of_glibc(name: str) -> Callable[..., int] | None:
    """A function of the C library; None where another one has no such function."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def side_by_side(views: Iterable[Tensor], shape: tuple[int, int], device: torch.device) -> Tensor:
    """(N, hidden) what (N, columns) views come to, of which no more than one is held.

    Of many nodes it is a file, mapped into memory: rows are read as they are used, and dropped when
    memory runs short.

    Args:
        views: One after the other.
        shape: (N, hidden).
        device: Where to; a file is for the processor only.

    Examples:
        >>> side_by_side([torch.zeros(2, 1), torch.ones(2, 2)], (2, 3), torch.device("cpu"))
        tensor([[0., 1., 1.],
                [0., 1., 1.]])
    """
    if device.type != "cpu" or 4 * shape[0] * shape[1] <= MAX_IN_MEMORY:
        z = torch.empty(shape, device=device)
        start = 0
        view: Tensor | None
        for view in views:
            columns = slice(start, start + view.shape[1])
            z[:, columns].copy_(view)
            start, view = columns.stop, None  # before the next one is made
        return z
    with tempfile.TemporaryFile(prefix="nodenova-") as file:
        file.truncate(4 * shape[0] * shape[1])
        start = 0
        for view in views:
            columns = slice(start, start + view.shape[1])
            for first in range(0, shape[0], ROWS):
                rows = min(ROWS, shape[0] - first)
                place = (rows, shape[1])
                offset = 4 * first * shape[1]
                part = np.memmap(file, np.float32, "r+", offset=offset, shape=place)
                part[:, columns] = view[first : first + rows].numpy()
                del part  # what is not mapped counts for nothing
            start, view = columns.stop, None
        return torch.from_numpy(np.asarray(np.memmap(file, np.float32, "r+", shape=shape)))
