"""Memory for many nodes: z in a file where it takes too much; what is free is given back."""

from __future__ import annotations

import ctypes
import sys
import tempfile
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

MAX_IN_MEMORY = 2**29  # bytes of z
ROWS = 65_536  # of a file that are mapped at a time while it is written


def give_back() -> None:
    """Have the C library return freed memory to the system; glibc keeps what threads have used."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if trim is not None:
            trim(0)


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
