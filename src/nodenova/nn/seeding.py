"""Random numbers, threads, devices and memory: what makes `fit` and `discover` pure functions."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Literal, TypeAlias

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor

from nodenova.errors import SettingError, brief, check_seed

Threads: TypeAlias = 'int | Literal["auto"]'
MAX_IN_MEMORY = 2**29  # bytes of z
ROWS = 65_536  # rows of a file that are mapped at a time while it is written
MIN_DIVIDED = 2_000_000  # multiplications from which on threads are worth being woken
# A context variable, as products deep inside a layer have no argument for it.
_THREADS: ContextVar[int | None] = ContextVar("threads", default=None)


@contextmanager
def repeatable(seed: int, phase: str, threads: Threads = "auto") -> Iterator[None]:
    """Run a block with its own generator, seeded by `seed` and `phase`, and a fixed number of
    threads.

    The caller's random state and thread count are restored.
    """
    check_seed(seed)
    digest = hashlib.sha256(f"{seed}/{phase}".encode()).digest()
    with fixed_threads(threads), torch.random.fork_rng():
        torch.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        yield


@contextmanager
def fixed_threads(threads: Threads = "auto") -> Iterator[None]:
    """Run a block whose results do not depend on the number of threads.

    Sparse products are divided by columns or rows, each added up by one thread in one order. All
    else runs on one thread: a divided sum over nodes would differ in its last bits. "auto" is the
    number of an enclosing block, or else all cores, at most OMP_NUM_THREADS.
    """
    outermost = _THREADS.get() is None
    token = _THREADS.set(num_threads(threads))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        # NumPy, SciPy and scikit-learn have one thread as well.
        with threadpool_limits(1), reuse_freed_memory() if outermost else nullcontext():
            yield
    finally:
        torch.set_num_threads(before)
        _THREADS.reset(token)


def num_threads(threads: Threads) -> int:
    """The number of threads for "auto" here, or the number itself, checked."""
    if threads == "auto":
        most = os.environ.get("OMP_NUM_THREADS", "")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        cores = cores or os.cpu_count() or 1
        return _THREADS.get() or min(cores, int(most) if most.isdigit() and int(most) else cores)
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise SettingError(f'threads is "auto" or a whole number from 1 on, not {threads!r}')
    return threads


@contextmanager
def threads_by_rows(operations: int) -> Iterator[None]:
    """Within `fixed_threads`, run a block that is divided by rows on all threads if it is large."""
    threads, before = _THREADS.get(), torch.get_num_threads()
    if threads is None or threads == before or operations < MIN_DIVIDED:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def on_threads(work: Callable[[int], None], numbers: Iterable[int]) -> None:
    """Within `fixed_threads`, run independent pieces of work on all threads, each piece on one.

    `work(number)` writes where no other piece writes. Threads with pieces of their own do not wait
    for each other after every product.
    """
    threads = _THREADS.get() or 1
    if threads == 1:
        for number in numbers:
            work(number)
        return

    def alone(number: int) -> None:
        with torch.no_grad():  # a new thread does not inherit it
            work(number)

    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        list(pool.map(alone, numbers))  # re-raises what a piece has raised


def sample(n: int, most: int, device: torch.device) -> Tensor:
    """(min(n, most),) all of 0..n-1, or `most` of them drawn by PyTorch's generator."""
    return torch.arange(n, device=device) if n <= most else torch.randperm(n, device=device)[:most]


def fixed_sample(n: int, most: int) -> Tensor | slice:
    """All of n, or `most` of them, ascending and the same every time.

    They are drawn, as every k-th could fall in step with the order of nodes and miss whole classes.
    The draw has its own generator and moves no other.
    """
    if n <= most:
        return slice(None)
    return torch.randperm(n, generator=torch.Generator().manual_seed(0))[:most].sort().values


def pick_device(device: str) -> torch.device:
    """The device of a name; "auto" is a GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        raise SettingError(
            f"device {brief(device)} cannot be used here; try auto or cpu"
        ) from error
    return chosen


# Options of mallopt(3): above which sizes glibc returns memory at once.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEEP = {TRIM_THRESHOLD: 2**31 - 1, MMAP_THRESHOLD: 400 * 2**20}
DEFAULT = {TRIM_THRESHOLD: 2**26, MMAP_THRESHOLD: 2**25}


@contextmanager
def reuse_freed_memory() -> Iterator[None]:
    """Within this block freed memory is used again, and released at its end.

    Large arrays are otherwise requested from the system and returned each time, which clears all
    their pages: on a virtual machine a third of the time of a discovery. glibc only.
    """
    _set_malloc(KEEP)
    try:
        yield
    finally:
        _set_malloc(DEFAULT)
        release_freed_memory()


def release_freed_memory() -> None:
    """Have glibc return freed memory to the system; it keeps what threads have used."""
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _set_malloc(options: dict[int, int]) -> None:
    set_option = _of_glibc("mallopt")
    if set_option is not None:
        for option, value in options.items():
            set_option(option, value)


@cache
def _of_glibc(name: str) -> Callable[..., int] | None:
    """A function of glibc; None on other C libraries."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def join_views(views: Iterable[Tensor], shape: tuple[int, int], device: torch.device) -> Tensor:
    """(N, hidden) concatenation of (N, columns) views, of which only one is held at a time.

    For many nodes it is a file mapped into memory: rows are read when used, dropped when memory is
    short.
    """
    if device.type != "cpu" or 4 * shape[0] * shape[1] <= MAX_IN_MEMORY:
        z = torch.empty(shape, device=device)
        start = 0
        view: Tensor | None
        for view in views:
            columns = slice(start, start + view.shape[1])
            z[:, columns].copy_(view)
            start, view = columns.stop, None  # before the next one is computed
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
                del part  # unmapped pages do not count as memory
            start, view = columns.stop, None
        return torch.from_numpy(np.asarray(np.memmap(file, np.float32, "r+", shape=shape)))
