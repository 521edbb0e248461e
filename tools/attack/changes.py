"""Changes of the file system by a child process: count them, and stop or fail at one of them.

A child is forked from this process after PyTorch and nodenova were imported, so that a command
costs a second. In the child an audit hook sees every change before it happens (files opened for
writing, renames, removals, new folders), and files and `os.write` are replaced such that each write
and each flush is seen too.
"""

from __future__ import annotations

import builtins
import errno
import faulthandler
import importlib
import io
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

# Position of the path, and of the folder's file descriptor, among the arguments of an audit event.
EVENTS = {
    "os.rename": (1, 3),
    "os.remove": (0, 1),
    "os.rmdir": (0, 1),
    "os.mkdir": (0, 2),
    "os.truncate": (0, None),
    "os.link": (1, 3),
    "os.symlink": (1, 2),
    "os.chmod": (0, 2),
    "shutil.rmtree": (0, None),
    "shutil.copytree": (1, None),
    "shutil.move": (1, None),
}
COMMITS = ("rename", "remove", "rmdir", "rmtree", "move", "link", "truncate")
FREES = ("remove", "rmdir", "rmtree", "truncate")  # possible on a full disk
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
PATIENCE = 120.0  # seconds after which a child hangs
ARRAYS = (".npy", ".npz")  # NumPy writes them without a call that can be seen
_open, _write, _fsync = io.open, os.write, os.fsync


class Change(NamedTuple):
    """A change of the file system: its kind and the path, relative to the watched folder."""

    kind: str
    path: str
    before: str = ""  # where a renamed file was

    @property
    def is_commit(self) -> bool:
        """Whether it makes something visible or lets something vanish."""
        return self.kind in COMMITS

    def __str__(self) -> str:
        return f"{self.kind} {self.before} -> {self.path}" if self.before else " ".join(self[:2])


Act = Callable[[int, Change], None]


def do_nothing(number: int, change: Change) -> None:
    """Let a change happen."""


@dataclass
class CountReads:
    """Let every change happen, and count files that are opened for reading too."""

    reads: bool = True

    def __call__(self, number: int, change: Change) -> None:
        """Do nothing."""


@dataclass
class KillAt:
    """Kill the process immediately before a change; a write is torn: half of it happens."""

    number: int

    def __call__(self, number: int, change: Change) -> None:
        if number == self.number and change.kind != "write":
            kill_self()


@dataclass
class FailAt:
    """Let the disk be full from a change on: nothing can be written, files can be removed."""

    number: int

    def __call__(self, number: int, change: Change) -> None:
        if number >= self.number and change.kind not in (*FREES, "chmod", "rename", "fsync"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), change.path)


def refuse(number: int, change: Change) -> None:
    """Let the folder be read-only; permissions would not stop root."""
    raise OSError(errno.EACCES, os.strerror(errno.EACCES), change.path)


@dataclass
class PauseAt:
    """Stop at a change, report it through a pipe, and continue when the other end answers."""

    number: int
    pipes: tuple[int, int]  # to read from, to write to
    reads: bool = False  # whether a file that is opened for reading counts too

    def __call__(self, number: int, change: Change) -> None:
        if number == self.number:
            _write(self.pipes[1], b".")
            os.read(self.pipes[0], 1)


def kill_self() -> NoReturn:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process continued")


