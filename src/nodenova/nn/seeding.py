"""The one place where randomness and threads are set: `fit` and `discover` are pure functions."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Literal, TypeAlias

import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor

from nodenova.errors import SettingError
from nodenova.nn.spill import reuse_freed_memory

Threads: TypeAlias = 'int | Literal["auto"]'
MIN_DIVIDED = 2_000_000  # multiplications from which on threads are worth being woken
_THREADS: ContextVar[int | None] = ContextVar("threads", default=None)


@contextmanager
def repeatable(seed: int, phase: str, threads: Threads = "auto") -> Iterator[None]:
    """Run a block with a generator of its own and a fixed number of threads.

    The caller's random state and thread count come back afterwards.

    Args:
        seed: With `phase` it seeds PyTorch's generator.
        phase: Different phases of one seed draw different numbers.
        threads: See `fixed_threads`.

    Examples:
        >>> def draw() -> Tensor:
        ...     with repeatable(0, "fit"):
        ...         return torch.rand(3)
        >>> torch.equal(draw(), draw())
        True
    """
    digest = hashlib.sha256(f"{seed}/{phase}".encode()).digest()
    with fixed_threads(threads), torch.random.fork_rng():
        torch.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        yield


@contextmanager
def fixed_threads(threads: Threads = "auto") -> Iterator[None]:
    """Run a block whose results do not depend on the number of threads.

    Sparse products are divided among them by columns or by rows, each of which one thread adds up
    in one order. All else runs on one thread: a sum over nodes that is divided differs in its last
    bits.

    Args:
        threads: "auto" is what a block around this one has, or else all cores, at most
            OMP_NUM_THREADS.

    Raises:
        SettingError: It is neither "auto" nor a whole number from 1 on.

    Examples:
        >>> with fixed_threads(2):
        ...     torch.get_num_threads()
        1
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
    """How many "auto" is here, or the number itself.

    Raises:
        SettingError: It is neither "auto" nor a whole number from 1 on.

    Examples:
        >>> num_threads(3)
        3
    """
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
    """Within `fixed_threads`, run a block that is divided by rows on all of its threads.

    Args:
        operations: Below MIN_DIVIDED it stays on one.
    """
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
    """Within `fixed_threads`, do independent pieces of work on all of its threads, each on one.

    Threads that meet after every product wait for each other; those that have a piece of their own
    do not.

    Args:
        work: Writes what it makes where no other piece writes.
        numbers: Of the pieces.
    """
    threads = _THREADS.get() or 1
    if threads == 1:
        for number in numbers:
            work(number)
        return

    def alone(number: int) -> None:
        with torch.no_grad():  # of which a new thread does not know
            work(number)

    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        list(pool.map(alone, numbers))  # raises what a piece has raised


def sample(n: int, most: int, device: torch.device) -> Tensor:
    """All of 0..n-1, or `most` of them at random where they are more.

    Args:
        n: How many there are.
        most: How many to take at the most.
        device: Where the numbers are drawn and kept.

    Returns:
        (min(n, most),) numbers, by PyTorch's generator.
    """
    return torch.arange(n, device=device) if n <= most else torch.randperm(n, device=device)[:most]


def fixed_sample(n: int, most: int) -> Tensor | slice:
    """All of n, or `most` of them where they are more: numbers, ascending, the same every time.

    They are drawn: every so-manieth could fall in step with the order that nodes come in, and miss
    whole classes. The draw is its own and moves no other.

    Examples:
        >>> fixed_sample(3, 5), len(fixed_sample(9, 5))
        (slice(None, None, None), 5)
    """
    if n <= most:
        return slice(None)
    return torch.randperm(n, generator=torch.Generator().manual_seed(0))[:most].sort().values


def pick_device(device: str) -> torch.device:
    """The device of a name; `auto` is the graphics card when there is one, else the processor.

    Raises:
        SettingError: It cannot be used on this machine.

    Examples:
        >>> pick_device("cpu")
        device(type='cpu')
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise SettingError(f"device {device!r} cannot be used here; try auto or cpu") from error
    return chosen
