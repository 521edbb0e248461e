"""Run a case and judge what comes out, in this process or in a forked child.

A child that crashes or hangs costs one case: the parent reads which case it was, and a new child
goes on with the next one.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import re
import resource
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

from nodenova.errors import NodenovaError

HANG = 10.0  # seconds of one case
MEMORY = 512 * 2**20  # bytes that a case may add to the process
SENTENCE = 400  # characters of an error
BROKEN = 99  # exit code of a child in which the harness itself failed
VERDICTS = (
    "accepted", "refused", "type error", "wordy", "warning", "traceback", "memory", "crash", "hang",
)  # fmt: skip
FINE = ("accepted", "refused", "type error")
PACKAGE = f"{os.sep}nodenova{os.sep}"

Action: TypeAlias = Callable[[], object]
Maker: TypeAlias = Callable[[int], Action]  # case number -> action; it makes the input


class RefusalError(Exception):
    """A command or the server refused the input; the message is what the user reads."""


class WrongTypeError(Exception):
    """A TypeError for a value of another Python type than the signature has."""


class MisbehaviorError(Exception):
    """A command or the server failed in a way that is no refusal."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case: the verdict, the type of the error, where, and its first line."""

    verdict: str
    error: str = ""
    place: str = ""
    line: str = ""


def judge(action: Action) -> Outcome:
    """Run an action in this process and return its outcome."""
    noticed: list[Outcome] = []

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        frame = _deepest(traceback.walk_stack(None), reverse=True)
        noticed.append(Outcome("warning", category.__name__, frame, first_line(str(message))))

    _reset_peak()
    before = peak_memory()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            action()
    except (NodenovaError, RefusalError) as error:
        found = judge_sentence(error)
    except WrongTypeError:
        found = Outcome("type error")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        found = judge_error(error)
    else:
        found = Outcome("accepted")
    if found.verdict in FINE and noticed:
        found = noticed[0]
    grown = peak_memory() - before
    if found.verdict in FINE and grown > MEMORY:
        found = Outcome("memory", "peak", "", f"{grown >> 20} MB")
    return found


def judge_sentence(error: Exception) -> Outcome:
    """Judge the message of an error about the user's input."""
    text = str(error)
    if text.strip() and len(text) <= SENTENCE and len(text.splitlines()) == 1:
        return Outcome("refused")
    place = _deepest(traceback.walk_tb(error.__traceback__))
    return Outcome("wordy", type(error).__name__, place, first_line(text))


def judge_error(error: BaseException) -> Outcome:
    """Judge an error that is none about the user's input."""
    kind, text = type(error).__name__, str(error)
    place = _deepest(traceback.walk_tb(error.__traceback__))
    starved = isinstance(error, MemoryError) or "alloc" in text.lower()
    return Outcome("memory" if starved else "traceback", kind, place, first_line(text))


def first_line(text: str) -> str:
    """Return the first line of a text, at most 160 characters, that JSON can hold."""
    line = (text.strip().splitlines() or [""])[0][:160]
    return line.encode("utf-8", errors="backslashreplace").decode()


def _deepest(frames: Iterator[tuple[FrameType, int]], reverse: bool = False) -> str:
    """Return file:function:line of the deepest frame in the package."""
    inside = [
        (frame.f_code.co_filename, frame.f_code.co_name, line)
        for frame, line in frames
        if PACKAGE in frame.f_code.co_filename
    ]
    if not inside:
        return ""
    file, function, line = inside[0 if reverse else -1]
    return f"{file.rsplit(PACKAGE, 1)[1]}:{function}:{line}"


