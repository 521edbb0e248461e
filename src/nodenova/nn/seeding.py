"""The one place where randomness and threads are set: `fit` and `discover` are pure functions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor

from nodenova.errors import SettingError


@contextmanager
def repeatable(seed: int, phase: str, threads: int = 1) -> Iterator[None]:
    """Run a block with a generator of its own and a fixed number of threads.

    The caller's random state and thread count come back afterwards. One thread is the default: on
    graphs of ordinary size it is the fastest, and sums are then always added in the same order.

    Args:
        seed: With `phase` it seeds PyTorch's generator.
        phase: Different phases of one seed draw different numbers.
        threads: Of PyTorch, NumPy, SciPy and scikit-learn.

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
def fixed_threads(threads: int = 1) -> Iterator[None]:
    """Run a block with a fixed number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads):  # NumPy, SciPy, scikit-learn
            yield
    finally:
        torch.set_num_threads(before)


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