class _Observer:
    """Counts the changes below a folder, logs each, and acts before it happens."""

    def __init__(self, root: Path, log: int, act: Act) -> None:
        self.root, self.log, self.act = os.path.realpath(root), log, act
        self.pid, self.number = os.getpid(), 0
        self.local = threading.local()
        self.lock = threading.Lock()

    def start(self) -> None:
        """Observe this process until it ends; a process that it starts is not observed."""
        sys.addaudithook(self.hook)
        observer = self

        class Watched(io.FileIO):
            def write(self, content: Any, /) -> int:
                observer.written(self.fileno(), content)
                return super().write(content)

        def open_(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **named: Any) -> Any:
            if not set(mode) & set("wax+"):
                return _open(file, mode, buffering, *rest, **named)
            return _watched_open(Watched, file, mode, buffering, *rest, **named)

        def write(handle: int, content: Any, /) -> int:
            observer.written(handle, content)
            return _write(handle, content)

        def fsync(handle: Any, /) -> None:
            number = handle if isinstance(handle, int) else handle.fileno()
            observer.seen("fsync", _path_of(number))
            _fsync(handle)

        replaced = {(io, "open"): open_, (builtins, "open"): open_, (os, "write"): write,
                    (os, "fsync"): fsync}  # fmt: skip
        for (module, name), function in replaced.items():
            setattr(module, name, function)

    def hook(self, event: str, arguments: Sequence[Any]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int) or not isinstance(flags, int):
                return
            if flags & WRITING:
                self.seen("open", path)
            elif getattr(self.act, "reads", False):
                self.seen("read", path)
        elif event in EVENTS:
            place, folder = EVENTS[event]
            inside = None if folder is None or len(arguments) <= folder else arguments[folder]
            before = arguments[0] if event == "os.rename" else ""
            self.seen(event.split(".")[1], _below(arguments[place], inside), before)

    def written(self, handle: int, content: Any) -> None:
        """Note a write; where the process is to be killed, do half of it first."""
        number = self.seen("write", _path_of(handle))
        if number and isinstance(self.act, KillAt) and number == self.act.number:
            part = bytes(content)
            _write(handle, part[: len(part) // 2])
            kill_self()

    def seen(self, kind: str, path: Any, before: Any = "") -> int:
        """Count a change below the folder and act; return its number, 0 for one elsewhere."""
        if os.getpid() != self.pid or getattr(self.local, "busy", False):
            return 0
        if isinstance(path, int):
            path = _path_of(path)
        place = os.path.join(os.getcwd(), os.fsdecode(path))
        if not place.startswith(self.root + os.sep):
            return 0
        self.local.busy = True
        try:
            with self.lock:
                self.number += 1
                number = self.number
            earlier = os.path.relpath(os.fsdecode(before), self.root) if before else ""
            change = Change(kind, os.path.relpath(place, self.root), earlier)
            _write(self.log, json.dumps(change).encode() + b"\n")
            self.act(number, change)
            return number
        finally:
            self.local.busy = False


def _path_of(handle: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{handle}")
    except OSError:
        return "/"


def _below(path: Any, folder: Any) -> Any:
    """A path that is relative to an open folder, as `shutil.rmtree` has them, in full."""
    if isinstance(path, int) or not isinstance(folder, int) or folder < 0:
        return path
    return os.path.join(_path_of(folder), os.fsdecode(path))


def _watched_open(
    kind: type[io.FileIO],
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """What `open` returns for a file to write, on a raw file of another kind."""
    raw = kind(file, mode.replace("b", "").replace("t", ""), closefd, opener)
    if buffering == 0:
        return raw
    size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    buffered = io.BufferedRandom(raw, size) if "+" in mode else io.BufferedWriter(raw, size)
    if "b" in mode:
        return buffered
    text = io.TextIOWrapper(buffered, encoding, errors, newline, line_buffering=buffering == 1)
    text.mode = mode  # type: ignore[misc]
    return text


@dataclass
class Ended:
    """How a child ended: its exit code, or minus the signal; what it printed and changed."""

    code: int
    output: str
    errors: str
    changes: list[Change] = field(default_factory=list)
    seconds: float = 0.0
    modules: list[str] = field(default_factory=list)  # that it had imported when it ended

    @property
    def is_killed(self) -> bool:
        """Whether it was killed."""
        return self.code == -signal.SIGKILL

    @property
    def sentence(self) -> str:
        """Its error message."""
        return " ".join(self.errors.split()).removeprefix("error: ")

    @property
    def has_traceback(self) -> bool:
        """Whether it ended with a traceback."""
        return "Traceback" in self.errors

    def __str__(self) -> str:
        what = f"signal {-self.code}" if self.code < 0 else f"exit {self.code}"
        return f"{what}: {self.sentence[-300:]}" if self.sentence else what


class Child:
    """A forked process that does some work in a folder, maybe observed."""

    def __init__(self, work: Callable[[], object], folder: Path, act: Act | None = None) -> None:
        self._notes = [tempfile.TemporaryFile() for _ in range(4)]  # noqa: SIM115
        self._started = time.monotonic()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Python warns of a fork beside other threads; the child uses none of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if not self.pid:
            self._work(work, folder, act)

    def _work(self, work: Callable[[], object], folder: Path, act: Act | None) -> NoReturn:
        code = 1
        try:
            os.setsid()  # what it starts can be ended with it
            os.environ["OMP_NUM_THREADS"] = "1"  # pools of threads are lost in a fork
            output, errors, log, modules = (file.fileno() for file in self._notes)
            os.dup2(output, 1)
            os.dup2(errors, 2)
            sys.stdout, sys.stderr = _open(1, "w", closefd=False), _open(2, "w", closefd=False)
            faulthandler.disable()
            os.chdir(folder)
            if act is not None:
                _Observer(folder, log, act).start()
            work()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            _write(modules, "\n".join(sys.modules).encode())
            os._exit(code)

    def kill(self) -> None:
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)

    def poll(self) -> bool:
        """Whether it has ended."""
        return bool(os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT))

    def wait(self, timeout: float = PATIENCE) -> Ended:
        """Wait for its end; a child that hangs is killed and has exit code -6."""
        hangs = False
        while not self.poll():
            if time.monotonic() - self._started > timeout:
                hangs = True
                self.kill()
            time.sleep(0.002)
        seconds = time.monotonic() - self._started
        _, status = os.waitpid(self.pid, 0)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # workers of a bench
        texts = []
        for file in self._notes:
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        code = -signal.SIGABRT if hangs else os.waitstatus_to_exitcode(status)
        changes = [Change(*json.loads(line)) for line in texts[2].splitlines()]
        return Ended(code, texts[0], texts[1], changes, seconds, texts[3].split())


def run_child(work: Callable[[], object], folder: Path, act: Act | None = None) -> Ended:
    """Do some work in a forked process, and wait for its end."""
    return Child(work, folder, act).wait()


def import_modules(ended: Ended) -> Ended:
    """Import what a child had to import, so that the next ones need not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ended.modules:
            if name not in sys.modules:
                with suppress(Exception):
                    importlib.import_module(name)
    return ended


def unflushed(changes: Sequence[Change]) -> list[str]:
    """Paths that were renamed into place with content that was not flushed to the disk before.

    A killed process loses nothing of that, a power cut may.
    """
    dirty: set[str] = set()
    found = []
    for change in changes:
        if change.kind == "write" or (change.kind == "open" and change.path.endswith(ARRAYS)):
            dirty.add(change.path)
        elif change.kind in ("fsync", "remove"):
            dirty.discard(change.path)
        elif change.kind == "rename":
            inside = {path for path in dirty if _is_in(path, change.before)}
            found += [change.path + path[len(change.before) :] for path in sorted(inside)]
            dirty -= inside
    return found


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)
