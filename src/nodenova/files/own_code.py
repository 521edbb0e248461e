"""Code of the user: classes in a file, named path/to/mine.py:Mine, and commands."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodenova.errors import NodenovaError, SettingError, brief, first_line
from nodenova.files.content import open_file

MAX_ANSWER = 2**20  # bytes that a command may answer


@dataclass(frozen=True)
class Origin:
    """File and class of a user's method or encoder; a changed file has another digest."""

    name: str  # path/to/mine.py:Mine
    digest: str  # hash of the content of the file

    @property
    def class_name(self) -> str:
        return self.name.rpartition(":")[2]


def is_path(name: str) -> bool:
    """Return whether a name is that of a class in a file: mine.py:Mine."""
    return ".py:" in name or name.endswith(".py")


def load_class(name: str, what: str = "a method") -> tuple[type[Any], Origin]:
    """Run a user's file, like `import`, and return the class that `name` refers to."""
    path, code = _source(name, what)
    _, _, wanted = name.rpartition(":")
    # The same file gives the same module, so that loading it twice gives the same class.
    digest = hashlib.sha256(str(path.resolve()).encode() + code).hexdigest()[:16]
    module_name = f"nodenova_own_{digest}"
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module  # dataclasses look up their module while they are built
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[module_name]
            reason = f"{type(error).__name__}: {error}"
            raise SettingError(f"{path}: cannot be imported ({reason})") from error
    found = getattr(sys.modules[module_name], wanted, None)
    if not isinstance(found, type):
        raise SettingError(f"{path} has no class {wanted}")
    return found, Origin(name, hashlib.sha256(code).hexdigest()[:16])


def _source(name: str, what: str) -> tuple[Path, bytes]:
    """Return the path and the content of the file that a name refers to."""
    file, _, wanted = name.rpartition(":")
    if not file or not wanted.isidentifier():
        raise SettingError(f"{what} in a file is named path/to/mine.py:Mine, not {name!r}")
    path = Path(file)
    with open_file(path, SettingError) as code:
        return path, code.read()


def split_command(command: str, option: str) -> list[str]:
    """The program and the arguments of a command; raise if there is no such program."""
    try:
        arguments = shlex.split(command)
    except ValueError as error:  # a quotation mark without its pair
        raise SettingError(f"{option} {brief(command)}: {first_line(error)}") from None
    if not arguments:
        raise SettingError(f"{option} is a command, and it is empty")
    if shutil.which(arguments[0]) is None:
        raise SettingError(f"{option}: there is no program {brief(arguments[0])}")
    return arguments


def run_command(
    arguments: Sequence[str],
    question: bytes,
    seconds: float,
    option: str,
    failure: type[NodenovaError],
) -> bytes:
    """The output of a command, which reads `question`; no shell is started.

    After `seconds` it is stopped, with all that it started.
    """
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            arguments, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except OSError as error:
        raise failure(f"{option} cannot be started ({error.strerror})") from None
    try:
        answer, messages = process.communicate(question, seconds)
    except subprocess.TimeoutExpired:
        took = f"took longer than {seconds:g} seconds"
        raise failure(f"{option} {took} and was stopped") from None
    finally:
        _stop(process)
    if process.returncode:
        lines = messages.decode(errors="replace").strip().splitlines()
        why = f": {brief(lines[-1], 200)}" if lines else ""
        raise failure(f"{option} ended with exit code {process.returncode}{why}")
    if len(answer) > MAX_ANSWER:
        raise failure(f"{option} answered more than {MAX_ANSWER >> 20} MiB")
    return answer


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a command that still runs, and what it started."""
    if process.poll() is None:
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()