def peak_memory() -> int:
    """Return the largest resident size of this process since the last reset, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


# Children


@dataclass(frozen=True)
class Judged:
    """A case and its outcome."""

    number: int
    outcome: Outcome
    seconds: float


def judge_all(
    make: Maker,
    numbers: Sequence[int],
    scratch: Path,
    *,
    batch: int = 250,
    hang: float = HANG,
    found: Callable[[Judged], None] = lambda judged: None,
    quiet: bool = True,
) -> list[Judged]:
    """Judge cases in forked children, at most `batch` cases per child.

    Args:
        make: Function that makes the input of a case and returns the action to judge.
        numbers: Numbers of the cases.
        scratch: Folder for the log of a child that dies.
        batch: Number of cases of one child.
        hang: Seconds after which a case counts as hanging.
        found: Called with each judged case.
        quiet: Whether the children print nothing.
    """
    left, judged = list(numbers), []
    while left:
        for one in _child(make, left[:batch], scratch, hang, quiet):
            judged.append(one)
            found(one)
            left.remove(one.number)
    return judged


def _child(
    make: Maker, numbers: Sequence[int], scratch: Path, hang: float, quiet: bool
) -> Iterator[Judged]:
    """Yield the judged cases of one child; the last one may be the one that ended it."""
    log = scratch / "stack.txt"
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of a fork beside other threads; a child of ours uses none of their locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.close(reading)
        _serve(make, numbers, log, writing, quiet)
    os.close(writing)
    current: int | None = numbers[0]
    started, waiting = time.monotonic(), b""
    try:
        while True:
            ready, _, _ = select.select(
                [reading], [], [], max(0.0, started + hang - time.monotonic())
            )
            if not ready:
                os.kill(pid, signal.SIGABRT)  # faulthandler writes the stack
                _wait(pid, 5.0)
                place = _place_in(log)
                if current is not None:  # else it was stopped between two cases
                    yield Judged(current, Outcome("hang", "over the limit", place), hang)
                return
            content = os.read(reading, 65536)
            if not content:
                break
            *lines, waiting = (waiting + content).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "start" in message:
                    current, started = message["start"], time.monotonic()
                else:
                    outcome = Outcome(**message["outcome"])
                    yield Judged(message["number"], outcome, message["seconds"])
                    current = None
        code = _wait(pid, 5.0)
        if code == BROKEN:
            raise RuntimeError(log.read_text())
        if current is not None:
            name = signal.Signals(-code).name if code < 0 else f"exit {code}"
            yield Judged(current, Outcome("crash", name, _place_in(log)), 0.0)
    finally:
        os.close(reading)
        _wait(pid, 0.0)


def _serve(make: Maker, numbers: Sequence[int], log: Path, writing: int, quiet: bool) -> None:
    """Judge the cases in this child and write the outcomes to the pipe; never return."""
    code = 1
    try:
        silence = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2) if quiet else (0,):
            os.dup2(silence, handle)
        file = log.open("w")
        faulthandler.enable(file, all_threads=False)
        gc.disable()
        with limited_memory():
            for number in numbers:
                _write(writing, {"start": number})
                began = time.perf_counter()
                try:
                    action = make(number)
                except Exception as error:
                    text = "".join(traceback.format_exception(error)[-8:])
                    raise RuntimeError(
                        f"the harness itself failed in case {number}: {text}"
                    ) from error
                outcome = asdict(judge(action))
                took = time.perf_counter() - began
                _write(writing, {"number": number, "outcome": outcome, "seconds": round(took, 4)})
        code = 0
    except BaseException as error:
        log.write_text(f"{error}\n")
        code = BROKEN
    finally:
        os._exit(code)


@contextmanager
def limited_memory() -> Iterator[None]:
    """Let allocations fail beyond the bound, so that one case cannot take the machine."""
    text = Path("/proc/self/status").read_text()
    now = int(re.findall(r"VmData:\s+(\d+)", text)[0]) * 1024
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (now + 2 * MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _write(handle: int, message: dict[str, Any]) -> None:
    os.write(handle, json.dumps(message).encode() + b"\n")


def _wait(pid: int, seconds: float) -> int:
    """Wait for a child, kill it after some seconds, and return its exit code or -signal."""
    end = time.monotonic() + seconds
    while True:
        try:
            done, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return 0
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -int(signal.SIGKILL)
        time.sleep(0.01)


def _place_in(log: Path) -> str:
    """Return file:function:line of the deepest frame in the package, from a stack or an error."""
    text = log.read_text() if log.is_file() else ""
    match = re.search(r'nodenova/([^"]+)", line (\d+) in (\S+)', text)
    if match:
        file, line, function = match.groups()
        return f"{file}:{function}:{line}"
    return first_line(text)
